"""Augmentation of whole batches of uint8 images, every draw keyed by (seed, step, index).

Functions take (batch, channels, height, width) uint8 tensors and the drawn parameters, one per image, and return new
tensors. Integers in, integers out: the result does not depend on how many threads did the sums.
"""
