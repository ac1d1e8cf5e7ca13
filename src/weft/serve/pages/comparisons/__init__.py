"""Comparisons: verdicts, leaderboard, curves by candidate, settings that differ, and examples on which two networks disagree."""
