"""Which network for my own pictures? Compares some on a folder with one folder of pictures per class.

    python examples/compare_own_folder.py [FOLDER] [--output COMPARISON] [--quick]

Without FOLDER it draws some: circles, squares and triangles, 120 of each, at random places and sizes.
"""

from __future__ import annotations

import argparse
import math
import random
from pathlib import Path

from PIL import Image, ImageDraw

import weft

SHAPES = {"circles": 60, "squares": 4, "triangles": 3}  # corners of each
SIDE = 24


def draw_shapes(folder: Path, count: int) -> Path:
    """A folder of pictures per shape; the same pictures every time."""
    chance = random.Random(0)
    for name, corners in SHAPES.items():
        (folder / name).mkdir(parents=True, exist_ok=True)
        for number in range(count):
            picture = Image.frombytes("RGB", (SIDE, SIDE), bytes(chance.choices(range(90), k=3 * SIDE * SIDE)))
            ImageDraw.Draw(picture).polygon(polygon(corners, chance), fill=tuple(chance.choices(range(90, 256), k=3)))
            picture.save(folder / name / f"{number:03}.png")
    return folder


def polygon(corners: int, chance: random.Random) -> list[tuple[float, float]]:
    """A regular polygon somewhere in the picture, turned and scaled by chance."""
    radius, turn = chance.uniform(5, 9), chance.uniform(0, 2 * math.pi)
    x, y = (chance.uniform(radius, SIDE - radius) for _ in "xy")
    angles = [turn + 2 * math.pi * corner / corners for corner in range(corners)]
    return [(x + radius * math.cos(angle), y + radius * math.sin(angle)) for angle in angles]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, help="a folder of pictures per class")
    parser.add_argument("--output", type=Path, default=Path("shapes-comparison"), help="folder of the comparison")
    parser.add_argument("--quick", action="store_true", help="two networks, a few steps: seconds, and no evidence")
    arguments = parser.parse_args()
    folder = arguments.folder or draw_shapes(Path("shapes"), 60 if arguments.quick else 120)
    if arguments.quick:
        settings = {"steps": 10, "seeds": 1, "trials": 0, "batch_size": 16, "controls": False, "baseline": False}
        compared = weft.compare(folder, ["mlp", "mixer_nano_p4_32"], output=arguments.output, **settings)
    else:
        models = ["mlp", "resnet20_cifar", "vit_nano_p4_32", "mixer_nano_p4_32", "gmlp_nano_p4_32"]
        compared = weft.compare(folder, models, output=arguments.output, time="10m")
    print(compared.leaderboard)
    print(*compared.verdicts, sep="\n")
    print(f"everything, with pictures: {compared.report}")


if __name__ == "__main__":
    main()
