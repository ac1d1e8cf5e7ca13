"""From a fine-tuning configuration to what its run works with, and a finished run's metrics again."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

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
from weft.training.inference.evaluate import Loading
from weft.training.inference.predictor import Predictor
from weft.training.optim.optimisers import Groups
from weft.training.run.inputs import LabelledInputs, create_network, objective_of, read_source
from weft.training.teaching.pseudo_labels import label_rows


@dataclass(frozen=True)
class FinetuneInputs(LabelledInputs):
    """What a fine-tuning run works with: as of any supervised run, but started from trained weights."""

    config: FinetuneConfig
    start: Start = field(kw_only=True)

    @property
    def fingerprint(self) -> str:
        return f"{self.source.fingerprint}+{self.start.fingerprint}{self.besides}"

    def require(self, fingerprint: str) -> None:
        data, _, start = fingerprint.removesuffix(self.besides).partition("+")
        super().require(data + self.besides if fingerprint.endswith(self.besides) else data)
        if start not in (self.start.fingerprint, self.start.digest):  # older runs know the weights alone
            raise WeftError(f"{self.start.folder} has changed since the run began; restore it or start a new run")

    def create(self) -> Network:
        network = create_network(self.network, self.config.seed)
        if encoder_of(self.network) is None:
            self.start.fill(network)
            with seeded(self.config.seed):
                network.reset_classifier(self.network.num_classes)  # the old one, if it fits, knows other targets
        return self.to_be_taught(network)

    def groups(self, core: Network) -> Groups:
        decay, thawing = self.config.optimisation.weight_decay, self.config.thawing
        if thawing.frozen:
            return core.parameter_groups(decay)
        return layered_groups(core, decay, thawing.layer_decay, thawing.thaw_epochs)

    def batches(self, role: str, rank: int = 0, world: int = 1) -> Batches:
        encoder, optimisation = encoder_of(self.network), self.config.optimisation
        name = reported(self.config, self.source) if role == "test" else role
        if encoder is None:
            return super().batches(name, rank, world)
        assert isinstance(self.transform, TextTransform)
        return self.taught(name, embedded_batches(
            self.rows, name, self.transform, encoder,
            batch_size=optimisation.batch, seed=self.config.seed, rank=rank, world=world,
        ))  # fmt: skip

    def save_transform(self, folder: Path) -> None:
        super().save_transform(folder)
        if self.config.thawing.frozen:  # also a run that is stopped can be taken to another machine
            carry(self.start.folder, folder)

    def described(self) -> dict[str, Any]:
        start = {"folder": self.config.start, "digest": self.start.digest}
        return {**super().described(), "notes": self.notes, "start": start}


def open_finetuning(config: FinetuneConfig, folder: Path | None = None, opened: Any = None) -> FinetuneInputs:
    """Open what is started from and the source, check that they fit, and size the network to both."""
    check_asked(config)
    carried = folder is not None and config.thawing.frozen and (folder / CARRIED).is_dir()
    start = read_start(str(folder / CARRIED) if folder is not None and carried else config.start)
    source = opened[0] if opened else read_source(config)
    check_fit(config, start, source)
    transform = transform_of(config, start, source)
    added = label_rows(config, source)
    objective = objective_of(source if added is None else added.joined(source), config.objective)
    remarks = [
        *(cut_note(source, transform) if isinstance(transform, TextTransform) else ()),
        start.seen(source.modality),
    ]
    network = size_network(config, start, source, transform)
    told = tuple(filter(None, remarks))
    found = FinetuneInputs(config, source, transform, network, objective, told, added=added, start=start)
    return found.with_lessons()


def judged(config: FinetuneConfig, source: str | None, split: str | None) -> str | None:
    """The split that is meant: of the run's own source, `test` may stand for another."""
    return config.test_split if source is None and split in (None, "test") and config.test_split else split


def reported(config: FinetuneConfig, source: Source) -> str:
    """The split of the run's source that the final figures are on."""
    if config.test_split is None:
        return "test"
    stored = {found.origin: name for name, found in source.splits.items() if found.labelled and name != "train"}
    if config.test_split not in stored:  # by the names on disk: what is held out here has none
        known = ", ".join(origin for origin in stored if not origin.startswith("held out"))
        raise WeftError(f"{source.name} has no labelled split {config.test_split!r}; there are {known or 'none'}")
    return stored[config.test_split]


def loading(predictor: Predictor, batch_size: int) -> Loading:
    """How a fine-tuned network gets its batches; those on a frozen encoder read the cached embeddings again."""
    transform, below = predictor.transform, encoder_of(predictor.network.config)
    if below is None:
        return lambda source, name: batches(source, name, batch_size, transform=transform, train=False)
    assert isinstance(transform, TextTransform)
    return lambda source, name: embedded_batches(source, name, transform, below, batch_size=batch_size, train=False)
