"""Tables 2 and 5 of the course work: which network each row is, at which image side, and what was published of it.

Table 2 is after Tolstikhin et al. 2021, whose own table 2 has the figures: throughput at the side of fine-tuning,
cost of pre-training. Table 5 is after Liu et al. 2021: ImageNet alone. Where sides and passes over the data come
from:

- Mixer: fine-tuned at 448 px with token-mixing MLPs widened in proportion to the patches (section 3, table 2); 300
  passes over ImageNet-21k, Mixer-H 14 over JFT-300M, 300 over ImageNet, all at 224 px (table 4 there).
- ViT: fine-tuned at 512 (L/16) and 518 px (H/14); learnt at 224 px with 90 passes over ImageNet-21k, 14 over
  JFT-300M, 300 over ImageNet; 384 px otherwise (Dosovitskiy et al. 2021, section 4.1, tables 3 and 4).
- BiT: R152x4 is fine-tuned at 480 px; learnt at 224 px with 90 passes over ImageNet-21k, 40 over JFT-300M (Kolesnikov
  et al. 2020, section 3.3 and its footnote).
- NFNet: F4+ is F4 with wider stages, learnt at 224 px with 20 passes over JFT-300M (Brock et al. 2021, appendix A.2),
  used at 512 px (527 M parameters, 367 G multiply-adds there); F0 learns at 192 and is used at 256 px, 360 passes
  (the authors' code, github.com/google-deepmind/deepmind-research, nfnets/nfnet.py and experiment_nfnets.py).
- HaloNet: the row is H4 of base width 128 with convolutions in the first stages ("Conv-12"), at 512 px (Tolstikhin et
  al. 2021, section 3 and the footnote of 3.1: at 384 px it makes 258 images a second). That it learnt at 256 px with
  90 passes is from memory of Vaswani et al. 2021, whose text was not at hand; it agrees with the published cost: 100
  days for 90 passes are 148 images a second and core, a third of four times the 120 of 512 px.
- ResNet: 600,000 steps of 256 images, 120 passes (He et al. 2015, section 3.4). EfficientNet-B7: 350 passes at 600 px
  (the authors' code, github.com/tensorflow/tpu, models/official/efficientnet). DeiT: 300 passes (Touvron et al. 2021,
  table 9), whose settings gMLP takes over (Liu et al. 2021, appendix A).
- Images: ImageNet-21k 14.2 M, JFT-300M 303 M (Dosovitskiy et al. 2021, section 4.1).
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
    """to the named network"""
    larger: dict[str, Any] = field(default_factory=dict)
    """further changes at the side of its use"""
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
        return named(self.small) if smoke else named(self.network, self.side, self.changes | self.larger)

    def learning(self, smoke: bool) -> NetworkConfig:
        """The network as it learns."""
        return named(self.small) if smoke else named(self.network, self.learning_side, self.changes)


def named(name: str, side: int | None = None, changes: dict[str, Any] | None = None) -> NetworkConfig:
    return configured(name, **({} if side is None else {"img_size": (side, side)}), **(changes or {}))


def after(data: str, *rows: tuple[Any, ...]) -> list[SpeedRow]:
    """Rows of table 2: name, network, sides, passes, small network, top-1, speed, cost, and perhaps other fields."""
    images = {"ImageNet-21k": IMAGENET_21K, "JFT-300M": JFT}[data]
    found = []
    for name, network, side, learning, passes, small, top1, speed, cost, *more in rows:
        figures = {"top1": top1, "speed": speed, "cost": cost} | (more[0] if more else {})
        found.append(SpeedRow(name, 2, data, network, side, learning, passes * images, small, **figures))
    return found


def imagenet(name: str, network: str, side: int, learning: int, passes: int, small: str, *figures: float) -> SpeedRow:
    """A row of table 5."""
    top1, parameters = figures
    examples = passes * IMAGENET
    return SpeedRow(name, 5, "ImageNet", network, side, learning, examples, small, top1, parameters=parameters)


BIT = ("BiT-R152x4", "resnetv2_152x4_bit", 480, 224)
WIDER = 4  # token-mixing MLPs at 448 px are four times as wide as at 224
WIDE_STAGES = {"changes": {"widths": (384, 768, 2048, 2048)}, "parameters": 527}  # F4+ against F4

ROWS: list[SpeedRow] = [
    *after(
        "ImageNet-21k",
        ("HaloNet", "halonet50ts", 512, 256, 90, "halonet_nano_32", 85.8, 120, 100,
         {"parameters": 87, "note": "halonet50ts: the published one, H4 of base width 128, is no size of timm's"}),
        ("Mixer-L/16", "mixer_l16_224", 448, 224, 300, "mixer_nano_p4_32", 84.15, 105, 410,
         {"larger": {"token_dim": WIDER * 512}}),
        ("ViT-L/16", "vit_large_patch16_224", 512, 224, 90, "vit_nano_p4_32", 85.30, 32, 180),
        (*BIT, 90, "bit_nano_32", 85.39, 26, 940),
    ),
    *after(
        "JFT-300M",
        ("NFNet-F4+", "dm_nfnet_f4", 512, 224, 20, "nfnet_nano_32", 89.2, 46, 1860, WIDE_STAGES),
        ("Mixer-H/14", "mixer_h14_224", 448, 224, 14, "mixer_small_p4_32", 87.94, 40, 1010,
         {"larger": {"token_dim": WIDER * 640}}),
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
