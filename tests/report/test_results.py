"""Pages of results: each is drawn from its record, and from nothing else."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from weft.commands.main import dispatch
from weft.report.results.drawing import KINDS, draw_all, page
from weft.report.results.tables import front
from weft.studies.experiments.records import anywhere, of_table, recipes_record
from weft.training.recipes import evidence
from weft.training.recipes.evidence import Change, Evidence, SeedRun

COMMITTED = Path(__file__).parents[2] / "docs" / "results"


def test_the_committed_pages_are_those_of_their_records(tmp_path: Path) -> None:
    for path in COMMITTED.glob("*.json"):
        shutil.copy(path, tmp_path)
    drawn = list(draw_all(tmp_path, {"recipes": recipes_record()}))
    assert "e2.md" in {path.name for path in drawn}
    for path in drawn:
        assert path.read_bytes() == (COMMITTED / path.name).read_bytes(), f"{path.name}: run `weft study draw`"


def candidate(name: str, group: str, score: float | None) -> dict[str, Any]:
    ends = {"low": None, "high": None} if score is None else {"low": score - 0.01, "high": score + 0.01}
    return {"name": name, "group": group, "score": score, **ends, "seeds": 3, "steps": 800, "parameters": 12_345}


def test_comparisons_on_several_sets_are_one_page() -> None:
    rows = [
        candidate("lite0+probe", "trained", 0.82),
        candidate("resnet", "family", 0.4),
        candidate("identity", "control", 0.5),
        candidate("hog", "classical", 0.45),
        candidate("vit", "family", None),
    ]
    one = {
        "title": "Pets | 96 px",
        "seconds": 903.0,
        "first": 120.0,
        "processor": "a processor",
        "cores": 1,
        "commit": "abcdef1",
        "overhead": "80% went into training",
        "budget": "15 min",
        "rows": rows,
        "verdicts": ["pre-training helps"],
        "recommendation": "lite0+probe: it is the best",
    }
    record = {"study": "compare", "kind": "comparisons", "command": "weft compare PATH", "sets": {"pets": one}}
    text = page(record, "compare")
    line = next(line for line in text.splitlines() if line.startswith("| Pets"))
    assert line == (
        "| Pets \\| 96 px | 15:03 min | 2:00 min | lite0+probe 82.0 % (81.0…83.0) | resnet 40.0 % (39.0…41.0) | "
        "hog 45.0 % (44.0…46.0) | lite0+probe |"
    )
    assert "\n15 min; a processor, 1 core; commit abcdef1; 80% went into training.\n" in text
    assert "| vit | failed | 3 | 800 | 12,345 |" in text and "- pre-training helps" in text


def test_recipes_are_drawn_from_the_evidence_that_is_kept_with_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(evidence, "FOLDER", tmp_path / "records")
    assert recipes_record() == {}
    runs = [
        SeedRun(seed, 0.9 + seed / 50, 100, 5.0, 1000, 60.0, 61.0, 1, "a processor", "", [(50, 0.7), (100, 0.9)])
        for seed in range(2)
    ]
    tried = [Change("", 0.9, 1.25, 60.0), Change("no crops", 0.885, 1.25, 61.0)]
    known = Evidence("digits/mlp", "accuracy", "test", "what mattered", runs, tried)
    monkeypatch.setattr(evidence, "evidence_of", lambda name: known if name == "digits/mlp" else None)
    shutil.copy(COMMITTED / "e1.json", tmp_path)
    assert dispatch(["study", "draw", "--results", str(tmp_path)]) == 0
    drawn = [Path(line).name for line in capsys.readouterr().out.split()]
    assert drawn == ["e1.md", "recipes.md", "recipes-digits-mlp.svg"]
    text = (tmp_path / "recipes.md").read_text()
    assert "| digits/mlp | mlp, 1,000 | test | 91.0 ± 1.4 (2 seeds) | 90.00, 92.00 | 5 | 60 s | a processor |" in text
    assert "| as it is | 90.00 % | +0.00 | 1 min |" in text and "| no crops | 88.50 % | -1.50 | 1 min |" in text
    assert "what mattered" in text and "(recipes-digits-mlp.svg)" in text


def test_rows_that_are_for_reference_alone_are_kept_with_their_published_figures() -> None:
    row = {"name": "ours", "parameters": 5, "seeds": 2, "published": {"sst2": None, "mnli": 80.0}}
    row["measured"] = {"mnli": {"mean": 71.23456789, "low": 70.0, "high": 72.0}}
    summary = dict.fromkeys(("question", "scale", "source", "budget", "command", "conclusion", "time"), "")
    lists: dict[str, Any] = {"notes": [], "problems": ["a run failed"], "orderings": [{"sentence": "it holds"}]}
    lists |= {"rows": [row], "reference": [{"name": "theirs", "published": {"mnli": 86.7}}], "quantities": ["mnli"]}
    record = of_table({**summary, **lists, "experiment": "e5", "table": 7, "environment": {}})
    assert record["rows"][0]["measured"]["mnli"]["mean"] == 71.235 and record["kind"] in KINDS
    text = page(record, "e5")
    assert "| ours | 5 | 71.2 (70.0…72.0) | 80 | 2 |" in text and "| theirs | – | – | 86.7 | – |" in text
    assert "- it holds" in text and "- a run failed" in text


def test_the_sizes_of_a_family_have_one_colour_on_the_front_and_families_differ() -> None:
    names = ["vit×2", "resnet", "vit", "resnet×4"]
    scores = {"score": 0.8, "low": 0.7, "high": 0.9}
    rows = [{"name": name, "core_seconds": 10.0 + number, **scores} for number, name in enumerate(names)]
    drawn = front({"study": "e9", "metric": "accuracy", "rows": rows})[""].content
    found = dict(re.findall(r"<title>([^:<]+): .*?<circle [^>]*?class=\"dot ([^\"]+)\"", drawn))
    assert found["vit"] == found["vit×2"] != found["resnet"] == found["resnet×4"]


def test_the_counts_of_the_published_sizes_are_a_page(tmp_path: Path) -> None:
    dispatch(["study", "record", "e1", "--results", str(tmp_path)])
    dispatch(["study", "draw", "--results", str(tmp_path)])
    text = (tmp_path / "e1.md").read_text()
    assert "| mixer_b16_224 | 12 | 16 | 196 | 768 | 3072 | 384 | 59,880,472 |" in text
    assert "10 of 10 published counts" in text


@pytest.mark.parametrize("flag", ["--output /home/me/e8", "--output=/home/me/e8", "--output '/home/me/my e8'"])
def test_a_kept_command_names_no_folder_of_one_machine(flag: str) -> None:
    assert anywhere(f"weft study run e8 cifar10 {flag} --steps 500") == "weft study run e8 cifar10 --steps 500"
