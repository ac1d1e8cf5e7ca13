"""Whether start, source and flags fit together, and the network and the transform that come of them."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

from weft.data.open.source import Source
from weft.data.transform.fit import fit, fitting_length
from weft.data.transform.transforms import TextTransform, Transform
from weft.errors import WeftError, nearest
from weft.networks.config import EncoderConfig, ImageConfig, NetworkConfig, TextTokensConfig
from weft.networks.registry import REGISTRY, configured, list_models
from weft.nn.losses import outputs_for
from weft.training.embeddings.heads import PROBE
from weft.training.finetuning.config import FinetuneConfig, name_of
from weft.training.finetuning.start import Start
from weft.training.run.inputs import INPUT, plural

PROBED = "control_identity_text_tiny"  # what a linear probe is written as: no blocks, so nothing is mixed


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
    size, rows = config.optimisation.batch, len(source.splits["train"])
    if size > rows:
        raise WeftError(f"a batch of {size} is larger than the training split ({rows}); use --batch-size {rows}")


def transform_of(config: FinetuneConfig, start: Start, source: Source) -> Transform:
    """What the trained network was trained with, at most as long as asked for; for foreign images, fitted."""
    if isinstance(start.transform, TextTransform):
        length = config.transform.max_length or fitting_length(source.splits["train"], start.transform.tokenizer)
        return replace(start.transform, max_length=min(start.transform.max_length, length))
    if start.transform is not None:
        return start.transform
    assert isinstance(start.network, ImageConfig)
    channels: Any = start.network.in_chans
    return fit(source, replace(config.transform, img_size=start.network.img_size[0], channels=channels))


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


def encoder_of(network: NetworkConfig) -> EncoderConfig | None:
    return network.encoder if isinstance(network, TextTokensConfig) else None
