"""Cross entropy over a vocabulary, in pieces: the (positions, words) matrix of logits is never alive as a whole."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

CHUNK = 1 << 24  # logits alive at a time: 64 MiB, large enough for full speed, small beside the optimiser's state


def word_losses(features: Tensor, words: Tensor, bias: Tensor, answers: Tensor) -> tuple[Tensor, Tensor]:
    """Cross entropy of features · wordsᵀ + bias against `answers`, and whether the likeliest word is the answer.

    features (positions, channels), words (vocabulary, channels), bias (vocabulary,), answers (positions,) int64;
    losses (positions,) float32 and hits (positions,) bool, which have no gradient. Inside of autocast, too, this is
    computed in the number format of the word vectors: a sum over 30,000 exponentials needs its digits.
    """
    with torch.autocast(features.device.type, enabled=False):
        features = features.to(words.dtype)
        if torch.is_grad_enabled():
            losses, hits = _WordLosses.apply(features, words, bias, answers)
            return losses, hits
        losses, hits = features.new_empty(len(answers), dtype=torch.float32), answers.new_empty(len(answers)).bool()
        for part in _chunks(len(answers), len(words)):
            losses[part], hits[part], _ = _chunk(features[part], words, bias, answers[part])
        return losses, hits


def _chunks(positions: int, vocabulary: int) -> list[slice]:
    size = max(1, CHUNK // vocabulary)
    return [slice(at, at + size) for at in range(0, positions, size)]


def _chunk(features: Tensor, words: Tensor, bias: Tensor, answers: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Losses, hits and probabilities (positions, vocabulary) of some positions. log Σ exp z = max z − log p(max)."""
    logits = torch.addmm(bias, features, words.T).float()
    highest, likeliest = logits.max(1)
    given = logits.gather(1, answers[:, None]).squeeze(1)
    chances = torch.softmax(logits, 1, out=logits)
    losses = highest - given - chances.gather(1, likeliest[:, None]).squeeze(1).log()
    return losses, likeliest == answers, chances


class _WordLosses(torch.autograd.Function):
    """Gradients are computed with the losses, for a gradient of 1 at every position, and scaled in the backward pass.

    That is exact when the incoming gradient is the same at all positions, as for a mean or a sum, which is what
    training asks for; for any other the gradients are computed anew.
    """

    @staticmethod
    def forward(ctx: Any, features: Tensor, words: Tensor, bias: Tensor, answers: Tensor) -> tuple[Tensor, Tensor]:
        ones = torch.ones(len(answers), device=features.device)
        losses, hits, *gradients = _with_gradients(features, words, bias, answers, ones)
        ctx.save_for_backward(features, words, bias, answers, *gradients)
        ctx.mark_non_differentiable(hits)
        return losses, hits

    @staticmethod
    def backward(ctx: Any, incoming: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        features, words, bias, answers, *gradients = ctx.saved_tensors
        if not len(answers):
            return (*gradients, None)
        if bool((incoming == incoming[0]).all()):
            return (*(gradient * incoming[0] for gradient in gradients), None)
        return (*_with_gradients(features, words, bias, answers, incoming)[2:], None)


def _with_gradients(
    features: Tensor, words: Tensor, bias: Tensor, answers: Tensor, incoming: Tensor
) -> tuple[Tensor, ...]:
    """Losses, hits, and the gradients of Σ incoming · losses for features, words and bias."""
    losses, hits = torch.empty_like(incoming), torch.empty_like(incoming, dtype=torch.bool)
    for_features, for_words, for_bias = torch.empty_like(features), torch.zeros_like(words), torch.zeros_like(bias)
    for part in _chunks(len(answers), len(words)):
        losses[part], hits[part], slopes = _chunk(features[part], words, bias, answers[part])
        slopes.scatter_add_(1, answers[part, None], -torch.ones_like(incoming[part, None]))
        slopes = slopes.mul_(incoming[part, None]).to(features.dtype)
        for_features[part] = slopes @ words
        for_words.addmm_(slopes.T, features[part])
        for_bias += slopes.sum(0)
    return losses, hits, for_features, for_words, for_bias
