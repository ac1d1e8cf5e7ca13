"""IDX files, as MNIST and Fashion-MNIST come: `train-images-idx3-ubyte`, `t10k-labels-idx1-ubyte.gz` and so on."""

from __future__ import annotations

import gzip
import math
import re
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft.data.config import SourceConfig
from weft.data.read.cache import digest_files
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
            raise WeftError(f"{images.name} has no labels beside it: {labels.name} is missing; fetch it")
        split = "test" if match[1] == "t10k" else match[1]
        tables[split] = _table(images, labels, config.memory)
        used += [images, labels]
    return Reading("image", dict(tables), digest_files(used, root))


def _table(images: Path, labels: Path, most: int) -> Table:
    pixels, targets = _array(images, 3, most), _array(labels, 1, most)
    if len(pixels) != len(targets):
        raise WeftError(
            f"{images.name} has {len(pixels)} images and {labels.name} {len(targets)} labels; fetch them anew"
        )
    return Table(pixels[:, None], targets.astype(np.int64), lambda row: f"{images.name} row {row}")


def _array(file: Path, dimensions: int, most: int) -> NDArray[np.uint8]:
    """The header is two zero bytes, the type (8: unsigned bytes), the rank, and the shape in big-endian integers.

    It is read first: of a compressed file no more is inflated than it declares, and `most` bounds that.
    """
    try:
        with _opened(file) as stream:
            shape = _shape(stream, file, dimensions)
            size = math.prod(shape)
            if size > most:
                raise WeftError(
                    f"{file} declares {size:,} bytes, more than --memory {most}: raise it, or fetch it anew"
                )
            array = np.empty(size, np.uint8)
            filled = _fill(array, stream)
            more = len(stream.read(1))
    except (OSError, EOFError, zlib.error, struct.error) as error:
        raise WeftError(f"{file} is not a readable IDX file ({error}); fetch it anew") from error
    if filled < size or more:
        found = f"more than {size:,}" if more else f"{filled:,}"
        raise WeftError(f"{file} holds {found} bytes where its header declares {size:,}: it is damaged; fetch it anew")
    return array.reshape(shape)


def _opened(file: Path) -> Any:
    return gzip.open(file) if file.suffix == ".gz" else file.open("rb")


def _fill(array: NDArray[np.uint8], stream: Any) -> int:
    """Read as many bytes as there are and the array has room for; how many that were."""
    view, filled = array.data, 0
    while filled < len(view) and (count := stream.readinto(view[filled:])):
        filled += count
    return filled


def _shape(stream: Any, file: Path, dimensions: int) -> tuple[int, ...]:
    kind, rank = struct.unpack(">HBB", stream.read(4))[1:]
    if kind != 8 or rank != dimensions:
        raise WeftError(
            f"{file} has type {kind} and {rank} dimensions, not unsigned bytes in {dimensions}; fetch it anew"
        )
    shape: tuple[int, ...] = struct.unpack(f">{rank}I", stream.read(4 * rank))
    if 0 in shape:
        raise WeftError(f"{file} holds nothing: its shape is {' × '.join(map(str, shape))}; fetch it anew")
    return shape
