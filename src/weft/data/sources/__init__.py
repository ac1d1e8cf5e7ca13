"""Readers, one file a format: each turns something readable into tables of raw inputs with their labels.

A reader knows nothing of roles, tasks, tensors or batches; `weft.data.open.source` gives its tables their meaning.
"""
