"""The trials of a search, one a worker: this process alone asks Optuna for settings and tells it what came of them.

A trial is a run in a folder like any other, wherever it is computed. Its curve is read from that folder while it
trains, so that one that falls behind the others is stopped.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from weft.errors import WeftError, WorkFailed
from weft.networks.config import NetworkConfig
from weft.studies.engine import tasks
from weft.studies.engine.runner import Pool
from weft.studies.engine.worker import TaskFailed, Worker, WorkerDied
from weft.studies.tune.space import SPACE, apply, counted, usable
from weft.training.config import RunConfig
from weft.training.storage.metrics_log import read_events
from weft.training.storage.record import best_validation
from weft.training.storage.run_folder import RunFolder

LOOKING = 0.5  # seconds between two looks at the curves of trials


@dataclass
class Trial:
    """A trial that is under way."""

    asked: Any
    """as Optuna has it"""
    folder: RunFolder
    config: RunConfig
    reported: int = 0
    given_up: bool = False

    def report(self) -> None:
        """Tell Optuna every evaluation on the validation split that is new."""
        points = [event for event in read_events(self.folder.metrics) if event["kind"] == "evaluation"]
        for number in range(self.reported, len(points)):
            self.asked.report(points[number]["validation_metric"], number)
        self.reported = max(self.reported, len(points))

    def stop_if_behind(self, worker: Worker) -> None:
        """Stop a trial that Optuna gives up."""
        before = self.reported
        self.report()
        if self.reported > before and not self.given_up and self.asked.should_prune():
            self.given_up = True
            worker.terminate()


@dataclass
class Trials:
    """A search that goes on until it has `total` trials."""

    pool: Pool
    search: Any
    config: RunConfig
    network: NetworkConfig
    """the named network, sized to the data"""
    space: list[str]
    total: int
    folder: Path
    log: Path
    say: Callable[[str], None]
    under_way: dict[Worker, Trial] = field(default_factory=dict)

    def run_trials(self) -> None:
        """Keep all workers busy; one that dies is told, and the others go on."""
        names = usable(self.space, self.network)
        idle = list(self.pool.workers)
        while True:
            while idle and len(counted(self.search)) < self.total:
                if self.begin(idle[-1], names):
                    idle.pop()
            if not self.under_way:
                return
            ready = self.pool.ready(self.under_way, LOOKING)
            for worker, trial in self.under_way.items():
                if worker not in ready:
                    trial.stop_if_behind(worker)
            idle += [free for worker in ready if (free := self.end(worker)) is not None]

    def begin(self, worker: Worker, names: list[str]) -> bool:
        """Draw settings and hand the run over; one that no machine can hold is a failed trial at once."""
        asked = self.search.ask()
        asked.set_user_attr("worker", f"{socket.gethostname()}:{os.getpid()}")
        values = {name: SPACE[name].draw(asked, name) for name in names}
        folder = RunFolder(self.folder / f"trial-{asked.number:04d}")
        self.under_way[worker] = trial = Trial(asked, folder, apply(self.config, self.network, values))
        try:
            self.pool.prepare([trial.config])
        except WeftError as error:
            if isinstance(error, WorkFailed):
                raise
            self.fail(self.under_way.pop(worker), str(error))
            return False
        self.hand_over(worker, trial)
        return True

    def hand_over(self, worker: Worker, trial: Trial) -> None:
        worker.ask(tasks.run_one, trial.config, trial.folder.path, None, log=self.log)
        self.under_way[worker] = trial

    def end(self, worker: Worker) -> Worker | None:
        """Tell what came of a trial; a network that cannot be built, diverges or takes its process with it is a failed
        one with its reason.

        Returns the worker that can do another; none where the trial goes on.
        """
        trial = self.under_way.pop(worker)
        try:
            status = worker.answer()
        except WorkerDied as death:
            self.say(f"a worker was lost: {death}")
            self.fail(trial, str(death))
            return self.pool.replace(worker)
        except TaskFailed as failure:
            self.fail(trial, str(failure))
            if not failure.refused:
                raise WorkFailed(f"{failure} (see {self.log})") from failure
            return worker
        if status == "held" and not trial.given_up:  # by a process that was lost and is about to end
            self.hand_over(worker, trial)
            return None
        self.tell(trial, status)
        return worker

    def tell(self, trial: Trial, status: str) -> None:
        """How a run ended, in Optuna's words."""
        from optuna.trial import TrialState

        record = trial.folder.record() or {}
        if status == "finished":
            trial.report()
            self.search.tell(trial.asked, best_validation(record), TrialState.COMPLETE)
        elif status == "failed":
            self.fail(trial, str(record.get("reason", "failed")))
        elif trial.given_up:
            self.search.tell(trial.asked, state=TrialState.PRUNED)
        else:
            self.fail(trial)
            raise KeyboardInterrupt

    def fail(self, trial: Trial, reason: str = "") -> None:
        """Mark a trial failed; without a reason of its own it does not count, and another takes its place."""
        from optuna.trial import TrialState

        if reason:
            trial.asked.set_user_attr("reason", reason)
        self.search.tell(trial.asked, state=TrialState.FAIL)

    def leave(self) -> None:
        """Fail what is still under way."""
        for trial in self.under_way.values():
            self.fail(trial)
        self.under_way.clear()
