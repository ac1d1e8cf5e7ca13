"""From a fine-tuning configuration to what its run works with, and a finished run's metrics again."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from weft.data.batch.loader import Batches, batches
from weft.data.open.source import ROLES, Source
from weft.data.transform.fit import cut_note
from weft.data.transform.transforms import ImageTransform, TextTransform
from weft.errors import WeftError
from weft.networks.base.network import Network
from weft.networks.config import CARRIED, MLPConfig, NetworkConfig, SideMismatch, TextTokensConfig
from weft.networks.measure.cost import total_macs
from weft.networks.registry import build
from weft.nn.initialisation import seeded
from weft.nn.norm import hold_statistics
from weft.terminal import how_many
from weft.training.config import DurationConfig, batch_for
from weft.training.embeddings.batches import embedded_batches, tokens_read
from weft.training.embeddings.carried import carry
from weft.training.embeddings.store import fitting_layers
from weft.training.features.linear import Scale, feature_batches, regression_kind, solvable, solved_head
from weft.training.features.store import FrozenNetwork, features_of
from weft.training.finetuning.config import (
    IMAGE_EPOCHS,
    PROBE_EPOCHS,
    PROBE_RATE,
    PROBED_ROWS,
    RATE_SHARE,
    USUAL_BATCH,
    USUAL_EPOCHS,
    FinetuneConfig,
    ThawingConfig,
)
from weft.training.finetuning.layers import layered_groups
from weft.training.finetuning.lineage import learnt_record, refuse_other_cut
from weft.training.finetuning.sizing import check_asked, check_fit, encoder_of, of_weights, size_network, transform_of
from weft.training.finetuning.start import Start, read_start
from weft.training.inference.evaluate import Loading
from weft.training.inference.predictor import Predictor
from weft.training.optim.optimisers import USUAL_RATE, Groups
from weft.training.run.inputs import LabelledInputs, is_planned, objective_of, read_source
from weft.training.run.settings import MANY, augmentation_for, is_long, passes_often, patience_for, smoothed
from weft.training.teaching.pseudo_labels import label_rows

RESIZED_CROP = (0.6, 1.0)  # of the area; cuts of a third of it are larger than what the network will be asked about
AVERAGED = 0.998  # decay of the average of weights, which is steadier than any of them on the few rows of small sets
CROPPED_EPOCHS, CROPPED_SIDE = 5, 64  # passes, and px, from which photographs are cut so
SMALLEST, FEWEST_STEPS = 4, 4  # batch, and steps an epoch, of sets of some dozen rows


@dataclass(frozen=True)
class FinetuneInputs(LabelledInputs):
    """What a fine-tuning run works with: as of any supervised run, but started from trained weights."""

    config: FinetuneConfig
    start: Start = field(kw_only=True)

    @property
    def notes(self) -> list[str]:
        return [*super().notes, *self.start.notes]

    @property
    def fingerprint(self) -> str:
        return f"{self.source.fingerprint}+{self.start.fingerprint}{self.besides}"

    def require(self, fingerprint: str) -> None:
        data, _, start = fingerprint.removesuffix(self.besides).partition("+")
        super().require(data + self.besides if fingerprint.endswith(self.besides) else data)
        if start not in (self.start.fingerprint, self.start.digest):  # older runs know the weights alone
            raise WeftError(f"{self.start.folder} has changed since the run began; restore it or start a new run")

    def create(self) -> Network:
        network = build(self.network, self.config.seed)
        if encoder_of(self.network) is not None:
            return self.to_be_taught(network)
        self.start.fill(network)
        with seeded(self.config.seed):
            network.reset_classifier(self.network.num_classes)  # the old one, if it fits, knows other targets
        if isinstance(self.transform, ImageTransform):
            self._put_head(network)
            hold_statistics(network)
        return self.to_be_taught(network)

    def _put_head(self, network: Network) -> None:
        """Start from the linear probe: a head of chance would first undo what the layers below it know."""
        if not self.probed:
            return
        with torch.no_grad():
            for own, value in zip(head_of(network), solved_head(self.source, self.frozen), strict=True):
                assert own.shape == value.shape  # to copy would repeat a single row
                own.copy_(value)

    @cached_property
    def frozen(self) -> FrozenNetwork:
        """The trained network whose features a linear probe reads."""
        assert isinstance(self.transform, ImageTransform)
        network = build(self.network, self.config.seed)
        self.start.fill(network)
        return FrozenNetwork(network, self.transform, self.start.fingerprint)

    @property
    def probed(self) -> bool:
        """Whether the head starts from a linear probe: of as many images as it takes minutes to look at, in memory."""
        few = self.source.count("train") <= PROBED_ROWS
        return few and linear_head(self.network) and solvable(self.source, self.network.num_classes)

    def groups(self, core: Network) -> Groups:
        decay, thawing = self.config.optimisation.weight_decay, self.config.thawing
        if thawing.frozen:
            return core.parameter_groups(decay)
        return layered_groups(core, decay, thawing.layer_decay, thawing.thaw_epochs)

    def batches(self, role: str, rank: int = 0, world: int = 1) -> Batches:
        encoder, optimisation = encoder_of(self.network), self.config.optimisation
        if encoder is None:
            return super().batches(role, rank, world)
        assert isinstance(self.transform, TextTransform)
        return self.taught(role, embedded_batches(
            self.rows, role, self.transform, encoder,
            batch_size=optimisation.batch, seed=self.config.seed, rank=rank, world=world,
        ))  # fmt: skip

    @property
    def macs(self) -> int:
        """With those of the encoder that it stands on: in use a text goes through both."""
        if (encoder := encoder_of(self.network)) is None:
            return super().macs
        length = getattr(self.network, "max_length", 0)
        below = self.start.network.replaced(num_classes=0, depth=max(encoder.layers), max_length=length)
        return super().macs + total_macs(below)

    def save_transform(self, folder: Path) -> None:
        super().save_transform(folder)
        if self.config.thawing.frozen:  # also a run that is stopped can be taken to another machine
            carry(self.start.folder, folder)

    def described(self) -> dict[str, Any]:
        start = {"folder": self.config.start, "digest": self.start.digest}
        return {**super().described(), "notes": self.notes, "start": start}


@dataclass(frozen=True)
class LinearProbeInputs(FinetuneInputs):
    """What a linear probe of a frozen image network works with: its cached features. The network that is kept is whole,
    with the trained head on it."""

    def create(self) -> Network:
        width, outputs = self.frozen.network.head_inputs, self.network.num_classes
        probe = build(MLPConfig(hidden=(), in_features=width, num_classes=outputs), self.config.seed)
        if self.probed:
            weight, bias = self.scale.scaled(*solved_head(self.source, self.frozen))
            probe.load_state_dict({"head.weight": weight, "head.bias": bias})
        return probe

    @property
    def probed(self) -> bool:
        """Its features are looked at anyway, however many there are."""
        return solvable(self.source, self.network.num_classes)

    @cached_property
    def scale(self) -> Scale:
        return Scale.of(features_of(self.source, "train", self.frozen).x)

    def batches(self, role: str, rank: int = 0, world: int = 1) -> Batches:
        size, seed = self.config.optimisation.batch, self.config.seed
        return feature_batches(self.source, role, self.frozen, batch_size=size, seed=seed, rank=rank, world=world)

    def save_transform(self, folder: Path) -> None:
        self.transform.save(folder)

    def keep(self, folder: Path, weights: dict[str, Tensor] | None, outputs: Tensor, targets: Tensor) -> None:
        if weights is not None:
            weight, bias = self.scale.unscaled(weights["head.weight"].cpu(), weights["head.bias"].cpu())
            weights = {**self.frozen.network.state_dict(), "head.weight": weight, "head.bias": bias}
        super().keep(folder, weights, outputs, targets)


def head_of(network: Network) -> tuple[Tensor, Tensor]:
    """Weight and bias of a linear head."""
    return network.head.weight, network.head.bias  # type: ignore[return-value]


def linear_head(network: NetworkConfig) -> bool:
    """Whether outputs are a linear function of what `forward_head` pools; a distilled ViT has two heads."""
    return network.family not in ("deit", "foreign", "filternet")


def open_finetuning(config: FinetuneConfig, folder: Path | None = None, opened: Any = None) -> FinetuneInputs:
    """Open what is started from and the source, check that they fit, and size the network to both."""
    check_asked(config)
    carried = folder is not None and config.thawing.frozen and (folder / CARRIED).is_dir()
    start = (
        read_start(str(folder / CARRIED))
        if folder is not None and carried
        else read_start(config.start, of_weights(config), config.unsafe_pickle)
    )
    source = opened[0] if opened else read_source(config)
    check_fit(config, start, source)
    if source.held_out and not is_planned(folder) and (record := learnt_record(config.start, source.fingerprint)):
        refuse_other_cut(config.start, record, config.reading, "start from another network")
    config, smaller = settle_batch(config, len(source.splits["train"]))
    transform, reasons = transform_of(config, start, source)
    reasons = [*smaller, *reasons]
    network = size_network(config, start, source, transform)
    added = None if config.teaching.pseudo_labels is None else label_rows(config, source)
    rows = source if added is None else added.joined(source)
    often = passes_often(config) and not is_planned(folder)
    kind: type[FinetuneInputs] = FinetuneInputs
    if isinstance(transform, ImageTransform):
        config, more = settle_images(config, source, transform, network.num_classes)
        reasons += more
        if config.thawing.frozen:
            refuse_frozen(config, network)
            kind = LinearProbeInputs
    else:
        reasons += [
            *(cut_note(source, transform) if isinstance(transform, TextTransform) else ()),
            *length_and_rate(config, USUAL_EPOCHS, "published fine-tuning has 2 to 4"),
            *filter(None, [start.seen(source.modality)]),
        ]
    if often and kind is FinetuneInputs and rows.count("train") <= MANY and source.task in ("classes", "binary"):
        config, told = smoothed(config, rows.count("train"))
        reasons += told
    objective = objective_of(rows, config.objective)
    found = kind(config, source, transform, network, objective, tuple(reasons), added=added, start=start)
    return found.with_lessons()


def embed_rows(config: FinetuneConfig, source: Source, encoders: int = 1) -> tuple[int, ...]:
    """Compute and keep the embeddings of all texts that runs on a frozen encoder will read; of which blocks they are,
    as many as there is room for beside those of the other `encoders`."""
    inputs = open_finetuning(replace(config, thawing=ThawingConfig(frozen=True)), None, (source, None))
    encoder, transform = inputs.start.network, inputs.transform
    assert isinstance(encoder, TextTokensConfig) and isinstance(transform, TextTransform)
    layers = fitting_layers(encoder, tokens_read(source, transform), source.name, encoders)
    inputs = open_finetuning(replace(config, thawing=ThawingConfig(frozen=True, layers=layers)), None, (source, None))
    for role in ROLES:
        inputs.batches(role)
    return layers


def refuse_frozen(config: FinetuneConfig, network: NetworkConfig) -> None:
    """Refuse a linear probe of images that cannot be."""
    if not linear_head(network):
        raise WeftError(f"a {network.family} network has no single linear head to probe; leave out --frozen")
    if config.teaching.teacher or config.teaching.pseudo_labels:
        raise WeftError("--frozen reads cached features of the labelled rows alone; leave out a teacher, pseudo-labels")


@dataclass(frozen=True)
class FrozenStart:
    """A trained network whose features of a source are wanted: found to fit, and not built yet."""

    start: Start
    transform: ImageTransform | TextTransform
    network: NetworkConfig
    notes: list[str]
    seed: int
    """decides what the weights do not hold"""

    def built(self) -> FrozenNetwork:
        network = build(self.network, self.seed)
        self.start.fill(network)
        return FrozenNetwork(network, self.transform, self.start.fingerprint)


def find_frozen(config: FinetuneConfig, source: Source) -> FrozenStart:
    """The trained network of images or text whose features of a source are wanted, and what was decided on the way."""
    start = read_start(config.start, of_weights(config), config.unsafe_pickle)
    check_fit(config, start, source)
    transform, reasons = transform_of(config, start, source)
    if not isinstance(transform, ImageTransform | TextTransform):
        raise WeftError(f"{start.folder} holds a network for vectors, which has no features to probe; compare it")
    shape = (
        {"img_size": (transform.size, transform.size)}
        if isinstance(transform, ImageTransform)
        else {"max_length": transform.max_length}
    )
    try:
        network = start.network.replaced(num_classes=0, **shape)
    except SideMismatch as error:
        raise WeftError(f"{error} (--img-size sets the side)") from None
    return FrozenStart(start, transform, network, [*reasons, *start.notes], config.seed)


def open_frozen(config: FinetuneConfig, source: Source) -> tuple[FrozenNetwork, list[str]]:
    """The same, built."""
    found = find_frozen(config, source)
    return found.built(), found.notes


def settle_batch(config: FinetuneConfig, rows: int) -> tuple[FinetuneConfig, list[str]]:
    """The configuration with a batch: the usual one, less where an epoch would have next to no steps, and why."""
    if config.optimisation.batch_size is not None:
        return config, []
    size = batch_for(rows, FEWEST_STEPS, SMALLEST, USUAL_BATCH)
    why = f"batch {size}: {max(1, rows // size):,} steps an epoch of {rows:,} rows (--batch-size)"
    return replace(config, optimisation=replace(config.optimisation, batch_size=size)), [why]


def length_and_rate(config: FinetuneConfig, epochs: int, why: str) -> list[str]:
    """Sentences about epochs and rate where they are not given."""
    told, opt = [], config.optimisation.optimiser
    if config.duration == DurationConfig():
        told.append(f"{how_many(epochs, 'epoch')}: {why} (--epochs, --time)")
    if config.optimisation.lr is None and not config.thawing.frozen:
        rate = f"rate {USUAL_RATE[opt] * RATE_SHARE:g}"
        told.append(f"{rate}: a tenth of what {opt} usually has, so that what is known is kept (--lr)")
    return told


def with_patience(config: FinetuneConfig, epochs: int) -> tuple[FinetuneConfig, list[str]]:
    """The configuration of a run of no given length, with the patience that any run of so many epochs has, and why."""
    wait = patience_for(epochs)
    if config.patience is not None or wait >= epochs:
        return config, []
    why = f"ends after {how_many(wait, 'evaluation')} without a better one: more would be learnt by heart (--patience)"
    return replace(config, patience=wait), [why]


def probe_start(source: Source, outputs: int) -> tuple[str, int, float | None]:
    """How the head of a linear probe starts, in words, with its epochs and its rate; None is the optimiser's own."""
    if solvable(source, outputs):
        return f"the head starts from {regression_kind(source.task)} regression", PROBE_EPOCHS, PROBE_RATE
    return "the head is drawn, as the training rows lack a class", IMAGE_EPOCHS, None


def settle_images(
    config: FinetuneConfig, source: Source, transform: ImageTransform, outputs: int
) -> tuple[FinetuneConfig, list[str]]:
    """Length, rate and augmentation of a run on images where they are not given, and why."""
    frozen = config.thawing.frozen
    head, epochs, rate = probe_start(source, outputs) if frozen else ("a trained network needs few", IMAGE_EPOCHS, None)
    reasons = length_and_rate(config, epochs, head)
    if config.duration == DurationConfig():
        config, ends = with_patience(config, epochs)
        config = replace(config, duration=DurationConfig(epochs=epochs))
        reasons += ends
    if frozen:
        if any(value not in (None, False, 0.0, "none") for value in mixing(config)):
            raise WeftError("--frozen computes the features of each image once, unchanged; leave augmentation out")
        if config.optimisation.lr is None:
            rate = rate or USUAL_RATE[config.optimisation.optimiser]
            config = replace(config, optimisation=replace(config.optimisation, lr=rate))
            reasons.append(f"rate {rate:g}: {head} (--lr)")
        reasons.append("the network stays as it is: a linear probe is trained on its features, which are kept")
    else:
        changes, why = cropping(config, source, transform)
        config = replace(config, augment=replace(config.augment, **changes)) if changes else config
        reasons += [why] if why else []
        if config.optimisation.model_ema_decay is None:
            config = replace(config, optimisation=replace(config.optimisation, model_ema_decay=AVERAGED))
            reasons.append(f"an average of the weights is kept, decay {AVERAGED:g} (--model-ema-decay)")
    return config, reasons


def cropping(config: FinetuneConfig, source: Source, transform: ImageTransform) -> tuple[dict[str, Any], str]:
    """What images undergo: as in any run, but photographs that are seen many times are cut out at random, and resized.

    A trained network knows a small set by heart in a few passes; shifts by some pixels hardly change what it sees.
    """
    changes, why = augmentation_for(config, source, transform, source.count("train"))
    passes = (config.duration.epochs or 0) >= CROPPED_EPOCHS or is_long(config)
    asked = config.augment
    if not changes.get("flip") or "crop_padding" not in changes or asked.resized_crop is not None:
        return changes, why
    if not passes or transform.size < CROPPED_SIDE:
        return changes, why
    low, high = RESIZED_CROP
    cut, shifted = f"cut to {low:.0%} to {high:.0%} of their area", f"shifted by up to {changes['crop_padding']} px"
    words = why.replace(shifted, cut).replace("--crop-padding", "--resized-crop")
    return {**changes, "crop_padding": 0, "resized_crop": RESIZED_CROP}, words


def mixing(config: FinetuneConfig) -> list[Any]:
    """What of the augmentation was asked for."""
    asked = config.augment
    names = ("resized_crop", "crop_padding", "flip", "color_jitter", "policy", "reprob", "mixup", "cutmix")
    return [getattr(asked, name) for name in (*names, "augmentation")]


def loading(predictor: Predictor, batch_size: int) -> Loading:
    """How a fine-tuned network gets its batches; those on a frozen encoder read the cached embeddings again."""
    transform, below = predictor.transform, encoder_of(predictor.network.config)
    if below is None:
        return lambda source, name: batches(source, name, batch_size, transform=transform, train=False)
    assert isinstance(transform, TextTransform)
    return lambda source, name: embedded_batches(source, name, transform, below, batch_size=batch_size, train=False)
