"""One run: configuration, objective, optimiser, schedule, loop, checkpoint, metrics, resume.

Imports nn, networks and data, and report for the curves of a run.
"""
