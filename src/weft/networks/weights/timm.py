"""timm's layout of ViT, DeiT, MLP-Mixer, gMLP, ResNet, EfficientNet, NFNet, BiT and HaloNet.

A folder of the Hub has a `config.json` with the name of the architecture; a bare file says nothing but its shapes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from weft.networks.config import ImageConfig, ImageTokensConfig, NetworkConfig, ResNetConfig
from weft.networks.registry import REGISTRY
from weft.networks.weights.files import Checkpoint
from weft.networks.weights.rules import BATCHED, POINT, TOKEN, Adapter, NoPlace, row

USUAL: dict[str, Any] = {"act": "gelu", "norm_eps": 1e-6}
FREE = ("num_classes", "img_size", "in_chans")  # what a named size of timm can be created with

CONVOLUTIONAL = {  # family: timm's names of its classifier and its first convolution
    "resnet": ("fc", "conv1"),
    "efficientnet": ("classifier", "conv_stem"),
    "nfnet": ("head.fc", "stem.conv1"),
    "bit": ("head.fc", "stem.conv"),
    "halonet": ("head.fc", "stem.conv1.conv"),
}


def is_vit(config: NetworkConfig, family: str = "vit") -> bool:
    """A ViT as published: pre-norm attention and learned positions."""
    return (
        isinstance(config, ImageTokensConfig)
        and config.family == family
        and (config.block, config.mixer, config.positions) == ("mixed", "attention", "learned")
        and config.norm_first
    )


def is_deit(config: NetworkConfig) -> bool:
    """A ViT with a distillation token."""
    return is_vit(config, "deit")


def reads_class_token(config: NetworkConfig) -> bool:
    """Elsewhere the mean over tokens is taken before the last norm, not after it."""
    return isinstance(config, ImageTokensConfig) and config.pool == "token"


def is_mixer(config: NetworkConfig) -> bool:
    return (
        isinstance(config, ImageTokensConfig)
        and config.family == "mixer"
        and (config.block, config.mixer, config.positions) == ("mixed", "token_mlp", "none")
        and config.norm_first
        and not config.class_token
    )


def is_gmlp(config: NetworkConfig) -> bool:
    """A gMLP as published: timm has no other gate, no Toeplitz matrix and no tiny attention."""
    return (
        isinstance(config, ImageTokensConfig)
        and config.family == "gmlp"
        and (config.block, config.gate, config.gate_weight) == ("gated", "split", "dense")
        and (config.tiny_attention, config.positions, config.class_token) == (0, "none", False)
        and config.norm_first
    )


def is_resnet(config: NetworkConfig) -> bool:
    return isinstance(config, ResNetConfig) and not config.padded


def of_family(name: str) -> Callable[[NetworkConfig], bool]:
    """Whether a network is of a family of which timm has every shape."""
    return lambda config: config.family == name


def of_large_images(name: str) -> Callable[[NetworkConfig], bool]:
    """Whether a network is of a family and has the stem for large images, the only one that timm has."""
    return lambda config: config.family == name and getattr(config, "stem", "") == "imagenet"


def named_size(config: NetworkConfig) -> str:
    """timm's name of a network's shape, whatever its classes, image side and channels."""
    for name, size in REGISTRY.items():
        if isinstance(size, type(config)) and size.num_classes == 1000 and same_shape(size, config):
            return name
    raise NoPlace("timm has no name for a network of this shape", "save it to a .safetensors file instead of a folder")


def same_shape(size: Any, config: Any) -> bool:
    """Whether two configurations agree in all that weights depend on, but for the fields that `create_model` takes."""
    free = {*FREE, "drop_rate", "drop_path_rate", "head_drop_rate", "init", "zero_head", "zero_init_last"}
    fields = [field.name for field in dataclasses.fields(config) if field.name not in free]
    return all(getattr(size, name) == getattr(config, name) for name in fields)


def known(checkpoint: Checkpoint) -> dict[str, Any]:
    """What a named architecture implies; a changed one (`model_args`) implies only its image side."""
    stored = checkpoint.config.get("pretrained_cfg", {})
    changed = dict(checkpoint.config.get("model_args") or {})
    size = changed.pop("img_size", None) or tuple(stored.get("input_size", ()))[1:]
    facts = {"img_size": (size, size) if isinstance(size, int) else tuple(size)} if size else {}
    name = architecture(checkpoint)
    if name not in REGISTRY or changed:
        return facts
    return {**{key: value for key, value in dataclasses.asdict(REGISTRY[name]).items() if key not in FREE}, **facts}


def architecture(checkpoint: Checkpoint) -> str:
    """The name in a config.json, without what the weights were trained on; "" where there is none."""
    return str(checkpoint.config.get("architecture", "")).partition(".")[0]


def config_json(config: NetworkConfig) -> dict[str, Any]:
    """The `config.json` that lets `timm.create_model("local-dir:FOLDER")` read a folder."""
    assert isinstance(config, ImageConfig)
    name = named_size(config)
    fields: dict[str, Any] = {"architecture": name, "num_classes": config.num_classes}
    if not isinstance(config, ImageTokensConfig):
        classifier, first = CONVOLUTIONAL[config.family]
    else:
        classifier, first = "head", "patch_embed.proj" if is_vit(config, config.family) else "stem.proj"
        fields["model_args"] = {"img_size": list(config.img_size)}
    fields["pretrained_cfg"] = {
        "input_size": [config.in_chans, *config.img_size],
        "num_classes": config.num_classes,
        "classifier": ["head", "head_dist"] if is_deit(config) else classifier,
        "first_conv": first,
    }
    return fields


VIT = Adapter(
    layout="timm",
    holds="ViT",
    marks=frozenset({"patch_embed.proj.weight", "blocks.0.attn.qkv.weight"}),
    fits=is_vit,
    faithful=reads_class_token,
    known=known,
    usual=USUAL,
    table=(
        row("embed.{p}", "patch_embed.proj.{p}"),
        row("class_token", "cls_token", form=TOKEN),
        row("positions.table", "pos_embed", form=BATCHED),
        row("blocks.{n}.mixer.qkv.{p}", "blocks.{n}.attn.qkv.{p}"),
        row("blocks.{n}.mixer.out.{p}", "blocks.{n}.attn.proj.{p}"),
        row("blocks.{n}.channels.{rest}", "blocks.{n}.mlp.{rest}"),
        row("blocks.{n}.norm1.{p}"),
        row("blocks.{n}.norm2.{p}"),
        row("norm.{p}"),
        row("head.{p}"),
    ),
)

DEIT = replace(
    VIT,
    holds="distilled ViT",
    marks=VIT.marks | {"dist_token"},
    fits=is_deit,
    head=("head.weight", "head.bias", "head_dist.weight", "head_dist.bias"),
    table=(*VIT.table, row("distill_token", "dist_token", form=TOKEN), row("head_dist.{p}")),
)

MIXER = Adapter(
    layout="timm",
    holds="Mixer",
    marks=frozenset({"stem.proj.weight", "blocks.0.mlp_tokens.fc1.weight"}),
    fits=is_mixer,
    known=known,
    usual=USUAL,
    table=(
        row("embed.{p}", "stem.proj.{p}"),
        row("blocks.{n}.mixer.{rest}", "blocks.{n}.mlp_tokens.{rest}"),
        row("blocks.{n}.channels.{rest}", "blocks.{n}.mlp_channels.{rest}"),
        row("blocks.{n}.norm1.{p}"),
        row("blocks.{n}.norm2.{p}"),
        row("norm.{p}"),
        row("head.{p}"),
    ),
)

GMLP = Adapter(
    layout="timm",
    holds="gMLP",
    marks=frozenset({"stem.proj.weight", "blocks.0.mlp_channels.gate.proj.weight"}),
    fits=is_gmlp,
    known=known,
    usual=USUAL,
    table=(
        row("embed.{p}", "stem.proj.{p}"),
        row("blocks.{n}.gate.spatial.weight", "blocks.{n}.mlp_channels.gate.proj.weight"),
        row("blocks.{n}.gate.bias", "blocks.{n}.mlp_channels.gate.proj.bias"),
        row("blocks.{n}.gate.norm.{p}", "blocks.{n}.mlp_channels.gate.norm.{p}"),
        row("blocks.{n}.fc1.{p}", "blocks.{n}.mlp_channels.fc1.{p}"),
        row("blocks.{n}.fc2.{p}", "blocks.{n}.mlp_channels.fc2.{p}"),
        row("blocks.{n}.norm.{p}"),
        row("norm.{p}"),
        row("head.{p}"),
    ),
)

RESNET = Adapter(
    layout="timm",
    holds="ResNet",
    marks=frozenset({"conv1.weight", "layer1.0.conv1.weight"}),
    fits=is_resnet,
    known=known,
    head=("fc.weight", "fc.bias"),
    table=(row("trunk.{rest}", "{rest}"), row("head.{p}", "fc.{p}")),
)

EFFICIENTNET = Adapter(
    layout="timm",
    holds="EfficientNet",
    marks=frozenset({"conv_stem.weight", "blocks.0.0.conv_dw.weight"}),
    fits=of_family("efficientnet"),
    known=known,
    head=("classifier.weight", "classifier.bias"),
    table=(
        row("trunk.{rest}.se.fc1.weight", "{rest}.se.conv_reduce.weight", form=POINT),
        row("trunk.{rest}.se.fc1.bias", "{rest}.se.conv_reduce.bias"),
        row("trunk.{rest}.se.fc2.weight", "{rest}.se.conv_expand.weight", form=POINT),
        row("trunk.{rest}.se.fc2.bias", "{rest}.se.conv_expand.bias"),
        row("trunk.{rest}", "{rest}"),
        row("head.{p}", "classifier.{p}"),
    ),
)

NFNET = Adapter(
    layout="timm",
    holds="NFNet",
    marks=frozenset({"stem.conv1.gain", "stages.0.0.skipinit_gain"}),
    fits=of_family("nfnet"),
    faithful=of_large_images("nfnet"),
    known=known,
    head=("head.fc.weight", "head.fc.bias"),
    table=(
        row("trunk.{rest}.attn_last.fc1.weight", "{rest}.attn_last.fc1.weight", form=POINT),
        row("trunk.{rest}.attn_last.fc2.weight", "{rest}.attn_last.fc2.weight", form=POINT),
        row("trunk.{rest}", "{rest}"),
        row("head.{p}", "head.fc.{p}"),
    ),
)

BIT = Adapter(
    layout="timm",
    holds="BiT",
    marks=frozenset({"stem.conv.weight", "stages.0.blocks.0.norm1.weight"}),
    fits=of_family("bit"),
    faithful=of_large_images("bit"),
    known=known,
    head=("head.fc.weight", "head.fc.bias"),
    table=(
        row("trunk.{rest}", "{rest}"),
        row("head.weight", "head.fc.weight", form=POINT),
        row("head.bias", "head.fc.bias"),
    ),
)

HALONET = Adapter(
    layout="timm",
    holds="HaloNet",
    marks=frozenset({"stem.conv1.conv.weight", "stages.0.0.conv1_1x1.conv.weight"}),
    fits=of_family("halonet"),
    faithful=of_large_images("halonet"),
    known=known,
    head=("head.fc.weight", "head.fc.bias"),
    table=(
        row("trunk.{rest}.self_attn.height_rel", "{rest}.self_attn.pos_embed.height_rel"),
        row("trunk.{rest}.self_attn.width_rel", "{rest}.self_attn.pos_embed.width_rel"),
        row("trunk.{rest}", "{rest}"),
        row("head.{p}", "head.fc.{p}"),
    ),
)

ADAPTERS = (DEIT, VIT, MIXER, GMLP, RESNET, EFFICIENTNET, NFNET, BIT, HALONET)
