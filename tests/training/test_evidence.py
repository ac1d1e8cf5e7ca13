"""What recipes have reached, and the check that they still do."""

from __future__ import annotations

from pathlib import Path

import pytest

from weft.commands.main import dispatch
from weft.errors import WeftError
from weft.training.recipes import evidence, find
from weft.training.recipes.evidence import Change, Evidence, SeedRun
from weft.training.storage.record import read_record


def a_run(seed: int, score: float, curve: list[tuple[int, float]]) -> SeedRun:
    return SeedRun(seed, score, 100, 5.0, 1000, 60.0, 61.0, 1, "a processor", "", curve)


TWO = Evidence(
    "digits/mlp", "accuracy", "test", "", [a_run(0, 0.90, [(50, 0.7), (100, 0.9)]), a_run(1, 0.92, [(50, 0.8)])]
)


def test_a_figure_is_the_mean_with_the_spread_of_its_seeds() -> None:
    assert TWO.figure() == "91.0 ± 1.4 (2 seeds)"
    assert Evidence("", "accuracy", "test", "", TWO.runs[:1]).figure() == "90.0 (1 seed)"


def test_what_is_expected_at_a_step_comes_from_the_evaluations_before_it() -> None:
    assert TWO.expected(49) is None
    low, high = TWO.expected(60) or (0, 0)
    assert low < 0.7 - 0.02 and high > 0.8 + 0.02
    assert low > 0.3 and high < 1.2  # which still tells a network that has learnt nothing


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run of a recipe, kept as evidence."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(evidence, "FOLDER", tmp_path / "records")
    assert dispatch(["train", "--recipe", "digits/mlp", "--output", "first", "--threads", "1"]) == 0
    evidence.write_evidence("digits/mlp", [read_record(tmp_path / "first" / "record.json")], "nothing special")
    return tmp_path


def test_a_recipe_that_holds_and_one_that_does_not(kept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its first part follows the stored curve; a curve that no run of it takes is noticed."""
    assert dispatch(["recipes"]) == 0
    assert "accuracy" in capsys.readouterr().out
    part = ["recipes", "check", "digits/mlp", "--fraction", "0.5"]
    assert dispatch([*part, "--output", "half"]) == 0
    assert "digits/mlp holds" in capsys.readouterr().out
    assert not (kept / "half" / "record.json").exists()  # it stopped in the middle
    known = evidence.evidence_of("digits/mlp")
    assert known is not None
    lower = [(step, value - 0.5) for step, value in known.runs[0].curve]
    worse = Evidence("digits/mlp", "accuracy", "test", "", [a_run(0, 0.4, lower)])
    from dataclasses import asdict

    from weft.disk import write_json

    write_json(evidence.path_of("digits/mlp"), asdict(worse))
    assert dispatch([*part, "--output", "again"]) == 1
    assert "does NOT hold" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["recipes", "check", "digits/mlp", "--fraction", "0"], "--fraction"),
        (["recipes", "check", "digits/mlp", "--fraction", "0.0001"], "--fraction"),
        (["recipes", "check"], "NAME"),
        (["recipes", "list", "digits/mlp"], "show digits/mlp"),
        (["recipes", "show", "digits/mlpp"], "digits/mlp"),
    ],
)
def test_refused(words: list[str], named: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weft.commands.recipes.evidence_of", lambda name: TWO)
    with pytest.raises(WeftError, match=named):
        dispatch(words)


def test_evidence_is_of_recipes_that_there_are() -> None:
    """And of the network that the recipe names."""
    for file in evidence.FOLDER.glob("*.json"):
        names = [name for name in find() if evidence.path_of(name) == file]
        assert names, f"{file.name} belongs to no recipe"
        known = evidence.evidence_of(names[0])
        assert known is not None and known.recipe == names[0] and known.split == "test" and known.note


def test_changes_that_were_tried_stay_when_runs_are_kept_anew(kept: Path) -> None:
    known = evidence.evidence_of("digits/mlp")
    assert known is not None and known.changes == []
    tried = [Change("", 0.9, 3.0, 60.0), Change("without crops", 0.8, 3.0, 61.0)]
    evidence.write_changes(known, tried)
    again = evidence.write_evidence("digits/mlp", [read_record(kept / "first" / "record.json")], "something else")
    assert again == evidence.evidence_of("digits/mlp") and again.changes == tried
