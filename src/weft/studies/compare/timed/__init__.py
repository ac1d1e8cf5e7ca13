"""A comparison in a given time: an answer early, better ones as time goes by, and an end when it was promised.

first       every candidate at its usual settings, one seed, short runs: the first leaderboard
trials      other rates, sizes and image sides, as many for every candidate, by halving on the validation split
full runs   with the settings that won, seed by seed, and further seeds while time is left

What was measured and chosen is kept in timed.json, so that the same command goes on, also with more time.
Imported by `studies/compare/comparison.py`, and by `studies/compare/dry_run.py`, which plans without running.
"""
