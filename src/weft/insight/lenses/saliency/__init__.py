"""What a run looks at, and whether that is so."""
