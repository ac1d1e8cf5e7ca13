"""Foreign checkpoints: one adapter a source (timm, Google's npz, Hugging Face, CIFAR ResNets), and resizing.

Imports `networks` and `nn`. Nothing here runs code from a checkpoint.
"""
