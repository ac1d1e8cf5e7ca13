"""Trained networks for other programs: ONNX graphs, int8 weights, folders that timm and transformers read.

`training/inference/onnx_file.py` reads what is written here. May import training and what is left of it; commands and
the server import it.
"""
