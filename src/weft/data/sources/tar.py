"""WebDataset shards: tar files in which `0001.jpg` and `0001.cls` are one sample. A block is a run of samples.

One pass over the headers finds where the blocks lie; a block is then read by its place in the file.
"""

from __future__ import annotations

import io
import json
import re
import tarfile
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from weft.data.config import Modality, SourceConfig
from weft.data.read.cache import digest_files
from weft.data.read.decode import ENDINGS
from weft.data.sources.table import Block, Reading, Shards, Table, join, regular_files, split_names
from weft.errors import WeftError

RUN = 256  # samples of a block
TEXTS = (".txt", ".text")
LABELS = (".cls", ".label", ".json")
_INTEGER = re.compile(r"-?[0-9]{1,18}")


@dataclass
class Run:
    """Samples that lie together in a file: bytes [start, stop)."""

    file: Path
    start: int
    stop: int = 0
    samples: int = 0


@dataclass
class Sample:
    """The parts of one sample."""

    key: str
    parts: dict[str, bytes] = field(default_factory=dict)
    fault: str | None = None


class TarShards:
    """The samples of several tar files."""

    def __init__(self, files: list[Path], root: Path) -> None:
        self.files, self.root = files, root
        self.runs = [run for file in files for run in _index(file)]
        self.rows = np.array([run.samples for run in self.runs], dtype=np.int64)
        first = self._samples(0)[0] if self.runs else Sample("")
        self.modality: Modality = "text" if any(part in TEXTS for part in first.parts) else "image"
        self.labelled = any(part in LABELS for part in first.parts)

    def __len__(self) -> int:
        return int(self.rows.sum())

    def label_values(self) -> set[Any]:
        """The distinct raw labels: one pass over the files."""
        found: set[Any] = set()
        for number in range(len(self.runs)):
            labels = self.block(number).labels
            found.update(() if labels is None else labels.tolist())
        return found

    def block(self, number: int) -> Block:
        """Run `number` of the samples."""
        samples = self._samples(number)
        endings = TEXTS if self.modality == "text" else ENDINGS
        inputs: list[Any] = []
        labels: list[Any] = []
        faults: dict[int, str] = {}
        for row, sample in enumerate(samples):
            data = next((data for part, data in sample.parts.items() if part in endings), None)
            label = next((_label(part, data) for part, data in sample.parts.items() if part in LABELS), None)
            fault = sample.fault or ("the sample has no input" if data is None else None)
            text = _text(data) if self.modality == "text" else data
            fault = fault or ("the text is not UTF-8" if text is None else None)
            fault = fault or ("the sample has no label" if self.labelled and label is None else None)
            if fault:
                faults[row] = fault
            inputs.append(text if text is not None else "" if self.modality == "text" else b"")
            labels.append(label)
        return Block(inputs, np.array(labels, dtype=object) if self.labelled else None, faults)

    def place(self, row: int) -> str:
        """File and name of a sample."""
        number = int(np.searchsorted(np.cumsum(self.rows), row, side="right"))
        sample = self._samples(number)[row - int(self.rows[:number].sum())]
        return f"{self.runs[number].file.relative_to(self.root)} sample {sample.key}"

    def _samples(self, number: int) -> list[Sample]:
        run = self.runs[number]
        with run.file.open("rb") as stream:
            stream.seek(run.start)
            data = stream.read(run.stop - run.start)
        samples: list[Sample] = []
        try:
            with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
                for member in archive:
                    _enter(samples, member, archive)
        except (tarfile.TarError, OSError) as error:
            raise WeftError(
                f"{run.file} is damaged between bytes {run.start} and {run.stop} ({error}); fetch it anew"
            ) from error
        return samples


def read_tar(path: Path, config: SourceConfig) -> Reading:
    """A tar file or a folder of them, in memory or, when larger than `config.memory`, block by block."""
    root = path if path.is_dir() else path.parent
    files = regular_files(path, ".tar")
    large = sum(file.stat().st_size for file in files) > config.memory
    stream = large if config.stream is None else config.stream
    shards = {split: TarShards(members, root) for split, members in split_names(files, root).items()}
    modalities = {shard.modality for shard in shards.values()}
    if len(modalities) > 1:
        raise WeftError(f"{path} mixes shards of images and of text; give them as two sources")
    tables: dict[str, Table | Shards] = {name: shard if stream else join(shard) for name, shard in shards.items()}
    return Reading(modalities.pop(), tables, digest_files(files, root))


def _index(file: Path) -> list[Run]:
    """Where the runs of RUN samples begin and end; only headers are read, contents are skipped."""
    runs: list[Run] = []
    latest = None
    try:
        with tarfile.open(file, "r:") as archive:
            for member in archive:
                if not (member.isfile() or member.issym() or member.islnk()):
                    continue
                key, _ = _name(member.name)
                if key != latest:
                    if not runs or runs[-1].samples == RUN:
                        runs.append(Run(file, member.offset))
                    runs[-1].samples += 1
                    latest = key
                runs[-1].stop = member.offset_data + -(-member.size // tarfile.BLOCKSIZE) * tarfile.BLOCKSIZE
                archive.members = []  # type: ignore[attr-defined]  # or the list of members grows with the file
    except (tarfile.TarError, OSError) as error:
        raise WeftError(f"{file} is not a readable tar file ({error}); make or fetch it anew") from error
    if runs and runs[-1].stop > file.stat().st_size:
        raise WeftError(f"{file} is truncated: its last sample ends after the file does; fetch it anew")
    return runs


def _enter(samples: list[Sample], member: tarfile.TarInfo, archive: tarfile.TarFile) -> None:
    """Add a member to the sample that it is a part of."""
    key, part = _name(member.name)
    if not samples or samples[-1].key != key:
        samples.append(Sample(key))
    if (fault := _unsafe(member)) is not None:
        samples[-1].fault = samples[-1].fault or fault
    elif (content := archive.extractfile(member)) is not None:
        samples[-1].parts[part] = content.read()


def _name(name: str) -> tuple[str, str]:
    """(key, part) of a member: `a/0001.seg.png` is part `.seg.png` of sample `a/0001`."""
    folder, _, base = name.rpartition("/")
    stem, dot, part = base.partition(".") if not base.startswith(".") else (base, "", "")
    return f"{folder}/{stem}" if folder else stem, (dot + part).lower()


def _unsafe(member: tarfile.TarInfo) -> str | None:
    path = PurePosixPath(member.name)
    if path.is_absolute() or ".." in path.parts:
        return f"the member {member.name!r} points outside the archive"
    return None if member.isfile() else f"the member {member.name!r} is a link"


def _label(part: str, data: bytes) -> Any:
    text = data.decode("utf-8", "replace").strip()
    if part != ".json":
        return int(text) if _INTEGER.fullmatch(text) else text
    try:
        row = json.loads(text)
    except (ValueError, RecursionError):
        return None
    found = [row[name] for name in ("label", "cls", "target") if name in row] if isinstance(row, dict) else []
    return found[0] if found and isinstance(found[0], str | int | float) else None


def _text(data: bytes | None) -> str | None:
    try:
        return None if data is None else data.decode("utf-8")
    except UnicodeDecodeError:
        return None
