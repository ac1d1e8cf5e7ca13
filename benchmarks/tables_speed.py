"""Forward and training step of the tables' ConvNets against timm's same networks, interleaved in one process.

    python benchmarks/tables_speed.py [--threads 2] [--rounds 15] [--batch 8] [--side 128] [--only nfnet] [--profile]

The same measurement as benchmarks/networks.py, whose functions it uses; by default each network at its published side,
EfficientNet-B0, Lite0 and BiT at 224, NFNet-F0 at 192 (its side of training), HaloNet-26t at 256 px, of which
its sides are multiples. `--profile` prints instead which operations take the time of both networks' steps. Needs timm
and torchvision without their dependencies (tests/oracles.txt).
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.profiler import ProfilerActivity, profile

import weft
from networks import forward, ratio, timm, training_step

NETWORKS: dict[str, tuple[str, int]] = {  # weft's name: timm's, and the published side
    "efficientnet_b0": ("efficientnet_b0", 224),
    "efficientnet_lite0": ("efficientnet_lite0", 224),
    "resnetv2_50x1_bit": ("resnetv2_50x1_bit", 224),
    "dm_nfnet_f0": ("dm_nfnet_f0", 192),
    "halonet26t": ("halonet26t", 256),
}


def ours(name: str, side: int) -> nn.Module:
    return weft.create_model(name, img_size=(side, side), num_classes=1000)


def measure(name: str, batch: int, side: int, rounds: int) -> str:
    """One row of the table."""
    images, targets = torch.randn(batch, 3, side, side), torch.randint(0, 10, (batch,))
    mine, other = ours(name, side), timm.create_model(NETWORKS[name][0], num_classes=1000)
    forwards, of_forward = ratio(lambda: forward(mine, images), lambda: forward(other, images), rounds)
    steps, of_step = ratio(
        lambda: training_step(mine, images, targets), lambda: training_step(other, images, targets), rounds
    )
    speeds = f"{batch / of_forward:.1f} | {batch / of_step:.2f}"
    return f"| {name} | {side} | {batch} | {forwards:.2f} | {steps:.2f} | {speeds} |"


def show_profile(name: str, batch: int, side: int) -> None:
    """The ten dearest operations of a training step, weft's and timm's."""
    images, targets = torch.randn(batch, 3, side, side), torch.randint(0, 10, (batch,))
    networks = {"weft": ours(name, side), "timm": timm.create_model(NETWORKS[name][0], num_classes=1000)}
    for who, network in networks.items():
        print(f"{name}, {who}\n{dearest(network, images, targets, training_step)}")


def dearest(network: nn.Module, images: Tensor, targets: Tensor, work: Callable[..., None]) -> str:
    work(network, images, targets)
    with profile(activities=[ProfilerActivity.CPU]) as found:
        work(network, images, targets)
    return str(found.key_averages().table(sort_by="self_cpu_time_total", row_limit=14, max_name_column_width=50))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--side", type=int, help="of the images, in place of each network's published side")
    parser.add_argument("--only", default="", help="measure the networks with this in their names")
    parser.add_argument("--profile", action="store_true")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    chosen = {name: arguments.side or side for name, (_, side) in NETWORKS.items() if arguments.only in name}
    if arguments.profile:
        for name, side in chosen.items():
            show_profile(name, arguments.batch, side)
        return
    versions = f"torch {torch.__version__}, timm {timm.__version__}"
    print(f"{versions}, {arguments.threads} threads, {arguments.rounds} rounds\n")
    print("| network | px | batch | forward, timm/weft | step, timm/weft | images/s | images/s, training |")
    print("|---|---|---|---|---|---|---|")
    for name, side in chosen.items():
        print(measure(name, arguments.batch, side, arguments.rounds), flush=True)


if __name__ == "__main__":
    main()
