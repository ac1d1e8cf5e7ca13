"""Keys: what makes two runs the same run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from studies.fabricated import make_study
from weft.studies.compare.rate_search import rates
from weft.studies.engine.study import Job
from weft.training.config import DurationConfig, ExecutionConfig, ObjectiveConfig, RunConfig

CONFIG = RunConfig(source="digits", model="mlp", duration=DurationConfig(steps=10))


def test_a_key_depends_on_what_decides_a_result_but_not_on_threads_and_prices():
    job = Job("mlp", CONFIG, "data")
    same = Job("mlp", replace(CONFIG, execution=ExecutionConfig(threads=2, price_per_hour=3.0)), "data")
    computed = [{"precision": "bf16"}, {"compile": False}, {"device": "cpu"}, {"eval_every": 2}]
    others = [
        *(Job("mlp", replace(CONFIG, execution=ExecutionConfig(**change)), "data") for change in computed),
        Job("mlp", replace(CONFIG, seed=1), "data"),
        Job("mlp", replace(CONFIG, network={"hidden": [3]}), "data"),
        Job("mlp", replace(CONFIG, duration=DurationConfig(steps=11)), "data"),
        Job("mlp", CONFIG, "other data"),
    ]
    assert job.key == same.key
    assert len({job.key, *(other.key for other in others)}) == 9


def test_no_smoothing_given_is_no_smoothing_where_steps_are_and_may_be_some_where_they_are_not():
    """So that runs of studies which were begun when 0 was written for it are found again."""

    def key(smoothing: float | None, duration: DurationConfig) -> str:
        return Job(
            "mlp", replace(CONFIG, objective=ObjectiveConfig(smoothing=smoothing), duration=duration), "data"
        ).key

    assert key(None, CONFIG.duration) == key(0.0, CONFIG.duration) != key(0.1, CONFIG.duration)
    for open_ended in (DurationConfig(), DurationConfig(time="5m")):
        assert key(None, open_ended) != key(0.0, open_ended)


def test_names_of_folders_are_safe():
    for candidate in ("mlp/4", "mlp×4", "../up", "a b"):
        assert set(Job(candidate, CONFIG, "x").name) <= set("abcdefghijklmnopqrstuvwxyz0123456789-_+")


def test_a_damaged_record_is_made_anew(tmp_path: Path):
    study = make_study(tmp_path, {"mlp": 0.9})
    job = study.jobs[0]
    assert study.done(job) and study.finished(job)
    (study.run_folder(job).path / "record.json").write_text('{"stat')
    assert not study.done(job)


def test_rates_are_spread_evenly_around_the_usual_one():
    assert rates("adamw", "vit_nano_p4_32", 3) == [0.000949, 0.003, 0.00949]
    assert rates("adamw", "mlp", 1) == [0.003]
    assert rates("muon", "vit_nano_p4_32", 3) == [0.00316, 0.01, 0.0316]
    assert rates("muon", "mlp", 1) == [0.003], "at 0.01 plain perceptrons learn less"
    assert len(set(rates("sgd", "mlp", 5))) == 5
