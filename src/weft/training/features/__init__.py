"""Features of a frozen network: what it makes of each input just before its head, computed once and kept in the cache.

Imports what `training` may. Linear probes, fine-tuning that starts from one, and `weft probe` read them.
"""
