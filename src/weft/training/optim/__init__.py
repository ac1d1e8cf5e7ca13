"""Optimisers and schedules, clipped gradients, the rate finder."""
