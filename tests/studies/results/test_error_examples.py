"""Which test examples the report shows: mistakes of the best candidate, and what the two best networks disagree on."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from studies.fabricated import make_study
from weft.studies.engine.study import Study
from weft.studies.results.error_examples import counted, keep_mistakes, miss, mistakes_of, most_disputed, two_best
from weft.studies.results.load import collect
from weft.studies.results.summary import draw_report
from weft.training.storage.record import read_predictions, write_predictions

ACCURACIES = {"mlp": 0.9, "resnet20_cifar": 0.95, "control_identity_p4_32": 0.99, "hog+logistic": 0.99}


class Reading:
    """A pool that shows words for every example."""

    def first(self, task: object, config: object, rows: list[int]) -> list[dict[str, str]]:
        return [{"text": f"example {row}", "place": f"row {row}"} for row in rows]


def shuffled(study: Study, candidate: str) -> None:
    """Let a candidate err on other examples than the rest."""
    for job in study.jobs:
        if job.candidate == candidate:
            path = study.run_folder(job).path
            found = read_predictions(path)
            write_predictions(path, {**found, "predicted": np.roll(found["predicted"], 10)})


def test_the_two_best_are_networks_and_each_alone_is_right_somewhere(tmp_path: Path):
    study = make_study(tmp_path, ACCURACIES)
    shuffled(study, "mlp")
    best = two_best(study, collect(tmp_path).results)
    assert best is not None and [result.candidate for result in best] == ["resnet20_cifar", "mlp"]
    told, rows = counted(*best), most_disputed(*best)
    first, second = (miss(result) for result in best)
    assert told["alone"] == [int((second & ~first).sum()), int((first & ~second).sum())] and min(told["alone"]) > 0
    assert len(rows) == 12 == len(set(rows)) and all(first[row] != second[row] for row in rows)
    assert {bool(first[row]) for row in rows} == {True, False}, "by turns"


def test_they_stand_in_the_report(tmp_path: Path):
    study = make_study(tmp_path, ACCURACIES)
    shuffled(study, "mlp")
    keep_mistakes(study, Reading())  # type: ignore[arg-type]
    kept = mistakes_of(tmp_path, collect(tmp_path))
    assert kept["disagreement"]["names"] == ["resnet20_cifar", "mlp"] and kept["examples"]
    draw_report(tmp_path)
    page = (tmp_path / "report.html").read_text()
    assert 'id="disputed-title"' in page and kept["disagreement"]["examples"][0]["text"] in page


def test_one_network_disagrees_with_nobody(tmp_path: Path):
    study = make_study(tmp_path, {"mlp": 0.9, "hog+logistic": 0.95})
    keep_mistakes(study, Reading())  # type: ignore[arg-type]
    assert "disagreement" not in mistakes_of(tmp_path, collect(tmp_path))


def test_examples_of_other_data_are_not_shown(tmp_path: Path):
    study = make_study(tmp_path, ACCURACIES)
    keep_mistakes(study, Reading())  # type: ignore[arg-type]
    collected = collect(tmp_path)
    assert mistakes_of(tmp_path, collected)["examples"]
    collected.study["facts"]["fingerprint"] = "0" * 32
    assert mistakes_of(tmp_path, collected)["examples"] == []
