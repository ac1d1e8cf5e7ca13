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
from weft.studies.tune.space import counted, fail_dead_trials, importances, open_search
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
    return summary(search, config, trials)


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


def summary(search: Any, config: RunConfig, asked: int) -> dict[str, Any]:
    """The best settings, all trials, and which settings matter."""
    trials = search.get_trials(deepcopy=False)
    complete = [trial for trial in trials if trial.state.name == "COMPLETE"]
    best = max(complete, key=lambda trial: trial.value, default=None)
    return {
        "source": config.source,
        "model": config.model,
        "best": None if best is None else {"number": best.number, "value": best.value, "settings": best.params},
        "states": {state: sum(t.state.name == state for t in trials) for state in ("COMPLETE", "PRUNED", "FAIL")},
        "trials": [{"number": t.number, "value": t.value, "state": t.state.name, "settings": t.params} for t in trials],
        "importance": importances(search),
        "reason": next((t.user_attrs["reason"] for t in trials if "reason" in t.user_attrs), ""),
        "missing": max(0, asked - len(counted(search))),
    }
