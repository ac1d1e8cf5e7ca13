"""Comparisons: verdicts, leaderboard, curves by candidate, settings that differ, examples that networks disagree on."""
