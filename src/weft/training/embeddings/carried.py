"""A run on a frozen encoder carries it along, so that its folder can be copied to another machine and used there.

RUN/encoder/   the encoder's configuration, weights and tokenizer: hard links where the disk has them, else copies

Loads no torch.
"""

from __future__ import annotations

import os
import shutil
from fnmatch import fnmatch
from pathlib import Path

from weft.disk import explained, read_object
from weft.networks.config import CARRIED

INDEX = "model.safetensors.index.json"
FILES = (
    "config.json", "model*.safetensors", INDEX,
    "tokenizer.json", "tokenizer_config.json", "vocab.txt", "README.md",
)  # fmt: skip


def carry(encoder: Path, run: Path) -> None:
    """Put the files of an encoder into a run's folder, unless they are there."""
    target = run / CARRIED
    if target.exists() and target.samefile(encoder):
        return
    target.mkdir(exist_ok=True)
    for name in carried_names(encoder):
        place(encoder / name, target / name)


def carried_names(folder: Path) -> list[str]:
    """The files of a folder that are carried along."""
    if folder.is_symlink() or not folder.is_dir():
        return []
    names = sorted(path.name for path in folder.iterdir() if path.is_file())
    where = read_object(folder / INDEX).get("weight_map") if INDEX in names else None
    shards = {str(shard) for shard in where.values()} if isinstance(where, dict) else set()
    return [name for name in names if name in shards or any(fnmatch(name, pattern) for pattern in FILES)]


def place(source: Path, target: Path) -> None:
    """A hard link to a file or a copy of it, whole or not there at all."""
    aside = target.with_name(f".{target.name}.{os.getpid()}")
    with explained(target, aside):
        if target.exists() and target.samefile(source):
            return
        aside.unlink(missing_ok=True)
        try:
            os.link(source.resolve(), aside)
        except OSError:  # another disk, or one without links
            shutil.copyfile(source, aside)
        aside.replace(target)
