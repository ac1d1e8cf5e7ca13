"""Backpropagation written out, gradient sizes by layer, and what happens without norm or residual."""
