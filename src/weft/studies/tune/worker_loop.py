"""One trial of a search after the other, in a worker process."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Any

import torch

from weft.errors import WeftError
from weft.studies.engine.data_facts import data_of
from weft.studies.tune.space import SPACE, apply, counted, open_search, usable
from weft.training.config import RunConfig
from weft.training.loop.display import Silent
from weft.training.loop.progress import Progress
from weft.training.run import lifecycle
from weft.training.run.inputs import Opened, size_network


class Reporter(Silent):
    """Tells Optuna every evaluation on the validation split, and stops a trial that it gives up."""

    def __init__(self, trial: Any) -> None:
        self.trial, self.count, self.best = trial, 0, float("-inf")

    def point(self, progress: Progress, event: dict[str, Any]) -> None:
        if event["kind"] != "evaluation":
            return
        self.best = max(self.best, event["validation_metric"])
        self.trial.report(event["validation_metric"], self.count)
        self.count += 1
        if self.trial.should_prune():
            import optuna

            raise optuna.TrialPruned


def do_trials(address: str, name: str, config: RunConfig, space: list[str], total: int, folder: Path) -> int:
    """Do trials until the search has `total`; returns how many this worker did."""
    torch.set_num_threads(config.execution.threads or 1)
    data = data_of(config)
    study = open_search(address, name)
    network = size_network(config, *data)
    space = usable(space, network)
    done = 0
    while len(counted(study)) < total:
        trial = study.ask()
        trial.set_user_attr("worker", f"{socket.gethostname()}:{os.getpid()}")
        values = {name: SPACE[name].draw(trial, name) for name in space}
        value, state = run_trial(trial, apply(config, network, values), folder, data)
        study.tell(trial, value, state)
        done += 1
    return done


def run_trial(trial: Any, config: RunConfig, folder: Path, data: Opened) -> tuple[float | None, Any]:
    """Train one trial: its value and state. A network that cannot be built, or diverges, is a failed trial."""
    import optuna
    from optuna.trial import TrialState

    reporter = Reporter(trial)
    try:
        outcome = lifecycle.start(config, folder / f"trial-{trial.number:04d}", reporter, data)
    except optuna.TrialPruned:
        return None, TrialState.PRUNED
    except WeftError as error:
        trial.set_user_attr("reason", str(error))
        return None, TrialState.FAIL
    if outcome.record is None:
        raise KeyboardInterrupt
    return reporter.best, TrialState.COMPLETE
