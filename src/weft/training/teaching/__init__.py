"""A trained network teaches another: its answers are learnt beside the labels, or become labels of unlabelled rows.

Imports `data`, `networks` and `training/inference`; `training/run/inputs.py` and fine-tuning are what uses it.
"""
