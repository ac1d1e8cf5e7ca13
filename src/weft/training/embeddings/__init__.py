"""Contextual embeddings of a trained encoder: computed once, kept in the cache, fed to the networks above it.

Imports `data` and `networks`; fine-tuning with a frozen encoder is what uses it.
"""
