"""Names to networks: `create_model`, `list_models`, and the way back from a stored configuration.

This module loads no torch until a network is built.
"""

from __future__ import annotations

import dataclasses
import fnmatch
import reprlib
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from weft import machine
from weft.errors import WeftError, nearest
from weft.networks import config as configs
from weft.networks.config import MLPConfig, NetworkConfig
from weft.networks.sizes import SIZES

if TYPE_CHECKING:
    from weft.networks.network import Network

REGISTRY: dict[str, NetworkConfig] = SIZES

FAMILIES: dict[str, tuple[type[NetworkConfig], str]] = {  # family: its configuration, and where its class is
    "mlp": (configs.MLPConfig, "mlp:MLP"),
    "lenet": (configs.LeNetConfig, "lenet:LeNet"),
    "resnet": (configs.ResNetConfig, "resnet:ResNet"),
    "rcnn": (configs.RCNNConfig, "rcnn:RCNN"),
    "filternet": (configs.FilterNetConfig, "filternet:FilterNet"),
    "vit": (configs.ImageTokensConfig, "vit:ViT"),
    "hybrid": (configs.ImageTokensConfig, "vit:Hybrid"),
    "mixer": (configs.ImageTokensConfig, "mixer:Mixer"),
    "control": (configs.ImageTokensConfig, "mixer:Control"),
    "gmlp": (configs.ImageTokensConfig, "gmlp:GMLP"),
    "bert": (configs.TextTokensConfig, "bert:BERT"),
    "text_gmlp": (configs.TextTokensConfig, "gmlp:TextGMLP"),
    "text_mixer": (configs.TextTokensConfig, "mixer:TextMixer"),
    "text_control": (configs.TextTokensConfig, "mixer:TextControl"),
    "lstm": (configs.LSTMConfig, "text_baselines:LSTM"),
    "textconv": (configs.TextConvConfig, "text_baselines:TextConv"),
}


def list_models(pattern: str = "*") -> list[str]:
    """All names that match a pattern such as `mixer*`, in order of family and size."""
    return fnmatch.filter(REGISTRY, pattern)


def create_model(
    name: str,
    pretrained: str | Path | None = None,
    *,
    num_classes: int | None = None,
    img_size: int | tuple[int, int] | None = None,
    in_chans: int | None = None,
    **overrides: Any,
) -> Network:
    """Build the network called `name`; every field of its configuration can be given as a keyword.

    `pretrained` is a file, a folder or a Hub name to load weights from; a checkpoint of another image size, length or
    number of classes is resized.
    """
    if isinstance(pretrained, bool) and pretrained:  # what timm's users try first
        raise WeftError("weft keeps no weights of its own: `pretrained` is a file, a folder or a name on the Hub")
    sizes = {"num_classes": num_classes, "img_size": img_size, "in_chans": in_chans}
    config = configured(name, **{key: value for key, value in sizes.items() if value is not None}, **overrides)
    network = build(config)
    if pretrained:
        from weft.networks.weights import load_weights

        load_weights(network, pretrained)
    return network


def configured(name: str, **changes: Any) -> NetworkConfig:
    """The configuration of a named size with some fields changed."""
    if name not in REGISTRY:
        raise WeftError(f"there is no model {name!r}; {nearest(name.lower(), REGISTRY)} `weft models` lists all")
    config = REGISTRY[name]
    if isinstance(config, MLPConfig) and changes.get("in_features"):
        changes.setdefault("img_size", None)
    return checked(type(config), {**dataclasses.asdict(config), **changes}, name)


def checked(kind: type[NetworkConfig], fields: dict[str, Any], what: str) -> NetworkConfig:
    """Make a configuration, turning what pydantic finds into one sentence."""
    known = [field.name for field in dataclasses.fields(kind)]
    for field in fields:
        if field not in known:
            raise WeftError(f"{what} has no setting {field!r}; {nearest(field, known)} it has {', '.join(known)}")
    try:
        return kind(**fields)
    except ValidationError as error:
        first = error.errors()[0]
        where = first["loc"][0] if first["loc"] else "configuration"
        raise WeftError(f"{what}: {where} = {reprlib.repr(first['input'])} does not do: {first['msg']}") from None


def config_from_dict(fields: dict[str, Any]) -> NetworkConfig:
    """The configuration that `dataclasses.asdict` was taken of, from `config.json` for instance."""
    family = fields.get("family")
    if not isinstance(family, str) or family not in FAMILIES:
        raise WeftError(
            f"there is no family {reprlib.repr(family)} of networks; the families are {', '.join(FAMILIES)}"
        )
    return checked(FAMILIES[family][0], fields, family)


def build(config: NetworkConfig) -> Network:
    """The network of a configuration, freshly initialised from torch's generator."""
    require_memory(config)
    module, _, name = FAMILIES[config.family][1].partition(":")
    network: Network = getattr(import_module(f"weft.networks.{module}"), name)(config)
    return network


def require_memory(config: NetworkConfig) -> None:
    """Refuse a network whose weights alone do not fit into memory; laid out on the meta device it needs none."""
    import torch

    from weft.networks.cost import total_parameters

    parameters, room = total_parameters(config), machine.memory_available()
    if 4 * parameters > room and torch.get_default_device().type != "meta":
        raise WeftError(
            f"a {config.family} network of {parameters:,} parameters takes {4 * parameters / 2**30:,.1f} GiB and "
            f"{room / 2**30:,.1f} are free; choose a smaller one"
        )
