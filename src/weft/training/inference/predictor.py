"""A trained network in use: `weft.load(RUN)` takes files, texts or rows and answers with classes or numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from weft.data.config import Modality
from weft.data.sources.arrays import checked_text, is_picture, listed, rows_of, stacked
from weft.data.transform.transforms import ImageTransform, Transform, VectorTransform
from weft.errors import WeftError
from weft.networks.base.network import Network
from weft.training.inference.network_folder import NetworkMetadata, read_network, write_network
from weft.training.inference.onnx_file import read_onnx
from weft.training.metrics import class_probabilities


@dataclass(frozen=True)
class Predictor:
    """A network with its classes and the transform that its inputs need."""

    card: NetworkMetadata
    network: Network
    transform: Transform

    @classmethod
    def from_pretrained(cls, folder: str | Path, encoder: str | Path | None = None) -> Predictor:
        """Read a run folder, any folder that `save_pretrained` wrote, or a file that `weft export --onnx` wrote.

        `encoder` says where the frozen encoder lies that the network stands on, if it is not in the folder.
        """
        path = Path(folder)
        if path.is_file() and path.suffix == ".onnx":
            return cls(*read_onnx(path))
        if not path.is_dir():
            raise WeftError(f"{path} is not a folder; give a run folder (`weft runs` lists them) or an .onnx file")
        return cls(*read_network(path, None if encoder is None else Path(encoder)))

    def save_pretrained(self, folder: str | Path) -> None:
        """Write config.json, model.safetensors and the preprocessing into `folder`."""
        write_network(Path(folder), self.card, self.network.config, self.network.state_dict(), self.transform)

    @property
    def classes(self) -> list[str]:
        return self.card.classes

    @property
    def columns(self) -> list[str]:
        """Columns of a table that the inputs are read from; none where it was trained on what has no names."""
        known = self.transform.columns if isinstance(self.transform, VectorTransform) else ()
        return list(known) or self.card.columns

    @property
    def modality(self) -> str:
        """image, text or vector."""
        return "text" if self.takes == "pair" else self.takes

    @property
    def takes(self) -> Modality:
        """The modality of a source that it can be asked about."""
        if isinstance(self.transform, ImageTransform):
            return "image"
        if isinstance(self.transform, VectorTransform):
            return "vector"
        return "pair" if self.card.pairs else "text"

    @torch.no_grad()
    def outputs(self, raws: Iterable[Any], batch_size: int = 64) -> Tensor:
        """Answers of the network, (n, K): logits, or numbers in the unit of the training targets."""
        rows = [self._batch(chunk) for chunk in chunks(self._readable(raws), batch_size)]
        if not rows:
            return torch.empty(0, self.network.config.num_classes)
        return self.card.objective().answers(torch.cat(rows))

    def predict_proba(self, raws: Iterable[Any], batch_size: int = 64) -> NDArray[np.float64]:
        """Probability of each class: (n, K), columns in the order of `classes`."""
        if self.card.task == "regression":
            raise WeftError("a regression network has no classes; use predict")
        found: NDArray[np.float64] = class_probabilities(self.card.task, self.outputs(raws, batch_size)).numpy()
        return found

    def predict(self, raws: Iterable[Any], batch_size: int = 64) -> list[Any]:
        """The class, or the number, for each input."""
        if self.card.task == "regression":
            return self.outputs(raws, batch_size).squeeze(1).tolist()
        return [self.classes[number] for number in self.predict_proba(raws, batch_size).argmax(1).tolist()]

    def fault(self, raw: Any) -> str:
        """Why the network can say nothing of an input; empty where it can."""
        try:
            for row in self._readable([raw]):
                self.transform(row)
        except WeftError as error:
            return str(error)
        return ""

    def _readable(self, raws: Iterable[Any]) -> Iterator[Any]:
        """The inputs one by one, in the form that the transform takes; the first that has none is refused."""
        if isinstance(self.transform, VectorTransform):
            return vectors_of(rows_of(in_order(raws, self.transform.columns)))
        rows = rows_of(raws)
        if isinstance(self.transform, ImageTransform):
            return pictures_of(rows, self.transform.channels)
        return (checked_text(row, number) for number, row in enumerate(rows))

    def _batch(self, raws: Sequence[Any]) -> Tensor:
        """Outputs of a few inputs, those of one shape (texts of one padded length) together."""
        made = [self.transform(raw) for raw in raws]
        order = sorted(range(len(made)), key=lambda row: made[row]["x"].shape)
        result: list[Tensor] = [torch.empty(0)] * len(made)
        for _, group in groupby(order, key=lambda row: made[row]["x"].shape):
            rows = list(group)
            inputs = {name: torch.cat([made[row][name] for row in rows]) for name in made[rows[0]]}
            for row, output in zip(rows, self.network(**inputs), strict=True):
                result[row] = output
        return torch.stack(result)


def in_order(raws: Any, columns: Sequence[str]) -> Any:
    """A table that names its columns, with those of the network in their order; anything else as it is."""
    names = list(getattr(raws, "columns", ())) if hasattr(raws, "iloc") else []
    if not names or not columns:
        return raws
    missing = [column for column in columns if column not in names]
    if missing:
        raise WeftError(f"the table has no column {', '.join(missing)}; the network takes {', '.join(columns)}")
    return raws[list(columns)]


def vectors_of(rows: Iterable[Any]) -> Iterator[Any]:
    """Rows of numbers, or dictionaries by column."""
    for number, row in enumerate(rows):
        try:
            np.asarray(list(row.values()) if isinstance(row, dict) else row, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise WeftError(f"row {number} (counted from 0) is no row of numbers: {error}") from error
        yield row


def pictures_of(rows: Any, channels: int) -> Iterator[Any]:
    """Images in memory with their channels first; files and their bytes are left to the decoder."""
    ready: Any = None
    if isinstance(rows, np.ndarray):
        ready = stacked(rows, channels)
    elif isinstance(rows, list) and rows and all(map(is_picture, rows)):  # together, as one may tell of the others
        ready = listed(rows, channels)
    for number, row in enumerate(rows if ready is None else ready):
        if not is_picture(row):
            yield row
            continue
        image = listed([row], channels, number)[0] if ready is None else row
        if len(image) == 4 and channels in (1, 3):  # transparency, which pictures from files lose as well
            image = image[:3]
        if len(image) != channels and {len(image), channels} != {1, 3}:
            raise WeftError(f"image {number} has {len(image)} channels, the network takes {channels}; convert it")
        yield image


def load(folder: str | Path, encoder: str | Path | None = None) -> Predictor:
    """The trained network of a run folder, or of an .onnx file that was made of one.

    `encoder` is where what it stands on lies, if not in the folder.
    """
    return Predictor.from_pretrained(folder, encoder)


def chunks(items: Iterable[Any], size: int) -> Iterator[list[Any]]:
    """Lists of at most `size` items."""
    iterator = iter(items)
    while chunk := list(islice(iterator, size)):
        yield chunk
