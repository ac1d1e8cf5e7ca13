"""gMLP (Liu et al. 2021, M2–M4), tMLP (M5) and aMLP (M6), for images and text.

Z = σ(LN(X) U)                 to the expanded width E
s(Z) = Z₁ ⊙ (W LN(Z₂) + b)     over tokens: the spatial gate, here split; see nn/gates.py for its other forms
Y = s(Z) V + X                 L times; mean over tokens, linear head; no positions.

tMLP: W is a Toeplitz matrix (`gate_weight="toeplitz"`, or "toeplitz2d" over rows and columns of an image).
aMLP: a one-head attention of width 64 on LN(X) is added inside the gate (`tiny_attention=64`).
"""

from __future__ import annotations

from weft.networks.backbone import ImageTokens, TextTokens


class GMLP(ImageTokens):
    """The token backbone with gated blocks, on patches."""


class TextGMLP(TextTokens):
    """The token backbone with gated blocks, on word vectors."""
