"""Drives a search of settings: where it is computed, dead trials, what came out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from weft.disk import mark
from weft.errors import Interrupted
from weft.studies.engine import tasks
from weft.studies.engine.folder_lock import driving
from weft.studies.engine.place import open_pool
from weft.studies.engine.runner import Say, stop
from weft.studies.tune.space import counted, fail_dead_trials, open_search
from weft.studies.tune.trial_runs import Trials
from weft.studies.tune.trials import summary
from weft.terminal import how_many
from weft.training.config import RunConfig

ORPHANS = 2.0  # seconds for a search that was killed a moment ago


def tune(
    config: RunConfig,
    space: list[str],
    trials: int,
    folder: Path,
    storage: str | None,
    workers: int | None,
    say: Say,
    on: str | None = None,
) -> dict[str, Any]:
    """Search, or go on with a search, until it has `trials`; returns what `summary` finds."""
    address = storage or str(folder / "journal.log")
    name = f"{Path(config.source).name}-{config.model}-{'-'.join(space)}"
    timed = config.duration.time is not None
    asked = config.execution
    with driving(folder), open_pool(on, folder, say, workers, asked.threads, asked.device == "cuda", timed) as pool:
        network = pool.first(tasks.sized_network, config)
        mark(folder)
        search = open_search(address, name)
        if dead := fail_dead_trials(search, ORPHANS):
            say(f"left running by a process that died, and marked failed: {how_many(dead, 'trial')}")
        threads = asked.threads or max(1, pool.cores // len(pool.workers))
        config = replace(config, execution=replace(asked, threads=threads))
        log = folder / "log.txt"
        await_trials(Trials(pool, search, config, network, space, trials, folder / "trials", log, say))
    return summary(search, config.source, config.model, trials)


def await_trials(trials: Trials) -> None:
    """Carry out the trials; where that ends early, none is left running."""
    try:
        trials.run_trials()
    except KeyboardInterrupt:
        stop(trials.pool.workers)
        trials.leave()
        done = len(counted(trials.search))
        raise Interrupted(f"interrupted after {done} of {trials.total} trials: the same command goes on") from None
    finally:
        trials.leave()
