"""`weft compare`: candidates at equal budget, their rates, the classical baselines."""
