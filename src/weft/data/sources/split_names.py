"""Which split a file belongs to, by its name or its folder's."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from weft.errors import WeftError

_SHARD = re.compile(r"[-_.]?\d+([-_]of[-_]\d+)?$")
_SPLIT = re.compile(r"(train|test|t10k|val|dev|eval|unsupervised|unlabell?ed)", re.IGNORECASE)


def is_split(name: str) -> bool:
    """Whether a file or folder is named as splits are."""
    return _SPLIT.match(name) is not None


def leading(splits: dict[str, list[Path]]) -> Path:
    """The file from which the meaning of columns is read: the first of the training split, where there is one."""
    order = sorted(splits, key=lambda name: not name.lower().startswith("train"))
    return splits[order[0]][0]


def regular_files(path: Path, *endings: str) -> list[Path]:
    """The file itself, or all files of these endings below a folder; no pipes, whose end may never come."""
    if not path.is_dir():
        return [path]
    found = [file for file in sorted(path.rglob("*")) if file.suffix.lower() in endings and file.is_file()]
    if not found:
        raise WeftError(
            f"{path} holds no regular file ({', '.join(endings)}), only pipes, folders or broken links; give files"
        )
    return found


def split_names(files: Sequence[Path], root: Path) -> dict[str, list[Path]]:
    """Split -> its files: `train.parquet`, `train-00000-of-00002.parquet` and `train/0000.parquet` are all train."""
    splits: dict[str, list[Path]] = {}
    for file in files:
        stem = _SHARD.sub("", file.name.split(".")[0])
        folder = file.parent.name if file.parent != root else ""
        splits.setdefault(folder if is_split(folder) and not is_split(stem) else stem, []).append(file)
    if not any(is_split(name) for name in splits):
        return {"all": list(files)}
    return splits
