"""Intervals over examples and seeds, and the verdicts drawn from them."""
