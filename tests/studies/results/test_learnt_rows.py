"""What each candidate learnt from is told wherever its score is."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from studies.fabricated import make_study
from weft.report.page import render
from weft.report.table import as_csv, cell_table, show
from weft.studies.results.load import Collection, collect
from weft.studies.results.summary import summarise
from weft.training.config import FITTED_ROWS

NAMES = {"mlp": 0.95, "lenet5": 0.9, "hog+logistic": 0.8}
TOLD = "Not all candidates learnt from the whole 1,295 training rows: "


def fewer(folder: Path, shares: dict[str, float], rows: int = 1295, **study: Any) -> Collection:
    """A finished study some of whose candidates were given a share of the rows."""
    make_study(folder, NAMES)
    found = collect(folder)
    found.study["facts"]["rows"] = rows
    results = [replace(result, share=shares.get(result.candidate, 1.0)) for result in found.results]
    return replace(found, results=results, study={**found.study, **study})


def test_where_all_learn_from_all_rows_json_says_so_and_tables_stay_as_narrow(tmp_path: Path):
    summary = summarise(fewer(tmp_path, {}))
    assert {row["training_rows"] for row in summary["rows"]} == {1295}
    assert "Rows" not in cell_table(summary, 200)[0] and ">Rows<" not in render(summary)
    assert summary["cautions"] == [] and not any("learnt from" in one["sentence"] for one in summary["verdicts"])


def test_who_learnt_from_fewer_rows_is_told_in_table_report_csv_note_and_verdict(tmp_path: Path):
    summary = summarise(fewer(tmp_path, {"hog+logistic": 0.2}))
    titles, lines = cell_table(summary)
    assert [line[titles.index("Rows")] for line in lines] == ["1,295", "1,295", "259"]
    page = render(summary)
    assert ">Rows</button>" in page and 'data-value="259"' in page
    assert [line["training_rows"] for line in csv.DictReader(io.StringIO(as_csv(summary)))] == ["1295", "1295", "259"]
    assert summary["cautions"] == [f"{TOLD}hog+logistic from 259."]
    sentences = {one["question"]: one["sentence"] for one in summary["verdicts"]}
    assert sentences["a network"].endswith("; mlp learnt from 1,295 training rows, hog+logistic from 259")
    assert "learnt from" not in sentences["convolution"], "both learnt from all rows"
    file = io.StringIO()
    show(summary, Console(file=file, width=200))
    assert file.getvalue().index("hog+logistic from 259.") < file.getvalue().index("• ")


def test_image_sides_and_cut_texts_stand_beside_the_rows(tmp_path: Path):
    found = fewer(tmp_path, {"lenet5": 0.5, "hog+logistic": 0.2}, match="time", spent=300.0)
    own = {"lenet5": {"img_size": 96}, "hog+logistic": {"max_length": 64}}
    candidates = [replace(candidate, **own.get(candidate.name, {})) for candidate in found.candidates]
    summary = summarise(replace(found, candidates=candidates))
    titles, lines = cell_table(summary)
    assert [line[titles.index("Rows")] for line in lines] == ["1,295", "648 (96 px)", "259 (64 tokens)"]
    told = "lenet5 from 648, images at 96 px; hog+logistic from 259, texts cut at 64 tokens."
    assert summary["cautions"] == [f"{TOLD}{told} More --time gives them more."]


def test_texts_that_were_cut_are_told_also_where_they_are_as_many(tmp_path: Path):
    found = fewer(tmp_path, {})
    cut = [replace(each, max_length=64 if each.name == "lenet5" else None) for each in found.candidates]
    assert summarise(replace(found, candidates=cut))["cautions"] == [
        f"{TOLD}lenet5 from all of them, texts cut at 64 tokens."
    ]


def test_a_share_that_all_candidates_were_given_is_the_whole(tmp_path: Path):
    """The study counts the rows of that share."""
    summary = summarise(fewer(tmp_path, {"mlp": 0.5, "lenet5": 0.5, "hog+logistic": 0.1}))
    assert [row["training_rows"] for row in summary["rows"]] == [1295, 1295, 259]


@pytest.mark.parametrize("match", ["params", "time"])
def test_the_limit_of_a_baseline_is_told_and_no_time_promised_to_change_it(tmp_path: Path, match: str):
    summary = summarise(fewer(tmp_path, {}, rows=60_000, match=match, command="weft compare x.csv"))
    assert {row["name"]: row["training_rows"] for row in summary["rows"]} == {
        "mlp": 60_000, "lenet5": 60_000, "hog+logistic": FITTED_ROWS,
    }  # fmt: skip
    assert summary["cautions"][0].endswith("60,000 training rows: hog+logistic from 50,000.")


def test_runs_that_nobody_planned_together_have_unknown_rows(tmp_path: Path):
    make_study(tmp_path, NAMES)
    (tmp_path / "study.json").unlink()
    assert {row["training_rows"] for row in summarise(collect(tmp_path))["rows"]} == {None}
