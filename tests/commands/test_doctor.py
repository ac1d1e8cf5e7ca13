"""`weft doctor` tells what the machine is and can do, and touches nothing."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from weft.commands import doctor
from weft.commands.main import dispatch
from weft.training.run import rehearsal
from weft.training.run.rehearsal import Answer


@pytest.fixture(autouse=True)
def quick(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine on which bf16 crashes and fp16 is slow, a moment of timing, and an empty cache."""

    def child(words: list[str], limit: float) -> Answer:
        return Answer(False, why="a trial of it died by SIGILL") if "bf16" in words else Answer(True, ratio=3.0)

    monkeypatch.setattr(rehearsal, "child", child)
    monkeypatch.setattr(doctor, "SPEED_SECONDS", 0.02)
    monkeypatch.setenv("WEFT_CACHE", str(tmp_path / "cache"))
    return tmp_path


def test_it_is_text_to_paste(capsys: pytest.CaptureFixture[str], quick: Path) -> None:
    assert dispatch(["doctor"]) == 0
    said = capsys.readouterr().out
    assert all(word in said for word in ("torch", "cores", "GiB free", "SIGILL", "3.00 ×", "GFLOP/s", str(quick)))
    assert "missing: pip install 'weft[hub]'" in said or "hub: datasets" in said


def test_it_is_json_for_programs_and_writes_nothing(capsys: pytest.CaptureFixture[str], quick: Path) -> None:
    assert dispatch(["doctor", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert list(found) == ["weft", "machine", "number formats", "speed", "extras", "cache"]
    assert found["number formats"]["bf16"].startswith("not here")
    assert not list(quick.iterdir())


@pytest.mark.parametrize("flags", [[], ["--json"]], ids=["text", "JSON"])
def test_it_shows_no_secret(
    flags: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEFT_TOKEN", "opensesameopensesame")
    dispatch(["doctor", *flags])
    said = capsys.readouterr().out
    assert "opensesame" not in said and "WEFT_TOKEN=(set, not shown)" in said


def test_it_lists_what_was_tried_before(capsys: pytest.CaptureFixture[str]) -> None:
    rehearsal.try_format("bf16")
    dispatch(["doctor", "--json"])
    (tried,) = json.loads(capsys.readouterr().out)["cache"]["tried before"]
    assert "bf16" in tried and "SIGILL" in tried


def test_it_tries_anew_and_dates_what_was_tried_before(
    capsys: pytest.CaptureFixture[str], quick: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rehearsal.try_format("fp16")
    (stored,) = (quick / "cache").glob("*.json")
    os.utime(stored, (1e9 + 36000, 1e9 + 36000))  # noon of the day in most places
    monkeypatch.setattr(rehearsal, "child", lambda *_: Answer(True, ratio=0.5))
    dispatch(["doctor", "--json"])
    found = json.loads(capsys.readouterr().out)
    assert "0.50 ×" in found["number formats"]["fp16"]
    assert found["cache"]["tried before"] == ["format fp16 cpu strides: 3.00 × the time (2001-09-09)"]


def test_a_cache_that_cannot_be_used_is_told(capsys: pytest.CaptureFixture[str], quick: Path) -> None:
    (quick / "cache").write_text("a file in its place")
    assert dispatch(["doctor", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["cache"]["writable"] is False
