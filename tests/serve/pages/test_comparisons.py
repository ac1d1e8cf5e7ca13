"""A comparison: what the report has, and what two networks disagree on."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from starlette.testclient import TestClient

from weft.serve.catalogue import Catalogue
from weft.serve.pages.comparisons.disagreements import disagreement
from weft.serve.pages.comparisons.summaries import Comparison, comparisons

Make = Callable[..., TestClient]


def opened(shown: Path) -> Comparison:
    return comparisons().read(Catalogue([shown / "comparisons"]).comparison("study"))


def test_the_list_says_how_far_comparisons_are(client: Make):
    page = client().get("/comparisons").text
    assert "13 of 13 runs" in page and ">finished</span>" in page
    assert "mlp, vit_nano_p4_32, resnet20_cifar, … on digits" in page.replace("<wbr>", "")


def test_a_comparison_has_verdicts_leaderboard_front_curves_and_settings(client: Make):
    page = client().get("/comparisons/study").text
    for heading in ("Verdicts", "Leaderboard", "Curves", "Where two networks disagree", "Settings that differ"):
        assert f">{heading}</h2>" in page
    assert "Pareto front" in page


def test_the_address_chooses_the_columns_and_single_seeds(client: Make):
    server = client()
    page = server.get("/comparisons/study?up=score&across=parameters").text
    assert "Accuracy against parameters" in page
    assert server.get("/comparisons/study?up=nonsense&across=nonsense").status_code == 200
    assert "mlp, seed 2" in server.get("/comparisons/study?seeds=1").text
    assert "mlp, seed 2" not in page


def test_examples_are_counted_as_by_hand(shown: Path):
    found = opened(shown)
    first, second = found.chosen()["mlp"].predictions, found.chosen()["vit_nano_p4_32"].predictions
    asked = disagreement(found, "mlp", "vit_nano_p4_32", "first", 1)
    assert asked is not None and first is not None and second is not None
    right, also = first["predicted"] == first["target"], second["predicted"] == second["target"]
    assert asked.counts["first"] == np.sum(right & ~also) and asked.counts["second"] == np.sum(~right & also)
    assert asked.counts["both"] == np.sum(right & also)
    assert sum(asked.counts[name] for name in ("all", "both", "same")) == len(right)
    for example in asked.examples:
        assert example["said"][0][0] == example["target"] != example["said"][1][0]


@pytest.mark.parametrize(("metric", "shown_too"), [("balanced_accuracy", True), ("macro_f1", True), ("r2", False)])
def test_whatever_metric_of_classes_decides_the_two_best_by_it_are_set_side_by_side(
    metric: str, shown_too: bool, shown: Path
):
    found = opened(shown)
    rows = sorted(found.summary["rows"], key=lambda row: row["name"])  # as if the metric had another order
    found = replace(found, summary={**found.summary, "metric": metric, "rows": rows})
    asked = disagreement(found, "", "", "all", 1)
    assert (asked is not None) == shown_too
    assert asked is None or [asked.first, asked.second] == [row["name"] for row in rows[:2]]


def test_a_candidate_that_learnt_from_a_part_of_the_rows_is_set_beside_the_others(shown: Path):
    found = opened(shown)
    results = [replace(r, share=0.4) if r.candidate == "mlp" else r for r in found.collection.results]
    fewer = replace(results[0], candidate="vit_nano_p4_32", share=0.1)  # of a learning curve
    found = replace(found, collection=replace(found.collection, results=[*results, fewer]))
    assert found.chosen()["mlp"].share == 0.4 and found.chosen()["vit_nano_p4_32"].share == 1


def test_data_that_is_not_what_it_was_is_not_shown(client: Make):
    page = client().get("/comparisons/study").text
    assert "The data cannot be shown: digits is not what it was" in page
    assert "test example" in page and "<blockquote>" not in page


def test_the_pictures_of_the_right_rows_are_shown(shown: Path, monkeypatch):
    import weft.serve.pages.comparisons.disagreements as module

    monkeypatch.setattr(module, "require_same", lambda config, record: None)
    asked_for: list[int] = []
    monkeypatch.setattr(
        module,
        "read_examples",
        lambda config, rows: asked_for.extend(rows) or [{"text": "x"} for _ in rows],
    )
    found = opened(shown)
    asked = disagreement(found, "mlp", "vit_nano_p4_32", "first", 1)
    first, second = found.chosen()["mlp"].predictions, found.chosen()["vit_nano_p4_32"].predictions
    assert asked is not None and asked.examples and first is not None and second is not None
    for row in asked_for:
        assert first["predicted"][row] == first["target"][row] != second["predicted"][row]


def test_a_comparison_is_computed_again_only_when_a_run_has_ended(shown: Path, tmp_path: Path):
    shutil.copytree(shown / "comparisons" / "study", tmp_path / "study")
    entry, known = Catalogue([tmp_path]).comparison("study"), comparisons()
    first = known.read(entry)
    assert known.read(entry) is first
    lost = next((tmp_path / "study" / "runs").glob("mlp-seed0*")) / "record.json"
    lost.unlink()
    assert known.read(entry).finished == first.finished - 1


def test_a_study_without_a_result_is_shown_as_such(shown: Path, tmp_path: Path, client: Make):
    (tmp_path / "new").mkdir()
    shutil.copy(shown / "comparisons" / "study" / "study.json", tmp_path / "new")
    answer = client(folders=(tmp_path,)).get("/comparisons/new")
    assert answer.status_code == 200 and re.search(r"0 of \d+ runs finished", answer.text)


def test_a_comparison_that_is_deleted_while_the_server_runs_is_told(shown: Path, tmp_path: Path, client: Make):
    folder = tmp_path / "kept" / "study"
    shutil.copytree(shown / "comparisons" / "study", folder)
    shutil.copytree(folder, tmp_path / "kept" / "other")
    server = client(folders=(tmp_path / "kept",))
    assert server.get("/comparisons").text.count('class="badge') == 2  # and the server does not look again at once
    shutil.rmtree(folder)
    assert server.get("/comparisons").text.count('class="badge') == 1
    assert server.get("/comparisons/study").status_code == 404
    assert server.get("/").status_code == 200 and server.get("/predict").status_code == 200
