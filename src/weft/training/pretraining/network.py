"""A text network with its two pre-training heads, answering with losses: what a pre-training run trains."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from weft.networks.base.backbone import TextTokens
from weft.networks.base.network import Network
from weft.networks.bert import PretrainingHeads
from weft.networks.config import TextTokensConfig
from weft.networks.registry import build
from weft.nn.initialisation import seeded
from weft.nn.word_loss import word_losses

MASKED, HITS, NEXT, NEXT_HITS = range(4)  # columns of what the network answers


class Pretraining(nn.Module):
    """Any token network on text, its word vectors tied to the masked-word head, and the next-sentence head if asked."""

    def __init__(self, encoder: TextTokens, *, masked: bool = True, next_sentence: bool = False) -> None:
        super().__init__()
        self.encoder = encoder
        self.heads = PretrainingHeads(encoder, next_sentence=next_sentence)
        self.masked = masked
        for part in self._idle(next_sentence):
            part.requires_grad_(False)

    def _idle(self, next_sentence: bool) -> list[Any]:
        """What gets no gradient: several processes would wait for it forever."""
        pooler = [] if next_sentence else [self.encoder.pooler]
        return pooler if self.masked else [*pooler, self.heads.transform, self.heads.norm, self.heads.bias]

    def forward(
        self,
        x: Tensor,
        answers: Tensor,
        follows: Tensor,
        mask: Tensor | None = None,
        segments: Tensor | None = None,
    ) -> Tensor:
        """Ids and answers (batch, tokens), −1 where nothing is asked; follows (batch,), −1 where it is not asked.

        Returns (batch, 4): summed loss and hits of the masked words, loss and hit of the next sentence. Sums, so that
        whoever divides knows how many were asked over all micro-batches and processes.
        """
        features = self.encoder.forward_features(x, mask, segments)
        nothing = features.new_zeros(len(x), dtype=torch.float32)
        words = self.guess_words(features, answers) if self.masked else (nothing, nothing)
        following = (nothing, nothing)
        if self.heads.next_sentence is not None:
            pooled = self.encoder.forward_head(features, mask, pre_logits=True)
            following = judge(self.heads.next_sentence(pooled).float(), follows)
        return torch.stack([*words, *following], dim=1)

    @torch.compiler.disable  # type: ignore[untyped-decorator]  # how many are masked is known at run time only
    def guess_words(self, features: Tensor, answers: Tensor) -> tuple[Tensor, Tensor]:
        """Loss and hits of the masked words of each sequence, from the features at their places alone: (batch,)."""
        places = (answers >= 0).flatten().nonzero().squeeze(1)
        asked = answers.flatten()[places]
        guesses = self.heads.transformed(features.flatten(0, 1).index_select(0, places))
        losses, hits = word_losses(guesses, self.heads.words, self.heads.bias, asked)
        rows = places // answers.shape[1]
        nothing = losses.new_zeros(len(answers))
        return nothing.index_add(0, rows, losses), nothing.index_add(0, rows, hits.float())

    def parameter_groups(self, weight_decay: float) -> list[dict[str, Any]]:
        """Two groups for an optimiser: weights, which decay, and norms, biases and positions, which do not."""
        return Network.parameter_groups(self, weight_decay)  # type: ignore[arg-type]


def judge(logits: Tensor, follows: Tensor) -> tuple[Tensor, Tensor]:
    """Loss and hit of next-sentence logits (batch, 2); zero where it is not asked."""
    asked = (follows >= 0).float()
    losses = F.cross_entropy(logits, follows.clamp(min=0), reduction="none") * asked
    return losses, (logits.argmax(1) == follows).float() * asked


def create_pretraining(config: TextTokensConfig, seed: int, *, masked: bool, next_sentence: bool) -> Pretraining:
    """The network and its heads with the initial weights that `seed` decides."""
    with seeded(seed):
        encoder = build(config)
        assert isinstance(encoder, TextTokens)
        return Pretraining(encoder, masked=masked, next_sentence=next_sentence)
