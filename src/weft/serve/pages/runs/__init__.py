"""The list of runs, one run, and curves: what there is, what changes, and how it is drawn."""
