"""Settings that follow the data where none were given: network, batch, augmentation. Each comes with its reason.

They depend on the source and on what was asked alone, so that runs of several seeds, and a run that is resumed, settle
alike. Image side and text length follow the data too, in `data/transform/fit.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from weft.data.open.source import Source
from weft.data.transform.fit import fitting_side, image_shapes, size_note
from weft.data.transform.transforms import ImageTransform, TextTransform, Transform
from weft.errors import WeftError
from weft.networks.config import NetworkConfig
from weft.networks.measure.cost import total_macs
from weft.networks.registry import REGISTRY, configured
from weft.training.config import SHORT_RUN_RATE, DurationConfig, RunConfig, batch_for, seconds
from weft.training.finetuning.config import FinetuneConfig
from weft.training.mirroring import try_mirroring
from weft.training.run.plan import DEFAULT_EPOCHS

EPOCH = 50  # steps that an epoch should have at least: fewer, and a small set is seen often and learnt from rarely
SMALLEST, LARGEST = 8, 128  # batch
SMALL, LARGE = 32, 64  # px of the images of a network that was chosen here, in short runs and in long ones
MANY = 20_000  # training images beyond which few passes are made in minutes
LONG, PASSES = 1200.0, 10  # seconds, and epochs, of a run that makes many passes all the same
UNEVEN = 10  # times as many rows as the rarest class has, at which weights are offered
STEPS, MOST_EPOCHS = 1500, 100  # that a run of no given length has at least, and epochs that it has at most
WAIT, LEAST_WAIT = 1 / 3, 5  # evaluations without a better one after which it ends: a share of its epochs, at least 5
SIGNS = re.compile(r"(digit|letter|class|char|number|no)?[ _-]*[0-9a-z]", re.IGNORECASE)  # names of digits and letters
DEFAULT_NETWORK = {"image": "resnet8_cifar", "vector": "mlp", "text": "conv_text", "pair": "conv_text"}
WHY = {
    "image": "a small residual network learns from few images, and fast",
    "vector": "the network for rows of numbers",
    "text": "convolution over words learns from few texts, and fast",
    "pair": "convolution over words learns from few texts, and fast",
}
SHAPE = ("num_classes", "img_size", "in_chans", "vocab_size", "max_length")  # what a network has from its data
Config = TypeVar("Config")


def settle_network(config: RunConfig, source: Source) -> tuple[RunConfig, list[str]]:
    """The configuration with a network, and why this one."""
    if config.model:
        return config, []
    model = DEFAULT_NETWORK[source.modality]
    told = f"network {model}: {WHY[source.modality]} (--model; `weft compare {config.source}` tells which is best here)"
    config = replace(config, model=model)
    if source.modality != "image":
        return config, [told]
    return with_small_images(config, source, [told])


def with_small_images(config: RunConfig, source: Source, reasons: list[str]) -> tuple[RunConfig, list[str]]:
    """For the network that is chosen here: images that let many epochs fit, and the rate of short runs."""
    if config.optimisation.lr is None:
        config = replace(config, optimisation=replace(config.optimisation, lr=SHORT_RUN_RATE))
        reasons.append(f"rate {SHORT_RUN_RATE:g}: that of short runs of small networks (--lr)")
    longest = LARGE if is_long(config) else SMALL
    if config.transform.img_size is None and (side := fitting_side(image_shapes(source))) > longest:
        config = replace(config, transform=replace(config.transform, img_size=longest))
        reasons.append(f"images of {longest} px, from {side}: many epochs over small ones teach more (--img-size)")
    return config, reasons


def settle(config: RunConfig, source: Source, transform: Transform) -> tuple[RunConfig, list[str]]:
    """The configuration with every setting decided, and a sentence for each that was decided here."""
    reasons: list[str] = []
    rows = len(source.splits["train"])
    if config.optimisation.batch_size is None:
        size = batch_for(rows, EPOCH, SMALLEST, LARGEST)
        config = replace(config, optimisation=replace(config.optimisation, batch_size=size))
        reasons.append(f"batch {size}: {rows // size:,} steps an epoch of {rows:,} rows (--batch-size)")
    if config.duration == DurationConfig():
        config, why = with_length(config, max(1, rows // config.optimisation.batch))
        reasons.append(why)
    if isinstance(transform, ImageTransform):
        changes, why = augmentation_for(config, source, transform, rows)
        if changes:
            config = replace(config, augment=replace(config.augment, **changes))
            reasons.append(why)
    return config, [*reasons, *imbalance(config, source)]


def with_length(config: RunConfig, steps_per_epoch: int) -> tuple[RunConfig, str]:
    """The configuration with a length by the size of the set, and patience: a small set is passed over more often, and
    its evaluations, on few rows, go up and down for longer before they say something."""
    epochs = min(MOST_EPOCHS, max(DEFAULT_EPOCHS, -(-STEPS // steps_per_epoch)))
    patience = max(LEAST_WAIT, round(WAIT * epochs)) if config.patience is None else config.patience
    ends = f", at most; ends after {patience} evaluations without a better one" if patience else ""
    config = replace(config, duration=DurationConfig(epochs=float(epochs)), patience=patience)
    return config, f"{epochs} epochs of {steps_per_epoch:,} steps{ends} (--epochs, --time, --patience)"


def is_long(config: RunConfig) -> bool:
    """Whether a time was asked for in which many passes are made."""
    return config.duration.time is not None and seconds(config.duration.time) >= LONG


def augmentation_for(
    config: RunConfig, source: Source, transform: ImageTransform, rows: int
) -> tuple[dict[str, Any], str]:
    """What images are to undergo where nothing was said about it, and the sentence that tells it."""
    asked, side = config.augment, transform.size
    if asked.flip is not None and asked.crop_padding is not None:
        return {}, ""
    many_passes = (config.duration.epochs or 0) >= PASSES or is_long(config)
    if side < 24 or (rows > MANY and not many_passes):
        small = f"images of {side} px have no room for it" if side < 24 else f"few passes over {rows:,} images"
        found: dict[str, Any] = {"flip": False, "crop_padding": 0}
        words = f"no augmentation: {small}"
    else:
        photos = transform.channels == 3
        flip, why = mirroring_for(source, transform) if asked.flip is None else (asked.flip, "")
        found = {"flip": flip, "crop_padding": max(1, round(side / (8 if photos else 14)))}
        words = f"images {'mirrored and ' * flip}shifted by up to {found['crop_padding']} px{why}"
    given = {name for name in found if getattr(asked, name) is not None}
    return {name: value for name, value in found.items() if name not in given}, f"{words} (--flip, --crop-padding)"


def mirroring_for(source: Source, transform: ImageTransform) -> tuple[bool, str]:
    """Whether to mirror images: photographs unless that is seen to hurt, others where it is seen to help; and why."""
    photos, signs = transform.channels == 3, all(SIGNS.fullmatch(name) for name in source.classes)
    usual, tried = photos and not signs, try_mirroring(source, transform)
    if tried is not None and (tried.hurts if usual else tried.helps):
        return not usual, f", {'not ' * usual}mirrored: {tried}"
    return usual, "" if usual else f", not mirrored: {'digits or letters' if signs else 'grey images'} may not be"


def imbalance(config: RunConfig, source: Source) -> list[str]:
    """An offer of class weights where the commonest class has many times the rows of the rarest."""
    if source.task not in ("classes", "binary") or config.objective.class_weights is not None:
        return []
    counts = np.bincount(source.splits["train"].targets.astype(np.int64), minlength=len(source.classes))
    if counts.min() == 0 or counts.max() < UNEVEN * counts.min():
        return []
    most, least = source.classes[int(counts.argmax())], source.classes[int(counts.argmin())]
    times = counts.max() // counts.min()
    return [f"{most!r} has {times} times the rows of {least!r}: --class-weights balanced would weigh them alike"]


def transform_reasons(config: RunConfig, source: Source, transform: Transform) -> list[str]:
    """Sentences about image side and text length where they followed the data; found once for an opened source."""
    key = f"remarks on {config.transform}"
    if key not in source.stores:
        source.stores[key] = list(_transform_reasons(config, source, transform))
    found: list[str] = source.stores[key]
    return found


def _transform_reasons(config: RunConfig, source: Source, transform: Transform) -> Iterator[str]:
    from weft.training.finetuning.lengths import cut_note

    if isinstance(transform, TextTransform):
        if config.transform.max_length is None:
            yield f"texts of up to {transform.max_length} tokens (--max-length)"
        yield from cut_note(source, transform)
    elif isinstance(transform, ImageTransform) and config.transform.img_size is None:
        yield from size_note(source, transform)


def shorter_epochs(network: NetworkConfig, share: float) -> str:
    """What would let a whole epoch fit where only a `share` of one does: a smaller network, a smaller image."""
    most = total_macs(network) * share
    shape = {name: getattr(network, name) for name in SHAPE if hasattr(network, name)}
    fitting: list[tuple[int, str]] = []
    for name, known in REGISTRY.items():
        if (known.family, known.input) == (network.family, network.input):
            with suppress(WeftError):  # that cannot have inputs of this shape
                macs = total_macs(configured(name, **shape))
                fitting += [(macs, name)] if macs <= most else []
    found = [f"--model {max(fitting)[1]}"] if fitting else []
    if network.input == "image":
        patch = int(getattr(network, "patch_size", 1))
        side = int(network.img_size[0] * share**0.5) // max(8, patch) * max(8, patch)  # type: ignore[attr-defined]
        found += [f"--img-size {side}"] if side >= 16 else []
    return f"; {' or '.join(found)} would fit" if found else "; give more time"


def as_stored(config: Config, stored: Any) -> Config:
    """The configuration with what it leaves to the data as it was settled for a run that is stored."""
    if not isinstance(config, RunConfig) or not isinstance(stored, RunConfig):
        return config
    augment = {
        name: getattr(stored.augment, name)
        for name in ("flip", "crop_padding", "resized_crop")
        if getattr(config.augment, name) is None
    }
    size = config.optimisation.batch_size or stored.optimisation.batch_size
    lr, side, duration, patience = config.optimisation.lr, config.transform.img_size, config.duration, config.patience
    if duration == DurationConfig():
        duration, patience = stored.duration, stored.patience if patience is None else patience
    if isinstance(config, FinetuneConfig):
        lr = lr or stored.optimisation.lr
    elif not config.model:
        lr, side = lr or stored.optimisation.lr, side or stored.transform.img_size
    return replace(
        config,
        model=config.model or stored.model,
        optimisation=replace(config.optimisation, batch_size=size, lr=lr),
        transform=replace(config.transform, img_size=side),
        augment=replace(config.augment, **augment),
        duration=duration,
        patience=patience,
    )
