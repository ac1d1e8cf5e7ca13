"""How fast and how large the data side is: prints a Markdown table of measured against wanted.

    python benchmarks/data.py FOLDER_OF_DATASETS

FOLDER needs `cifar10` and `sst2` as Parquet. Run it alone on the machine. Times are wall times with, in brackets, the
processor's, which a busy neighbour disturbs less; rates are of one thread by processor time; the JPEG rows interleave
both ways of decoding.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from PIL import Image
from sklearn.datasets import load_sample_images

from weft.data import AugmentConfig, batches, fit, open_source
from weft.data.augment.geometry import crop_boxes
from weft.data.transform.transforms import ImageTransform

Row = tuple[str, str, str, bool]  # what, measured, wanted, met
PHOTOS = 2000
STREAM_ROWS = 20_000
MOST_MEMORY = 500  # MB of a process that streams, of which torch alone takes two hundred


def seconds(work: Callable[[], Any]) -> tuple[float, float]:
    """Wall and processor time of one call."""
    wall, processor = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - wall, time.process_time() - processor


def in_seconds(taken: tuple[float, float]) -> str:
    """Wall time with processor time in brackets."""
    return f"{taken[0]:.1f} s ({taken[1]:.1f})"


def opening(datasets: Path) -> list[Row]:
    """CIFAR-10 from its Parquet files to the first training and test batch, with an empty cache and a full one."""

    def ready() -> None:
        source = open_source(datasets / "cifar10")
        train = batches(source, "train", 128)
        train[0], batches(source, "test", 128, transform=train.transform)[0]

    first, second = seconds(ready), seconds(ready)
    return [
        ("CIFAR-10 decoded and ready, first time", in_seconds(first), "< 15 s", first[0] < 15),
        ("the same, from the cache", in_seconds(second), "< 2 s", second[0] < 2),
    ]


def rate(source: Any, transform: Any, augment: AugmentConfig, steps: int) -> float:
    """Images a second of batches of 512 on one core, the best of three runs."""
    loader = batches(source, "train", 512, transform=transform, augment=augment)
    loader[0]
    return max(512 * steps / seconds(lambda: [loader[step] for step in range(1, steps + 1)])[1] for _ in range(3))


def augmentation(datasets: Path) -> list[Row]:
    """CIFAR-10 batches on one thread."""
    source = open_source(datasets / "cifar10")
    transform = fit(source)
    plain = rate(source, transform, AugmentConfig(flip=True, crop_padding=4), 30)
    strong = rate(source, transform, AugmentConfig(policy="trivial", cutmix=1.0), 10)
    return [
        ("crop + flip + normalise, 32 px, one thread", f"{plain:,.0f} images/s", "≥ 40,000", plain >= 40_000),
        ("TrivialAugment + CutMix, 32 px, one thread", f"{strong:,.0f} images/s", "≥ 8,000", strong >= 8_000),
    ]


def make_photos(folder: Path) -> list[Path]:
    """JPEG files of 500 × 375, some 50 kB each: cut at random from the two photographs that scikit-learn brings."""
    photos = [Image.fromarray(photo) for photo in load_sample_images().images]
    boxes = crop_boxes(np.random.default_rng(0).random((PHOTOS, 4)), (0.6, 1.0))
    for number, (top, left, height, width) in enumerate(boxes):
        photo = photos[number % 2]
        box = (left * photo.width, top * photo.height, (left + width) * photo.width, (top + height) * photo.height)
        path = folder / f"class{number % 10}" / f"{number:04}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        photo.resize((500, 375), Image.Resampling.BICUBIC, box=box).save(path, quality=90)
    return sorted(folder.rglob("*.jpg"))


def pillow_crop(path: Path, box: np.ndarray) -> torch.Tensor:
    """Decoding and random-resized crop as timm's loader does them."""
    with path.open("rb") as file:
        image = Image.open(file).convert("RGB")
    top, left, height, width = box * [image.height, image.width, image.height, image.width]
    cut = image.crop((round(left), round(top), round(left + width), round(top + height)))
    return torch.from_numpy(np.array(cut.resize((224, 224), Image.Resampling.BILINEAR)).transpose(2, 0, 1))


def pillow_centre(path: Path) -> torch.Tensor:
    """Decoding, resizing and centre crop as timm's loader does them in evaluation (crop 0.875)."""
    with path.open("rb") as file:
        image = Image.open(file).convert("RGB")
    scale = 256 / min(image.size)
    image = image.resize((round(image.width * scale), round(image.height * scale)), Image.Resampling.BILINEAR)
    left, top = (image.width - 224) // 2, (image.height - 224) // 2
    return torch.from_numpy(np.array(image.crop((left, top, left + 224, top + 224))).transpose(2, 0, 1))


def interleaved(ours: Callable[[int], Any], theirs: Callable[[int], Any]) -> tuple[float, float]:
    """Images a second of both, in turns of 100, so that a busy neighbour slows both."""
    spent = [0.0, 0.0]
    for start in range(0, PHOTOS, 100):
        for which, work in enumerate((ours, theirs)):
            spent[which] += seconds(lambda work=work, start=start: [work(n) for n in range(start, start + 100)])[1]
    return PHOTOS / spent[0], PHOTOS / spent[1]


def jpeg(scratch: Path) -> list[Row]:
    """A folder of 2,000 JPEG files at 224 px, one thread each."""
    photos = make_photos(scratch / "photos")
    boxes = crop_boxes(np.random.default_rng(1).random((PHOTOS, 4)), (0.35, 1.0))
    centre = ImageTransform(224, 3, (0.0,) * 3, (1.0,) * 3, crop=0.875)
    rows: list[Row] = []

    def ours_crop(n: int) -> torch.Tensor:
        return centre.crop_of(photos[n].read_bytes(), boxes[n])

    def ours_centre(n: int) -> torch.Tensor:
        return centre.pixels(photos[n].read_bytes())

    ways = {
        "random-resized crop": (ours_crop, lambda n: pillow_crop(photos[n], boxes[n])),
        "centre crop": (ours_centre, lambda n: pillow_centre(photos[n])),
    }
    for name, (ours, theirs) in ways.items():
        fast, slow = interleaved(ours, theirs)
        ratio = f"{fast:,.0f} / {slow:,.0f} images/s = {fast / slow:.2f} ×"
        rows.append((f"JPEG 500 × 375 to 224 px, {name}, weft / Pillow", ratio, "≥ 1.8 ×", fast / slow >= 1.8))
    return rows


def text(datasets: Path) -> list[Row]:
    """SST-2: vocabulary of 8,192 from the training rows, and ids of all 67,349."""
    source = open_source(datasets / "sst2")
    taken = seconds(lambda: batches(source, "train", 128)[0])
    return [("SST-2 vocabulary and 67,349 rows tokenised", in_seconds(taken), "< 5 s", taken[0] < 5)]


def make_stream(folder: Path, times: int) -> None:
    """Text shards of STREAM_ROWS × times rows in row groups of a thousand."""
    folder.mkdir()
    letters = np.random.default_rng(0)
    for number in range(times):
        rows = [" ".join(map(str, letters.integers(0, 9999, 40))) for _ in range(STREAM_ROWS)]
        table = pa.table({"text": rows, "label": [n % 4 for n in range(STREAM_ROWS)]})
        pq.write_table(table, folder / f"train-{number:05}.parquet", row_group_size=1000)


def in_megabytes(values: list[float]) -> str:
    return ", ".join(f"{value:.0f} MB" for value in values)


def memory(scratch: Path) -> list[Row]:
    """Memory of an epoch of a streamed source and of one eight times as large: the peak, and what is left after it."""
    peaks, left = [], []
    for times in (1, 8):
        folder = scratch / f"stream{times}"
        make_stream(folder, times)
        script = Path(__file__).with_name("streaming.py")
        printed = subprocess.run(
            [sys.executable, script, folder, "--json"], capture_output=True, text=True, check=True
        ).stdout
        _, resident, peak = json.loads(printed)[-1]
        peaks.append(peak)
        left.append(resident)
    rows = f"{STREAM_ROWS:,} and {8 * STREAM_ROWS:,} rows"
    grown = "no growth (≤ 5 %)"
    return [
        (
            f"peak memory of a streamed epoch, {rows}",
            in_megabytes(peaks),
            f"≤ {MOST_MEMORY} MB",
            max(peaks) <= MOST_MEMORY,
        ),
        ("the same", in_megabytes(peaks), grown, peaks[1] <= 1.05 * peaks[0]),
        ("memory at the end of the epoch", in_megabytes(left), grown, left[1] <= 1.05 * left[0]),
    ]


def main(datasets: Path) -> None:
    """Measure everything with a cache of its own and print the table."""
    before = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as scratch:
        os.environ["WEFT_CACHE"] = str(Path(scratch) / "cache")
        rows = opening(datasets)
        rows += text(datasets)
        torch.set_num_threads(1)
        rows += augmentation(datasets)
        rows += jpeg(Path(scratch))
        rows += memory(Path(scratch))
    load = f"load average {before:.1f} before and {os.getloadavg()[0]:.1f} after"
    print(f"{os.cpu_count()} cores, torch {torch.__version__}, {load}\n")
    print("| what | measured | wanted | met |\n|---|---|---|---|")
    for what, measured, wanted, met in rows:
        print(f"| {what} | {measured} | {wanted} | {'yes' if met else 'no'} |")


if __name__ == "__main__":
    if len(sys.argv) == 2:
        main(Path(sys.argv[1]))
    else:
        sys.exit("usage: python benchmarks/data.py FOLDER_OF_DATASETS")
