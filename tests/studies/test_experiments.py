"""E1: counts beside the published ones. E11: claims whose sides differ as they say. F7: searches and maps."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import numpy as np
import pytest
from optuna.trial import TrialState

from weft.errors import WeftError
from weft.networks.registry import configured
from weft.studies.experiments import e11_training_issues
from weft.studies.experiments.e1_counts import specifications
from weft.studies.experiments.e11_training_issues import CLAIMS
from weft.studies.statistics.intervals import difference
from weft.studies.tune.space import apply, fail_dead_trials, open_search, parse_space, usable
from weft.studies.tune.worker_loop import counted, search
from weft.training.config import DurationConfig, RunConfig
from weft.training.run.inputs import open_data

CONFIG = RunConfig(source="digits", model="mlp", duration=DurationConfig(steps=6))


def test_e1_every_published_count_is_met_and_the_exact_ones_are_the_oracles():
    found = {line.name: line for line in specifications()}
    assert all(line.agrees is not False for line in found.values())
    assert found["mixer_b16_224"].parameters == 59_880_472
    assert found["gmlp_s16_224"].parameters == 19_422_656
    assert (found["mixer_s32_224"].token_hidden, found["mixer_s32_224"].hidden) == (256, 2048)


def test_e11_sides_of_one_name_are_one_configuration():
    sides: dict[str, object] = {}
    for claim in CLAIMS:
        for side in (claim.first, claim.second):
            assert sides.setdefault(side.name, side) == side
            assert configured("mlp", img_size=8, in_chans=1, num_classes=10, **side.network)
    assert len(CLAIMS) >= 11


def test_e11_verdicts_are_confirmed_refuted_or_not_shown():
    rng = np.random.default_rng(0)
    good, bad = rng.random((5, 200)) < 0.9, rng.random((5, 200)) < 0.5
    study = e11_training_issues.plan(Path("x"), facts_of_digits(), "digits", 5, 10, "")
    up, down = difference(good * 1.0, bad * 1.0), difference(bad * 1.0, good * 1.0)
    claim = CLAIMS[0]
    assert "confirmed" in e11_training_issues.in_words(claim, up, up.p, study)["sentence"]
    assert "refuted" in e11_training_issues.in_words(claim, down, down.p, study)["sentence"]
    assert "not shown" in e11_training_issues.in_words(claim, up, 0.5, study)["sentence"]
    assert "no verdict" in e11_training_issues.in_words(claim, None, 1.0, study)["sentence"]


def facts_of_digits():
    from studies.fabricated import facts

    return facts()


def test_f7_a_search_keeps_its_trials_and_goes_on(tmp_path: Path):
    data = open_data(CONFIG)
    address = str(tmp_path / "journal.log")
    assert search(address, "s", CONFIG, ["lr", "width"], 2, tmp_path, data) == 2
    assert search(address, "s", CONFIG, ["lr", "width"], 3, tmp_path, data) == 1  # the third only
    trials = open_search(address, "s").get_trials()
    assert len(trials) == 3 and all(trial.state in (TrialState.COMPLETE, TrialState.PRUNED) for trial in trials)
    assert len({trial.params["lr"] for trial in trials}) == 3
    assert (tmp_path / "trial-0002" / "record.json").is_file()


def test_f7_a_network_that_cannot_be_built_is_a_failed_trial_with_its_reason(tmp_path: Path):
    config = RunConfig(source="digits", model="mlp", duration=DurationConfig(steps=2), network={"hidden": [4]})
    data = open_data(config)
    (tmp_path / "trial-0000").write_text("in the way")
    search(str(tmp_path / "journal.log"), "s", config, ["lr"], 2, tmp_path, data)
    first, second = open_search(str(tmp_path / "journal.log"), "s").get_trials()
    assert first.state == TrialState.FAIL and "trial-0000" in first.user_attrs["reason"]
    assert second.state == TrialState.COMPLETE


def test_f7_trials_of_a_dead_worker_are_failed_and_do_not_count(tmp_path: Path):
    found = open_search(str(tmp_path / "journal.log"), "s")
    dead, living, elsewhere = found.ask(), found.ask(), found.ask()
    dead.set_user_attr("worker", f"{socket.gethostname()}:{2**22 + 1}")  # above the largest process number
    living.set_user_attr("worker", f"{socket.gethostname()}:{os.getpid()}")
    elsewhere.set_user_attr("worker", "another.host:1")
    assert fail_dead_trials(found) == 1
    assert [trial.state for trial in found.get_trials()] == [TrialState.FAIL, TrialState.RUNNING, TrialState.RUNNING]
    assert len(counted(found)) == 2


def test_f7_settings_go_where_they_belong():
    network = configured("mixer_nano_p4_32", img_size=8, patch_size=2)
    values = {
        "lr": 0.01,
        "weight_decay": 0.1,
        "batch_size": 32,
        "width": 0.5,
        "depth": 3,
        "drop_rate": 0.1,
        "flip": True,
    }
    config = apply(CONFIG, network, values)
    assert (config.optimisation.lr, config.optimisation.weight_decay, config.optimisation.batch_size) == (0.01, 0.1, 32)
    assert (config.network["dim"], config.network["depth"], config.network["drop_rate"]) == (64, 3, 0.1)
    assert config.augment.flip


def test_f7_settings_that_a_network_has_not_are_left_out():
    assert usable(["lr", "depth", "patch_size", "flip"], configured("mlp")) == ["lr", "flip"]
    assert usable(["lr", "depth", "patch_size", "flip"], configured("bert_tiny")) == ["lr", "depth"]
    with pytest.raises(WeftError, match="no setting 'speed'"):
        parse_space("lr,speed")
