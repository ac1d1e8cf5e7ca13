"""How the answers change when the input is shifted."""
