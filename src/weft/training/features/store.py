"""The features of a source's inputs, computed once by a frozen network and mapped from the cache.

They are kept in blocks of a table's rows, under names made of the weights' digest, the network's configuration, the
source's fingerprint and the preprocessing: other weights, another image side or other data are other entries. A block
is written whole or not at all, so a kill costs one, and the next call goes on with the others.

    found = features_of(source, "train", FrozenNetwork(network, transform, digest))     # .x (rows, channels), .targets
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from weft import machine
from weft.data.batch.stores import DecodedPixels, token_store
from weft.data.open.source import Source
from weft.data.open.splits import MemorySplit
from weft.data.read.blocks import grown, in_blocks
from weft.data.read.cache import Cache, digest
from weft.data.transform.transforms import ImageTransform, TextTransform
from weft.errors import WeftError
from weft.networks.base.network import Network
from weft.networks.weights.load import TRAINING_ONLY
from weft.training.embeddings.store import Progress, of_one_length, tell
from weft.training.features.folding import folded, pooled

VERSION = "3"  # raise it when the same network would give other features
PART = 2048  # rows of a table in an entry: what a kill can cost
BATCH = 32  # images at a time: full speed on a CPU, and little memory
AHEAD = 2  # batches that are decoded while the network reads another

Index = NDArray[np.int64]
Say = Callable[[str], None]


@dataclass(frozen=True)
class FrozenNetwork:
    """A trained network whose features are wanted, with what its inputs need. `digest` is that of its weights."""

    network: Network
    transform: ImageTransform | TextTransform
    digest: str

    @cached_property
    def reader(self) -> Network:
        """The network for inference: in evaluation, its batch norms folded away."""
        network = self.network.eval()
        if not isinstance(self.transform, ImageTransform):
            return network
        side, channels = self.transform.size, self.transform.channels
        noise = torch.randn(2, channels, side, side, generator=torch.Generator().manual_seed(0))
        return folded(network, noise)

    @property
    def recipe(self) -> str:
        """What, beside the weights, decides the features of an input: weights of one shape fit several networks."""
        left = ("num_classes", *TRAINING_ONLY)
        fields = {name: value for name, value in asdict(self.network.config).items() if name not in left}
        network = json.dumps(fields, sort_keys=True, default=str)
        if isinstance(self.transform, ImageTransform):
            return f"{network} {json.dumps(asdict(self.transform))}"
        return f"{network} {self.transform.max_length} {self.transform.tokenizer.content()}"


@dataclass(frozen=True)
class Features:
    """A split as a frozen network sees it."""

    x: Tensor  # (rows, channels) float32
    targets: NDArray[Any]  # (rows,)

    def __len__(self) -> int:
        return len(self.targets)


def features_of(source: Source, role: str, frozen: FrozenNetwork, say: Say | None = None) -> Features:
    """Features and targets of a split, in its order: from the cache, and what is not there is computed now."""
    split = source.splits[role]
    if not isinstance(split, MemorySplit):
        raise WeftError(f"{source.name} is streamed, and features are kept for sources in memory; raise --memory")
    rows = used_rows(source, split)
    key = digest(table_key(source, split, frozen), rows.tobytes())
    stores = split.table.stores
    if key not in stores:
        stores[key] = row_features(source, split, frozen, rows, say or tell)
    found: Tensor = stores[key]
    return Features(found[torch.from_numpy(np.searchsorted(rows, split.rows))], split.targets)


def used_rows(source: Source, split: MemorySplit) -> Index:
    """The rows of a split's table that this or another split has, in order: all of them, unless splits were thinned.

    Splits that share a table share its features, so that another cut of the same rows finds them in the cache. So do
    the folds of a cross-validation, however few rows each of them learns from: together they have all.
    """
    if source.config.folds is not None:
        return np.setdiff1d(np.arange(len(split.table)), np.array(sorted(split.table.skipped), dtype=np.int64))
    splits = [other for other in source.splits.values() if isinstance(other, MemorySplit)]
    found: Index = np.unique(np.concatenate([other.rows for other in splits if other.table is split.table]))
    return found


def row_features(source: Source, split: MemorySplit, frozen: FrozenNetwork, rows: Index, say: Say) -> Tensor:
    """(rows, channels) float32 of some rows of a split's table, block by block."""
    cache = Cache()
    size = len(rows) * frozen.network.head_inputs * 4
    if size > cache.limit:
        raise WeftError(
            f"the features of {source.name} take {size / 1e9:.1f} GB, more than the cache may hold "
            f"({cache.limit / 1e9:.1f} GB); raise WEFT_CACHE_LIMIT"
        )
    about = f"{source.name}, {split.table.name}"
    progress = Progress(about, len(rows), say, ("image" if source.modality == "image" else "text") + "s", "reading")
    found, table, first = torch.empty(len(rows), frozen.network.head_inputs), table_key(source, split, frozen), 0
    for chosen in in_blocks(rows, PART):
        number = int(chosen[0]) // PART
        compute = progress.watched(partial(computed, source, split, frozen), len(chosen))
        name = f"features of {about}, rows {number * PART:,} on"
        known, features = grown(cache, digest(table, f"{number} of {PART}"), name, chosen, compute)
        found[first : first + len(chosen)] = features[torch.from_numpy(np.searchsorted(known, chosen))]
        first += len(chosen)
    return found


def table_key(source: Source, split: MemorySplit, frozen: FrozenNetwork) -> str:
    """What decides the features of a table's rows: what is read, by which weights, and how."""
    columns = json.dumps([source.modality, *source.columns])
    return digest("features", VERSION, frozen.digest, frozen.recipe, source.fingerprint, columns, split.table.name)


@torch.inference_mode()
def computed(source: Source, split: MemorySplit, frozen: FrozenNetwork, rows: Index) -> Tensor:
    """The features of some rows of a table, in order."""
    found = torch.zeros(len(rows), frozen.network.head_inputs)
    make = of_images if isinstance(frozen.transform, ImageTransform) else of_texts
    for chosen, features in make(source, split, frozen, rows):
        found[torch.from_numpy(np.searchsorted(rows, chosen))] = features
    if len(bad := torch.nonzero(~found.isfinite().all(1))):
        raise WeftError(
            f"the features of {split.table.place(int(rows[int(bad[0])]))} are not finite numbers; the weights may be "
            "damaged or of another network: start from others"
        )
    return found.clone()


def of_images(source: Source, split: MemorySplit, frozen: FrozenNetwork, rows: Index) -> Iterator[tuple[Index, Tensor]]:
    """Rows and their features, batch by batch; the next ones are decoded while the network works."""
    transform = frozen.transform
    assert isinstance(transform, ImageTransform)
    whole = MemorySplit(split.table, rows, rows, split.origin)
    pixels = DecodedPixels(whole, transform, min(AHEAD, machine.cores()))

    def decoded(chosen: Index) -> Tensor:
        return transform.normalize(pixels.rows(chosen, None)[0])

    batches = np.array_split(np.arange(len(rows)), -(-len(rows) // BATCH)) if len(rows) else []
    with ThreadPoolExecutor(1) as pool:
        waiting = [pool.submit(decoded, batch) for batch in batches[:AHEAD]]
        for number, batch in enumerate(batches):
            images = waiting.pop(0).result()
            if number + AHEAD < len(batches):
                waiting.append(pool.submit(decoded, batches[number + AHEAD]))
            yield rows[batch], pooled(frozen.reader, images)


def of_texts(source: Source, split: MemorySplit, frozen: FrozenNetwork, rows: Index) -> Iterator[tuple[Index, Tensor]]:
    """Rows and their features; texts of one length are read together, so no padding is computed."""
    assert isinstance(frozen.transform, TextTransform)
    tokens, network = token_store(source, split, frozen.transform), frozen.reader
    for batch in of_one_length(tokens.lengths[rows]):
        yield rows[batch], read_together(network, tokens.rows(rows[batch]))


def read_together(network: Network, texts: Sequence[tuple[Any, Any]]) -> Tensor:
    """Features of texts of one length, each as its ids and segments."""
    ids, segments = (torch.from_numpy(np.stack(arrays).astype(np.int64)) for arrays in zip(*texts, strict=True))
    features: Any = network.forward_features(ids, None, segments)  # type: ignore[call-arg]
    return network.forward_head(features, pre_logits=True)
