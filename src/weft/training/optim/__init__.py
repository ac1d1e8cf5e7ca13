"""Optimisers and schedules, the rate finder."""
