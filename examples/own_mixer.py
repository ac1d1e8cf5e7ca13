"""One's own way of mixing tokens, in a ViT, beside attention and beside no mixing at all.

    python examples/own_mixer.py [--output FOLDER] [--quick]

Everything else in the network stays the same, so a difference is due to the mixer.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from torch import Tensor, nn

import weft


@weft.register_mixer("neighbours")
class Neighbours(nn.Module):
    """Every token becomes the mean of the two beside it: (batch, tokens, channels) in and out."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        return (x.roll(1, dims=1) + x.roll(-1, dims=1)) / 2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=Path("mixers"), help="folder of the runs")
    parser.add_argument("--quick", action="store_true", help="one small run of five steps: seconds, and no evidence")
    arguments = parser.parse_args()
    network = {"img_size": 8, "patch_size": 2}
    for mixer in ["neighbours"] if arguments.quick else ["neighbours", "attention", "identity"]:
        run = weft.train(
            "digits",
            model="vit_nano_p4_32",
            network={**network, "mixer": mixer} | ({"depth": 1} if arguments.quick else {}),
            steps=5 if arguments.quick else 300,
            output=arguments.output / mixer,
        )
        print(f"{mixer:>10}: accuracy {run.metrics['accuracy']:.3f}, in {run.path}")


if __name__ == "__main__":
    main()
