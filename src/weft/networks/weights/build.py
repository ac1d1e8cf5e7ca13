"""A network from a folder alone: its configuration is read from `config.json`, then its weights are loaded."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from weft.errors import WeftError
from weft.networks.base.network import Network
from weft.networks.config import NetworkConfig, TextTokensConfig
from weft.networks.measure.cost import total_parameters
from weft.networks.registry import REGISTRY, build, config_from_dict
from weft.networks.weights import huggingface, own, timm
from weft.networks.weights.files import Checkpoint, read
from weft.networks.weights.load import classes_of, layout_of, legible, load_checkpoint, plainly_named, stated
from weft.networks.weights.outline import outline, require_little_unstored, require_parameters


def network_from_folder(folder: str | Path, *, unsafe_pickle: bool = False, **changes: Any) -> Network:
    """Build and load the network of a folder (or Hub name) of weft, of timm, or of a Hugging Face BERT or ViT.

    `changes` are fields of weft's configuration: `num_classes=3` puts a fresh head on, `img_size` and `max_length`
    resize.
    """
    checkpoint = read(folder, unsafe_pickle=unsafe_pickle)
    if changes:  # the weights are fitted to them, so they need not be as many
        config = config_from_dict({**dataclasses.asdict(described(checkpoint)), **changes})
    else:
        config = stored_config(checkpoint)
    require_little_unstored(outline(config), f"the config.json of {checkpoint.origin}")
    network = build(config)
    load_checkpoint(network, checkpoint)
    return network


def stored_config(checkpoint: Checkpoint) -> NetworkConfig:
    """The configuration that a checkpoint's config.json describes, for which it must have the weights."""
    config, origin = described(checkpoint), checkpoint.origin
    numbers = sum(tensor.numel() for tensor in checkpoint.tensors.values())
    require_parameters(total_parameters(config), numbers, origin, f"the config.json of {origin}")
    return config


def described(checkpoint: Checkpoint) -> NetworkConfig:
    """What the config.json of a checkpoint says in weft's words."""
    fields, origin = checkpoint.config, checkpoint.origin
    if own.is_own(fields):
        return found_encoder(own.stored_config(fields), origin)
    adapter = layout_of(checkpoint)
    if adapter is None or not fields:
        raise WeftError(f"{origin} has no config.json that weft can read; use create_model with pretrained={origin!r}")
    checkpoint = plainly_named(checkpoint, adapter)
    classes = classes_of(adapter, checkpoint)
    with legible(origin):
        if adapter.layout == "timm":
            return timm_config(checkpoint, classes)
        huggingface.known(checkpoint)  # refuses what weft does not read
        return huggingface.CONFIGS[fields["model_type"]](fields, checkpoint.tensors, classes)


def found_encoder(config: NetworkConfig, origin: str) -> NetworkConfig:
    """The configuration with the place of the encoder that its network stands on, if it stands on one."""
    if not isinstance(config, TextTokensConfig) or config.encoder is None:
        return config
    folder = Path(origin) if Path(origin).is_dir() else Path(origin).parent
    return dataclasses.replace(config, encoder=config.encoder.below(folder))


def describes_itself(checkpoint: Checkpoint) -> bool:
    """Whether the config.json of a checkpoint says all of its network; timm's is a name, which weft may not have."""
    fields, adapter = checkpoint.config, layout_of(checkpoint)
    if adapter is not None and adapter.layout == "timm":
        return "family" in stated(adapter, checkpoint)
    return own.is_own(fields) or bool(fields and adapter in huggingface.ADAPTERS)


def timm_config(checkpoint: Checkpoint, classes: int) -> NetworkConfig:
    """The named size, with what its folder changes."""
    name = timm.architecture(checkpoint)
    if name not in REGISTRY:
        names = f"names {name}, which weft has not" if name else "names no architecture"
        remedy = f"use create_model with pretrained={checkpoint.origin!r} and a network of the same tensors"
        raise WeftError(f"the config.json of {checkpoint.origin} {names}; {remedy}")
    size = REGISTRY[name]
    changes = {key: value for key, value in timm.known(checkpoint).items() if key == "img_size"}
    return config_from_dict({**dataclasses.asdict(size), "num_classes": classes, **changes})
