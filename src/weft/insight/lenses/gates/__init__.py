"""How a run mixes tokens: its matrices, how local and how shift-invariant they are."""
