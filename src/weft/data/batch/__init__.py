"""From splits to batches of tensors; a batch is a pure function of (seed, step)."""
