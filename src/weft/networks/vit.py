"""Vision Transformer (Dosovitskiy et al. 2020, A3) and the ResNet–ViT hybrid (A5).

z₀ = [class; x₁E; …; x_NE] + positions
z′ = MSA(LN(z)) + z
z  = MLP(LN(z′)) + z′          L times
y  = LN(z⁰), the class token, read by a linear head.
"""

from __future__ import annotations

from weft.networks.backbone import ImageTokens


class ViT(ImageTokens):
    """The token backbone with attention as its mixer, a class token and learned positions."""


class Hybrid(ImageTokens):
    """A ViT whose tokens are the pixels of a ResNet's last feature map instead of patches of the image."""
