"""Checkpoints that are whole or not there: a folder a step, a checksum over every byte, the last two kept.

    checkpoints/00000500/state.safetensors   tensors
    checkpoints/00000500/manifest.json       numbers, and the sha256 of the tensors and of the manifest itself

A checkpoint is written under another name, flushed to the disk and renamed, so a kill leaves the older ones as they
were. Neither safetensors nor torch.save notices a flipped bit; the checksums do, and `latest` then falls back.
"""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors.torch
from safetensors import SafetensorError
from torch import Tensor

from weft import machine
from weft.disk import Damaged, brief, explained, read_bytes, sync_folder
from weft.errors import WeftError
from weft.training.storage.run_folder import CHECKPOINT, MANIFEST, TENSORS, checkpoint_folders, discard_checkpoint

Numbers = dict[str, Any]  # what JSON can hold


@dataclass(frozen=True)
class Checkpoint:
    """The state of a run after `step` updates."""

    step: int
    tensors: dict[str, Tensor]
    numbers: Numbers


class CheckpointStore:
    """The checkpoints of one run, in `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def steps(self) -> list[int]:
        """Steps for which a checkpoint is there, sound or not, ascending."""
        return sorted(int(path.name) for path in self.folder.glob("*") if CHECKPOINT.fullmatch(path.name))

    def save(self, checkpoint: Checkpoint) -> None:
        """Write a checkpoint; after return it survives a kill and a power cut."""
        self.folder.mkdir(parents=True, exist_ok=True)
        final = self._path(checkpoint.step)
        aside = self.folder / f".{final.name}.writing"
        discard_checkpoint(aside)
        with explained(final, aside, discard_checkpoint):
            if aside.is_symlink():  # to a folder of someone else
                aside.unlink()
            aside.mkdir(exist_ok=True)
            content = safetensors.torch.save(checkpoint.tensors)
            write_through(aside / TENSORS, content)
            write_through(aside / MANIFEST, manifest(checkpoint.step, checkpoint.numbers, content))
            sync_folder(aside)
            if final.exists():  # the same step again, after a roll-back: the newer one counts
                discard_checkpoint(final)
            aside.rename(final)
            sync_folder(self.folder)

    def load(self, step: int) -> Checkpoint:
        """The checkpoint of `step`, after checking every byte; raises `Damaged`."""
        path = self._path(step)
        try:
            content = read_bytes(path / TENSORS, machine.memory_total())
            written = read_bytes(path / MANIFEST)
            numbers = json.loads(written)["numbers"]
            if written == manifest(step, numbers, content) and isinstance(numbers, dict):
                return Checkpoint(step, safetensors.torch.load(content), numbers)
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, SafetensorError) as error:
            raise Damaged(f"checkpoint {path} cannot be read: {brief(error)}") from error
        raise Damaged(f"checkpoint {path} does not match its checksum")

    def latest(self, among: set[int] | None = None) -> Checkpoint | None:
        """The newest sound checkpoint (of the steps in `among`); warns about damaged ones that it passes over."""
        for step in reversed(self.steps()):
            if among is not None and step not in among:
                continue
            try:
                return self.load(step)
            except Damaged as error:
                warnings.warn(f"{error}; using the one before it", stacklevel=2)
        return None

    def prune(self, keep: set[int]) -> None:
        """Delete the checkpoints of all other steps, and what a killed writer left behind."""
        for path in checkpoint_folders(self.folder.resolve()):
            if path.name.startswith(".") or int(path.name) not in keep:
                discard_checkpoint(path)

    def require(self) -> Checkpoint:
        """The newest sound checkpoint, or an error that says what to do."""
        found = self.latest()
        if found is None:
            raise WeftError(f"no sound checkpoint in {self.folder}; start the run again in another folder")
        return found

    def _path(self, step: int) -> Path:
        return self.folder / f"{step:08d}"


def write_through(path: Path, content: bytes) -> None:
    """Write a file and wait until the disk has it."""
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def manifest(step: int, numbers: Numbers, content: bytes) -> bytes:
    """The manifest of a checkpoint: one spelling for each content, with checksums of the tensors and of itself."""
    stored = {"step": step, "sha256": digest(content), "numbers": numbers}
    return canonical({**stored, "manifest_sha256": digest(canonical(stored))})


def canonical(content: Any) -> bytes:
    return json.dumps(content, sort_keys=True, separators=(",", ":")).encode()


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
