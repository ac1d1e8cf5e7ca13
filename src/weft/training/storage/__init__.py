"""The files of a run folder: written whole or not at all, checked when read."""
