"""Scales, ticks, fronts and charts."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.report.chart import Scale, fitting, linear_ticks, log_ticks
from weft.report.charts import interval, lines, scatter
from weft.report.columns import Column, columns, duration, scaled
from weft.report.heat import confusion, ink
from weft.report.page import asset
from weft.report.pareto import front

SCORE, PARAMETERS = (next(c for c in columns("accuracy") if c.key == key) for key in ("score", "parameters"))


def rows(*values: tuple[float, float]):
    named = [(f"candidate{number}", score, size) for number, (score, size) in enumerate(values)]
    return [{"name": n, "score": s, "low": s - 0.01, "high": s + 0.01, "parameters": p} for n, s, p in named]


@given(st.lists(st.tuples(st.floats(0, 1), st.integers(1, 50)), min_size=1, max_size=12))
def test_the_front_is_what_nobody_dominates(values):
    """Against the definition, by brute force."""
    found = {row["name"] for row in front(rows(*values), SCORE, PARAMETERS)}
    for i, (score, size) in enumerate(values):
        beaten = any(s >= score and p <= size and (s, p) != (score, size) for s, p in values)
        assert (f"candidate{i}" in found) == (not beaten)


@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6))
def test_linear_ticks_are_round_inside_and_few(low: float, span: float):
    high = low + span
    if not high > low or (high - low) < 1e-9 * abs(low):
        return
    ticks = linear_ticks(low, high)
    assert 1 <= len(ticks) <= 11
    assert all(low - 1e-6 * span <= tick <= high + 1e-6 * span for tick in ticks)


def test_log_ticks():
    assert log_ticks(0.9, 120) == [1, 2, 5, 10, 20, 50, 100]
    assert log_ticks(1, 1e6) == [10.0**power for power in range(7)]


def test_scales_map_ends_to_ends_and_zero_is_no_logarithm():
    scale = Scale(1, 100, 0, 200, log=True)
    assert (scale(1), scale(10), scale(100)) == pytest.approx((0, 100, 200))
    assert not fitting([0, 1], 0, 1, log=True).log
    assert math.isfinite(fitting([3, 3], 0, 100)(3))


@pytest.mark.parametrize(
    "value, said", [(99981, "100 k"), (1450, "1.45 k"), (2.03e6, "2.03 M"), (12, "12"), (0.5, "0.5")]
)
def test_numbers_are_written_short(value: float, said: str):
    assert scaled(value) == said


def test_durations():
    assert [duration(v) for v in (6.8e-5, 0.0059, 3.06, 150, 7200)] == ["68 µs", "5.9 ms", "3.06 s", "2.5 min", "2 h"]


def parse(svg: str) -> ET.Element:
    return ET.fromstring(svg)


def test_charts_are_well_formed_and_say_what_they_show():
    data = rows((0.9, 1e5), (0.8, 1e4), (0.7, 2e5))
    chart = parse(scatter(data, PARAMETERS, SCORE, {row["name"]: n for n, row in enumerate(data)}))
    assert chart.get("role") == "img" and "candidate1, candidate0" in chart.get("aria-label", "")
    assert len(chart.findall(".//circle")) == 3
    line = {"x": [1.0, 2.0], "mean": [0.5, 0.6], "low": [0.4, 0.5], "high": [0.6, 0.7]}
    assert len(parse(lines({"a<b": line}, {"a<b": 0}, ("epoch", "loss"))).findall(".//polyline")) == 1
    assert "−" not in parse(interval(-0.1, 0.1, 0.3, 0.5, True, "said")).get("aria-label", "")


def test_a_candidate_with_one_evaluation_is_seen_as_a_dot():
    one = {"x": [1.0], "mean": [0.5], "low": [0.4], "high": [0.6]}
    two = {"x": [1.0, 2.0], "mean": [0.5, 0.7], "low": [0.4, 0.6], "high": [0.6, 0.8]}
    drawn = parse(lines({"one": one, "two": two}, {"one": 0, "two": 1}, ("epoch", "accuracy")))
    assert len(drawn.findall(".//circle")) == 1 and len(drawn.findall(".//polyline")) == 2


def test_an_candidate_without_a_value_is_not_drawn():
    data = [*rows((0.9, 1e5)), {"name": "failed", "score": None, "low": None, "high": None, "parameters": None}]
    assert scatter(data, PARAMETERS, SCORE, {"candidate0": 0, "failed": 1}).count("<circle") == 1
    assert scatter(data[1:], PARAMETERS, SCORE, {"failed": 0}) == ""


def test_names_in_a_chart_do_not_cover_each_other():
    data = rows(*[(0.9 + 0.0001 * i, 1e5 + i) for i in range(8)])
    chart = parse(scatter(data, PARAMETERS, SCORE, {row["name"]: n for n, row in enumerate(data)}))
    labels = [text for text in chart.iter("text") if text.get("class") == "label"]
    assert len({(text.get("y"), text.get("text-anchor")) for text in labels}) == len(labels) > 1


def test_a_confusion_matrix_names_its_commonest_mistake():
    said = parse(confusion("mlp", [[9, 1, 0], [0, 8, 2], [0, 0, 10]], ["cat", "dog", "<b>"])).get("aria-label", "")
    assert said == "Confusion matrix of mlp: 27 of 30 right; most often dog is taken for <b>, 2 times"


def test_every_column_knows_which_way_is_better():
    better = {column.key: column.higher for column in columns("accuracy")}
    higher = ["score", "balanced_accuracy", "macro_f1", "train_speed", "speed"]
    assert [key for key, more in better.items() if more] == higher
    assert isinstance(columns("r2")[0], Column) and columns("r2")[0].title == "R²"


def test_metrics_that_say_what_the_score_says_have_no_column():
    def shown(balanced: float | None) -> bool:
        data = [{"name": "a", "score": 0.9, "balanced_accuracy": 0.9, "macro_f1": 0.9}]
        data += [{"name": "b", "score": 0.8, "balanced_accuracy": balanced, "macro_f1": 0.8}]
        return "balanced_accuracy" in [column.key for column in columns("accuracy", data)]

    assert [shown(0.801), shown(0.7), shown(None)] == [False, True, True]


def test_a_narrow_logarithmic_axis_has_enough_round_ticks():
    for low, high in ((55, 98), (4.9e4, 5.2e4), (2.1, 4.9)):
        ticks = log_ticks(low, high)
        assert len(ticks) >= 3 and all(low <= tick <= high for tick in ticks)


@pytest.mark.parametrize("count", [1, 2, 3, 8, 24, 70])
def test_layers_have_whole_numbers_at_their_ticks(count: int):
    ticks = fitting(range(1, count + 1), 0, 100, whole=True).ticks()
    assert ticks and all(tick == round(tick) for tick in ticks)


def luminance_of(colour: tuple[int, int, int]) -> float:
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in (part / 255 for part in colour)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("kind", ["right", "wrong"])
@pytest.mark.parametrize("dark", [False, True])
def test_numbers_on_cells_of_any_shade_can_be_read(kind: str, dark: bool):
    """Colours are read from the style sheet; contrast is WCAG 2's."""
    blocks = re.findall(r"--paper: #[0-9a-f]{6}.*?}", asset("chart.css"), re.S)
    theme = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", blocks[1 if dark else 0]))
    full, card = (
        tuple(int(theme[name][i : i + 2], 16) for i in (1, 3, 5))
        for name in ("c0" if kind == "right" else "c7", "card")
    )
    for step in range(101):
        shade = step / 100
        strength = min(1, 4 * shade) if kind == "wrong" else shade
        ground = luminance_of(tuple(strength * a + (1 - strength) * b for a, b in zip(full, card, strict=True)))
        black = ("pale" in ink(shade, kind)) if dark else ("deep" not in ink(shade, kind))
        contrast = (ground + 0.05) / 0.05 if black else 1.05 / (ground + 0.05)
        assert contrast >= 4.5, (shade, contrast)


def test_names_of_a_confusion_are_whole_or_have_a_tooltip():
    names = ["staffordshire_bull_terrier_outdoors_in_bright_light_number_12", "cat"]
    chart = parse(confusion("mlp", [[9, 1], [0, 8]], names))
    assert [group.findtext("title") for group in chart.iter("g") if group.findtext("title") == names[0]]
    small = parse(confusion("mlp", [[9, 1], [0, 8]], ["staffordshire_bull_terrier", "cat"]))
    written = "".join(text.text or "" for text in small.iter("text"))
    assert "staffordshire_bull_terrier" in written and "…" not in written


def test_names_of_a_scatter_stay_within_the_picture_and_are_not_cut():
    data = rows((0.9, 1e5), (0.8, 1e4))
    data[0]["name"] = "control_depthwise_pico_p4_32_with_a_longer_name"
    for wide in (True, False):
        chart = scatter(data, PARAMETERS, SCORE, {row["name"]: n for n, row in enumerate(data)}, wide)
        labels = [text.text or "" for text in parse(chart).iter("text") if text.get("class") == "label"]
        assert data[0]["name"] in "".join(labels) and "…" not in "".join(labels)
