"""Names to networks and mixers: `create_model`, `list_models`, `register_mixer`, and the way back from `config.json`.

A name ends in the image side (`_224`, `_32`); `_p4` is a patch of 4×4 pixels. Every name is a configuration and every
field of it can be changed: `create_model("mixer_nano_p4_32", depth=12)`. `nano` is about a million parameters, `pico` a
tenth of its multiply-adds: epochs of CIFAR-10 in a minute or two on two cores. Names are timm's where timm has them.

The named sizes stand in the files of their families, beside classes that need torch, and this module loads no torch
until a network is built: what the files say is kept in listing.py's cache.
"""

from __future__ import annotations

import dataclasses
import fnmatch
import reprlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import ValidationError

from weft import machine
from weft.errors import WeftError, nearest
from weft.imported import is_import_string, module_class, require_trust, trust
from weft.networks import config as configs
from weft.networks import listing
from weft.networks.config import ForeignConfig, MLPConfig, NetworkConfig

if TYPE_CHECKING:
    from torch import nn

    from weft.networks.base.network import Network

Sizes = Iterator[tuple[str, NetworkConfig]]
Kind = TypeVar("Kind", bound="type[nn.Module]")

FAMILIES: dict[str, tuple[type[NetworkConfig], str]] = {  # family: its configuration, and where its class is
    "mlp": (configs.MLPConfig, "mlp:MLP"),
    "lenet": (configs.LeNetConfig, "lenet:LeNet"),
    "filternet": (configs.FilterNetConfig, "lenet:FilterNet"),
    "rcnn": (configs.RCNNConfig, "rcnn:RCNN"),
    "resnet": (configs.ResNetConfig, "resnet:ResNet"),
    "efficientnet": (configs.EfficientNetConfig, "efficientnet:EfficientNet"),
    "nfnet": (configs.NFNetConfig, "nfnet:NFNet"),
    "bit": (configs.BiTConfig, "bit:BiT"),
    "halonet": (configs.HaloNetConfig, "halonet:HaloNet"),
    "vit": (configs.ImageTokensConfig, "vit:ViT"),
    "deit": (configs.ImageTokensConfig, "vit:DistilledViT"),
    "hybrid": (configs.ImageTokensConfig, "vit:Hybrid"),
    "mixer": (configs.ImageTokensConfig, "mixer:Mixer"),
    "text_mixer": (configs.TextTokensConfig, "mixer:TextMixer"),
    "control": (configs.ImageTokensConfig, "controls:Control"),
    "text_control": (configs.TextTokensConfig, "controls:TextControl"),
    "gmlp": (configs.ImageTokensConfig, "gmlp:GMLP"),
    "text_gmlp": (configs.TextTokensConfig, "gmlp:TextGMLP"),
    "bert": (configs.TextTokensConfig, "bert:BERT"),
    "lstm": (configs.LSTMConfig, "text_baselines:LSTM"),
    "textconv": (configs.TextConvConfig, "text_baselines:TextConv"),
    "foreign": (configs.ForeignConfig, "base.foreign:Foreign"),
}


class Names(Mapping[str, NetworkConfig]):
    """All named networks, in order of family and size; read when the first one is asked for."""

    def __getitem__(self, name: str) -> NetworkConfig:
        return listing.listing().networks[name]

    def __iter__(self) -> Iterator[str]:
        return iter(listing.listing().networks)

    def __len__(self) -> int:
        return len(listing.listing().networks)


REGISTRY = Names()


def list_models(pattern: str = "*") -> list[str]:
    """All names that match a pattern such as `mixer*`, in order of family and size."""
    return fnmatch.filter(REGISTRY, pattern)


def create_model(
    name: str,
    pretrained: str | Path | bool | None = None,
    *,
    num_classes: int | None = None,
    img_size: int | tuple[int, int] | None = None,
    in_chans: int | None = None,
    **overrides: Any,
) -> Network:
    """Build the network called `name`; every field of its configuration can be given as a keyword.

    `name` may also be `package.module:Class`, any `nn.Module` that makes classes of images; keywords that are no fields
    then go to its constructor. `pretrained` is a file, a folder or a Hub name to load weights from; a checkpoint of
    another image size, length or number of classes is resized. True stands for the weights of an installed package
    (`weft models --pretrained`), which bring the settings that they were trained with.
    """
    if pretrained is True:
        from weft.networks.weights.packages import package_of

        package = package_of(name)
        package.path()  # refused before anything is built
        overrides = {**package.settings, **overrides}
    for given in (name, overrides.get("mixer")):
        trust(given)
    sizes = {"num_classes": num_classes, "img_size": img_size, "in_chans": in_chans}
    config = configured(name, **{key: value for key, value in sizes.items() if value is not None}, **overrides)
    network = build(config)
    if pretrained is True:
        from weft.networks.weights.load import load_package

        load_package(network, package)
    elif pretrained:
        from weft.networks.weights import load_weights

        load_weights(network, pretrained)
    return network


def named(name: str) -> NetworkConfig:
    """The configuration of a name, or of a class of somebody else's."""
    if name in REGISTRY:
        return REGISTRY[name]
    if is_import_string(name):
        require_trust(name)
        return checked(ForeignConfig, {"model": name}, name)
    raise WeftError(
        f"there is no model {name!r}; {nearest(name.lower(), REGISTRY)} `weft models` lists all, and a network of "
        "your own is package.module:Class"
    )


def configured(name: str, **changes: Any) -> NetworkConfig:
    """The configuration of a named size, or of `package.module:Class`, with some fields changed."""
    config = named(name)
    if isinstance(config, MLPConfig) and changes.get("in_features"):
        changes.setdefault("img_size", None)
    if isinstance(config, ForeignConfig):
        fields = {field.name for field in dataclasses.fields(config)}
        arguments = {key: changes.pop(key) for key in list(changes) if key not in fields}
        changes["arguments"] = {**config.arguments, **changes.get("arguments", {}), **arguments}
    if "mixer" in changes and is_import_string(changes["mixer"]):
        require_trust(changes["mixer"])
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


def config_from_dict(fields: dict[str, Any], *, for_building: bool = True) -> NetworkConfig:
    """The configuration that `dataclasses.asdict` was taken of, from `config.json` for instance.

    A file is no reason to run code: a class outside of weft that it names must be trusted (weft/imported.py), unless
    no network is to be built of it.
    """
    family = fields.get("family")
    if not isinstance(family, str) or family not in FAMILIES:
        raise WeftError(
            f"there is no family {reprlib.repr(family)} of networks; the families are {', '.join(FAMILIES)}"
        )
    for stored in (fields.get("model"), fields.get("mixer")) if for_building else ():
        if is_import_string(stored):
            require_trust(str(stored))
    return checked(FAMILIES[family][0], fields, family)


def network_class(family: str) -> type[Network]:
    """The class of a family's networks."""
    module, _, name = FAMILIES[family][1].partition(":")
    found: type[Network] = getattr(import_module(f"weft.networks.{module}"), name)
    return found


def build(config: NetworkConfig, seed: int | None = None) -> Network:
    """The network of a configuration, with the initial weights of `seed`, or of torch's generator without one."""
    import torch

    from weft.nn.initialisation import seeded, undrawn

    if torch.get_default_device().type == "meta":  # an outline, which needs no memory
        with undrawn():
            return network_class(config.family)(config)
    require_memory(config)
    with nullcontext() if seed is None else seeded(seed):
        return network_class(config.family)(config)


def require_memory(config: NetworkConfig) -> None:
    """Refuse a network whose weights alone do not fit into memory."""
    from weft.networks.measure.cost import total_parameters

    parameters, room = total_parameters(config), machine.memory_available()
    if 4 * parameters > room:
        raise WeftError(
            f"a {config.family} network of {parameters:,} parameters takes {4 * parameters / 2**30:,.1f} GiB and "
            f"{room / 2**30:,.1f} are free; choose a smaller one"
        )


# ---- mixers

MIXERS: dict[str, type[nn.Module]] = {}  # those of the families that are loaded, and those of users


def register_mixer(name: str) -> Callable[[Kind], Kind]:
    """Make a class the mixer of some name, for `mixer=` everywhere; `GIVEN` in nn/blocks.py is what it may ask for.

    ```
    @weft.register_mixer("fourier")
    class Fourier(nn.Module):
        def forward(self, x, mask=None): ...     # (batch, tokens, channels) in and out
    ```
    A name belongs to one process; `mixer="package.module:Class"` needs no registration and holds in all of them.
    """

    def register(kind: Kind) -> Kind:
        if not kind.__module__.startswith(f"{__package__}."):
            load_families()
        check_mixer(kind, name)
        taken = MIXERS.get(name)
        again = taken is not None and (taken.__module__, taken.__qualname__) == ("__main__", kind.__qualname__)
        if taken is not None and not again:  # a cell of a notebook may be run again
            raise WeftError(
                f"there is a mixer {name!r} already, {taken.__module__}.{taken.__qualname__}; choose a name"
            )
        MIXERS[name] = kind
        return kind

    if not isinstance(name, str) or not name.isidentifier():
        raise WeftError(f"a mixer is registered under a name, @register_mixer('fourier'), not {reprlib.repr(name)}")
    return register


def check_mixer(kind: Any, name: str) -> None:
    """Refuse what cannot be a mixer."""
    from torch import nn

    from weft.nn.blocks import GIVEN, unfilled

    if not isinstance(kind, type) or not issubclass(kind, nn.Module):
        raise WeftError(f"the mixer {name!r} must be a class of torch's nn.Module, not {reprlib.repr(kind)}")
    if missing := unfilled(kind):
        raise WeftError(
            f"the mixer {name!r} asks for {', '.join(missing)}, which weft cannot give; it can give {', '.join(GIVEN)}"
        )


def load_families() -> None:
    """Import every family, which registers its mixers."""
    for _, where in FAMILIES.values():
        import_module(f"weft.networks.{where.partition(':')[0]}")


def mixer_class(name: str) -> type[nn.Module]:
    """The mixer of a name, or the class that `package.module:Class` says."""
    if name in MIXERS:
        return MIXERS[name]
    if is_import_string(name):
        kind: type[nn.Module] = module_class(name)
        check_mixer(kind, name)
        return kind
    load_families()
    if name not in MIXERS:
        raise WeftError(
            f"there is no mixer {name!r}; {nearest(name, MIXERS)} there are {', '.join(MIXERS)}. A mixer of your own "
            "is there once the module that registers it is imported, or as mixer=package.module:Class"
        )
    return MIXERS[name]


def mixer_reach(name: str) -> int | None:
    """How many tokens in a row one token sees through a mixer; None: all of them. Loads no torch for weft's own."""
    if name not in MIXERS and name in (known := listing.reaches()):
        return known[name]
    return getattr(mixer_class(name), "reach", None)
