"""The life of one run: its inputs, plan, probe, and what ties them together."""
