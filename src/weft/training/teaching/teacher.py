"""A trained network that is asked about rows: each in the teacher's own form, all of them once, kept in the cache."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from torch import Tensor

from weft.data.batch.loader import Batches, batches
from weft.data.open.source import Source
from weft.data.open.splits import MemorySplit
from weft.data.read.cache import Cache, digest
from weft.data.transform.transforms import TextTransform, Transform
from weft.errors import WeftError
from weft.networks.base.encoder import folder_digest
from weft.networks.config import TextTokensConfig
from weft.training.embeddings.batches import embedded_batches
from weft.training.inference.evaluate import check
from weft.training.inference.predictor import Predictor, load
from weft.training.loop.events import outputs_of

VERSION = "1"  # raise it when the same network would answer otherwise
BATCH = 256  # rows that it reads at a time


@dataclass(frozen=True)
class Teacher:
    """The network of a run folder, and what tells it from others."""

    folder: str
    predictor: Predictor

    @cached_property
    def digest(self) -> str:
        """Of its configuration and weights."""
        return folder_digest(Path(self.folder))

    @property
    def transform(self) -> Transform:
        return self.predictor.transform

    def answers(self, source: Source, role: str) -> Tensor:
        """Outputs (rows, K) for every row of a split, in its order; computed once for these rows and weights."""
        split, cache = source.splits[role], Cache()
        size = 4 * len(split) * self.predictor.network.config.num_classes
        if size > cache.limit:
            raise WeftError(
                f"the answers of {self.folder} to {len(split):,} rows take {size / 1e9:.1f} GB, more than the cache "
                f"may hold ({cache.limit / 1e9:.1f} GB); raise WEFT_CACHE_LIMIT"
            )

        def build() -> dict[str, Tensor]:
            print(f"asking {self.folder} about {len(split):,} rows of {source.name}, once", file=sys.stderr, flush=True)
            return {"answers": outputs_of(self.predictor.network, self.batches(source, role))[0]}

        return cache.get(self._key(source, role), f"answers of {self.folder} to {source.name}, {role}", build)[
            "answers"
        ]

    def batches(self, source: Source, role: str) -> Batches:
        """The rows of a split in order, as the teacher was taught to see them."""
        config, transform = self.predictor.network.config, self.transform
        if isinstance(config, TextTokensConfig) and config.encoder is not None:
            assert isinstance(transform, TextTransform)
            return embedded_batches(source, role, transform, config.encoder, batch_size=BATCH, train=False)
        return batches(source, role, BATCH, transform=transform, train=False)

    def _key(self, source: Source, role: str) -> str:
        """What decides its answers: network, preprocessing, and which rows of which files."""
        split, form = source.splits[role], self.transform
        rows = (split.table.name, split.rows.tobytes()) if isinstance(split, MemorySplit) else (split.origin,)
        made = f"{form.max_length} {form.tokenizer.content()}" if isinstance(form, TextTransform) else repr(form)
        asked = (source.fingerprint, repr(source.config), *source.columns)
        return digest("answers", VERSION, self.digest, made, *asked, role, *rows)


def read_teacher(folder: str, flag: str, source: Source) -> Teacher:
    """The network in `folder`, refused where it cannot be asked about the classes of `source`."""
    if source.task not in ("classes", "binary"):
        raise WeftError(f"{flag} needs classes, and the target of {source.name} is a number; leave {flag} out")
    try:
        predictor = load(folder)
        check(predictor, source)
    except WeftError as error:
        raise WeftError(f"{flag} {folder}: {error}") from error
    return Teacher(folder, predictor)
