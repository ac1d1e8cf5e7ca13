"""The contextual embeddings of all texts of a table, computed once by a frozen encoder and mapped from the cache.

They are kept in parts under names made of the texts' ids, the encoder's digest and the layer. A part is written whole
or not at all, so a kill costs one part, and the next call goes on with the others.
"""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from weft.data.batch.token_batches import TokenStore
from weft.data.read.cache import Cache, digest
from weft.errors import WeftError
from weft.networks.base.encoder import TrainedEncoder
from weft.networks.config import EncoderConfig, TextTokensConfig
from weft.training.loop.display import duration

VERSION = "1"  # raise it when the same encoder would give other embeddings
PART = 2048  # texts of an entry: what a kill can cost
KEPT = 0.5  # of what the cache may hold, and of what is free on its disk, for the embeddings of one source
BATCH = 4096  # tokens that the encoder reads at a time: enough for full speed, few enough for any memory

Index = NDArray[np.int64]
Say = Callable[[str], None]
Build = Callable[[], dict[str, Tensor]]


@dataclass(frozen=True)
class VectorStore:
    """Embeddings of all texts, end to end, in parts of PART texts; text i has the tokens [offsets[i], offsets[i+1])."""

    parts: list[Tensor]  # (tokens of the part, channels) float16, mapped from their files
    offsets: Index

    @property
    def lengths(self) -> Index:
        return np.diff(self.offsets)

    def rows(self, index: Index) -> list[Tensor]:
        """(tokens, channels) of each text."""
        found = []
        for row in index.tolist():
            before = self.offsets[row - row % PART]
            found.append(self.parts[row // PART][self.offsets[row] - before : self.offsets[row + 1] - before])
        return found


def vector_store(tokens: TokenStore, config: EncoderConfig, about: str, say: Say | None = None) -> VectorStore:
    """The embeddings of the texts in `tokens`: those in the cache, and the others computed now."""
    cache = Cache()
    size = int(tokens.offsets[-1]) * config.dim * 2
    if size > cache.limit:
        raise WeftError(
            f"the embeddings of {about} take {size / 1e9:.1f} GB, more than the cache may hold "
            f"({cache.limit / 1e9:.1f} GB); raise WEFT_CACHE_LIMIT, or use a smaller --max-length"
        )
    encoder, progress = TrainedEncoder(config), Progress(about, len(tokens.lengths), say or tell)
    parts = []
    for first in range(0, len(tokens.lengths), PART):
        part = cut(tokens, first, min(first + PART, len(tokens.lengths)))
        build = progress.watched(partial(built, part, encoder), first, len(part.lengths))
        parts.append(cache.get(part_key(part, config), f"embeddings of {about}, texts {first:,} on", build)["vectors"])
    return VectorStore(parts, tokens.offsets)


def fitting_layers(encoder: TextTokensConfig, tokens: int, about: str) -> tuple[int, ...]:
    """The blocks of an encoder whose outputs for so many tokens are kept: all, or as many as there is room for, evenly
    spaced and with the last."""
    cache = Cache()
    room = KEPT * min(cache.limit, shutil.disk_usage(cache.folder).free)
    count = min(encoder.depth, int(room / (tokens * encoder.dim * 2)))
    if count == 0:
        raise WeftError(
            f"the embeddings of {about} take {tokens * encoder.dim * 2 / 1e9:.1f} GB, and the cache has room for "
            f"{room / 1e9:.1f} GB of them; raise WEFT_CACHE_LIMIT, or use a smaller --max-length"
        )
    return tuple(encoder.depth * number // count for number in range(1, count + 1))


def only(tokens: TokenStore, rows: Index) -> TokenStore:
    """The texts of these rows alone."""
    if len(rows) == len(tokens.lengths):
        return tokens
    ids, segments = (np.concatenate(arrays) for arrays in zip(*tokens.rows(rows), strict=True))
    return TokenStore(ids, segments, np.concatenate([[0], np.cumsum(tokens.lengths[rows])]))


def cut(tokens: TokenStore, first: int, last: int) -> TokenStore:
    """The texts first, …, last − 1 alone."""
    offsets = tokens.offsets[first : last + 1]
    span = slice(offsets[0], offsets[-1])
    return TokenStore(tokens.ids[span], tokens.segments[span], offsets - offsets[0])


def part_key(part: TokenStore, config: EncoderConfig) -> str:
    """What decides the embeddings of a part: what is read, by whom, and what is taken of it."""
    texts = (part.ids.tobytes(), part.segments.tobytes(), part.offsets.tobytes())
    return digest("embeddings", VERSION, config.digest, ",".join(map(str, config.layers)), *texts)


def built(part: TokenStore, encoder: TrainedEncoder) -> dict[str, Tensor]:
    """An entry of the cache."""
    return {"vectors": compute(part, encoder)}


def compute(part: TokenStore, encoder: TrainedEncoder) -> Tensor:
    """(tokens of the part, channels) float16. Texts of one length are read together: no padding is computed."""
    vectors = torch.empty(int(part.offsets[-1]), encoder.config.dim, dtype=torch.float16)
    for rows in of_one_length(part.lengths):
        texts = part.rows(rows)
        ids, segments = (torch.from_numpy(np.stack(arrays).astype(np.int64)) for arrays in zip(*texts, strict=True))
        for row, found in zip(rows, encoder(ids, None, segments).half(), strict=True):
            vectors[part.offsets[row] : part.offsets[row + 1]] = found
    return vectors


def of_one_length(lengths: Index) -> Iterator[Index]:
    """All rows but the empty ones, in batches of one length and about BATCH tokens."""
    for length in np.unique(lengths[lengths > 0]):
        rows = np.flatnonzero(lengths == length)
        yield from np.array_split(rows, min(len(rows), -(-len(rows) * int(length) // BATCH)))


class Progress:
    """Says how far the reading of many inputs has come, every few seconds, and only if there is something to do."""

    PAUSE = 5.0

    def __init__(self, about: str, total: int, say: Say, what: str = "texts", verb: str = "embedding") -> None:
        self.about, self.total, self.say, self.what, self.verb = about, total, say, what, verb
        self.started: float | None = None
        self.done, self.last = 0, 0.0

    def watched(self, build: Build, first: int, count: int) -> Build:
        """`build`, which makes `count` of them from `first` on, with a word before and after it."""

        def build_and_tell() -> dict[str, Tensor]:
            if self.started is None:
                self.started = self.last = time.perf_counter()
                self.say(f"{self.verb} {self.about} once: {self.total - first:,} of {self.total:,} {self.what} to go")
            found = build()
            self.done += count
            self._tell(first + count, time.perf_counter())
            return found

        return build_and_tell

    def _tell(self, reached: int, now: float) -> None:
        assert self.started is not None
        if now - self.last > self.PAUSE or reached == self.total:
            self.last = now
            left = (now - self.started) / self.done * (self.total - reached)
            self.say(f"{reached:,} of {self.total:,} {self.what}, {duration(left)} left")


def tell(sentence: str) -> None:
    print(sentence, file=sys.stderr, flush=True)
