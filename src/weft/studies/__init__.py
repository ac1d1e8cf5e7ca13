"""Many runs: comparisons at equal budget, tuning, the experiments E1, E10 and E11, and the runner under them.

May import training, data, networks and report; only commands import it. A study is a list of runs and a way to draw
them. The modules that a listing or `--help` needs (`candidates`, `matching`, `library`) load no torch.
"""
