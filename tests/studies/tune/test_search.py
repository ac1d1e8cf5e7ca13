"""F7: a search keeps its trials and goes on, in a journal file or a database; what is missing is a sentence."""

from __future__ import annotations

import os
import socket
from dataclasses import replace
from pathlib import Path

import optuna
import pytest
from optuna.trial import TrialState

from weft.commands.main import dispatch
from weft.errors import WeftError
from weft.networks.registry import configured
from weft.report.tuning import caveat
from weft.studies.results.reproduce import command_of
from weft.studies.tune.driver import tune
from weft.studies.tune.space import apply, counted, fail_dead_trials, open_search, open_storage, parse_space, usable
from weft.training.config import DurationConfig, ExecutionConfig, RunConfig
from weft.training.storage.run_folder import RunFolder

CONFIG = RunConfig(source="digits", model="mlp", duration=DurationConfig(steps=6))
DATABASE = os.environ.get("WEFT_POSTGRESQL", "")  # such as postgresql://user@host/name, for those who have one


def search_and_find_again(address: str) -> None:
    """A trial that ends, one whose worker dies, and the same search opened anew."""
    first = open_search(address, "digits-mlp-rate")
    trial = first.ask()
    trial.suggest_float("rate", 1e-4, 1e-2, log=True)
    first.tell(trial, 0.9)
    first.ask().set_user_attr("worker", f"{os.uname().nodename}:{2**22 + 1}")  # no process has this number
    again = open_search(address, "digits-mlp-rate")
    assert again.best_value == 0.9
    assert fail_dead_trials(again) == 1
    assert [t.state.name for t in open_search(address, "digits-mlp-rate").get_trials()] == ["COMPLETE", "FAIL"]


def test_a_journal_file_and_a_database_keep_a_search(tmp_path: Path) -> None:
    search_and_find_again(str(tmp_path / "folder" / "journal.log"))
    search_and_find_again(f"sqlite:///{tmp_path / 'search.db'}")


@pytest.mark.parametrize(
    "content", ["[" * 100_000 + "\n{}\n", "{}\n{}\n", "3\n4\n", '{"op_code": "x"}\n{}\n', "\x00\n1\n"]
)
def test_a_damaged_journal_is_a_sentence(tmp_path: Path, content: str) -> None:
    (tmp_path / "journal.log").write_text(content)
    with pytest.raises(WeftError, match=r"journal.log is damaged"):
        open_search(str(tmp_path / "journal.log"), "digits-mlp-rate")


def test_a_worker_that_is_about_to_die_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    search = open_search(str(tmp_path / "journal.log"), "s")
    search.ask().set_user_attr("worker", f"{os.uname().nodename}:{os.getpid()}")
    assert fail_dead_trials(search, patience=0.1) == 0
    answers = iter([True, True, False, False])
    monkeypatch.setattr("weft.studies.tune.space.is_running", lambda _: next(answers))
    assert fail_dead_trials(search, patience=5.0) == 1


@pytest.mark.skipif(not DATABASE, reason="WEFT_POSTGRESQL names no database")
def test_a_postgresql_server_keeps_a_search() -> None:
    if "digits-mlp-rate" in optuna.get_all_study_names(DATABASE):
        optuna.delete_study(study_name="digits-mlp-rate", storage=DATABASE)
    search_and_find_again(DATABASE)


@pytest.mark.parametrize(
    ("module", "package"),
    [("psycopg", r"'psycopg\[binary\]'"), ("psycopg2", "psycopg2-binary"), ("oracledb", "oracledb")],
)
def test_a_missing_driver_is_named_without_the_password(
    module: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(_: str) -> None:
        raise ImportError("Failed to import DB access module") from ModuleNotFoundError(name=module)

    monkeypatch.setattr(optuna.storages, "get_storage", missing)
    with pytest.raises(WeftError, match=f"^postgresql:// .* {package}$"):
        open_storage("postgresql://me:secret@host/db")


def test_a_database_that_cannot_be_opened_is_told_by_its_cause(tmp_path: Path) -> None:
    with pytest.raises(WeftError, match="unable to open database file"):
        open_storage(f"sqlite:///{tmp_path}/no/such/folder/search.db")


def searched(folder: Path, config: RunConfig, space: list[str], trials: int) -> list[optuna.trial.FrozenTrial]:
    """The trials of a search after it was told to have so many."""
    tune(config, space, trials, folder, None, 1, lambda _: None)
    return list(open_search(str(folder / "journal.log"), f"digits-mlp-{'-'.join(space)}").get_trials())


@pytest.mark.usefixtures("quick_workers")
def test_a_search_keeps_its_trials_and_goes_on(tmp_path: Path):
    before = searched(tmp_path, CONFIG, ["lr", "width"], 2)
    trials = searched(tmp_path, CONFIG, ["lr", "width"], 3)  # the third only
    assert [trial.params for trial in before] == [trial.params for trial in trials[:2]]
    assert len(trials) == 3 and all(trial.state in (TrialState.COMPLETE, TrialState.PRUNED) for trial in trials)
    assert len({trial.params["lr"] for trial in trials}) == 3
    assert (tmp_path / "trials" / "trial-0002" / "record.json").is_file()


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.usefixtures("quick_workers")
def test_a_trial_has_the_threads_that_were_asked_for(threads: int, tmp_path: Path):
    searched(tmp_path, replace(CONFIG, execution=ExecutionConfig(threads=threads)), ["lr"], 1)
    trial = RunFolder(tmp_path / "trials" / "trial-0000")
    plan, record = trial.plan(), trial.record()
    assert trial.config().execution.threads == threads and plan is not None and plan.threads == threads
    assert f"--threads {threads}" in command_of(record)


@pytest.mark.usefixtures("quick_workers")
def test_a_run_that_is_refused_is_a_failed_trial_with_its_reason(tmp_path: Path):
    config = RunConfig(source="digits", model="mlp", duration=DurationConfig(steps=2), network={"hidden": [4]})
    (tmp_path / "trials").mkdir()
    (tmp_path / "trials" / "trial-0000").write_text("in the way")
    first, second = searched(tmp_path, config, ["lr"], 2)
    assert first.state == TrialState.FAIL and "trial-0000" in first.user_attrs["reason"]
    assert second.state == TrialState.COMPLETE


def test_trials_of_a_dead_worker_are_failed_and_do_not_count(tmp_path: Path):
    found = open_search(str(tmp_path / "journal.log"), "s")
    dead, living, elsewhere = found.ask(), found.ask(), found.ask()
    dead.set_user_attr("worker", f"{socket.gethostname()}:{2**22 + 1}")  # above the largest process number
    living.set_user_attr("worker", f"{socket.gethostname()}:{os.getpid()}")
    elsewhere.set_user_attr("worker", "another.host:1")
    assert fail_dead_trials(found) == 1
    assert [trial.state for trial in found.get_trials()] == [TrialState.FAIL, TrialState.RUNNING, TrialState.RUNNING]
    assert len(counted(found)) == 2


def test_settings_go_where_they_belong():
    network = configured("mixer_nano_p4_32", img_size=8, patch_size=2)
    values = {
        "lr": 0.01,
        "weight_decay": 0.1,
        "batch_size": 32,
        "width": 0.5,
        "depth": 3,
        "drop_rate": 0.1,
        "smoothing": 0.0,
        "flip": True,
    }
    config = apply(CONFIG, network, values)
    assert (config.optimisation.lr, config.optimisation.weight_decay, config.optimisation.batch_size) == (0.01, 0.1, 32)
    assert (config.network["dim"], config.network["depth"], config.network["drop_rate"]) == (64, 3, 0.1)
    assert config.augment.flip and config.objective.smoothing == 0.0


def test_settings_that_a_network_has_not_are_left_out():
    assert usable(["lr", "depth", "patch_size", "flip"], configured("mlp")) == ["lr", "flip"]
    assert usable(["lr", "depth", "patch_size", "flip"], configured("bert_tiny")) == ["lr", "depth"]
    with pytest.raises(WeftError, match="no setting 'speed'"):
        parse_space("lr,speed")


def test_what_a_search_prints_is_explained(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """How far importance can be relied on, what a width is, the winner on unseen rows, and how to train it."""
    words = ["tune", "digits", "--model", "mlp", "--steps", "6", "--trials", "3", "--space", "lr,width"]
    assert dispatch([*words, "--threads", "1", "--output", str(tmp_path / "search")]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "times the named width" in printed
    assert "on the test split, which had no part in the choice: accuracy 0." in printed
    command = printed.partition("train it anew: ")[2].partition(" the network: ")[0]
    assert command.startswith("weft train digits --model mlp --network") and "--lr 0.0" in command
    assert caveat({"states": {"COMPLETE": 6}, "importance": {"lr": 0.5, "width": 0.5}}).startswith("a hint at best")
    assert caveat({"states": {"COMPLETE": 20}, "importance": {"lr": 0.5, "width": 0.5}}) == "from 20 trials"
