"""Runs that another study, a comparison or a recipe has made already: taken over, so that nothing is trained twice.

A run is the same if it read the same data (by their fingerprint) and was asked for the same, wherever either lies. It
is copied without its checkpoints: a study's folder stays whole by itself.
"""

from __future__ import annotations

import json
import shutil
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from weft.disk import LOCKS, RUN
from weft.errors import WeftError
from weft.studies.engine.study import DECIDES, Job, Study
from weft.terminal import how_many
from weft.training.config import to_dict
from weft.training.run.kinds import AnyConfig
from weft.training.storage.run_folder import RunFolder

PLACES = ("*", "runs/*", "*/runs/*")  # where runs lie: below runs/, below one study, below the folder of all studies
LEFT = ("checkpoints", *LOCKS)  # behind


def take_over(study: Study, jobs: Iterable[Job], say: Callable[[str], None]) -> None:
    """Copy into the study what is finished elsewhere."""
    wanted = [job for job in jobs if not study.done(job) and not study.run_folder(job).path.exists()]
    if not study.reuse or not wanted:
        return
    found = finished_below(study.reuse, study.folder.resolve())
    taken = []
    for job in wanted:
        data, _, weights = job.fingerprint.partition("+")
        for run in found[data]:
            if is_same(job, run) and started_from(run, weights) and is_made_on(study.processor, run):
                copy_run(run.path, study.run_folder(job).path)
                taken.append(run.path)
                break
    if taken:
        runs = f"{how_many(len(taken), 'run')} {'is' if len(taken) == 1 else 'are'}"
        say(f"{runs} taken over from others that were asked for the same, first {taken[0]}")


def finished_below(folders: Iterable[str], own: Path) -> dict[str, list[RunFolder]]:
    """Finished runs by the fingerprint of their data, those of the study itself left out."""
    found: dict[str, list[RunFolder]] = defaultdict(list)
    for run in sorted(set(runs_below(folders)), key=lambda run: str(run.path)):
        if own in run.path.resolve().parents:
            continue
        with suppress(WeftError):  # what cannot be read cannot be taken over
            record = run.sound_record() or {}
            if record.get("status") == "finished":
                found[str(record.get("source", {}).get("fingerprint"))].append(run)
    return found


def runs_below(folders: Iterable[str]) -> Iterator[RunFolder]:
    for folder in folders:
        for place in PLACES:
            yield from (RunFolder(path.parent) for path in Path(folder).glob(f"{place}/{RUN}"))


def is_same(job: Job, run: RunFolder) -> bool:
    """Whether a run was asked for what a job asks for; where its data lie, and its threads, do not matter."""
    from weft.training.run.settings import as_stored

    try:
        stored = run.config()
    except WeftError:
        return False
    if type(stored) is not type(job.config) or stored.seed != job.seed or stored.model != job.config.model:
        return False
    asked = as_stored(job.config, stored)
    return written(deciding(stored, asked)) == written(asked)


def started_from(run: RunFolder, weights: str) -> bool:
    """Whether a run started from these weights, where any are named; a linear probe does not tell."""
    digest = (run.sound_record() or {}).get("source", {}).get("start", {}).get("digest")
    return not weights or (bool(digest) and weights.startswith(str(digest)))


def is_made_on(processor: str, run: RunFolder) -> bool:
    """Whether a run was computed on this processor, if one is named: what it cost elsewhere is no measure here."""
    return not processor or (run.record() or {}).get("environment", {}).get("processor") == processor


def written(config: AnyConfig) -> str:
    """A configuration as a file would have it: there lists and tuples are one."""
    return json.dumps(to_dict(config), sort_keys=True)


def deciding(stored: AnyConfig, asked: AnyConfig) -> AnyConfig:
    """A stored configuration with all that decides nothing as it is asked for now."""
    decides = {name: getattr(stored.execution, name) for name in DECIDES}
    return replace(stored, source=asked.source, execution=replace(asked.execution, **decides))


def copy_run(path: Path, target: Path) -> None:
    """A run's folder, whole or not at all."""
    target.parent.mkdir(parents=True, exist_ok=True)
    half = target.with_name(f".{target.name}.copying")
    shutil.rmtree(half, ignore_errors=True)
    shutil.copytree(path, half, ignore=shutil.ignore_patterns(*LEFT))
    half.rename(target)
