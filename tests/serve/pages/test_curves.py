"""Curves: read on from where they were, cut without losing a spike, and sent as events by the byte."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from serve.pages.made_up import points
from weft.serve.pages.runs import events
from weft.serve.pages.runs.curve_charts import Drawing, draw
from weft.serve.pages.runs.curve_store import POINTS, CurveStore, cut, room, smoothed


def test_a_curve_is_read_on_and_begins_anew_when_its_file_was_cut_back(tmp_path: Path):
    path, store = tmp_path / "metrics.jsonl", CurveStore()
    text = points(10)
    path.write_text(text + '{"kind": "train", "st')  # half a line waits for its end
    assert len(store.read(path).line("loss")[0]) == 10 and store.read(path).offset == len(text)
    with path.open("a") as file:
        file.write('ep": 11, "epoch": 1.1, "loss": 9.0}\n')
    assert store.read(path).line("loss")[1][-1] == 9.0
    path.write_text(points(3))
    assert len(store.read(path).line("loss")[0]) == 3


def test_norms_of_layers_are_one_and_nonsense_is_left_out(tmp_path: Path):
    path = tmp_path / "metrics.jsonl"
    path.write_text(points(1) + 'null\n[1]\nnonsense\n{"kind": "train", "step": "x", "loss": true}\n')
    curve = CurveStore().read(path)
    assert curve.line("gradient_norm")[1].tolist() == [5.0]
    assert len(curve.line("loss")[0]) == 1


@given(st.integers(1, 20_000), st.integers(100, 2000), st.integers(0, 10**6))
def test_a_cut_line_keeps_its_ends_and_its_extremes(count: int, most: int, seed: int):
    values = np.random.default_rng(seed).normal(size=count)
    x, y = cut((np.arange(count, dtype=float), values), most)
    assert len(x) <= most + 2 and (np.diff(x) > 0).all()
    assert x[0] == 0 and x[-1] == count - 1 and y.min() == values.min() and y.max() == values.max()
    assert (values[x.astype(int)] == y).all()


def test_twenty_long_lines_make_a_chart_of_a_few_thousand_points():
    assert 20 * room(20) <= POINTS and room(1) <= POINTS and room(500) >= 100


def test_a_run_with_one_point_is_seen_beside_one_with_a_line(tmp_path: Path):
    store, found = CurveStore(), {}
    for name, steps in (("short", 5), ("long", 20)):
        (tmp_path / name).write_text(points(steps))
        found[name] = store.read(tmp_path / name)
    charts = dict(draw(found, Drawing()))
    assert charts["validation_metric"].count("<circle") == 1 and charts["loss"].count("<circle") == 0


def test_smoothing_leaves_a_constant_alone_and_lags_behind_a_step():
    x = np.arange(50.0)
    assert np.allclose(smoothed((x, np.full(50, 3.0)), 0.9)[1], 3.0)
    stepped = smoothed((x, (x >= 25).astype(float)), 0.9)[1]
    assert stepped[24] == 0 and 0.05 < stepped[25] < 0.2 and 0.9 < stepped[-1] < 1


def collected(path: Path, start: int, states: list[str]) -> list[dict[str, str]]:
    """All events of a stream whose run has these states, one at each look."""

    async def gone() -> bool:
        return False

    async def run() -> str:
        left = iter(states)
        stream = events.events(
            SimpleNamespace(is_disconnected=gone), path, start, lambda: next(left, states[-1]), lambda: False
        )
        return "".join([part async for part in stream])

    blocks = asyncio.run(run()).split("\n\n")
    found = [dict(line.split(": ", 1) for line in block.splitlines() if ": " in line) for block in blocks]
    return [block for block in found if "event" in block]


def test_every_event_has_the_byte_behind_it_and_a_stream_goes_on_from_there(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(events, "EVERY", 0.0)
    path = tmp_path / "metrics.jsonl"
    path.write_text(points(6))
    every = collected(path, 0, ["running", "finished"])
    assert [event["event"] for event in every] == ["point"] * 7 + ["end"]
    assert int(every[6]["id"]) == path.stat().st_size
    assert json.loads(every[-1]["data"]) == {"state": "finished"}
    rest = collected(path, int(every[3]["id"]), ["finished"])
    assert [event["data"] for event in rest] == [event["data"] for event in every[4:]]


def test_a_curve_that_was_cut_back_is_sent_from_its_beginning(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(events, "EVERY", 0.0)
    path = tmp_path / "metrics.jsonl"
    path.write_text(points(2))
    found = collected(path, 10**6, ["running", "finished"])
    assert [event["event"] for event in found] == ["reset", "point", "point", "end"]


def test_not_a_number_is_null_for_browsers(tmp_path: Path, monkeypatch):
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"kind": "train", "step": 1, "loss": NaN}\n')
    assert json.loads(collected(path, 0, ["finished"])[0]["data"])["loss"] is None
