"""IDX files, as MNIST and Fashion-MNIST come: `train-images-idx3-ubyte`, `t10k-labels-idx1-ubyte.gz` and so on."""

from __future__ import annotations

import gzip
import re
import struct
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from weft.data.config import SourceConfig
from weft.data.fingerprint import digest_files
from weft.data.sources.table import Reading, Table
from weft.errors import WeftError

NAME = re.compile(r"(.*)[-.]images[-.]idx3[-.]ubyte(\.gz)?$")


def read_idx(root: Path, config: SourceConfig) -> Reading:
    """Every pair of an images file and a labels file in the folder is a split; t10k is the test split."""
    tables, used = {}, []
    for images in sorted(root.iterdir()):
        if (match := NAME.match(images.name)) is None:
            continue
        labels = images.with_name(images.name.replace("images", "labels").replace("idx3", "idx1"))
        if not labels.is_file():
            raise WeftError(f"{images.name} has no labels beside it: {labels.name} is missing")
        split = "test" if match[1] == "t10k" else match[1]
        tables[split] = _table(images, labels)
        used += [images, labels]
    return Reading("image", dict(tables), digest_files(used, root))


def _table(images: Path, labels: Path) -> Table:
    pixels, targets = _array(images, 3), _array(labels, 1)
    if len(pixels) != len(targets):
        raise WeftError(f"{images.name} has {len(pixels)} images and {labels.name} {len(targets)} labels")
    return Table(pixels[:, None], targets.astype(np.int64), lambda row: f"{images.name} row {row}")


def _array(file: Path, dimensions: int) -> NDArray[np.uint8]:
    """The header is two zero bytes, the type (8: unsigned bytes), the rank, and the shape in big-endian integers."""
    try:
        data = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
        kind, rank = struct.unpack(">HBB", data[:4])[1:]
        shape = struct.unpack(f">{rank}I", data[4 : 4 + 4 * rank])
    except (OSError, EOFError, zlib.error, struct.error) as error:
        raise WeftError(f"{file} is not a readable IDX file ({error})") from error
    if kind != 8 or rank != dimensions:
        raise WeftError(f"{file} has type {kind} and {rank} dimensions, not unsigned bytes in {dimensions}")
    expected = 4 + 4 * rank + int(np.prod(shape, dtype=np.int64))
    if len(data) != expected:
        raise WeftError(f"{file} has {len(data):,} bytes where its header declares {expected:,}: it is truncated")
    return np.frombuffer(data, np.uint8, offset=4 + 4 * rank).reshape(shape)
