"""E2: the rows of tables 2 and 5 are the published networks, are timed one by one, and their orders are judged."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, ClassVar

import pytest

from studies.fabricated_speeds import fabricated
from weft import machine
from weft.commands.main import dispatch
from weft.errors import Interrupted, WeftError, WorkFailed
from weft.networks.measure.cost import total_parameters
from weft.studies.experiments.speed_tables import measure_row as measuring
from weft.studies.experiments.speed_tables import speed_study
from weft.studies.experiments.speed_tables.measure_row import Timed, measure_row, plan_row, prediction
from weft.studies.experiments.speed_tables.published_rows import ROWS, SpeedRow
from weft.studies.experiments.speed_tables.speed_drawing import draw_speeds
from weft.studies.experiments.speed_tables.speed_orderings import judge


def test_e2_rows_have_the_published_counts() -> None:
    """Table 5 prints millions; table 2 has no counts, those of the oracles stand for them."""
    for row in ROWS:
        count = total_parameters(row.learning(smoke=False))
        if row.parameters is not None and not row.note:
            assert count / 1e6 == pytest.approx(row.parameters, abs=1.0, rel=0.01), row.name
    exact = {row.name: total_parameters(row.learning(smoke=False)) for row in ROWS}
    assert exact["BiT-R152x4"] == 936_533_224 and exact["ViT-H/14"] == 632_045_800
    assert exact["Mixer-L/16"] == 208_196_168 and exact["NFNet-F4+"] == 523_836_020
    assert len({row.key for row in ROWS}) == len(ROWS) == 15


@pytest.mark.parametrize("name", ["Mixer-H/14", "ViT-L/16", "BiT-R152x4", "EfficientNet-B7"])
def test_e2_networks_are_laid_out_at_their_published_sides(name: str) -> None:
    row = next(row for row in ROWS if row.name == name)
    use = prediction(row.used(smoke=False), training=False)
    assert (use.side, use.batch) == (row.side, 1)
    assert use.need > 4 * total_parameters(row.used(smoke=False)), "weights, and what passes through them"


def test_e2_times_a_row_and_says_before_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    row, threads = ROWS[8], measuring.torch.get_num_threads()
    monkeypatch.setattr(measuring, "MOMENT", 0.0)
    try:
        found = measure_row(row, "smoke", repeats=3)
    finally:
        measuring.torch.set_num_threads(threads)
    assert found.parameters == 60_192_808 and found.network == "resnet8_cifar"
    assert len(found.use.seconds) == len(found.training.seconds) == 3
    assert sum(found.training.seconds) > sum(found.use.seconds) > 0
    assert "GiB in use at 32 px" in plan_row(row, "smoke")[0]


def test_e2_builds_nothing_that_does_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    row = next(row for row in ROWS if row.name == "gMLP-S")
    monkeypatch.setattr(machine, "memory_available", lambda: 1 << 20)
    monkeypatch.setattr(measuring, "timings", None)  # would fail if it were called
    found = measure_row(row, "cpu")
    assert not found.use.seconds and "are free" in found.training.left_out
    assert "counted on the meta device alone" in plan_row(row, "cpu")[0]


def test_e2_orders_are_confirmed_contradicted_or_not_shown() -> None:
    """As fast as published: the order holds. All alike: nothing is shown, but for costs, where examples differ."""
    as_published = {row.key: fabricated(row, 100 / (row.speed or 50.0)) for row in ROWS}
    found = judge(as_published)
    assert {each["outcome"] for each in found if each["quantity"] == "images/s/core"} == {"confirmed"}
    assert "Mixer-L/16 > ViT-L/16" in found[3]["question"] and "3.28 times" in found[3]["found"]
    reversed_ = {row.key: fabricated(row, row.speed or 50.0) for row in ROWS}
    assert {each["outcome"] for each in judge(reversed_)[:12]} == {"contradicted"}
    alike = judge({row.key: fabricated(row) for row in ROWS})
    assert {each["outcome"] for each in alike[:12]} == {"not shown"}
    of_costs = {each["question"].partition(" (")[0]: each["outcome"] for each in alike[12:]}
    assert of_costs["core-days, Mixer-L/16 > ViT-L/16"] == "confirmed", "300 passes are more than 90"
    untimed = replace(fabricated(ROWS[0]), use=Timed(1, 1, 1, 1, left_out="too large"))
    assert judge({**as_published, ROWS[0].key: untimed})[0]["outcome"] == "not measured"


class Workers:
    """A pool that answers at once; it may be told to fail at some row."""

    failing = ""
    asked: ClassVar[list[str]] = []

    def __init__(self, size: int) -> None:
        self.workers = [None]

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None: ...

    def replace(self, worker: None) -> None: ...

    def first(self, task: Any, row: SpeedRow, scale: str, repeats: int | None = None) -> Any:
        if task.__name__ == "speed_plan":
            return [f"{row.name} needs nothing"]
        if row.name == self.failing:
            raise WorkFailed("it died")
        if row.name == "gMLP-S" and self.failing == "a kill":
            raise KeyboardInterrupt
        self.asked.append(row.name)
        return fabricated(row)


@pytest.fixture
def workers(monkeypatch: pytest.MonkeyPatch) -> type[Workers]:
    monkeypatch.setattr(speed_study, "Pool", Workers)
    monkeypatch.setattr(Workers, "asked", [])
    return Workers


def test_e2_goes_on_after_a_kill_and_a_failure(
    workers: type[Workers], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = ["study", "run", "e2", "--output", str(tmp_path / "e2")]
    monkeypatch.setattr(workers, "failing", "a kill")
    with pytest.raises(Interrupted, match="the same command goes on"):
        dispatch(run)
    assert workers.asked.count("BiT-R152x4") == 1, "two rows of one network are timed once"
    monkeypatch.setattr(workers, "failing", "gMLP-S")
    with pytest.raises(WorkFailed, match="1 of 15 rows were not measured, first gMLP-S"):
        dispatch(run)
    monkeypatch.setattr(workers, "failing", "")
    assert dispatch(run) == 0
    assert len(workers.asked) == 14 and workers.asked[-1] == "gMLP-S"
    said = capsys.readouterr().out
    assert "HaloNet, ImageNet-21k is measured as halonet50ts" in said
    page = (tmp_path / "e2" / "report.html").read_text()
    assert (
        "Published figures are of other hardware" in page and "Mixer-H/14" in page and "perplexit" not in page.lower()
    )
    assert (tmp_path / "e2" / "table.md").read_text().count("\n| ") == 17
    with pytest.raises(WeftError, match="holds rows of the scale cpu, not smoke"):
        dispatch([*run, "--scale", "smoke"])


def test_e2_is_drawn_from_its_records_alone(tmp_path: Path) -> None:
    for row in ROWS[:3]:
        path = tmp_path / "rows" / f"{row.key}.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(asdict(fabricated(row))))
    (tmp_path / "study.json").write_text(json.dumps({"study": "e2", "scale": "cpu", "command": "weft study run e2"}))
    summary = draw_speeds(tmp_path)
    assert len(summary["rows"]) == 3 and "9 not measured" in summary["conclusion"]
    (tmp_path / "rows" / f"{ROWS[0].key}.json").write_text("{}")
    with pytest.raises(WeftError, match="measures it again"):
        draw_speeds(tmp_path)


def test_e2_refuses_what_it_does_not_know() -> None:
    with pytest.raises(WeftError, match="e2 has no scale 'paper'"):
        dispatch(["study", "run", "e2", "--scale", "paper"])
    with pytest.raises(WeftError, match="runs on no source"):
        dispatch(["study", "run", "e2", "digits"])
    with pytest.raises(WeftError, match="does not know it"):
        dispatch(["study", "run", "e2", "--tasks", "x"])
