"""Trials whose workers are made up: every loss is a failed trial with its reason, and the search goes on to its end."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from weft.errors import WeftError
from weft.networks.registry import configured
from weft.studies.engine.runner import Pool
from weft.studies.engine.worker import WorkerDied
from weft.studies.tune import driver, rate_width_map
from weft.studies.tune.space import open_search
from weft.studies.tune.trial_runs import Trials
from weft.training.config import DurationConfig, ExecutionConfig, RunConfig

CONFIG = RunConfig(source="digits", model="mlp", duration=DurationConfig(steps=6))
OUT_OF_MEMORY = WorkerDied(-9, "its node ran out of memory in each of 4 tries")


class Scripted:
    """A worker that answers what its script says."""

    def __init__(self, script: list[Any]) -> None:
        self.script = script
        self.asked: list[tuple[Any, ...]] = []

    def ask(self, *arguments: Any, log: Path) -> None:
        self.asked.append(arguments)

    def answer(self) -> Any:
        answer = self.script.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


class ScriptedPool(Pool):
    """One worker; a dead one is replaced by another that goes on with the script."""

    def __init__(self, *script: Any, refused: Iterable[int] = ()) -> None:
        self.script, self.refused = list(script), set(refused)
        self.workers: list[Any] = [Scripted(self.script)]
        self.made, self.prepared = list(self.workers), []

    def ready(self, busy: Any, _: float | None) -> list[Any]:
        assert set(busy) <= set(self.workers), "a dead worker was asked"
        return list(busy)

    def prepare(self, configs: Any) -> None:
        self.prepared += configs
        if len(self.prepared) - 1 in self.refused:
            raise WeftError("no node can hold it")

    def replace(self, dead: Any) -> Any:
        self.workers = [Scripted(self.script)]
        self.made += self.workers
        return self.workers[0]


def reasons(pool: Pool, folder: Path, trials: int) -> list[str]:
    """Why the trials of a search failed."""
    search = open_search(str(folder / "journal.log"), "s")
    log = folder / "log.txt"
    Trials(pool, search, CONFIG, configured("mlp"), ["lr"], trials, folder / "trials", log, lambda _: None).run_trials()
    return [trial.user_attrs["reason"] for trial in search.get_trials()]


def test_trials_that_run_out_of_memory_are_failed_with_that_reason_and_the_search_goes_on(tmp_path: Path) -> None:
    pool = ScriptedPool(OUT_OF_MEMORY, OUT_OF_MEMORY, "failed")
    assert reasons(pool, tmp_path, 3) == [str(OUT_OF_MEMORY), str(OUT_OF_MEMORY), "failed"]
    assert "ran out of memory in each of 4 tries" in str(OUT_OF_MEMORY) and len(pool.made) == 3


def test_a_trial_that_another_process_still_has_is_asked_for_again(tmp_path: Path) -> None:
    pool = ScriptedPool("held", "held", "failed")
    assert reasons(pool, tmp_path, 1) == ["failed"]
    assert len({arguments[2] for arguments in pool.workers[0].asked}) == 1 and len(pool.workers[0].asked) == 3


def test_every_trial_is_prepared_and_what_no_node_can_hold_is_a_failed_one(tmp_path: Path) -> None:
    pool = ScriptedPool("failed", "failed", refused=[1])
    assert reasons(pool, tmp_path, 3) == ["failed", "no node can hold it", "failed"]
    assert len({config.optimisation.lr for config in pool.prepared}) == 3


class Stop(Exception):
    """Enough is seen."""


@pytest.mark.parametrize("cuda", [True, False])
def test_searches_and_maps_ask_a_cluster_for_gpus_and_for_nodes_of_one_kind(
    cuda: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def opened(*asked: Any) -> None:
        assert asked[5:7] == (cuda, cuda)
        raise Stop

    duration = DurationConfig(time="9s") if cuda else DurationConfig(steps=6)
    config = RunConfig(
        source="digits", model="mlp", duration=duration, execution=ExecutionConfig(device="cuda" if cuda else "cpu")
    )
    monkeypatch.setattr(driver, "open_pool", opened)
    monkeypatch.setattr(rate_width_map, "open_pool", opened)
    with pytest.raises(Stop):
        driver.tune(config, ["lr"], 1, tmp_path, None, None, lambda _: None, "ray")
    with pytest.raises(Stop):
        rate_width_map.map_rates(config, ["mlp"], tmp_path, lambda _: None, "ray")
