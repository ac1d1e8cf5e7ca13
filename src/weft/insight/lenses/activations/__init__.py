"""What the units of a run answer, and which of them are dead."""
