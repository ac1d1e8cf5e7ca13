"""A trained network in use: `weft.load(RUN)` takes files, texts or rows and answers with classes or numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from weft.data.preprocess import ImageTransform, TextTransform, Transform
from weft.errors import WeftError
from weft.networks.network import Network
from weft.training.metrics import class_probabilities
from weft.training.pretrained import Card, read_network, write_network


@dataclass(frozen=True)
class Predictor:
    """A network with its classes and the transform that its inputs need."""

    card: Card
    network: Network
    transform: Transform

    @classmethod
    def from_pretrained(cls, folder: str | Path) -> Predictor:
        """Read a run folder, or any folder that `save_pretrained` wrote."""
        path = Path(folder)
        if not path.is_dir():
            raise WeftError(f"{path} is not a folder; give a run folder (`weft runs` lists them)")
        return cls(*read_network(path))

    def save_pretrained(self, folder: str | Path) -> None:
        """Write config.json, model.safetensors and the preprocessing into `folder`."""
        write_network(Path(folder), self.card, self.network.config, self.network.state_dict(), self.transform)

    @property
    def classes(self) -> list[str]:
        return self.card.classes

    @property
    def modality(self) -> str:
        """image, text or vector."""
        if isinstance(self.transform, ImageTransform):
            return "image"
        return "text" if isinstance(self.transform, TextTransform) else "vector"

    @torch.no_grad()
    def outputs(self, raws: Iterable[Any], batch_size: int = 64) -> Tensor:
        """Answers of the network, (n, K): logits, or numbers in the unit of the training targets."""
        rows = [self._batch(chunk) for chunk in chunks(raws, batch_size)]
        if not rows:
            return torch.empty(0, self.network.config.num_classes)
        return self.card.objective().answers(torch.cat(rows))

    def predict_proba(self, raws: Iterable[Any], batch_size: int = 64) -> Tensor:
        """Probability of each class: (n, K)."""
        if self.card.task == "regression":
            raise WeftError("a regression network has no classes; use predict")
        return class_probabilities(self.card.task, self.outputs(raws, batch_size))

    def predict(self, raws: Iterable[Any], batch_size: int = 64) -> list[Any]:
        """The class, or the number, for each input."""
        if self.card.task == "regression":
            return self.outputs(raws, batch_size).squeeze(1).tolist()
        return [self.classes[number] for number in self.predict_proba(raws, batch_size).argmax(1).tolist()]

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


def load(folder: str | Path) -> Predictor:
    """The trained network of a run folder."""
    return Predictor.from_pretrained(folder)


def chunks(items: Iterable[Any], size: int) -> Iterator[list[Any]]:
    """Lists of at most `size` items."""
    iterator = iter(items)
    while chunk := list(islice(iterator, size)):
        yield chunk
