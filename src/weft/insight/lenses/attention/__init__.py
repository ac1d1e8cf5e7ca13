"""Where the heads of a run look."""
