"""Many runs: comparisons at equal budget, tuning, the experiments, and the engine that runs their jobs.

May import training, data, networks and report; commands, the Python interface and, for what is stored, `serve` import
it. A study is a list of runs and a way to draw them. What a listing or `--help` needs (`compare`,
`experiments.registry`) loads no torch.
"""
