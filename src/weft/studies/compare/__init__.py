"""`weft compare`: candidates at equal budget, their rates, two runs on the same examples."""
