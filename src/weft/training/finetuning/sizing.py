"""Whether start, source and flags fit together, and the network and the transform that come of them."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from weft.data.open.source import Source
from weft.data.transform.fit import fitting_length, image_shapes, length_note
from weft.data.transform.transforms import ImageTransform, TextTransform, Transform, VectorTransform
from weft.errors import WeftError, nearest
from weft.networks.config import EncoderConfig, ForeignConfig, NetworkConfig, SideMismatch, TextTokensConfig
from weft.networks.registry import REGISTRY, configured, list_models, named
from weft.training.embeddings.heads import PROBE
from weft.training.finetuning.config import FinetuneConfig, name_of
from weft.training.finetuning.start import Start
from weft.training.objective import outputs_for
from weft.training.run.inputs import INPUT, plural

PROBED = "control_identity_text_tiny"  # what a linear probe is written as: no blocks, so nothing is mixed


def check_asked(config: FinetuneConfig) -> None:
    """Refuse flags that contradict each other."""
    if not config.source:
        raise WeftError("say what to learn: weft finetune RUN_OR_FOLDER DATA (sst2, for instance, or a folder)")
    thawing = config.thawing
    if model := asked_model(config):
        configured(model)  # raises, naming the nearest, if there is none
    if thawing.layers and not thawing.frozen:
        raise WeftError("--layers chooses what a frozen encoder gives; add --frozen")
    if thawing.frozen and thawing.thaw_epochs:
        raise WeftError("--frozen and --thaw-epochs contradict each other; give one of them")
    if thawing.thaw_epochs and int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise WeftError("--thaw-epochs works in one process: several must agree on what moves; leave it out")
    if config.optimisation.optimiser == "muon" and not thawing.frozen and thawing.layer_decay != 1:
        raise WeftError("--opt muon keeps one rate for all layers; use --layer-decay 1, or --opt adamw")


def asked_model(config: FinetuneConfig) -> str:
    """The network that --model names, "" where the run is only called after what it starts from."""
    return "" if config.model == name_of(replace(config, model="")) else config.model


def of_weights(config: FinetuneConfig) -> str:
    """The network that bare weights are said to be of; on a frozen encoder of text --model is put instead."""
    model = asked_model(config)
    if not model:
        return ""
    known = named(model)
    if isinstance(known, ForeignConfig):
        raise WeftError(f"--model {model} is no network of weft, which bare weights could be of; leave --model out")
    if known.input == "image":
        return model
    if not config.thawing.frozen:
        raise WeftError(f"--model {model} is put on a frozen encoder; add --frozen, or leave --model out")
    return ""


def check_fit(config: FinetuneConfig, start: Start, source: Source) -> None:
    """Refuse data of another kind than the trained network reads, and a batch larger than the set."""
    wanted = INPUT[source.modality]
    if start.network.input != wanted:
        raise WeftError(
            f"{config.start} holds a network for {plural(start.network.input)}, but {config.source} holds "
            f"{plural(wanted)}; start from a network for {plural(wanted)}"
        )
    if encoder_of(start.network) is not None:
        raise WeftError(f"{config.start} stands on another encoder; start from that one, since this has none itself")
    if config.thawing.layers and wanted == "image":
        raise WeftError("--layers chooses blocks of an encoder of text; for images leave it out")
    if wanted == "image" and (model := asked_model(config)) and named(model).input != "image":
        raise WeftError(
            f"--model {model} is put on a frozen encoder of text, and {config.start} holds a network for images; "
            "leave --model out"
        )
    if config.thawing.frozen and wanted == "vector":
        raise WeftError(
            "--frozen trains a head on features of images or embeddings of text; for vectors leave --frozen out"
        )
    check_columns(config, start, source)
    size, rows = config.optimisation.batch_size, source.count("train")
    if size is not None and size > rows:
        raise WeftError(f"a batch of {size} is larger than the training split ({rows}); use --batch-size {rows}")


def check_columns(config: FinetuneConfig, start: Start, source: Source) -> None:
    """Refuse vectors of another length than the trained network reads."""
    if not isinstance(start.transform, VectorTransform):
        return
    rows, _ = source.splits["train"].read(np.arange(1))
    width = len(rows[0])
    if width != start.transform.features:
        raise WeftError(
            f"{config.start} holds a network for {start.transform.features} columns, but {config.source} has {width}; "
            "choose as many with --inputs, or start from another network"
        )


def transform_of(config: FinetuneConfig, start: Start, source: Source) -> tuple[Transform, list[str]]:
    """What the trained network was trained with, in a length or an image side that suits the data, and why."""
    if isinstance(start.transform, TextTransform):
        return length_of(config, start.transform, source)
    if not isinstance(start.transform, ImageTransform):
        return start.transform, []
    side, reasons = side_for(config, start, source)
    crop = config.transform.crop if config.transform.crop != 1 else start.transform.crop
    return replace(start.transform, size=side, crop=crop, max_pixels=config.transform.max_pixels), reasons


def length_of(config: FinetuneConfig, trained: TextTransform, source: Source) -> tuple[TextTransform, list[str]]:
    """The transform of the trained network in the length that was asked for or fits, as far as it reads, and why."""
    asked, most = config.transform.max_length, trained.max_length
    length = asked or fitting_length(source.splits["train"], trained.tokenizer)
    if length > most:
        return trained, [f"texts of up to {most} tokens: {Path(config.start).name} reads no more"]
    return replace(trained, max_length=length), [] if asked else [length_note(length)]


def side_for(config: FinetuneConfig, start: Start, source: Source) -> tuple[int, list[str]]:
    """The side of images: that of the trained network, which smaller ones are enlarged to. Less is not worth its time:
    EfficientNet-Lite0 knows 82 % of pets enlarged from 96 to 192 px, and 85 % of those enlarged to its own 224."""
    assert isinstance(start.transform, ImageTransform)
    trained = start.transform.size
    if config.transform.img_size is not None:
        return config.transform.img_size, []
    shorter = sorted(min(shape[1:]) for shape in image_shapes(source).elements())
    own = shorter[len(shorter) // 2]
    if own == trained:
        return trained, []
    how, name = "enlarged from" if own < trained else "from", Path(config.start).name
    return trained, [f"images of {trained} px, {how} {own}: {name} was trained at {trained} px (--img-size)"]


def size_network(config: FinetuneConfig, start: Start, source: Source, transform: Transform) -> NetworkConfig:
    """The trained network with outputs that fit the source, or the network that is put on it."""
    shape: dict[str, Any] = {"num_classes": outputs_for(source.task, len(source.classes))}  # type: ignore[arg-type]
    if isinstance(transform, TextTransform):
        shape["max_length"] = transform.max_length
    if config.thawing.frozen and start.network.input == "text":
        return on_encoder(config, start, shape)
    if isinstance(transform, ImageTransform):
        shape["img_size"] = (transform.size, transform.size)
    known = vars(start.network)
    for name in config.network:
        if name not in known:
            raise WeftError(f"{start.name} has no setting {name!r}; {nearest(name, known)}")
    try:
        return start.network.replaced(**{**shape, **config.network})
    except SideMismatch as error:
        raise WeftError(f"{error} (--img-size sets the side)") from error


def on_encoder(config: FinetuneConfig, start: Start, shape: dict[str, Any]) -> NetworkConfig:
    """The network `--model` on the embeddings of the trained one, or a linear probe."""
    below = start.network
    if not isinstance(below, TextTokensConfig):
        raise WeftError(f"--frozen needs an encoder such as BERT; {start.folder} holds a {below.family} network")
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


def encoder_of(network: NetworkConfig) -> EncoderConfig | None:
    return network.encoder if isinstance(network, TextTokensConfig) else None
