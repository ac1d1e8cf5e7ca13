"""From a name or a path to the documents of a corpus: text files, a column of a table, a dataset of the Hub, pydocs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

from weft.data.config import SourceConfig
from weft.data.corpus.config import CorpusConfig
from weft.data.read.cache import digest, digest_files
from weft.data.sources.encoding import encoding_of
from weft.data.sources.find import read
from weft.data.sources.table import Shards, Table, join
from weft.disk import data_files, user_path
from weft.errors import WeftError, nearest

_HELD_OUT = re.compile(r"(test|t10k|val|dev|eval)", re.IGNORECASE)
_BLANK = re.compile(r"\n[ \t]*\n")


@dataclass
class Documents:
    """The texts of a corpus, none of them empty, and how they were found."""

    name: str
    texts: list[str]
    fingerprint: str
    notes: list[str] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.texts)


def read_documents(name: str, config: CorpusConfig) -> Documents:
    """All documents of a corpus, in their order; empty ones are left out and counted."""
    path = user_path(name)
    files = text_files(path)
    texts, files_read, notes = read_files(files, path, config) if files else read_rows(name, config)
    full = [text for text in texts if text.strip()]
    if len(full) < len(texts):
        empty = len(texts) - len(full)
        notes.append(f"{empty:,} empty {'document was' if empty == 1 else 'documents were'} left out of {len(texts):,}")
    if not full:
        raise WeftError(f"{name} holds no text: each of its {len(texts):,} documents is empty")
    about = (config.split, config.column, config.documents)
    fingerprint = digest(repr(about), *(part for item in sorted(files_read.items()) for part in item))
    return Documents(name, full, fingerprint, notes)


def text_files(path: Path) -> list[Path]:
    """The text files at or below a path; none where it holds tables."""
    if path.is_file():
        return [path] if path.suffix == ".txt" else []
    if not path.is_dir():
        return []
    files = data_files(path)
    tables = {".parquet", ".csv", ".tsv", ".jsonl", ".ndjson"} & {file.suffix for file in files}
    return [] if tables else [file for file in files if file.suffix == ".txt" and file.is_file()]


Found = tuple[list[str], dict[str, str], list[str]]  # texts, files with their digests, notes


def read_files(files: list[Path], path: Path, config: CorpusConfig) -> Found:
    """Documents of text files."""
    if config.split or config.column:
        raise WeftError(f"{path} is plain text, which has neither splits nor columns; leave out --split and --column")
    root = path if path.is_dir() else path.parent
    notes = [f"{len(files):,} text {'file was' if len(files) == 1 else 'files were'} read"]
    texts = [text for file in files for text in cut_file(read_text(file, notes), config.documents)]
    return texts, digest_files(files, root), notes


def read_text(file: Path, notes: list[str]) -> str:
    """The text of a file; how it had to be read is noted."""
    encoding = encoding_of(file)
    notes += [encoding.note] if encoding.note else []
    try:
        return file.read_text(encoding=encoding.name)
    except UnicodeDecodeError as error:
        raise WeftError(f"{file} is not UTF-8 text (byte {error.start}); convert it with iconv") from error


def cut_file(text: str, unit: str) -> list[str]:
    """The documents of one file, empty ones included."""
    if unit == "lines":
        return text.splitlines()
    if unit == "paragraphs" or (unit == "auto" and _BLANK.search(text.strip())):
        return _BLANK.split(text.strip("\n"))
    return [text]


def read_rows(name: str, config: CorpusConfig) -> Found:
    """A document a row of a table; neighbouring rows of one group (an article's paragraphs) are one document."""
    inputs = None if config.column is None else (config.column,)
    reading = read(name, SourceConfig(task="none", inputs=inputs))
    if reading.modality not in {"text", "pair"}:
        raise WeftError(f"{name} holds {reading.modality}s, not text; give a corpus, pydocs for instance")
    chosen, note = choose_splits(list(reading.tables), config.split, name)
    texts = [text for split in chosen for text in rows_of(reading.tables[split])]
    return texts, reading.files, [*reading.notes, *note]


def choose_splits(names: list[str], asked: Sequence[str] | None, name: str) -> tuple[list[str], list[str]]:
    """The splits to learn from, and a sentence that says which: those asked for, else all that are not held out."""
    for wish in asked or ():
        if wish not in names:
            raise WeftError(f"{name} has no split {wish!r}; {nearest(wish, names)} It has {', '.join(names)}")
    chosen = list(asked) if asked else [split for split in names if not _HELD_OUT.match(split)] or names
    if len(names) == 1:
        return chosen, []
    left = [split for split in names if split not in chosen]
    rest = f"; not read: {', '.join(left)} (--split chooses)" if left else ""
    return chosen, [f"the corpus is {' and '.join(chosen)} of {name}{rest}"]


def rows_of(table: Table | Shards) -> Iterator[str]:
    """The documents of one table; what the reader found wrong ends the run with a sentence."""
    table = table if isinstance(table, Table) else join(table)
    for row, why in table.faults.items():
        raise WeftError(f"{table.place(row)}: {why}; repair or remove it")
    texts = (text if isinstance(text, str) else "\n".join(text) for text in table.inputs)
    if table.groups is None:
        yield from texts
        return
    for _, rows in groupby(zip(map(str, table.groups), texts, strict=True), key=_first):
        yield "\n".join(text for _, text in rows)


def _first(row: tuple[str, Any]) -> str:
    return row[0]
