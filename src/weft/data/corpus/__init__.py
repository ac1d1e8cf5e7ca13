"""Plain text as documents, sentences and sequences of word ids: what pre-training reads.

Imports nothing of weft but weft.data, weft.disk and weft.errors. `config` is free of torch.
"""
