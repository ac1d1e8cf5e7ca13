"""From a fine-tuning configuration to what its run works with, and a finished run's metrics again."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from weft.data.batch.loader import Batches, batches
from weft.data.open.source import Source
from weft.data.transform.transforms import TextTransform
from weft.errors import WeftError
from weft.networks.base.network import Network
from weft.networks.config import CARRIED
from weft.nn.initialisation import seeded
from weft.training.embeddings.batches import embedded_batches
from weft.training.embeddings.carried import carry
from weft.training.finetuning.config import FinetuneConfig
from weft.training.finetuning.layers import layered_groups
from weft.training.finetuning.lengths import cut_note
from weft.training.finetuning.sizing import check_asked, check_fit, encoder_of, size_network, transform_of
from weft.training.finetuning.start import Start, read_start
from weft.training.inference.evaluate import check, reopened
from weft.training.inference.predictor import load
from weft.training.loop.evaluation import outputs_of
from weft.training.metrics import Metrics, measure, score
from weft.training.optim.optimisers import Groups
from weft.training.run.inputs import LabelledInputs, create_network, objective_of, read_source
from weft.training.storage.run_folder import open_run


@dataclass(frozen=True)
class FinetuneInputs(LabelledInputs):
    """What a fine-tuning run works with: as of any supervised run, but started from trained weights."""

    config: FinetuneConfig
    start: Start = field(kw_only=True)

    @property
    def fingerprint(self) -> str:
        return f"{self.source.fingerprint}+{self.start.fingerprint}"

    def require(self, fingerprint: str) -> None:
        data, _, start = fingerprint.partition("+")
        self.source.require(data)
        if start not in (self.start.fingerprint, self.start.digest):  # older runs know the weights alone
            raise WeftError(f"{self.start.folder} has changed since the run began; restore it or start a new run")

    def create(self) -> Network:
        network = create_network(self.network, self.config.seed)
        if encoder_of(self.network) is None:
            self.start.fill(network)
            with seeded(self.config.seed):
                network.reset_classifier(self.network.num_classes)  # the old one, if it fits, knows other targets
        return network

    def groups(self, core: Network) -> Groups:
        decay, thawing = self.config.optimisation.weight_decay, self.config.thawing
        if thawing.frozen:
            return core.parameter_groups(decay)
        return layered_groups(core, decay, thawing.layer_decay, thawing.thaw_epochs)

    def batches(self, role: str, rank: int = 0, world: int = 1) -> Batches:
        encoder, optimisation = encoder_of(self.network), self.config.optimisation
        name = judged(self.config, self.source) if role == "test" else role
        if encoder is None:
            return super().batches(name, rank, world)
        assert isinstance(self.transform, TextTransform)
        return embedded_batches(
            self.source, name, self.transform, encoder,
            batch_size=optimisation.batch, seed=self.config.seed, rank=rank, world=world,
        )  # fmt: skip

    def save_transform(self, folder: Path) -> None:
        super().save_transform(folder)
        if self.config.thawing.frozen:  # also a run that is stopped can be taken to another machine
            carry(self.start.folder, folder)

    def measure(self, outputs: Tensor, targets: Tensor) -> Metrics:
        found = super().measure(outputs, targets)
        if self.objective.task != "regression":
            found["chance"] = chance(targets)
        return found

    def described(self) -> dict[str, Any]:
        start = {"folder": self.config.start, "digest": self.start.digest}
        return {**super().described(), "notes": self.notes, "start": start}


def chance(targets: Tensor) -> float:
    """Accuracy of naming the commonest class of the split: what a network that learnt nothing can reach."""
    counts = np.bincount(targets.long().numpy())
    return float(counts.max() / counts.sum())


def open_finetuning(config: FinetuneConfig, folder: Path | None = None, opened: Any = None) -> FinetuneInputs:
    """Open what is started from and the source, check that they fit, and size the network to both."""
    check_asked(config)
    carried = folder is not None and config.thawing.frozen and (folder / CARRIED).is_dir()
    start = read_start(str(folder / CARRIED) if folder is not None and carried else config.start)
    source = opened[0] if opened else read_source(config)
    check_fit(config, start, source)
    transform = transform_of(config, start, source)
    objective = objective_of(source, config.objective)
    remarks = [
        *(cut_note(source, transform) if isinstance(transform, TextTransform) else ()),
        start.seen(source.modality),
    ]
    network = size_network(config, start, source, transform)
    return FinetuneInputs(config, source, transform, network, objective, tuple(filter(None, remarks)), start=start)


def judged(config: FinetuneConfig, source: Source, split: str = "test") -> str:
    """The split that `test` stands for."""
    if split != "test" or config.test_split is None:
        return split
    stored = {found.origin: name for name, found in source.splits.items() if found.labelled and name != "train"}
    if config.test_split not in stored:  # by the names on disk: what is held out here has none
        known = ", ".join(origin for origin in stored if not origin.startswith("held out"))
        raise WeftError(f"{source.name} has no labelled split {config.test_split!r}; there are {known or 'none'}")
    return stored[config.test_split]


def evaluate_finetuned(
    path: Path, source: str | None, split: str, batch_size: int, encoder: Path | None = None
) -> Metrics:
    """Metrics of a fine-tuned network; those on a frozen encoder read the cached embeddings again."""
    folder, predictor = open_run(path), load(path, encoder)
    config = folder.config()
    assert isinstance(config, FinetuneConfig)
    opened = reopened(folder, config, source)
    check(predictor, opened)
    if source is None:
        split = judged(config, opened, split)
    below = encoder_of(predictor.network.config)
    if below is None:
        loader = batches(opened, split, batch_size, transform=predictor.transform, train=False)
    else:
        assert isinstance(predictor.transform, TextTransform)
        loader = embedded_batches(opened, split, predictor.transform, below, batch_size=batch_size, train=False)
    outputs, targets = outputs_of(predictor.network, loader)
    objective = predictor.card.objective()
    found = measure(predictor.card.task, objective.answers(outputs), targets, len(predictor.classes))
    if predictor.card.task != "regression":
        found["chance"] = chance(targets)
    if config.objective.metric is not None:
        found[config.objective.metric] = score(
            config.objective.metric, predictor.card.task, objective.answers(outputs), targets
        )
    return {"examples": len(targets), "loss": objective.mean_loss(outputs, targets), **found}
