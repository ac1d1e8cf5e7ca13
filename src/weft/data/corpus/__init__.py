"""Plain text as documents, sentences and sequences of word ids: what pre-training reads.

Imports nothing of weft but weft.data and weft.errors. `config` is free of torch.
"""
