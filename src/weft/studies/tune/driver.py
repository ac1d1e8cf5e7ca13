"""Drives a search of settings: workers, dead trials, what came out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from weft.disk import mark
from weft.errors import Interrupted, WeftError, WorkFailed
from weft.studies.engine import tasks
from weft.studies.engine.folder_lock import driving
from weft.studies.engine.runner import Pool, Say, stop
from weft.studies.engine.worker import TaskFailed, WorkerDied
from weft.studies.tune.space import counted, fail_dead_trials, open_search
from weft.studies.tune.trials import summary
from weft.training.config import RunConfig

ORPHANS = 2.0  # seconds for workers of a search that was killed a moment ago, which end within one


def tune(
    config: RunConfig, space: list[str], trials: int, folder: Path, storage: str | None, workers: int, say: Say
) -> dict[str, Any]:
    """Search, or go on with a search, until it has `trials`; returns what `summary` finds."""
    log = folder / "log.txt"
    address = storage or str(folder / "journal.log")
    name = f"{Path(config.source).name}-{config.model}-{'-'.join(space)}"
    with driving(folder), Pool(workers) as pool:
        pool.first(tasks.look, config)
        mark(folder)
        search = open_search(address, name)
        if dead := fail_dead_trials(search, ORPHANS):
            say(f"{dead} trials were left running by a worker that died; they are marked failed")
        threads = max(1, pool.cores // workers)
        config = replace(config, execution=replace(config.execution, threads=threads))
        for worker in pool.workers:
            worker.ask(tasks.do_trials, address, name, config, space, trials, folder / "trials", log=log)
        await_workers(pool, log, search, trials, say)
    return summary(search, config.source, config.model, trials)


def await_workers(pool: Pool, log: Path, search: Any, trials: int, say: Say) -> None:
    """Wait for all workers; one that dies is told, and the others go on."""
    try:
        for worker in pool.workers:
            try:
                worker.answer()
            except WorkerDied as death:
                say(f"a worker was lost: {death}")
            except TaskFailed as failure:
                raise (WeftError if failure.refused else WorkFailed)(f"{failure} (see {log})") from failure
    except KeyboardInterrupt:
        stop(pool.workers)
        fail_dead_trials(search)
        done = len(counted(search))
        raise Interrupted(f"interrupted after {done} of {trials} trials: the same command goes on") from None
    fail_dead_trials(search)
