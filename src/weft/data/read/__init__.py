"""Decoding images, and the cache of what was decoded."""
