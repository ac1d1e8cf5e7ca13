"""Optimisers, schedules, the rate finder."""
