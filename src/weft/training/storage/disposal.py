"""What of a run folder may be thrown away: files of weft, each by its name. What else lies there stays. No torch."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from pathlib import Path

from weft.disk import LOCKS, RUN, discard, strangers
from weft.networks.config import CARRIED
from weft.training.embeddings.carried import carried_names

TENSORS, MANIFEST = "state.safetensors", "manifest.json"  # of a checkpoint
CHECKPOINT = re.compile(r"\d{8,12}", re.ASCII)
WRITING = re.compile(r"\.\d{8,12}\.writing", re.ASCII)  # what a kill leaves of a checkpoint
EARLY = (RUN, *LOCKS, "preprocessor_config.json", "tokenizer.json", "tokenizer_config.json")  # before the first step


def checkpoint_folders(folder: Path) -> Iterator[Path]:
    """The folders of a run's checkpoints, whole or not; a link to somewhere else is none."""
    if folder.is_symlink() or not folder.is_dir():
        return
    for path in sorted(folder.iterdir()):
        named = CHECKPOINT.fullmatch(path.name) or WRITING.fullmatch(path.name)
        if named and path.is_dir() and not path.is_symlink():
            yield path


def discard_checkpoint(path: Path) -> None:
    """Delete one checkpoint."""
    discard(path, (TENSORS, MANIFEST))


def discard_checkpoints(folder: Path) -> list[Path]:
    """Delete all checkpoints of a run and their folder; returns what is left because weft did not write it."""
    for path in checkpoint_folders(folder):
        discard_checkpoint(path)
    discard(folder, ())
    return foreign_checkpoints(folder)


def foreign_checkpoints(folder: Path) -> list[Path]:
    """What lies among a run's checkpoints and is none."""
    if folder.is_symlink():
        return [folder]
    if not folder.is_dir():
        return []
    own = list(checkpoint_folders(folder))
    within = [found for path in own for found in strangers(path, (TENSORS, MANIFEST))]
    return [*strangers(folder, {path.name for path in own}), *within]


def foreign_files(run: Path) -> list[Path]:
    """What the folder of a run that never began holds beside what weft has written until then."""
    encoder = run / CARRIED
    carried = strangers(encoder, carried_names(encoder)) if encoder.is_dir() else []
    return [*strangers(run, {*EARLY, CARRIED, "checkpoints"}), *foreign_checkpoints(run / "checkpoints"), *carried]


def discard_early(run: Path, made: Collection[Path] = ()) -> None:
    """Delete the files of a run that never began, its folder, and those `made` for it, if nothing else is in them."""
    discard_checkpoints(run / "checkpoints")
    discard(run / CARRIED, carried_names(run / CARRIED))
    discard(run, EARLY)
    for folder in made:
        discard(folder, ())
