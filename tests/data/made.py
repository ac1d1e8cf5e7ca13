"""Makers of small files of every kind, for the tests of the data side."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image


def encoded(seed: int, size: tuple[int, int] = (20, 16), kind: str = "PNG") -> bytes:
    """An image file of noise, smooth enough to survive JPEG."""
    small = np.random.default_rng(seed).integers(0, 256, (4, 4, 3), dtype=np.uint8)
    stream = io.BytesIO()
    Image.fromarray(small).resize(size, Image.Resampling.BICUBIC).save(stream, kind)
    return stream.getvalue()


def sentence(number: int) -> str:
    """A text of a length that varies with its number."""
    words = ["red", "green", "blue", "warp", "weft", "loom", "thread", "knot"]
    return " ".join(words[(number * 7 + at * at) % len(words)] for at in range(3 + number % 17)) + f" {number}"


def write_parquet(folder: Path, rows: int, group: int = 16, files: int = 3) -> Path:
    """Text shards `train-0000k.parquet` with row groups of `group` rows."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, part in enumerate(np.array_split(np.arange(rows), files)):
        table = pa.table({"text": [sentence(int(row)) for row in part], "label": [int(row) % 3 for row in part]})
        pq.write_table(table, folder / f"train-{number:05}-of-{files:05}.parquet", row_group_size=group)
    return folder


def write_tar(path: Path, samples: dict[str, bytes]) -> Path:
    """A tar file with these members, in order."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w") as archive:
        for name, data in samples.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return path


def tar_of_images(folder: Path, samples: int, files: int = 2) -> Path:
    """Shards of PNG images with their class in `.cls`."""
    for number, part in enumerate(np.array_split(np.arange(samples), files)):
        members: dict[str, bytes] = {}
        for row in part.tolist():
            members[f"{row:05}.png"] = encoded(row, (12, 12))
            members[f"{row:05}.cls"] = str(row % 3).encode()
        write_tar(folder / f"train-{number:06}.tar", members)
    return folder
