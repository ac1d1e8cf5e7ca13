"""`open_source`: a name or a path becomes a Source with its splits `train`, `select` and `report`."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from weft.data.config import Modality, SourceConfig, Task
from weft.data.fingerprint import digest
from weft.data.opening import Opening
from weft.data.sources.find import read
from weft.data.split import Split
from weft.errors import WeftError
from weft.escape import whole


@dataclass
class Source:
    """Something readable, opened: what it holds, who gets which rows, and what had to be decided on the way."""

    name: str
    modality: Modality
    task: Task
    classes: list[str]
    splits: dict[str, Split]  # train, select, report, and the source's further splits by their own names
    files: dict[str, str]  # name -> digest of its content
    notes: list[str]
    config: SourceConfig
    columns: list[str] = field(default_factory=list)  # that the input is read from; empty where files have none
    stores: dict[str, Any] = field(default_factory=dict, repr=False)  # decoded images and token ids in use
    held_out: bool = False  # whether the reporting rows were cut off by seed, for want of a split of their own

    @property
    def fingerprint(self) -> str:
        """A digest of all that was read: equal for equal content, wherever it lies."""
        return digest(*(part for item in sorted(self.files.items()) for part in item))

    def require(self, fingerprint: str, files: dict[str, str] | None = None) -> None:
        """Refuse to go on with a source that has changed since `fingerprint` (and its `files`) were recorded."""
        if self.fingerprint == fingerprint:
            return
        then = files or {}
        changed = sorted(name for name in then.keys() | self.files.keys() if then.get(name) != self.files.get(name))
        named = f" ({', '.join(changed[:3])}{' and more' if len(changed) > 3 else ''})" if then else ""
        raise WeftError(f"the source {self.name} has changed since the run began{named}; restore it or start a new run")


def open_source(name: str | Path, config: SourceConfig | None = None, **options: Any) -> Source:
    """Open `digits`, a path, or `hub:NAME`; options are those of SourceConfig (seed, target, on_bad, ...)."""
    config = SourceConfig(**options) if config is None else config
    opening = Opening(read(str(name), config), str(name), config)
    return Source(
        name=str(name),
        modality=opening.reading.modality,
        task=opening.labels.task,
        classes=[whole(name) for name in opening.labels.classes],
        splits=opening.splits,
        files={whole(file): content for file, content in opening.reading.files.items()},
        notes=[whole(note) for note in opening.notes],
        config=config,
        columns=opening.reading.columns,
        held_out=opening.held_out,
    )
