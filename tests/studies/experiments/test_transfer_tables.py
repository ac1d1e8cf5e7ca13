"""E3 and E8: rows and questions are the published ones, runs start from one another, and verdicts have intervals."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from weft.commands.main import dispatch
from weft.errors import WeftError
from weft.studies.compare.candidates import Facts
from weft.studies.engine.study import Study
from weft.studies.experiments.transfer_tables import design
from weft.studies.experiments.transfer_tables.design import (
    Question,
    at_share,
    named_tasks,
    questions,
    scratch,
    table_rows,
    task_name,
)
from weft.studies.experiments.transfer_tables.questions import conclusion, judged
from weft.studies.experiments.transfer_tables.run_configs import Asked, from_scratch
from weft.studies.experiments.transfer_tables.run_transfer import ask_few_shots, jobs_of
from weft.studies.experiments.transfer_tables.scales import SCALES


@pytest.fixture
def two_families(monkeypatch: pytest.MonkeyPatch) -> None:
    """As much of the studies as shows that they work."""
    monkeypatch.setattr(design, "FAMILIES", {"resnet": "ResNet", "mixer": "Mixer"})
    monkeypatch.setattr(design, "SHARES", (0.1, 1.0))


def test_rows_and_questions_name_one_another() -> None:
    for study in ("e3", "e8"):
        for scale in SCALES.values():
            names = [row.name for row in table_rows(study, scale)]
            assert len(set(names)) == len(names)
            for question in questions(study, scale):
                assert {question.first, question.second, *(question.gains or ())} <= set(names)
    published = {row.name: row.published for row in table_rows("e3", SCALES["cpu"])}
    assert published["Mixer, pre-trained"] == {"cifar10": 97.7, "pets": 97.4}
    assert published["Mixer, from scratch"] == {"cifar10": 82.3, "pets": 79.4}


def test_known_sets_have_their_usual_names() -> None:
    found = [task_name(path) for path in ("data/cifar10", "x/oxford_pets_96/", "sign_digits/images", "own/photos")]
    assert found == ["cifar10", "pets", "sign digits", "photos"]
    others = ("/home/peter/flowers", "pets/flowers", "carpets", "traffic_signs", "cifar1000", "cifar-100/train")
    assert [task_name(path) for path in others] == [
        "flowers", "flowers", "carpets", "traffic_signs", "cifar1000", "cifar100"
    ]  # fmt: skip
    assert named_tasks("digits", ()) == {"digits again": "digits"}
    assert list(named_tasks("up", ("birds/images", "cars/images"))) == ["birds", "cars"]
    with pytest.raises(WeftError, match="cifar10 is named twice"):
        named_tasks("data/cifar10", ("pets", "other/cifar-10"))


def test_all_shares_of_a_set_are_augmented_alike() -> None:
    """Else a small share would be mirrored and a large one, of which few passes are made, would not."""
    asked = Asked("e8", SCALES["cpu"], "cifar10", Path("x"), 1, "", print, {"pets": "pets"}, mirrored=True)
    configs = [from_scratch(asked, row, "cifar10", 0, 100) for row in asked.rows if row.family == "vit"]
    assert [config.reading.train_fraction for config in configs] == [0.1, 0.3, 1.0]
    assert {(config.augment.flip, config.augment.crop_padding) for config in configs} == {(True, 4)}
    plain = next(row for row in table_rows("e3", SCALES["cpu"]) if not row.regularised)
    assert from_scratch(asked, plain, "cifar10", 0, 100).augment.flip is False
    assert from_scratch(asked, plain, "cifar10", 0, 100).objective.smoothing == 0.0


def scores(rate: float, seeds: int = 3, rows: int = 400) -> np.ndarray:
    draws = np.random.default_rng(int(1000 * rate)).random((seeds, rows))
    return (draws < rate).astype(np.float64)


def test_statements_are_confirmed_contradicted_or_not_shown() -> None:
    pre, own = "Mixer, pre-trained", scratch("mixer")
    asked = [Question(pre, own, "pre-training helps"), Question(own, f"{own}, enlarged")]
    figures = {pre: {"pets": 97.4}, own: {"pets": 79.4}}
    better = judged({"pets": {pre: scores(0.9), own: scores(0.6)}}, asked, figures)
    assert [one["outcome"] for one in better] == ["confirmed"] and "published 97.4 against 79.4" in better[0][
        "question"
    ]
    worse = judged({"pets": {pre: scores(0.5), own: scores(0.8)}}, asked, figures)
    assert worse[0]["outcome"] == "contradicted" and "1 contradicted" in conclusion(worse)
    alike = judged({"pets": {pre: scores(0.801), own: scores(0.8)}}, asked, figures)
    assert alike[0]["outcome"] == "not shown"
    single = judged({"pets": {pre: scores(0.9, seeds=1), own: scores(0.6, seeds=1)}}, asked, figures)
    assert single[0]["outcome"] == "not shown" and "one seed" in single[0]["found"]
    missing = judged({"pets": {pre: scores(0.9)}}, asked, figures)
    assert missing[0]["outcome"] == "not measured"


def test_the_conclusion_counts_what_was_published_alone() -> None:
    pre, own = "Mixer, pre-trained", scratch("mixer")
    rows = {pre: scores(0.9), own: scores(0.6)}
    unasked = judged({"pets": rows}, [Question(pre, own)], {})
    assert unasked[0]["outcome"] == "a difference is shown" and not unasked[0]["published"]
    assert conclusion(unasked) == "No statement could be judged."
    known = judged({"pets": rows}, [Question(pre, own)], {pre: {"pets": 97.4}, own: {"pets": 79.4}})
    assert conclusion(known + unasked).startswith("Of 1 published statements")


def test_who_gains_more_is_a_difference_of_gains() -> None:
    vit, resnet = ([at_share(family, share) for share in (0.1, 1.0)] for family in ("vit", "resnet"))
    question = Question(vit[1], resnet[1], "attention catches up", (vit[0], resnet[0]))
    rows = {vit[0]: scores(0.4), vit[1]: scores(0.8), resnet[0]: scores(0.7), resnet[1]: scores(0.82)}
    found = judged({"pets": rows}, [question], {})[0]
    assert found["outcome"] == "confirmed" and found["mean"] == pytest.approx(0.28, abs=0.06)
    assert "gains more than ResNet, 100%" in found["question"]


def test_the_published_scale_is_planned_and_not_run_without_a_gpu(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(WeftError, match=r"needs ImageNet-21k as the source and about .* hours of an A100"):
        dispatch(["study", "run", "e8", "--scale", "paper", "--output", str(tmp_path / "e8")])
    assert "Mixer, 30%: mixer_b16_224, 59,880,472 parameters" in capsys.readouterr().out
    assert not (tmp_path / "e8").exists()


def test_flags_that_a_study_does_not_know_are_refused() -> None:
    with pytest.raises(WeftError, match="--encoder is for e4, e5, e6, e7; e3 does not know it"):
        dispatch(["study", "run", "e3", "--encoder", "x"])


@pytest.mark.usefixtures("two_families", "quick_workers")
def test_e3_sets_pre_training_beside_learning_from_scratch(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "e3"
    assert dispatch(["study", "run", "e3", "--scale", "smoke", "--steps", "4", "--output", str(folder)]) == 0
    said = capsys.readouterr().out
    assert "Table 3 on digits" in said and "Mixer, pre-trained" in said and "6 published statements" not in said
    runs = json.loads((folder / "study.json").read_text())["runs"]
    assert len(runs) == 4 + 6, "two families and two side findings on the set, and all rows on the task"
    page, table = (folder / "report.html").read_text(), (folder / "table.md").read_text()
    assert "pre-training helps" in page and "Mixer, from scratch, enlarged" in table
    with pytest.raises(WeftError, match="holds a study with steps 4, not 6"):
        dispatch(["study", "run", "e3", "--scale", "smoke", "--output", str(folder)])


@pytest.mark.usefixtures("two_families", "quick_workers")
def test_e8_asks_few_shots_and_goes_on_without_doing_anything_twice(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "e8"
    run = ["study", "run", "e8", "--scale", "smoke", "--steps", "3", "--output", str(folder)]
    assert dispatch(run) == 0
    said = capsys.readouterr().out
    assert "digits again, 1-shot, %" in said and "attention and MLPs catch up as it grows" in " ".join(said.split())
    shots = sorted((folder / "shots").iterdir())
    assert len(shots) == 4
    runs = {run["name"]: run["part"] for run in json.loads((folder / "study.json").read_text())["runs"]}
    assert {runs[path.stem.removesuffix("-1")] for path in shots} == {"digits again"}, "named after the task's runs"
    shots[0].unlink()
    before = {path: path.stat().st_mtime_ns for path in (*folder.glob("runs/*/record.json"), *shots[1:])}
    assert dispatch(run) == 0
    assert shots[0].exists() and before == {path: path.stat().st_mtime_ns for path in before}


@pytest.mark.usefixtures("two_families", "quick_workers")
def test_e8_refuses_a_task_with_a_rare_class_before_it_trains(tmp_path: Path) -> None:
    from PIL import Image

    for kind, rows in {"rare": 3, "usual": 20}.items():
        (tmp_path / "photos" / kind).mkdir(parents=True)
        for number in range(rows):
            Image.new("L", (8, 8), 9 * number).save(tmp_path / "photos" / kind / f"{number}.png")
    run = ["study", "run", "e8", "digits", "--tasks", str(tmp_path / "photos"), "--scale", "cpu", "--steps", "3"]
    with pytest.raises(WeftError, match=r"class 'rare' of .*photos has \d training rows, fewer than the 5 a class"):
        dispatch([*run, "--output", str(tmp_path / "e8")])
    assert not list(tmp_path.glob("e8/runs/*"))


def test_few_shot_scores_are_kept_as_they_come(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kill between two answers leaves the first."""
    asked = Asked("e8", replace(SCALES["cpu"], shots=(5,)), "cifar10", tmp_path, 1, "", print, {"pets": "pets"})
    facts = {name: Facts(name, "image", "classes", 10, "data", 1, {}) for name in ("cifar10", "pets")}
    first, second = jobs_of(asked, 3, facts)
    study = Study(tmp_path, "", facts["cifar10"], [], [*first, *second], "none", "", "")
    monkeypatch.setattr(Study, "finished", lambda *given: True)

    class Killed:
        workers = (None,)

        def __init__(self) -> None:
            self.answers = iter([[[0.5]]])

        def each(self, *given: Any) -> Any:
            return next(self.answers)

    with pytest.raises(StopIteration):
        ask_few_shots(asked, study, Killed(), second)
    assert [path.name for path in (tmp_path / "shots").iterdir()] == [f"{second[0].name}-5.json"]
    changed = jobs_of(asked, 3, {**facts, "pets": replace(facts["pets"], fingerprint="other")})[1]
    assert changed[0].name != second[0].name, "other data, another file"
