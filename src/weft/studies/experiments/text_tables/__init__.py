"""The studies of text networks, e4 to e7: tables 6 to 9 of the course work, at three scales.

`scales` says how large a run is, `design` what an experiment is, `tables` who stands in each table and what was
published of it; `run_configs`, `jobs`, `timing`, `forecast` and `run_experiment` run it; `scores`, `orderings` and
`drawing` say what came out. What a listing needs loads no torch.
"""
