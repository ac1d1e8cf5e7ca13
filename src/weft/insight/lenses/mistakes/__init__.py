"""The answers of a run: confusions, the worst mistakes, the most doubtful examples."""
