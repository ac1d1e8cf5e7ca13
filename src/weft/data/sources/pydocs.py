"""`pydocs`: the docstrings of the running Python's standard library, labelled by package. Text, with no download.

The files are parsed, not imported. Packages with a hundred docstrings or more are the classes; the docstrings of all
other modules form the split "unlabelled", so that the whole is also a corpus for masked-language modelling.
"""

from __future__ import annotations

import ast
import json
import sys
import sysconfig
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from weft.data.read.cache import Cache, digest
from weft.data.sources.table import Reading, Table
from weft.errors import WeftError

ENOUGH = 100  # docstrings that make a package a class
SHORTEST = 20  # characters; below that a docstring says nothing about its package
_LEFT_OUT = {"site-packages", "dist-packages", "test", "tests", "__pycache__", "ensurepip"}


def read_pydocs() -> Reading:
    """Texts and package names, in the order of the files' paths."""
    rows = _cached_rows(Path(sysconfig.get_path("stdlib")))
    counts = Counter(package for package, _, _ in rows)
    names = sorted(package for package, count in counts.items() if count >= ENOUGH and "." not in package)
    if len(names) < 2:
        raise WeftError("this Python has no sources of its standard library, so `pydocs` is empty; use a full Python")
    labelled = [row for row in rows if row[0] in names]
    rest = [row for row in rows if row[0] not in names]
    labels = np.array([names.index(package) for package, _, _ in labelled])
    tables = {"all": _table(labelled, labels), "unlabelled": _table(rest, None)}
    content = digest(*(text for _, _, text in rows))
    return Reading(modality="text", tables=dict(tables), files={"pydocs": content}, names=names)


def _cached_rows(root: Path) -> list[tuple[str, str, str]]:
    """(package, file, docstring) without repetitions; parsing takes seconds, so it is done once for each Python."""

    def build() -> dict[str, torch.Tensor]:
        found = json.dumps(list(dict.fromkeys(_docstrings(root)))).encode()
        return {"json": torch.frombuffer(bytearray(found), dtype=torch.uint8)}

    stored = Cache().get(digest("pydocs", sys.version, str(root)), "docstrings of the standard library", build)
    return [(package, file, text) for package, file, text in json.loads(stored["json"].numpy().tobytes())]


def _table(rows: list[tuple[str, str, str]], labels: np.ndarray | None) -> Table:
    return Table(
        inputs=[text for _, _, text in rows],
        labels=labels,
        place=lambda row: f"pydocs row {row} ({rows[row][1]})",
    )


def _docstrings(root: Path) -> Iterator[tuple[str, str, str]]:
    """(package, file, docstring); a single module counts as a package whose name ends in `.py`."""
    for path in _sources(root):
        where = path.relative_to(root)
        for node in _definitions(_parse(path)):
            text = ast.get_docstring(node)
            if text and len(text) >= SHORTEST:
                yield where.parts[0], where.as_posix(), text


def _definitions(node: Any) -> Iterator[Any]:
    """The module, and its classes and functions at any depth; expressions, most of a file, are passed over."""
    if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        yield node
    for part in ("body", "orelse", "handlers", "finalbody"):
        for child in getattr(node, part, ()):
            if hasattr(child, "body"):
                yield from _definitions(child)


def _sources(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if path.is_dir() and path.name not in _LEFT_OUT:
            yield from _sources(path)
        elif path.suffix == ".py":
            yield path


def _parse(path: Path) -> ast.AST:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # old escapes in old files are not the user's concern
        try:
            return ast.parse(path.read_bytes())
        except (SyntaxError, ValueError):  # templates and deliberately broken files
            return ast.Module(body=[], type_ignores=[])
