"""The training loop and what it calls each step."""
