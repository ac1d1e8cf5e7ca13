"""Forward and training step of weft's networks against timm's same networks, interleaved in one process.

    python benchmarks/networks.py [--threads 2] [--rounds 15] [--only mixer]

Each round times timm, weft, timm, weft … on the same batch; the ratio is the median over rounds of timm's time over
weft's (above 1: weft is faster). The last column is weft's training step as a share of this machine's matrix-product
peak, measured in the same run: 3 × 2 × multiply-adds × images per second over the operations per second of a large
product.
Needs timm and torchvision without their dependencies (tests/oracles.txt).
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode

import weft

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from oracles import import_timm

timm = import_timm()


def timm_mixer_32(dim: int, depth: int, token: int, hidden: int) -> nn.Module:
    ratios = (token / dim, hidden / dim)
    return timm.models.mlp_mixer.MlpMixer(
        num_classes=10, img_size=32, patch_size=4, num_blocks=depth, embed_dim=dim, mlp_ratio=ratios
    )


def timm_gmlp_32(dim: int, depth: int, hidden: int) -> nn.Module:
    module = timm.models.mlp_mixer
    return module.MlpMixer(
        num_classes=10,
        img_size=32,
        patch_size=4,
        num_blocks=depth,
        embed_dim=dim,
        mlp_ratio=hidden / dim,
        block_layer=module.SpatialGatingBlock,
        mlp_layer=timm.layers.GatedMlp,
    )


def timm_vit_32() -> nn.Module:
    return timm.models.vision_transformer.VisionTransformer(
        img_size=32, patch_size=4, embed_dim=192, depth=9, num_heads=3, mlp_ratio=2, num_classes=10
    )


def timm_resnet_32() -> nn.Module:
    network = timm.create_model("resnet18", num_classes=10)
    network.conv1 = nn.Conv2d(3, 64, 3, padding=1, bias=False)
    network.maxpool = nn.Identity()
    return network


Case = tuple[str, int, int, Callable[[], nn.Module], Callable[[], nn.Module]]

CASES: list[Case] = [
    ("mixer_s16_224", 16, 224, lambda: weft.create_model("mixer_s16_224"), lambda: timm.create_model("mixer_s16_224")),
    ("gmlp_ti16_224", 16, 224, lambda: weft.create_model("gmlp_ti16_224"), lambda: timm.create_model("gmlp_ti16_224")),
    (
        "vit_tiny_patch16_224",
        16,
        224,
        lambda: weft.create_model("vit_tiny_patch16_224"),
        lambda: timm.create_model("vit_tiny_patch16_224"),
    ),
    ("resnet18", 16, 224, lambda: weft.create_model("resnet18"), lambda: timm.create_model("resnet18")),
    (
        "mixer_nano_p4_32 (C128 L8)",
        64,
        32,
        lambda: weft.create_model("mixer_nano_p4_32"),
        lambda: timm_mixer_32(128, 8, 64, 512),
    ),
    (
        "mixer_small_p4_32 (C256 L8)",
        64,
        32,
        lambda: weft.create_model("mixer_small_p4_32"),
        lambda: timm_mixer_32(256, 8, 256, 1024),
    ),
    (
        "gmlp_nano_p4_32 (C128 L12)",
        64,
        32,
        lambda: weft.create_model("gmlp_nano_p4_32"),
        lambda: timm_gmlp_32(128, 12, 768),
    ),
    ("vit_nano_p4_32 (C192 L9)", 64, 32, lambda: weft.create_model("vit_nano_p4_32"), timm_vit_32),
    ("resnet18_cifar", 64, 32, lambda: weft.create_model("resnet18_cifar"), timm_resnet_32),
]


def seconds(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def matmul_peak(rounds: int = 7) -> float:
    """Floating-point operations per second of a large matrix product."""
    a, b = torch.randn(2048, 2048), torch.randn(2048, 2048)
    return 2 * 2048**3 / min(seconds(lambda: a @ b) for _ in range(rounds))


def forward(network: nn.Module, images: Tensor) -> None:
    with torch.inference_mode():
        network.eval()(images)


def training_step(network: nn.Module, images: Tensor, targets: Tensor) -> None:
    network.train().zero_grad(set_to_none=True)
    F.cross_entropy(network(images), targets).backward()


def multiply_adds(network: nn.Module, images: Tensor) -> int:
    with FlopCounterMode(display=False) as counter:
        network.to("meta")(images.to("meta"))
    return counter.get_total_flops() // 2


def ratio(ours: Callable[[], object], theirs: Callable[[], object], rounds: int) -> tuple[float, float]:
    """Median of theirs/ours over interleaved rounds, and our median time."""
    ours(), theirs()
    pairs = [(seconds(theirs), seconds(ours)) for _ in range(rounds)]
    return statistics.median(a / b for a, b in pairs), statistics.median(b for _, b in pairs)


def measure(case: Case, rounds: int) -> str:
    """One row of the table."""
    name, batch, side, ours, theirs = case
    images, targets, mine, other = torch.randn(batch, 3, side, side), torch.randint(0, 10, (batch,)), ours(), theirs()
    peak = matmul_peak()
    forwards, _ = ratio(lambda: forward(mine, images), lambda: forward(other, images), rounds)
    steps, time_of_step = ratio(
        lambda: training_step(mine, images, targets), lambda: training_step(other, images, targets), rounds
    )
    peak = max(peak, matmul_peak())
    speed = batch / time_of_step
    share = 6 * multiply_adds(mine, images[:1]) * speed / peak
    return f"| {name} | {batch} | {forwards:.2f} | {steps:.2f} | {speed:,.0f} | {share:.2f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--only", default="", help="measure the networks with this in their names")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    versions = f"torch {torch.__version__}, timm {timm.__version__}"
    print(f"{versions}, {arguments.threads} threads, {arguments.rounds} rounds\n")
    print("| network | batch | forward, timm/weft | step, timm/weft | images/s, training | share of matmul peak |")
    print("|---|---|---|---|---|---|")
    for case in CASES:
        if arguments.only in case[0]:
            print(measure(case, arguments.rounds), flush=True)


if __name__ == "__main__":
    main()
