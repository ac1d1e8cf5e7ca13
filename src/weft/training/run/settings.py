"""Settings that follow the data where none were given: network, batch, augmentation. Each comes with its reason.

They depend on the source and on what was asked alone, so that runs of several seeds, and a run that is resumed, settle
alike. Image side and text length follow the data too, in `data/transform/fit.py`.
"""

from __future__ import annotations

import re
import shlex
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeVar

from weft.data.open.labels import uneven
from weft.data.open.source import Source
from weft.data.transform.fit import LARGE, SMALL, image_shapes, other_sizes, own_side
from weft.data.transform.transforms import ImageTransform, Transform
from weft.errors import WeftError
from weft.imported import is_import_string
from weft.networks.config import NetworkConfig
from weft.networks.measure.cost import total_macs, total_parameters
from weft.networks.registry import REGISTRY, configured
from weft.terminal import how_many
from weft.training.config import (
    SHORT_RUN_RATE,
    SLOWEST_MUON,
    DurationConfig,
    RunConfig,
    batch_for,
    muon_rate,
    seconds,
)
from weft.training.finetuning.config import FinetuneConfig
from weft.training.mirroring import try_mirroring
from weft.training.run.plan import DEFAULT_EPOCHS

EPOCH = 50  # steps that an epoch should have at least: fewer, and a small set is seen often and learnt from rarely
SMALLEST, LARGEST = 8, 128  # batch
MANY = 20_000  # training images beyond which few passes are made in minutes
LONG, PASSES = 1200.0, 10  # seconds, and epochs, of a run that makes many passes all the same
SMOOTHING = 0.1  # of labels, in runs that pass over a small set many times (Szegedy et al. 2016)
DROPPED = {"textconv": 0.5, "lstm": 0.5}  # of the units of these families in such runs, as Kim 2014 does
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
Run = TypeVar("Run", bound=RunConfig)


def settle_network(config: RunConfig, source: Source) -> tuple[RunConfig, list[str]]:
    """The configuration with a network, and why this one."""
    if config.model:
        return config, []
    model = DEFAULT_NETWORK[source.modality]
    compared = f"`weft compare {shlex.quote(config.source)}`"
    told = f"network {model}: {WHY[source.modality]} (--model; {compared} tells which is best here)"
    config = replace(config, model=model)
    if source.modality != "image":
        return config, [told]
    return with_small_images(config, source, [told])


def with_small_images(config: RunConfig, source: Source, reasons: list[str]) -> tuple[RunConfig, list[str]]:
    """For the network that is chosen here: images that let many epochs fit, and AdamW's rate of short runs."""
    opt = config.optimisation.opt or ("adamw" if config.execution.strategy == "fsdp" else None)
    if config.optimisation.lr is None and opt in ("adam", "adamw"):
        config = replace(config, optimisation=replace(config.optimisation, lr=SHORT_RUN_RATE))
        reasons.append(f"rate {SHORT_RUN_RATE:g}: that of short runs of small networks (--lr)")
    side, longest = small_side(config, source)
    if longest < side:
        config = replace(config, transform=replace(config.transform, img_size=longest))
        others = other_sizes(image_shapes(source), side)
        seen = f" ({others})" if others else ""
        reasons.append(
            f"images of {longest} px, from {side}{seen}: many epochs over small ones teach more (--img-size)"
        )
    return config, reasons


def small_side(config: RunConfig, source: Source) -> tuple[int, int]:
    """The side that the images have, and the smaller one that the network which is chosen here takes."""
    if config.transform.img_size is not None:
        return config.transform.img_size, config.transform.img_size
    side = own_side(image_shapes(source))
    return side, min(side, LARGE if is_long(config) else SMALL)


def settle_optimiser(
    config: RunConfig, network: NetworkConfig, source: Source, planned: bool
) -> tuple[RunConfig, list[str]]:
    """The configuration with an optimiser, and why this one: who gives a rate alone means that of AdamW, which also
    moves what little is known of, networks that are not weft's and those of vectors."""
    moved, sharded = config.optimisation, config.execution.strategy == "fsdp"
    if moved.opt is not None:
        return config, []
    unknown = is_import_string(config.model) or source.modality == "vector"
    if moved.lr is not None or planned or sharded or unknown:
        return replace(config, optimisation=replace(moved, opt="adamw")), []
    rate = float(f"{muon_rate(config.model, total_parameters(network)):.2g}")
    told = f"optimiser muon at rate {rate:g}: learns more than adamw in as many steps (--opt, --lr)"
    return replace(config, optimisation=replace(moved, opt="muon", lr=rate)), [told]


def settle(
    config: RunConfig, source: Source, transform: Transform, planned: bool = False
) -> tuple[RunConfig, list[str]]:
    """The configuration with every setting decided, and a sentence for each that was decided here.

    What a run was `planned` with stays: it may be of a time when fewer settings followed the data.
    """
    reasons: list[str] = []
    rows, often = source.count("train"), passes_often(config) and not planned
    if config.optimisation.batch_size is None:
        size = batch_for(rows, EPOCH, SMALLEST, LARGEST)
        config = replace(config, optimisation=replace(config.optimisation, batch_size=size))
        reasons.append(f"batch {size}: {how_many(rows // size, 'step')} an epoch of {rows:,} rows (--batch-size)")
    if config.duration == DurationConfig():
        config, why = with_length(config, max(1, rows // config.optimisation.batch))
        reasons.append(why)
    if isinstance(transform, ImageTransform):
        changes, why = augmentation_for(config, source, transform, rows)
        if changes:
            config = replace(config, augment=replace(config.augment, **changes))
            reasons.append(why)
    if often and rows <= MANY and source.task in ("classes", "binary"):
        config, told = regularised(config, rows)
        reasons += told
    offered = uneven(source) if config.objective.class_weights is None else ()
    return config, [*reasons, *offered]


def with_length(config: RunConfig, steps_per_epoch: int) -> tuple[RunConfig, str]:
    """The configuration with a length by the size of the set, and patience: a small set is passed over more often, and
    its evaluations, on few rows, go up and down for longer before they say something."""
    epochs = min(MOST_EPOCHS, max(DEFAULT_EPOCHS, -(-STEPS // steps_per_epoch)))
    patience = patience_for(epochs) if config.patience is None else config.patience
    ends = f", at most; ends after {how_many(patience, 'evaluation')} without a better one" if patience else ""
    config = replace(config, duration=DurationConfig(epochs=float(epochs)), patience=patience)
    length = f"{how_many(epochs, 'epoch')} of {how_many(steps_per_epoch, 'step')}"
    return config, f"{length}{ends} (--epochs, --time, --patience)"


def patience_for(epochs: int) -> int:
    """Evaluations without a better one after which a run of so many epochs ends."""
    return max(LEAST_WAIT, round(WAIT * epochs))


def passes_often(config: RunConfig) -> bool:
    """Whether a run of this length passes over a small set until nothing more is gained: one of a time, or of no given
    length. Who counts epochs or steps decides for themselves what goes with them."""
    return config.duration.time is not None or config.duration == DurationConfig()


def regularised(config: RunConfig, rows: int) -> tuple[RunConfig, list[str]]:
    """The configuration with what keeps a network from learning a small set by heart, where nothing was said of it."""
    config, told = smoothed(config, rows)
    share = DROPPED.get(REGISTRY[config.model].family) if config.model in REGISTRY else None
    if share is not None and "drop_rate" not in config.network:
        config = replace(config, network={**config.network, "drop_rate": share})
        told.append(f"drop-out of {share:g}: {by_heart(rows)} (--network drop_rate={share:g})")
    return config, told


def smoothed(config: Run, rows: int) -> tuple[Run, list[str]]:
    """The configuration with smoothed labels, where nothing was said of it."""
    if config.objective.smoothing is not None:
        return config, []
    config = replace(config, objective=replace(config.objective, smoothing=SMOOTHING))
    return config, [f"labels smoothed by {SMOOTHING:g}: {by_heart(rows)} (--smoothing)"]


def by_heart(rows: int) -> str:
    return f"{rows:,} rows are soon known by heart"


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
    decided: dict[str, Any] = {"flip": False, "crop_padding": 0}
    if side < 24 or (rows > MANY and not many_passes):
        small = f"images of {side} px have no room for it" if side < 24 else f"few passes over {rows:,} images"
        why = f": {small}"
    else:
        decided["crop_padding"] = max(1, round(side / (8 if transform.channels == 3 else 14)))
        decided["flip"], why = mirroring_for(source, transform) if asked.flip is None else (False, "")
    given = {name: value for name in decided if (value := getattr(asked, name)) is not None}
    found = {name: value for name, value in decided.items() if name not in given}
    flags = ", ".join(f"--{name.replace('_', '-')}" for name in found)
    return found, f"{as_words(decided | given, found)}{why} ({flags})"


def as_words(augment: dict[str, Any], decided: dict[str, Any]) -> str:
    """What images undergo: mirrored or shifted; of what was `decided` here also that it is not done."""
    names = {"flip": "mirrored", "crop_padding": f"shifted by up to {augment['crop_padding']} px"}
    done = [words for name, words in names.items() if augment[name]]
    if not done and len(decided) == len(names):
        return "no augmentation"
    left = [f"not {names[name].split()[0]}" for name in decided if not augment[name]]
    return f"images {' and '.join(done)}{', ' * bool(done and left)}{', '.join(left)}"


def mirroring_for(source: Source, transform: ImageTransform) -> tuple[bool, str]:
    """Whether to mirror images: photographs unless that is seen to hurt, others where it is seen to help; and why."""
    photos, signs = transform.channels == 3, all(SIGNS.fullmatch(name) for name in source.classes)
    usual, tried = photos and not signs, try_mirroring(source, transform)
    if tried is not None and (tried.hurts if usual else tried.helps):
        return not usual, f": {tried}"
    return usual, "" if usual else f": {'digits or letters' if signs else 'grey images'} may not be"


def shorter_epochs(network: NetworkConfig, share: float, batch: int = LARGEST, trained: bool = False) -> str:
    """What would let a whole epoch fit where only a `share` of one does: a smaller network, image or text; and a larger
    `batch`, which takes less time a row."""
    found = fitting(network, share, trained)
    larger = f"; --batch-size {min(LARGEST, 4 * batch)} takes less time a row" if batch < LARGEST else ""
    return f"; {' or '.join(found)} would fit{larger}" if found else f"; give more time{larger}"


def fitting(network: NetworkConfig, share: float, trained: bool = False) -> list[str]:
    """What takes a `share` of the work: a smaller network, image or text. A `trained` network cannot be exchanged by
    its name."""
    found = [] if trained else [f"--model {name}" for name in smaller_network(network, share)]
    if network.input == "image":
        patch = int(getattr(network, "patch_size", 1))
        side = int(network.img_size[0] * share**0.5) // max(8, patch) * max(8, patch)  # type: ignore[attr-defined]
        found += [f"--img-size {side}"] if side >= 16 else []
    elif network.input == "text":
        length = int(network.max_length * share) // 8 * 8  # type: ignore[attr-defined]
        found += [f"--max-length {length}"] if length >= 16 else []
    return found + (["a smaller network to start from"] if trained else [])


def smaller_network(network: NetworkConfig, share: float) -> list[str]:
    """The name of the largest network of the family that takes at most a `share` of the work, if there is one."""
    most = total_macs(network) * share
    shape = {name: getattr(network, name) for name in SHAPE if hasattr(network, name)}
    fitting: list[tuple[int, str]] = []
    for name, known in REGISTRY.items():
        if (known.family, known.input) == (network.family, network.input):
            with suppress(WeftError):  # that cannot have inputs of this shape
                macs = total_macs(configured(name, **shape))
                fitting += [(macs, name)] if macs <= most else []
    return [max(fitting)[1]] if fitting else []


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
    opt = config.optimisation.opt
    if opt is None:
        opt = stored.optimisation.opt
        usual, known = muon_rate(stored.model), stored.optimisation.lr
        follows = isinstance(known, float) and SLOWEST_MUON <= known <= usual  # it goes by the network's size
        lr = (known if follows else usual) if opt == "muon" and lr is None else lr
    smoothing, network = config.objective.smoothing, config.network
    if smoothing is None and (passes_often(config) or not stored.objective.smoothing):
        smoothing = stored.objective.smoothing
    if passes_often(config) and stored.model in REGISTRY and REGISTRY[stored.model].family in DROPPED:
        network = {**{name: value for name, value in stored.network.items() if name == "drop_rate"}, **network}
    if isinstance(config, FinetuneConfig):
        lr = lr or stored.optimisation.lr
    elif not config.model:
        lr, side = lr or stored.optimisation.lr, side or stored.transform.img_size
    return replace(
        config,
        model=config.model or stored.model,
        network=network,
        objective=replace(config.objective, smoothing=smoothing),
        optimisation=replace(config.optimisation, batch_size=size, opt=opt, lr=lr),
        transform=replace(config.transform, img_size=side),
        augment=replace(config.augment, **augment),
        duration=duration,
        patience=patience,
    )
