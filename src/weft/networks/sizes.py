"""The named sizes: every network of the source documents, with timm's name where timm has one.

A name ends in the image side (`_224`, `_32`); `_p4` is a patch of 4×4 pixels. Every size is a configuration and every
field of it can be changed: `create_model("mixer_nano_p4_32", depth=12)`. `nano` is about a million parameters, `pico` a
tenth of its multiply-adds: epochs of CIFAR-10 in a minute or two on two cores.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from weft.networks.config import (
    FilterNetConfig,
    ImageTokensConfig,
    LeNetConfig,
    LSTMConfig,
    MLPConfig,
    NetworkConfig,
    RCNNConfig,
    ResNetConfig,
    TextConvConfig,
    TextTokensConfig,
)

Named = tuple[str, NetworkConfig]

CONTROLS = ("identity", "random", "pooling", "depthwise")


def classic() -> Iterator[Named]:
    """F1, F3, C3–C5, C8: perceptrons, LeNet and its kin, recurrent ConvNets, image → image."""
    yield "mlp", MLPConfig(img_size=(32, 32), num_classes=10)
    yield "lenet5", LeNetConfig()
    yield "lenet_slide", LeNetConfig(kernel=3)  # the lecture slide's net: 3×3 kernels, fc 120-84-10
    yield "lenet5_local", LeNetConfig(local=True)
    yield "filternet", FilterNetConfig()
    for width in (96, 128, 160):
        yield f"rcnn_{width}", RCNNConfig(width=width)


def resnets() -> Iterator[Named]:
    """C4: He et al. 2015, tables 1 and 6; `_cifar` has a 3×3 stem."""
    shapes: dict[int, tuple[str, tuple[int, ...]]] = {
        18: ("basic", (2, 2, 2, 2)),
        34: ("basic", (3, 4, 6, 3)),
        50: ("bottleneck", (3, 4, 6, 3)),
        101: ("bottleneck", (3, 4, 23, 3)),
        152: ("bottleneck", (3, 8, 36, 3)),
    }
    for depth, (block, layers) in shapes.items():
        shape: dict[str, Any] = {"block": block, "layers": layers}
        yield f"resnet{depth}", ResNetConfig(**shape)
        yield f"resnet{depth}_cifar", ResNetConfig(**shape, stem="cifar", img_size=(32, 32), num_classes=10)
    for depth in (8, 20, 32, 44, 56, 110):
        yield (
            f"resnet{depth}_cifar",
            ResNetConfig(
                layers=((depth - 2) // 6,) * 3,
                widths=(16, 32, 64),
                stem="cifar",
                padded=True,
                img_size=(32, 32),
                num_classes=10,
                zero_init_last=False,
            ),
        )


def vits() -> Iterator[Named]:
    """A3 and A5: Dosovitskiy et al. 2020, table 1, with Touvron et al. 2021's Ti and S."""

    def vit(dim: int, depth: int, heads: int, patch: int, side: int, **more: Any) -> ImageTokensConfig:
        more = {"family": "vit", "hidden_dim": 4 * dim, **more}
        return ImageTokensConfig(
            dim=dim,
            depth=depth,
            heads=heads,
            patch_size=patch,
            img_size=(side, side),
            class_token=True,
            pool="token",
            positions="learned",
            **more,
        )

    shapes = {"tiny": (192, 12, 3), "small": (384, 12, 6), "base": (768, 12, 12), "large": (1024, 24, 16)}
    for size, shape in shapes.items():
        for patch in (16,) if size == "tiny" else (16, 32):
            yield f"vit_{size}_patch{patch}_224", vit(*shape, patch, 224)
    yield "vit_huge_patch14_224", vit(1280, 32, 16, 14, 224)
    yield "vit_base_patch16_384", vit(*shapes["base"], 16, 384)
    yield "vit_nano_p4_32", vit(192, 9, 3, 4, 32, hidden_dim=384, num_classes=10)
    yield "vit_pico_p4_32", vit(64, 5, 2, 4, 32, hidden_dim=192, num_classes=10)
    yield "vit_small_resnet18_224", vit(*shapes["small"], 16, 224, family="hybrid", stem_layers=(2, 2, 2))
    yield (
        "vit_nano_resnet20_32",
        vit(
            128,
            4,
            2,
            4,
            32,
            family="hybrid",
            num_classes=10,
            stem="cifar",
            stem_layers=(3, 3, 3),
            stem_widths=(16, 32, 64),
        ),
    )


def mixers() -> Iterator[Named]:
    """M1: Tolstikhin et al. 2021, table 1, the course work's small-image shape, and the controls beside them."""

    def mixer(dim: int, depth: int, hidden: int, token: int, patch: int, side: int, **more: Any) -> ImageTokensConfig:
        more = {"family": "mixer", "mixer": "token_mlp", "init": "lecun", **more}
        shape: dict[str, Any] = {"dim": dim, "depth": depth, "hidden_dim": hidden, "token_dim": token}
        return ImageTokensConfig(**shape, patch_size=patch, img_size=(side, side), **more)

    shapes = {"s": (512, 8, 2048, 256), "b": (768, 12, 3072, 384), "l": (1024, 24, 4096, 512)}
    for size, shape in shapes.items():
        for patch in (32, 16):
            yield f"mixer_{size}{patch}_224", mixer(*shape, patch, 224)
    yield "mixer_h14_224", mixer(1280, 32, 5120, 640, 14, 224)
    small, nano, pico = (256, 8, 1024, 256, 4, 32), (128, 8, 512, 64, 4, 32), (64, 4, 256, 64, 4, 32)
    yield "mixer_small_p4_32", mixer(*small, num_classes=10)
    yield "mixer_nano_p4_32", mixer(*nano, num_classes=10)
    yield "mixer_pico_p4_32", mixer(*pico, num_classes=10)
    for name in CONTROLS:
        control: dict[str, Any] = {"family": "control", "mixer": name, "positions": "learned", "num_classes": 10}
        yield f"control_{name}_p4_32", mixer(*nano, **control)
        yield f"control_{name}_pico_p4_32", mixer(*pico, **control)


GATED: dict[str, dict[str, Any]] = {  # what tells gMLP, tMLP (1-D and 2-D) and aMLP apart
    "gmlp": {},
    "tmlp": {"gate_weight": "toeplitz"},
    "tmlp2d": {"gate_weight": "toeplitz2d"},
    "amlp": {"tiny_attention": 64},
}


def gmlps() -> Iterator[Named]:
    """M2, M5, M6: Liu et al. 2021, table 1, and small-image shapes."""
    shapes: dict[str, tuple[int, int, int, int, int]] = {
        "ti16_224": (128, 768, 30, 16, 224),
        "s16_224": (256, 1536, 30, 16, 224),
        "b16_224": (512, 3072, 30, 16, 224),
        "nano_p4_32": (128, 768, 12, 4, 32),
        "pico_p4_32": (64, 256, 6, 4, 32),
        "ti_p4_32": (128, 768, 30, 4, 32),
        "mini_p4_32": (192, 768, 18, 4, 32),
        "small_p4_32": (256, 1024, 12, 4, 32),
    }
    for kind, change in GATED.items():
        for size, (dim, hidden, depth, patch, side) in shapes.items():
            more: dict[str, Any] = {**change, "num_classes": 1000 if side == 224 else 10}
            shape: dict[str, Any] = {"dim": dim, "depth": depth, "hidden_dim": hidden, "patch_size": patch}
            yield (
                f"{kind}_{size}",
                ImageTokensConfig(family="gmlp", block="gated", img_size=(side, side), **shape, **more),
            )


def berts() -> Iterator[Named]:
    """A4: Devlin et al. 2018 and Turc et al. 2019's miniatures; heads of 64 channels."""
    shapes = {
        "tiny": (2, 128),
        "mini": (4, 256),
        "small": (4, 512),
        "medium": (8, 512),
        "base": (12, 768),
        "large": (24, 1024),
    }
    for size, (depth, dim) in shapes.items():
        yield (
            f"bert_{size}",
            TextTokensConfig(
                family="bert",
                dim=dim,
                depth=depth,
                hidden_dim=4 * dim,
                heads=dim // 64,
                max_length=512,
                segments=2,
                positions="learned",
                pool="token",
                norm_first=False,
                norm_eps=1e-12,
                embed_norm=True,
                final_norm=False,
                pooler=True,
                drop_rate=0.1,
                head_drop_rate=0.1,
                num_classes=2,
            ),
        )


def texts() -> Iterator[Named]:
    """M4 and A6: gMLP for text as published (table 7's depths, base sizes), small shapes, Mixer, controls, baselines.

    The published counts are met with a Toeplitz W, 32,000 words and no positions, so that is what these names are.
    """

    def text(family: str, dim: int, depth: int, hidden: int, **more: Any) -> TextTokensConfig:
        more = {"num_classes": 2, **more}
        return TextTokensConfig(family=family, dim=dim, depth=depth, hidden_dim=hidden, **more)  # type: ignore[arg-type]

    gated: dict[str, Any] = {"family": "text_gmlp", "block": "gated"}
    published = {**gated, "vocab_size": 32000, "gate_weight": "toeplitz"}
    for depth in (18, 36, 72, 144):
        yield f"gmlp_text_l{depth}", text(dim=512, depth=depth, hidden=3072, **published)
    yield "gmlp_text_base", text(dim=512, depth=48, hidden=3072, max_length=512, **published)
    yield "amlp_text_base", text(dim=512, depth=36, hidden=3072, max_length=512, tiny_attention=64, **published)
    for size, (dim, depth) in {"tiny": (128, 4), "small": (256, 8)}.items():
        for kind in ("gmlp", "tmlp", "amlp"):
            yield f"{kind}_text_{size}", text(dim=dim, depth=depth, hidden=4 * dim, **gated, **GATED[kind])
        shape = {"dim": dim, "depth": depth // 2, "hidden": 4 * dim}
        mixer: dict[str, Any] = {"mixer": "token_mlp", "token_dim": dim // 2}
        yield f"mixer_text_{size}", text("text_mixer", **shape, **mixer)
        for name in CONTROLS:
            yield f"control_{name}_text_{size}", text("text_control", **shape, mixer=name, positions="learned")
    yield "lstm_text", LSTMConfig(num_classes=2)
    yield "conv_text", TextConvConfig(num_classes=2)


SIZES: dict[str, NetworkConfig] = {
    name: config for family in (classic, resnets, vits, mixers, gmlps, berts, texts) for name, config in family()
}
