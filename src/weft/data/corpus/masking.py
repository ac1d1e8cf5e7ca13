"""Masked-language modelling's question: which tokens are to be guessed, and what stands in their place.

A function of (stream, example, position) alone: whichever rank or worker asks, the same tokens are hidden.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weft.data.batch import noise
from weft.data.transform.tokenizer import MARKERS, Tokenizer

Ids = NDArray[np.int64]
Flags = NDArray[np.bool_]

UNASKED = -1  # the answer where nothing is asked


@dataclass(frozen=True)
class Masking:
    """How many tokens are asked for, and what becomes of them."""

    share: float
    hidden: float
    random: float
    whole_words: bool
    mask_id: int
    ordinary: Ids
    """ids that may stand in a token's place: all but the markers"""
    inside: Flags
    """(vocabulary,) true for pieces that go on a word, ##ing for instance"""
    markers: Ids

    @classmethod
    def of(cls, tokenizer: Tokenizer, share: float, hidden: float, random: float, whole_words: bool) -> Masking:
        """For the ids of a tokeniser."""
        words = tokenizer.words()
        markers = np.array([number for number, word in enumerate(words) if word in MARKERS])
        ordinary = np.setdiff1d(np.arange(len(words)), markers)
        inside = np.array([word.startswith("##") for word in words])
        return cls(share, hidden, random, whole_words, tokenizer.mask_id, ordinary, inside, markers)

    def __call__(self, x: Ids, real: Flags, index: Ids, stream: int) -> tuple[Ids, Ids]:
        """Ids (batch, tokens) with some replaced, and what stood there, UNASKED elsewhere. `real` is false at padding.

        Of n tokens of a sequence, markers aside, round(share · n) are chosen, one at least.
        """
        free = real & ~np.isin(x, self.markers)
        places = (index[:, None] << 16) + np.arange(x.shape[1])
        chosen = self._choose(x, free, _uniform(stream, places, 0))
        answers = np.where(chosen, x, UNASKED)
        lot = _uniform(stream, places, 1)
        strangers = self.ordinary[(noise.bits(stream, places, 2) % np.uint64(len(self.ordinary))).astype(np.int64)]
        shown = np.where(chosen & (lot < self.hidden), self.mask_id, x)
        swapped = chosen & (lot >= self.hidden) & (lot < self.hidden + self.random)
        return np.where(swapped, strangers, shown), answers

    def _choose(self, x: Ids, free: Flags, draws: NDArray[np.float64]) -> Flags:
        """The free tokens with the smallest draws; with whole words, the words of the smallest draws that fit in."""
        wanted = np.where(free.any(1), np.maximum(1, np.rint(self.share * free.sum(1))), 0)[:, None]
        if self.whole_words:
            begins = ~self.inside[x] | ~free
            begins[:, 0] = True
            first = np.maximum.accumulate(np.where(begins, np.arange(x.shape[1]), 0), axis=1)
            draws = np.take_along_axis(draws, first, 1)
        order = np.argsort(np.where(free, draws, np.inf), axis=1, kind="stable")
        rank = np.empty_like(order)
        np.put_along_axis(rank, order, np.broadcast_to(np.arange(x.shape[1]), x.shape), 1)
        if not self.whole_words:
            return free & (rank < wanted)
        last = _largest_of_word(rank, first)  # a word is taken when its last piece is within the count
        return free & ((last < wanted) | (first == np.take_along_axis(first, order[:, :1], 1)))


def _largest_of_word(rank: Ids, first: Ids) -> Ids:
    """For every token the largest rank among the pieces of its word, `first` being where the word begins."""
    largest = np.zeros_like(rank)
    rows = np.arange(len(rank))[:, None]
    np.maximum.at(largest, (rows, first), rank)
    return np.take_along_axis(largest, first, 1)


def _uniform(stream: int, places: Ids, draw: int) -> NDArray[np.float64]:
    return (noise.bits(stream, places, draw) >> np.uint64(11)).astype(np.float64) * 2.0**-53
