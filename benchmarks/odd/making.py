"""Things to put at a path: tables, pictures, archives, trained runs; and ways to damage what is there."""

from __future__ import annotations

import atexit
import gzip
import io
import os
import shlex
import shutil
import struct
import subprocess
import sys
import tarfile
import tempfile
import threading
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

Make = Callable[[Path], object]


# Tables


def table(
    rows: Iterable[Sequence[object]] | None = None, head: str = "text,label", mark: str = ",", end: str = "\n"
) -> str:
    """Delimited text: some rows below a head; by default forty reviews of two classes."""
    lines = [mark.join(map(str, row)) for row in (reviews() if rows is None else rows)]
    return end.join([head.replace(",", mark), *lines, ""])


def reviews(labels: Sequence[str] = ("pos", "neg"), rows: int = 40) -> list[tuple[str, str]]:
    """Short texts, no two alike, with the labels in turn."""
    return [(f"a film about number {n} and so on", labels[n % len(labels)]) for n in range(rows)]


def points(rows: int = 40) -> list[tuple[object, ...]]:
    """Two numbers and one of two classes."""
    return [(round(0.1 * n, 1), n % 7, "ab"[n % 2]) for n in range(rows)]


def but(rows: Sequence[Sequence[object]], at: int, *row: object) -> list[Sequence[object]]:
    """The rows with another one in one place."""
    return [*rows[:at], row, *rows[at + 1 :]]


def jsonl(rows: Iterable[str]) -> str:
    return "\n".join([*rows, ""])


def parquet(columns: Mapping[str, Any], metadata: Mapping[str, str] | None = None) -> Make:
    """A Parquet file of these columns."""
    content = pa.table(dict(columns)).replace_schema_metadata(dict(metadata) if metadata else None)
    return lambda path: pq.write_table(content, path)


# Pictures


def picture(side: int = 8, shade: int = 0, form: str = "PNG", mode: str = "RGB", **options: Any) -> bytes:
    """An encoded picture: a gradient that starts at a shade."""
    values = (np.arange(side * side, dtype=np.uint32).reshape(side, side) * 7 + shade * 11) % 256
    image = Image.fromarray(values.astype(np.uint8)).convert(mode)
    if mode == "I;16":
        image = Image.fromarray((values * 257).astype(np.uint16))
    buffer = io.BytesIO()
    image.save(buffer, form, **options)
    return buffer.getvalue()


def photos(root: str, per_class: int = 6, names: Sequence[str] = ("cat", "dog"), **more: Any) -> dict[str, bytes]:
    """A folder a class with pictures in it, no two alike."""
    return {
        f"{root}/{name}/{n}.png": picture(shade=100 * of + n, **more)
        for of, name in enumerate(names)
        for n in range(per_class)
    }


def declared(width: int, height: int) -> bytes:
    """A PNG that says it is this large, and holds next to nothing."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b"\0")) + chunk(b"IEND", b"")


def animation() -> bytes:
    frames = [Image.new("P", (8, 8), color) for color in range(3)]
    buffer = io.BytesIO()
    frames[0].save(buffer, "GIF", save_all=True, append_images=frames[1:])
    return buffer.getvalue()


# Archives


def tar(members: Mapping[str, bytes | str], links: Mapping[str, str] | None = None) -> bytes:
    """A tar file of these members, and of links to other places."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, content in members.items():
            data = content.encode() if isinstance(content, str) else content
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
        for name, target in (links or {}).items():
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = tarfile.SYMTYPE, target
            archive.addfile(entry)
    return buffer.getvalue()


def samples(rows: int = 20, **changed: bytes | str) -> dict[str, bytes | str]:
    """Members of a WebDataset shard; `s3_cls="x"` changes one."""
    members: dict[str, bytes | str] = {}
    for n in range(rows):
        members[f"s{n}.png"], members[f"s{n}.cls"] = picture(shade=n), str(n % 2)
    return members | {name.replace("_", ".", 1): content for name, content in changed.items()}


def idx(shape: Sequence[int], data: bytes | None = None, kind: int = 8) -> bytes:
    """An IDX file of unsigned bytes; `shape` is what its header says."""
    head = struct.pack(f">HBB{len(shape)}I", 0, kind, len(shape), *shape)
    return head + (bytes(n % 251 for n in range(int(np.prod(shape)))) if data is None else data)


def mnist(**changed: bytes) -> dict[str, bytes]:
    """The two files of a tiny MNIST in `m`; `images=` and `labels=` change them."""
    images, labels = idx((40, 8, 8)), idx((40,), bytes(n % 2 for n in range(40)))
    return {
        "m/train-images-idx3-ubyte": changed.get("images", images),
        "m/train-labels-idx1-ubyte": changed.get("labels", labels),
    }


def inflating(megabytes: int) -> bytes:
    """A small gzip file of zeros that is this large when inflated."""
    return gzip.compress(bytes(1 << 20), 9) * megabytes


# Files that are none


def folder(path: Path) -> None:
    path.mkdir()


def fifo(path: Path) -> None:
    os.mkfifo(path)


def link(target: str) -> Make:
    return lambda path: path.symlink_to(target)


def deleted(path: Path) -> None:
    shutil.rmtree(path) if path.is_dir() else path.unlink()


def instead_a_folder(path: Path) -> None:
    deleted(path)
    path.mkdir()


def cut(share: float) -> Make:
    """Only the first part of what is there."""
    return lambda path: path.write_bytes(path.read_bytes()[: int(path.stat().st_size * share)])


def replaced(old: str, new: str) -> Make:
    """Other words in a text file; they must be there."""

    def make(path: Path) -> None:
        text = path.read_text()
        assert old in text, f"{path.name} has no {old!r}: the case tests nothing"
        path.write_text(text.replace(old, new))

    return make


# Folders that weft has written

COMMANDS = {
    "digits": "train digits --model mlp --batch-size 16 --steps 2",
    "table": "train breast_cancer --model mlp --batch-size 16 --steps 2",
    "text": "train t.csv --model conv_text --batch-size 8 --steps 2",
    "formulas": "train f.csv --model conv_text --batch-size 8 --steps 2",
    "comparison": "compare digits --models mlp,resnet8_cifar --match none --no-controls --no-baseline --seeds 1 "
    "--steps 4",
}
SOURCES = {"t.csv": table(), "f.csv": table(reviews(("=1+1", "@SUM(A1)")))}
_making = threading.Lock()


def made(kind: str) -> Make:
    """A copy of what a command has written, which is run once."""

    def make(path: Path) -> None:
        with _making:
            written = _written(kind)
        shutil.copytree(written, path)

    return make


@cache
def _written(kind: str) -> Path:
    root = Path(tempfile.mkdtemp(prefix="odd-made-"))
    atexit.register(shutil.rmtree, root, ignore_errors=True)
    for name, content in SOURCES.items():
        (root / name).write_text(content)
    words = [*COMMANDS[kind].split(), "--precision", "float32", "--output", "made"]
    environment = {
        "PYTHONPATH": str(Path(__file__).parents[2] / "src"),
        **os.environ,
        "WEFT_CACHE": str(root / "cache"),
    }
    line = [sys.executable, "-m", "weft", *words]
    ended = subprocess.run(line, cwd=root, env=environment, capture_output=True, text=True)
    assert ended.returncode == 0, (
        f"`weft {shlex.join(words)}` fails, so that nothing can be tried on it: {ended.stderr}"
    )
    return root / "made"
