"""BERT's encoder (Devlin et al. 2018), and the two pre-training heads, which fit any text network.

z₀ = LN(words + segments + positions)
z′ = LN(z + MSA(z))
z  = LN(z′ + MLP(z′))          L times: the norm comes after the sum
pooled = tanh(W z⁰ + b), the first token, [CLS], read by a linear head.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from weft.networks.base.backbone import TextTokens
from weft.networks.config import TextTokensConfig
from weft.networks.registry import Sizes
from weft.nn.activations import activation
from weft.nn.initialisation import initialise


class BERT(TextTokens):
    """The token backbone with attention, post-norm blocks, segments, learned positions and a pooler."""


class PretrainingHeads(nn.Module):
    """Masked-language modelling and next-sentence prediction on top of any text network.

    Word logits are LN(act(W z)) Eᵀ + b, with E the network's own word vectors (tied): they belong to the network, and
    are held in a tuple so as not to be counted and saved twice. Next-sentence logits are linear in the pooled vector.
    """

    def __init__(self, encoder: TextTokens, *, next_sentence: bool = True) -> None:
        super().__init__()
        config = encoder.config
        self._tied = (encoder.embed.words,)
        self.transform = nn.Linear(config.dim, config.dim)
        self.act = activation(config.act)
        self.norm = nn.LayerNorm(config.dim, eps=config.norm_eps)
        self.bias = nn.Parameter(torch.zeros(config.vocab_size))
        self.next_sentence = nn.Linear(config.dim, 2) if next_sentence else None
        for layer in (self.transform, self.next_sentence):
            if layer is not None:
                initialise(nn.ModuleList([layer]), "bert")

    @property
    def words(self) -> Tensor:
        """The word vectors of the network: (vocabulary, channels)."""
        return self._tied[0].weight

    def transformed(self, features: Tensor) -> Tensor:
        """LN(act(W z)), which is compared with the word vectors: (…, channels) in and out."""
        return self.norm(self.act(self.transform(features)))

    def word_logits(self, features: Tensor) -> Tensor:
        """(…, channels) → (…, vocabulary). For training see nn/word_loss.py, which never makes them all."""
        return F.linear(self.transformed(features), self.words, self.bias)


def bert(
    dim: int, depth: int, heads: int, pool: Literal["token", "mean"] = "token", pooler: bool = True
) -> TextTokensConfig:
    return TextTokensConfig(
        family="bert",
        dim=dim,
        depth=depth,
        hidden_dim=4 * dim,
        heads=heads,
        max_length=512,
        segments=2,
        positions="learned",
        pool=pool,
        norm_first=False,
        norm_eps=1e-12,
        embed_norm=True,
        final_norm=False,
        pooler=pooler,
        drop_rate=0.1,
        head_drop_rate=0.1,
        num_classes=2,
    )


def sizes() -> Sizes:
    """Devlin et al. 2018 and Turc et al. 2019's miniatures, heads of 64 channels; and MiniLM (Wang et al. 2020), whose
    sentence encoder is read by the mean over tokens."""
    shapes = {
        "tiny": (2, 128),
        "mini": (4, 256),
        "small": (4, 512),
        "medium": (8, 512),
        "base": (12, 768),
        "large": (24, 1024),
    }
    for size, (depth, dim) in shapes.items():
        yield f"bert_{size}", bert(dim, depth, dim // 64)
    yield "minilm_l6", bert(384, 6, 12, pool="mean", pooler=False)
