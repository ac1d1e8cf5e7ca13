"""Odd inputs, a table a module: what is there, what is typed, and what must come of it.

`benchmarks/odd_inputs.py` runs them with the real command; `tests/test_odd_inputs.py` runs the quick ones in its own
process. To add one, add a line to the table of its group.
"""
