"""The systems, one file a family, the registry of their names, and `weights/` for foreign checkpoints.

Imports `nn`; imported by everything to its right (training, studies, insight, serve, commands).
"""
