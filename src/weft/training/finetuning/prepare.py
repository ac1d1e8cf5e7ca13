"""From a fine-tuning configuration to what its run works with, and a finished run's metrics again."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from weft.data.fitting import fit
from weft.data.loader import Batches, batches
from weft.data.preprocess import TextTransform, Transform
from weft.data.source import Source, open_source
from weft.errors import WeftError, nearest
from weft.networks.config import EncoderConfig, ImageConfig, NetworkConfig, TextTokensConfig
from weft.networks.network import Network
from weft.networks.registry import REGISTRY, configured, list_models
from weft.nn.losses import outputs_for
from weft.training.embeddings.batches import embedded_batches
from weft.training.embeddings.heads import PROBE
from weft.training.evaluation import outputs_of
from weft.training.finetuning.config import FinetuneConfig, name_of
from weft.training.finetuning.layers import layered_groups
from weft.training.finetuning.lengths import cut_note
from weft.training.finetuning.start import Start, read_start
from weft.training.folder import open_run
from weft.training.metrics import Metrics, measure
from weft.training.objective import create_objective
from weft.training.optimisers import Groups
from weft.training.predictor import load
from weft.training.prepare import INPUT, Materials, create_network, plural, read_source
from weft.training.reevaluation import check

PROBED = "control_identity_text_tiny"  # what a linear probe is written as: no blocks, so nothing is mixed


@dataclass(frozen=True)
class FinetuneMaterials(Materials):
    """What a fine-tuning run works with: as of any supervised run, but started from trained weights."""

    config: FinetuneConfig
    start: Start
    remarks: tuple[str, ...] = ()

    @property
    def notes(self) -> list[str]:
        return [*self.source.notes, *self.remarks]

    @property
    def fingerprint(self) -> str:
        return f"{self.source.fingerprint}+{self.start.digest}"

    def require(self, fingerprint: str) -> None:
        data, _, start = fingerprint.partition("+")
        self.source.require(data)
        if start != self.start.digest:
            raise WeftError(f"{self.start.folder} has changed since the run began; restore it or start a new run")

    def create(self) -> Network:
        network = create_network(self.network, self.config.seed)
        if encoder_of(self.network) is None:
            self.start.fill(network)
            torch.manual_seed(self.config.seed)
            network.reset_classifier(self.network.num_classes)  # the old one, if it fits, knows other targets
        return network

    def groups(self, core: Network) -> Groups:
        decay, thawing = self.config.optimisation.weight_decay, self.config.thawing
        if thawing.frozen:
            return core.parameter_groups(decay)
        return layered_groups(core, decay, thawing.layer_decay, thawing.thaw_epochs)

    def batches(self, role: str, rank: int = 0, world: int = 1) -> Batches:
        encoder, optimisation = encoder_of(self.network), self.config.optimisation
        name = judged(self.config, self.source) if role == "report" else role
        if encoder is None:
            return super().batches(name, rank, world)
        assert isinstance(self.transform, TextTransform)
        return embedded_batches(
            self.source, name, self.transform, encoder,
            batch_size=optimisation.batch_size, seed=self.config.seed, rank=rank, world=world,
        )  # fmt: skip

    def measure(self, outputs: Tensor, targets: Tensor) -> Metrics:
        found = super().measure(outputs, targets)
        if self.objective.task != "regression":
            found["chance"] = chance(targets)
        return found

    def described(self) -> dict[str, Any]:
        start = {"folder": str(self.start.folder), "digest": self.start.digest}
        return {**super().described(), "notes": self.notes, "start": start}


def chance(targets: Tensor) -> float:
    """Accuracy of naming the commonest class of the split: what a network that learnt nothing can reach."""
    counts = np.bincount(targets.long().numpy())
    return float(counts.max() / counts.sum())


def encoder_of(network: NetworkConfig) -> EncoderConfig | None:
    return network.encoder if isinstance(network, TextTokensConfig) else None


def gather(config: FinetuneConfig, folder: Path | None = None, opened: Any = None) -> FinetuneMaterials:
    """Open what is started from and the source, check that they fit, and size the network to both."""
    check_asked(config)
    start = read_start(config.start)
    source = opened[0] if opened else read_source(config)
    check_fit(config, start, source)
    transform = transform_of(config, start, source)
    objective = create_objective(
        source.task,
        source.splits["train"].targets,
        len(source.classes),
        config.objective.smoothing,
        config.objective.class_weights,
    )
    remarks = [
        *(cut_note(source, transform) if isinstance(transform, TextTransform) else ()),
        start.seen(source.modality),
    ]
    network = size_network(config, start, source, transform)
    return FinetuneMaterials(config, source, transform, network, objective, start, tuple(filter(None, remarks)))


def check_asked(config: FinetuneConfig) -> None:
    """Refuse flags that contradict each other."""
    if not config.source:
        raise WeftError("say what to learn: weft finetune RUN_OR_FOLDER DATA (sst2, for instance, or a folder)")
    thawing = config.thawing
    if config.model not in {"", name_of(replace(config, model=""))}:
        if not thawing.frozen:
            raise WeftError(f"--model {config.model} is put on a frozen encoder; add --frozen, or leave --model out")
        configured(config.model)  # raises, naming the nearest, if there is none
    if thawing.layers and not thawing.frozen:
        raise WeftError("--layers chooses what a frozen encoder gives; add --frozen")
    if thawing.frozen and thawing.thaw_epochs:
        raise WeftError("--frozen and --thaw-epochs contradict each other; give one of them")
    if thawing.thaw_epochs and int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise WeftError("--thaw-epochs works in one process: several must agree on what moves; leave it out")
    if config.optimisation.opt == "muon" and not thawing.frozen and thawing.layer_decay != 1:
        raise WeftError("--opt muon keeps one rate for all layers; use --layer-decay 1, or --opt adamw")


def check_fit(config: FinetuneConfig, start: Start, source: Source) -> None:
    """Refuse data of another kind than the trained network reads, and a batch larger than the set."""
    wanted = INPUT[source.modality]
    if start.network.input != wanted:
        raise WeftError(
            f"{start.folder} holds a network for {plural(start.network.input)}, but {config.source} holds "
            f"{plural(wanted)}; start from a network for {plural(wanted)}"
        )
    if encoder_of(start.network) is not None:
        raise WeftError(
            f"{start.folder} stands on another encoder; start from that one, {config.start} has none itself"
        )
    size, rows = config.optimisation.batch_size, len(source.splits["train"])
    if size > rows:
        raise WeftError(f"a batch of {size} is larger than the training split ({rows}); use --batch-size {rows}")


def transform_of(config: FinetuneConfig, start: Start, source: Source) -> Transform:
    """What the trained network was trained with, at most as long as asked for; for foreign images, fitted."""
    if isinstance(start.transform, TextTransform):
        return replace(start.transform, max_length=min(start.transform.max_length, config.transform.max_length))
    if start.transform is not None:
        return start.transform
    assert isinstance(start.network, ImageConfig)
    channels: Any = start.network.in_chans
    return fit(source, replace(config.transform, size=start.network.img_size[0], channels=channels))


def size_network(config: FinetuneConfig, start: Start, source: Source, transform: Transform) -> NetworkConfig:
    """The trained network with outputs that fit the source, or the network that is put on it."""
    shape: dict[str, Any] = {"num_classes": outputs_for(source.task, len(source.classes))}  # type: ignore[arg-type]
    if isinstance(transform, TextTransform):
        shape["max_length"] = transform.max_length
    if config.thawing.frozen:
        return on_encoder(config, start, shape)
    known = vars(start.network)
    for name in config.network:
        if name not in known:
            raise WeftError(f"{start.name} has no setting {name!r}; {nearest(name, known)}")
    return start.network.replaced(**{**shape, **config.network})


def on_encoder(config: FinetuneConfig, start: Start, shape: dict[str, Any]) -> NetworkConfig:
    """The network `--model` on the embeddings of the trained one, or a linear probe."""
    below = start.network
    if not isinstance(below, TextTokensConfig):
        raise WeftError(f"--frozen needs an encoder of text; {start.folder} holds a {below.family} network")
    model = config.model if config.model in REGISTRY else PROBED
    if not isinstance(REGISTRY[model], TextTokensConfig):
        fitting = [name for name in list_models("*text*") if isinstance(REGISTRY[name], TextTokensConfig)]
        raise WeftError(f"{model} cannot stand on an encoder; networks that can: {', '.join(fitting[:8])}")
    layers = config.thawing.layers or (below.depth,)
    if max(layers) > below.depth or len(set(layers)) < len(layers):
        raise WeftError(
            f"--layers takes different numbers from 1 to {below.depth}, which {start.folder} has, not {layers}"
        )
    folder = str(start.folder.resolve())
    encoder = EncoderConfig(folder=folder, digest=start.digest, dim=below.dim * len(layers), layers=layers)
    probe = PROBE if model != config.model else {}
    return configured(model, **{**shape, "vocab_size": below.vocab_size, "encoder": encoder, **probe, **config.network})


def judged(config: FinetuneConfig, source: Source, split: str = "report") -> str:
    """The split that `report` stands for."""
    if split != "report" or config.report_split is None:
        return split
    if config.report_split not in source.splits or not source.splits[config.report_split].labelled:
        known = [name for name, found in source.splits.items() if found.labelled and name not in ("train", "select")]
        raise WeftError(f"{source.name} has no labelled split {config.report_split!r}; there are {', '.join(known)}")
    return config.report_split


def evaluate(path: Path, source: str | None, split: str, batch_size: int) -> Metrics:
    """Metrics of a fine-tuned network; those on a frozen encoder read the cached embeddings again."""
    config = open_run(path).config()
    assert isinstance(config, FinetuneConfig)
    predictor = load(path)
    opened = open_source(config.source, config.reading) if source is None else open_source(source)
    check(predictor, opened)
    split = judged(config, opened, split)
    encoder = encoder_of(predictor.network.config)
    if encoder is None:
        loader = batches(opened, split, batch_size, transform=predictor.transform, train=False)
    else:
        assert isinstance(predictor.transform, TextTransform)
        loader = embedded_batches(opened, split, predictor.transform, encoder, batch_size=batch_size, train=False)
    outputs, targets = outputs_of(predictor.network, loader)
    objective = predictor.card.objective()
    found = measure(predictor.card.task, objective.answers(outputs), targets, len(predictor.classes))
    if predictor.card.task != "regression":
        found["chance"] = chance(targets)
    return {"examples": len(targets), "loss": objective.mean_loss(outputs, targets), **found}
