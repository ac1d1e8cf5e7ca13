"""MLP-Mixer (Tolstikhin et al. 2021, M1), and the controls that differ from it in the mixer alone.

X = non-overlapping patches of P×P pixels, each embedded by one linear layer: (S tokens, C channels)
U = X + W₂ σ(W₁ LN(X))         over tokens, of hidden width D_S, the same for every channel
Y = U + W₄ σ(W₃ LN(U))         over channels, of hidden width D_C, the same for every token; L times
y = the mean of LN(Y) over tokens, read by a linear head. Biases everywhere; no positions, no class token.
"""

from __future__ import annotations

from weft.networks.backbone import ImageTokens, TextTokens


class Mixer(ImageTokens):
    """The token backbone with an MLP over tokens as its mixer."""


class TextMixer(TextTokens):
    """The same on word vectors; a text shorter than the network uses the first columns of W₁ and rows of W₂."""


class Control(ImageTokens):
    """The token backbone with a mixer that learns nothing (identity, random, pooling) or only locally (depthwise)."""


class TextControl(TextTokens):
    """The same controls for text."""
