"""Anything readable becomes splits of images, text, pairs or vectors with targets, and then batches of tensors.

Imports no other folder of weft. A batch is a pure function of (seed, step).
"""
