"""A trained run put to use: predictions, evaluation, verification."""
