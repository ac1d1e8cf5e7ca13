"""Score the published CIFAR ResNets on the whole CIFAR-10 test set.

    python benchmarks/cifar_resnet.py DATA_FOLDER

DATA_FOLDER holds `cifar10/test.parquet` and `resnet_cifar10_weights/resnet{20,56}.safetensors`. Published accuracies
are 91.73 % and 93.39 %; any other figure means that the network, its weights or the input are not what they should be.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import torch
from PIL import Image
from torch import Tensor

import weft

PUBLISHED = {20: 91.73, 56: 93.39}
MEAN, DEVIATION = torch.tensor((0.485, 0.456, 0.406)), torch.tensor((0.229, 0.224, 0.225))
BATCH = 500


def batches(path: Path) -> Iterator[tuple[Tensor, Tensor]]:
    """Normalised images (batch, 3, 32, 32) and their labels (batch,), in order."""
    for table in pq.ParquetFile(path).iter_batches(BATCH):
        encoded = (image["bytes"] for image in table["image"].to_pylist())
        pixels = np.stack([np.asarray(Image.open(io.BytesIO(image)).convert("RGB")) for image in encoded])
        x = (torch.from_numpy(pixels) / 255 - MEAN) / DEVIATION
        yield x.permute(0, 3, 1, 2), torch.tensor(table["label"].to_pylist())


@torch.inference_mode()
def accuracy(depth: int, folder: Path) -> float:
    """Percent of the test images that a ResNet of `depth` layers gets right."""
    weights = folder / "resnet_cifar10_weights" / f"resnet{depth}.safetensors"
    network = weft.create_model(f"resnet{depth}_cifar", pretrained=weights).eval()
    right = total = 0
    for images, labels in batches(folder / "cifar10" / "test.parquet"):
        right += int((network(images).argmax(1) == labels).sum())
        total += len(labels)
    return 100 * right / total


def main(folder: Path) -> int:
    failed = False
    print("| network | accuracy, % | published, % |\n|---|---|---|")
    for depth, published in PUBLISHED.items():
        got = accuracy(depth, folder)
        print(f"| ResNet-{depth} | {got:.2f} | {published:.2f} |", flush=True)
        failed |= round(got, 2) != published
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
