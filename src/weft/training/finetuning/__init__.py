"""Fine-tuning: a network that was trained before, here or elsewhere, learns the targets of a source.

Imports what `training` may; the rest of `training` knows of it through `kinds.py`.
"""
