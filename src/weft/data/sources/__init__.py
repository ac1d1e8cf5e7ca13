"""Readers, one file a format: each turns something readable into tables of raw inputs with their labels.

`find` knows which reader is whose, `table` has what all of them return, and what is done with bad rows. A reader knows
nothing of roles, tasks, tensors or batches: `weft.data.open` gives tables their meaning; it imports these files, and
none of them imports it. Of `weft.data` only `config` and `read` are imported here.
"""
