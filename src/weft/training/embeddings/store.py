"""The contextual embeddings of all texts of a table, computed once by a frozen encoder and mapped from the cache.

They are kept in blocks of a table's rows, under names made of the texts' ids, the encoder's digest and the layers. A
block is written whole or not at all, so a kill costs one, and the next call goes on with the others.
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
from weft.data.read.blocks import Compute, grown, in_blocks
from weft.data.read.cache import Cache, digest
from weft.errors import WeftError
from weft.networks.base.encoder import TrainedEncoder
from weft.networks.config import EncoderConfig, TextTokensConfig
from weft.training.loop.display import duration

VERSION = "2"  # raise it when the same encoder would give other embeddings
PART = 2048  # rows of a table in an entry: what a kill can cost
KEPT = 0.5  # of what the cache may hold, and of what is free on its disk, for the embeddings of a source
BATCH = 4096  # tokens that the encoder reads at a time: enough for full speed, few enough for any memory

Index = NDArray[np.int64]
Say = Callable[[str], None]


@dataclass(frozen=True)
class VectorStore:
    """Embeddings of some texts; text i has the tokens [starts[i], starts[i] + lengths[i]) of the part owners[i]."""

    parts: list[Tensor]  # (tokens of the part, channels) float16, mapped from their files
    owners: Index
    starts: Index
    lengths: Index

    def rows(self, index: Index) -> list[Tensor]:
        """(tokens, channels) of each text."""
        spans = zip(self.owners[index], self.starts[index], self.lengths[index], strict=True)
        return [self.parts[owner][start : start + length] for owner, start, length in spans]


def vector_store(
    tokens: TokenStore, config: EncoderConfig, about: str, say: Say | None = None, rows: Index | None = None
) -> VectorStore:
    """The embeddings of the texts of a table, or of some of its rows: those in the cache, the others computed now."""
    cache, lengths = Cache(), tokens.lengths
    rows = np.arange(len(lengths)) if rows is None else rows
    size = int(lengths[rows].sum()) * config.dim * 2
    if size > cache.limit:
        raise WeftError(
            f"the embeddings of {about} take {size / 1e9:.1f} GB, more than the cache may hold "
            f"({cache.limit / 1e9:.1f} GB); raise WEFT_CACHE_LIMIT, or use a smaller --max-length"
        )
    encoder, progress = TrainedEncoder(config), Progress(about, len(rows), say or tell)
    parts, starts = list[Tensor](), [np.zeros(0, np.int64)]
    blocks = in_blocks(rows, PART)
    for chosen in blocks:
        first = int(chosen[0]) // PART * PART
        key = part_key(cut(tokens, first, min(first + PART, len(lengths))), config)
        compute = progress.watched(partial(computed, tokens, encoder), len(chosen))
        known, vectors = grown(cache, key, f"embeddings of {about}, texts {first:,} on", chosen, compute, lengths)
        ends = np.cumsum(lengths[known])
        starts.append((ends - lengths[known])[np.searchsorted(known, chosen)])
        parts.append(vectors)
    owners = np.repeat(np.arange(len(blocks)), [len(chosen) for chosen in blocks])
    return VectorStore(parts, owners, np.concatenate(starts), lengths[rows])


def fitting_layers(encoder: TextTokensConfig, tokens: int, about: str, encoders: int = 1) -> tuple[int, ...]:
    """The blocks of an encoder whose outputs for so many tokens are kept: all, or as many as there is room for, evenly
    spaced and with the last. Several `encoders` share the room: what one keeps must not drive out what another has."""
    cache = Cache()
    room = KEPT * min(cache.limit, shutil.disk_usage(cache.folder).free) / encoders
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


def computed(tokens: TokenStore, encoder: TrainedEncoder, rows: Index) -> Tensor:
    """The embeddings of the texts of some rows, end to end."""
    return compute(only(tokens, rows), encoder)


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
        self.passed, self.done, self.last = 0, 0, 0.0

    def watched(self, compute: Compute, count: int) -> Compute:
        """`compute` for the next `count` of them, or for those of them that are missing, with a word before and after
        it."""
        first, self.passed = self.passed, self.passed + count

        def compute_and_tell(rows: Index) -> Tensor:
            if self.started is None:
                self.started = self.last = time.perf_counter()
                to_go = self.total - first - count + len(rows)
                self.say(f"{self.verb} {self.about} once: {to_go:,} of {self.total:,} {self.what} to go")
            found = compute(rows)
            self.done += len(rows)
            self._tell(first + count, time.perf_counter())
            return found

        return compute_and_tell

    def _tell(self, reached: int, now: float) -> None:
        assert self.started is not None
        if now - self.last > self.PAUSE or reached == self.total:
            self.last = now
            left = (now - self.started) / self.done * (self.total - reached)
            self.say(f"{reached:,} of {self.total:,} {self.what}, {duration(left)} left")


def tell(sentence: str) -> None:
    print(sentence, file=sys.stderr, flush=True)
