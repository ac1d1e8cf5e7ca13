"""What is looked at: a network, trained or not, with the data to show it and the way from data to tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from weft.data.batch.loader import Batch, batches
from weft.data.config import TransformConfig
from weft.data.open.source import Source, open_source
from weft.data.transform.fit import fit
from weft.data.transform.transforms import ImageTransform, TextTransform, Transform, VectorTransform
from weft.errors import WeftError, nearest
from weft.imported import is_import_string
from weft.insight.finding import Unfit
from weft.networks.base.network import Network
from weft.networks.config import NetworkConfig
from weft.networks.registry import REGISTRY, build, configured
from weft.training.inference.evaluate import check
from weft.training.inference.network_folder import NetworkMetadata
from weft.training.inference.predictor import load
from weft.training.objective import outputs_for
from weft.training.pretraining.config import PretrainConfig
from weft.training.run.inputs import INPUT, plural
from weft.training.storage.run_folder import open_run

BATCH = 64
"""Examples at a time: memory does not grow with the number that a lens averages over."""


@dataclass
class Subject:
    """A network in evaluation mode; `folder` is None for an untrained one, which may also lack transform and source."""

    name: str
    network: Network
    card: NetworkMetadata
    transform: Transform | None = None
    folder: Path | None = None
    split: str = "test"
    opener: Callable[[], Source] | None = field(default=None, repr=False)

    @property
    def config(self) -> NetworkConfig:
        return self.network.config

    @cached_property
    def source(self) -> Source:
        """The data, opened when a lens first asks for it."""
        if self.opener is None:
            raise Unfit(f"{self.name} has no data of its own to be shown; give some with --source, digits for instance")
        return self.opener()

    def batches(self, count: int, size: int = BATCH) -> Iterator[Batch]:
        """`count` examples spread evenly over the split (or all, if there are fewer), `size` at a time."""
        loader = batches(self.source, self.split, size, transform=self.transform, train=False)
        index = spread(len(loader.split), count)
        for chunk in np.array_split(index, -(-len(index) // size)):
            inputs, targets = loader.assemble(0, chunk, slice(None))
            yield Batch(inputs, targets, torch.from_numpy(chunk.copy()), len(chunk))

    def examples(self, count: int) -> Batch:
        """`count` examples spread evenly over the split, as one batch."""
        return next(self.batches(count, size=count))

    def raws(self, index: Tensor) -> list[Any]:
        """Examples of the split as the source has them: bytes or uint8 arrays of images, texts, pairs, rows."""
        return list(self.source.splits[self.split].read(index.numpy())[0])

    def pixels(self, x: Tensor) -> NDArray[np.uint8]:
        """Normalised images (batch, channels, height, width) as they look: (batch, height, width, 3)."""
        if not isinstance(self.transform, ImageTransform):
            raise Unfit(f"{self.name} takes {plural(self.config.input)}, which are no pictures")
        mean, std = (torch.tensor(values).view(-1, 1, 1) for values in (self.transform.mean, self.transform.std))
        shown = ((x.float() * std + mean) * 255).round().clamp(0, 255).to(torch.uint8)
        return shown.expand(-1, 3, -1, -1).permute(0, 2, 3, 1).numpy()

    def words(self, ids: Tensor) -> list[str]:
        """The pieces of a text (tokens,) as words."""
        if not isinstance(self.transform, TextTransform):
            raise Unfit(f"{self.name} takes {plural(self.config.input)}, which are no text")
        return [str(self.transform.tokenizer.library.id_to_token(int(token))) for token in ids]


def spread(size: int, count: int) -> NDArray[np.int64]:
    """`count` numbers spread evenly over range(size), or all of them if there are fewer."""
    return np.unique(np.linspace(0, size - 1, min(size, count)).round().astype(np.int64))


def open_subject(
    name: str | Path,
    source: str | None = None,
    split: str = "test",
    settings: dict[str, Any] | None = None,
    encoder: Path | None = None,
) -> Subject:
    """A run folder with its trained network and its own data, or a network by name, untrained, with `source` if any.

    `settings` change the configuration of a named network; `encoder` is where the frozen encoder lies that a run's
    network stands on, if not in its folder.
    """
    if Path(name).is_dir():
        if settings:
            raise WeftError(f"{name} holds a trained network, whose settings cannot be changed; use a network's name")
        return of_run(Path(name), source, split, encoder)
    if str(name) in REGISTRY or is_import_string(str(name)):
        if encoder is not None:
            raise WeftError(f"{name} is an untrained network, which stands on no encoder; leave out --encoder")
        return of_name(str(name), source, split, settings or {})
    near = nearest(str(name), REGISTRY)
    raise WeftError(f"{name} is neither a folder nor a network; {near} `weft runs` and `weft models` list them")


def of_run(path: Path, source: str | None, split: str, encoder: Path | None = None) -> Subject:
    """The trained network of a run folder; its data is what it was trained on, or another source of the same kind."""
    predictor = load(path, encoder)

    def opener() -> Source:
        if source is None:
            config = open_run(path).config()
            if isinstance(config, PretrainConfig):
                raise Unfit(f"{path} was pre-trained on documents, which have no targets; show it others with --source")
            return open_source(config.source, config.reading, test_split=config.reported_on)
        opened = open_source(source)
        check(predictor, opened)
        return opened

    known = source is not None or (path / "run.yaml").is_file()
    name = path.resolve().name
    return Subject(name, predictor.network, predictor.card, predictor.transform, path, split, opener if known else None)


def of_name(name: str, source: str | None, split: str, settings: dict[str, Any]) -> Subject:
    """An untrained network, always with the same weights; sized to the source's classes, texts or vectors, if any."""
    if source is None:
        config = configured(name, **settings)
        return Subject(name, build(config, seed=0).eval(), NetworkMetadata(name, "classes", []), split=split)
    opened = open_source(source)
    config, wanted = configured(name, **settings), INPUT[opened.modality]
    if config.input != wanted and not (config.family == "mlp" and wanted == "vector"):
        raise WeftError(f"{name} takes {plural(config.input)}, but {source} holds {plural(wanted)}; use another source")
    transform, sizes = fitted(config, opened)
    if opened.task != "none" and config.family != "filternet":
        sizes["num_classes"] = outputs_for(opened.task, len(opened.classes))
    network = build(configured(name, **{**sizes, **settings}), seed=0).eval()
    card = NetworkMetadata(name, "classes" if opened.task == "none" else opened.task, opened.classes)
    return Subject(name, network, card, transform, None, split, lambda: opened)


def fitted(config: Any, source: Source) -> tuple[Transform, dict[str, Any]]:
    """The transform from a source to what a network takes, and what the network must be told of it."""
    if source.modality == "image":
        height, width = config.img_size
        if height != width:
            raise WeftError(f"the network takes images of {height}×{width}; only square ones can be made of a source")
        return fit(source, TransformConfig(img_size=height, channels=config.in_chans)), {}
    if source.modality == "vector":
        rows = fit(source)
        return rows, {"in_features": rows.features if isinstance(rows, VectorTransform) else 0}
    text = fit(source, TransformConfig(max_length=config.max_length, vocab_size=config.vocab_size))
    return text, {"vocab_size": text.vocab_size if isinstance(text, TextTransform) else config.vocab_size}
