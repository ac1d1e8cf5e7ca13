"""A folder of images: a sub-folder a class, below `train`, `val` and `test` where there are such folders."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import overload

import numpy as np

from weft.data.config import SourceConfig
from weft.data.read.cache import digest_files
from weft.data.read.decode import ENDINGS
from weft.data.sources.table import Reading, Table, is_split
from weft.disk import data_files, is_output, iterate_data
from weft.errors import WeftError


class FileBytes(Sequence[bytes]):
    """The bytes of files, each read when it is asked for."""

    def __init__(self, files: list[Path]) -> None:
        self.files = files

    def __len__(self) -> int:
        return len(self.files)

    @overload
    def __getitem__(self, index: int) -> bytes: ...
    @overload
    def __getitem__(self, index: slice) -> list[bytes]: ...
    def __getitem__(self, index: int | slice) -> bytes | list[bytes]:
        if isinstance(index, slice):
            return [file.read_bytes() for file in self.files[index]]
        return self.files[index].read_bytes()


def read_image_folder(root: Path, config: SourceConfig) -> Reading:
    """Images below `root`; without class folders they have no labels, nor have those of a split that has none."""
    folders = [folder for folder in sorted(root.iterdir()) if folder.is_dir() and is_split(folder.name)]
    splits = {folder.name: folder for folder in folders} or {"all": root}
    own: list[Path] = []
    names = sorted({folder.name for split in splits.values() for folder in _class_folders(split, own)})
    reading = Reading("image", {}, {}, names=names or None)
    rows: list[tuple[Table, list[Path]]] = []
    for split, folder in splits.items():
        bare = not split.lower().startswith("train") and not any(path.is_dir() for path in folder.iterdir())
        table, images = _read_split(folder, [] if bare else names, root, config, reading.notes, own)
        reading.tables[split] = table
        rows.append((table, images))
    reading.notes += _of_weft(own, root)
    files = [image for table, images in rows for row, image in enumerate(images) if row not in table.faults]
    if not files:
        raise WeftError(f"{root} holds no images; give a folder with some ({', '.join(ENDINGS)})")
    reading.files = digest_files(files, root)
    for table, images in rows:
        table.prints = [reading.files.get(_below(image, root).as_posix()) for image in images]
    return reading


def _read_split(
    folder: Path, names: list[str], root: Path, config: SourceConfig, notes: list[str], own: list[Path]
) -> tuple[Table, list[Path]]:
    images: list[Path] = []
    labels: list[int] = []
    others = 0
    for label, name in enumerate(names) if names else [(0, ".")]:
        every = data_files(folder / name, own)
        found = [file for file in every if _is_image(file)]
        others += len(every) - len(found)
        if not found:
            _empty_class(folder / name, root, config, notes)
        images += found
        labels += [label] * len(found)
    if others:
        notes.append(f"{others} files of {_below(folder, root)} are not images and were left out")
    table = Table(
        inputs=FileBytes(images),
        labels=np.array(labels) if names else None,
        place=lambda row: str(_below(images[row], root)),
        faults=dict([*_no_files(images), *_leading_out(images, root)]),
    )
    return table, images


def _class_folders(split: Path, own: list[Path]) -> list[Path]:
    """The folders of a split but hidden ones and those that are there for weft's own output: these are `own`."""
    folders = [folder for folder in split.iterdir() if folder.is_dir() and not folder.name.startswith(".")]
    outputs = [folder for folder in folders if is_output(folder) or _for_outputs(folder)]
    own += outputs
    return [folder for folder in folders if folder not in outputs]


def _for_outputs(folder: Path) -> bool:
    """Whether a folder has no images but such as weft made, in folders of its own: `runs`, `comparisons` and so on."""
    outputs: list[Path] = []
    return not any(_is_image(file) for file in iterate_data(folder, outputs)) and bool(outputs)


def _of_weft(folders: list[Path], root: Path) -> list[str]:
    """What is said of folders that weft wrote and that hold images: they may be taken for data."""
    found = sorted({str(_below(folder, root)) for folder in folders if _holds_images(folder)})
    more = ", …" if len(found) > 3 else ""
    return [f"images in folders that weft wrote were left out: {', '.join(found[:3])}{more}"] if found else []


def _holds_images(folder: Path) -> bool:
    return any(_is_image(Path(name)) for _, _, names in os.walk(folder) for name in names)


def _is_image(file: Path) -> bool:
    return file.suffix.lower() in ENDINGS


def _empty_class(folder: Path, root: Path, config: SourceConfig, notes: list[str]) -> None:
    there = "holds no images" if folder.is_dir() else "is not there, though other splits have it"
    sentence = f"the class folder {_below(folder, root)} {there}"
    if config.on_bad == "fail":
        raise WeftError(f"{sentence}; fill or remove it, or go on without with --on-bad skip")
    notes.append(sentence)


def _leading_out(images: list[Path], root: Path) -> list[tuple[int, str]]:
    """Rows whose file is, after following links, outside the folder: they may be anything on this machine."""
    home = root.resolve()
    out = "the file is a symbolic link that leads out of the folder"
    return [(row, out) for row, image in enumerate(images) if not _target(image).is_relative_to(home)]


def _no_files(images: list[Path]) -> list[tuple[int, str]]:
    """Rows that would fail or wait forever when they are read: links to nothing, pipes."""
    none = "the file is a link to nothing, or no regular file"
    return [(row, none) for row, image in enumerate(images) if not image.is_file()]


def _target(path: Path) -> Path:
    """The path behind symbolic links; itself where they go round in circles."""
    try:
        return path.resolve()
    except (OSError, RuntimeError):
        return path.absolute()


def _below(path: Path, root: Path) -> Path:
    return path.relative_to(root)
