"""The runs of E4 to E7: which there are, what each starts from, how many steps a budget is; all without training."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from studies.experiments.text_tables.fabricated import FACTS, make
from weft.errors import WeftError
from weft.studies.experiments.text_tables.design import PERPLEXITY
from weft.studies.experiments.text_tables.forecast import Prediction
from weft.studies.experiments.text_tables.jobs import Known
from weft.studies.experiments.text_tables.run_configs import Asked, at_scale, named_tasks
from weft.studies.experiments.text_tables.run_experiment import plan_experiment
from weft.studies.experiments.text_tables.scales import SCALES
from weft.studies.experiments.text_tables.tables import EXPERIMENTS
from weft.studies.experiments.text_tables.timing import pretraining_steps, timeable
from weft.studies.results.load import collect
from weft.training.finetuning.config import FinetuneConfig
from weft.training.pretraining.config import PretrainConfig

TASK = replace(FACTS, name="sst2", task="binary", fingerprint="a" * 32)


def asked(name: str, folder: str = "x", **changes) -> Asked:
    experiment = EXPERIMENTS[name]
    scale = at_scale(experiment, SCALES["cpu"], None, changes.pop("time", None))
    tasks = named_tasks(experiment, "pydocs", ("data/sst2",))
    return Asked(experiment, scale, "pydocs", Path(folder), 2, "", print, tasks, **changes)


def jobs(question: Asked):
    prediction = Prediction(question.experiment.name, "cpu", question.decides(), 100, {}, 1, 1, 0.1)
    return plan_experiment(question, prediction, Known(FACTS, dict.fromkeys(question.tasks, TASK)))


def test_e4_has_a_pre_training_run_for_every_gate_and_seed():
    study, (first, second) = jobs(asked("e4"))
    gates = ("linear", "additive", "multiplicative", "split")
    assert [(job.candidate, job.seed) for job in first[:4]] == [(name, 0) for name in gates]
    assert len(first) == 8 and not second
    assert all(isinstance(job.config, PretrainConfig) and job.config.duration.steps == 100 for job in study.jobs)
    assert len({job.config.execution.compile for job in first}) == 1


def test_e5_fine_tunes_every_network_from_the_pre_training_of_its_own_seed(tmp_path: Path):
    study, (first, second) = jobs(asked("e5", str(tmp_path)))
    assert len(first) == len(second) == 12
    names = {(job.candidate, job.seed): job.name for job in first}
    for job in second:
        assert job.part == "sst2" and job.after == names[job.candidate, job.seed]
        placed = study.placed(job)
        assert isinstance(placed, FinetuneConfig) and placed.start == str(tmp_path.resolve() / "runs" / job.after)
        assert not placed.thawing.frozen and placed.model == ""


def test_e6_stands_on_an_encoder_trained_once_or_on_the_one_given():
    _, (first, second) = jobs(asked("e6"))
    assert [(job.candidate, job.seed) for job in first] == [("encoder", 0)]
    starts = {job.candidate: job.after for job in second}
    assert starts.pop("gmlp") == "" and set(starts.values()) == {first[0].name}
    _, (first, second) = jobs(asked("e6", encoder="minilm"))
    assert not first
    config = next(job.config for job in second if job.candidate == "linear probe on trained")
    assert (
        isinstance(config, FinetuneConfig) and config.thawing.frozen and config.start == "minilm" and not config.model
    )


def test_e7_mixes_rows_on_an_encoder_and_rows_of_their_own():
    _, (first, second) = jobs(asked("e7"))
    assert {job.candidate for job in first} == {"encoder", "gmlp", "amlp", "bert"}
    frozen = {job.candidate for job in second if isinstance(job.config, FinetuneConfig) and job.config.thawing.frozen}
    assert frozen == {job.candidate for job in second if "on trained" in job.candidate}


def test_a_study_may_be_moved_its_runs_keep_their_names(tmp_path: Path):
    here, there = jobs(asked("e5", str(tmp_path)))[0], jobs(asked("e5", "elsewhere"))[0]
    assert [job.name for job in here.jobs] == [job.name for job in there.jobs]


def test_a_budget_is_the_mean_time_of_a_run_and_gives_all_rows_equal_steps():
    question = asked("e4", time="100s")
    costs = {("linear", PERPLEXITY): (0.1, 1.0), ("split", PERPLEXITY): (0.3, 1.0), ("split", "sst2"): (9.0, 9.0)}
    assert pretraining_steps(question, costs) == int((100 - 8) / 0.2)
    assert pretraining_steps(replace(question, scale=replace(question.scale, steps=7)), costs) == 7
    with pytest.raises(WeftError, match=r"--pretrain-time 1s .* 10s"):
        pretraining_steps(asked("e4", time="1s"), costs)


def test_every_part_can_be_timed_before_anything_is_trained():
    question = asked("e7")
    parts = timeable(question, Known(FACTS, {"sst2": TASK}))
    _, (first, second) = jobs(question)
    assert set(parts) == {(job.candidate, job.part) for job in [*first, *second]}


def test_tasks_are_known_by_the_names_of_their_columns():
    assert named_tasks(EXPERIMENTS["e5"], "pydocs", ("data/sst2", "data/mnli_subset")) == {
        "sst2": "data/sst2",
        "mnli": "data/mnli_subset",
    }
    assert named_tasks(EXPERIMENTS["e5"], "pydocs", ()) == {"pydocs": "pydocs"}
    assert named_tasks(EXPERIMENTS["e4"], "pydocs", ()) == {}
    with pytest.raises(WeftError, match="twice"):
        named_tasks(EXPERIMENTS["e5"], "pydocs", ("a/sst2", "b/sst2"))


def test_a_leaderboard_leaves_perplexities_out_and_says_so(tmp_path: Path):
    make(tmp_path, {"split": 4.0}, seeds=1)
    found = collect(tmp_path)
    assert not any(result.finished for result in found.results)
    assert any("judged by its perplexity" in problem for problem in found.problems)
