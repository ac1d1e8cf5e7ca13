"""Searches are kept in a journal file or in a database by its address; what is missing is told in a sentence."""

from __future__ import annotations

import os
from pathlib import Path

import optuna
import pytest

from weft.errors import WeftError
from weft.studies.tune.space import fail_dead_trials, open_search, open_storage

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
    with pytest.raises(WeftError, match=f"^postgresql:// needs a driver: pip install {package}$"):
        open_storage("postgresql://me:secret@host/db")


def test_a_database_that_cannot_be_opened_is_told_by_its_cause(tmp_path: Path) -> None:
    with pytest.raises(WeftError, match="unable to open database file"):
        open_storage(f"sqlite:///{tmp_path}/no/such/folder/search.db")
