"""Tables 2 and 5 of the course work: which network each row is, at which image side, and what was published of it.

Sides and numbers of examples are those of the recipes that the rows report. Table 2 (after Tolstikhin et al. 2021):
throughput at the side of fine-tuning, cost of pre-training at 224 px: Mixer at 448 px (its token-mixing MLPs widened as
that paper does), ViT at 512 and 518 (Dosovitskiy et al. 2021), BiT at 480 (Kolesnikov et al. 2020), NFNet at 512 after
384 (Brock et al. 2021), HaloNet at 512 after 256 (Vaswani et al. 2021). Table 5 (after Liu et al. 2021): ImageNet
alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from weft.networks.config import NetworkConfig
from weft.networks.registry import configured

IMAGENET, IMAGENET_21K, JFT = 1_281_167, 14_197_122, 303_000_000  # images


@dataclass(frozen=True)
class SpeedRow:
    """A row: the network, the side at which it is used and the one at which it learns, and the published figures."""

    name: str
    table: int
    data: str
    """what it was pre-trained on"""
    network: str
    side: int
    learning_side: int
    examples: int
    """that it learns from, each pass counted"""
    small: str
    """a network of its family for 32 px, which stands for it at the scale `smoke`"""
    top1: float
    speed: float | None = None
    """images a second and core of TPUv3, in use"""
    cost: float | None = None
    """TPUv3 core-days of pre-training"""
    parameters: float | None = None
    """millions"""
    changes: dict[str, Any] = field(default_factory=dict)
    """to the network at the side of its use"""
    note: str = ""
    """in which way the network is not the published one"""

    @property
    def key(self) -> str:
        """The name of its file."""
        letters = "".join(letter if letter.isalnum() else "-" for letter in f"{self.table}-{self.name}-{self.data}")
        return letters.lower()

    @property
    def title(self) -> str:
        return f"{self.name}, {self.data}"

    def used(self, smoke: bool) -> NetworkConfig:
        """The network as it is used."""
        return named(self.small) if smoke else named(self.network, self.side, self.changes)

    def learning(self, smoke: bool) -> NetworkConfig:
        """The network as it learns."""
        return named(self.small) if smoke else named(self.network, self.learning_side)


def named(name: str, side: int | None = None, changes: dict[str, Any] | None = None) -> NetworkConfig:
    return configured(name, **({} if side is None else {"img_size": (side, side)}), **(changes or {}))


def after(data: str, *rows: tuple[Any, ...]) -> list[SpeedRow]:
    """Rows of table 2: name, network, sides, passes, small network, top-1, speed, cost, and perhaps changes, note."""
    images = {"ImageNet-21k": IMAGENET_21K, "JFT-300M": JFT}[data]
    found = []
    for name, network, side, learning, passes, small, top1, speed, cost, *more in rows:
        extra = dict(zip(("changes", "note"), more, strict=False))
        figures = {"top1": top1, "speed": speed, "cost": cost}
        found.append(SpeedRow(name, 2, data, network, side, learning, passes * images, small, **figures, **extra))
    return found


def imagenet(name: str, network: str, side: int, learning: int, passes: int, small: str, *figures: float) -> SpeedRow:
    """A row of table 5."""
    top1, parameters = figures
    examples = passes * IMAGENET
    return SpeedRow(name, 5, "ImageNet", network, side, learning, examples, small, top1, parameters=parameters)


BIT = ("BiT-R152x4", "resnetv2_152x4_bit", 480, 224)
WIDER = 4  # token-mixing MLPs at 448 px are four times as wide as at 224

ROWS: list[SpeedRow] = [
    *after(
        "ImageNet-21k",
        ("HaloNet", "halonet50ts", 512, 256, 90, "halonet_nano_32", 85.8, 120, 100, {},
         "halonet50ts: the published one, H4 of base width 128, is no size of timm's"),
        ("Mixer-L/16", "mixer_l16_224", 448, 224, 300, "mixer_nano_p4_32", 84.15, 105, 410, {"token_dim": WIDER * 512}),
        ("ViT-L/16", "vit_large_patch16_224", 512, 224, 90, "vit_nano_p4_32", 85.30, 32, 180),
        (*BIT, 90, "bit_nano_32", 85.39, 26, 940),
    ),
    *after(
        "JFT-300M",
        ("NFNet-F4+", "dm_nfnet_f4", 512, 384, 10, "nfnet_nano_32", 89.2, 46, 1860, {},
         "NFNet-F4: the published F4+ is wider"),
        ("Mixer-H/14", "mixer_h14_224", 448, 224, 14, "mixer_small_p4_32", 87.94, 40, 1010, {"token_dim": WIDER * 640}),
        (*BIT, 40, "bit_nano_32", 87.54, 26, 9900),
        ("ViT-H/14", "vit_huge_patch14_224", 518, 224, 14, "vit_pico_p4_32", 88.55, 15, 2300),
    ),
    imagenet("ResNet-152", "resnet152", 224, 224, 120, "resnet8_cifar", 78.3, 60),
    imagenet("EfficientNet-B7", "efficientnet_b7", 600, 600, 350, "efficientnet_nano_32", 84.3, 66),
    imagenet("NFNet-F0", "dm_nfnet_f0", 256, 192, 360, "nfnet_nano_32", 83.6, 72),
    imagenet("ViT-B/16", "vit_base_patch16_224", 384, 224, 300, "vit_pico_p4_32", 77.9, 86),
    imagenet("DeiT-B", "deit_base_patch16_224", 224, 224, 300, "vit_pico_p4_32", 81.8, 86),
    imagenet("Mixer-B/16", "mixer_b16_224", 224, 224, 300, "mixer_nano_p4_32", 76.4, 59),
    imagenet("gMLP-S", "gmlp_s16_224", 224, 224, 300, "gmlp_nano_p4_32", 79.6, 20),
]  # fmt: skip
