"""report.html: one file, nothing fetched, readable by everybody, quick and small for large studies."""

from __future__ import annotations

import itertools
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from studies.fabricated import CANDIDATES, make_study
from weft.report.page import render
from weft.report.tuning import render_maps, render_search
from weft.studies.results.load import collect
from weft.studies.results.summary import draw_report, summarise


class Page(HTMLParser):
    """Tags, their attributes, and ids."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs) -> None:
        self.tags.append((tag, dict(attrs)))


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("study")
    make_study(folder, CANDIDATES)
    draw_report(folder)
    return (folder / "report.html").read_text()


def test_nothing_is_fetched(text: str):
    outside = [a for _, attributes in Page(text).tags for name in ("src", "href") if (a := attributes.get(name))]
    assert all(address.startswith(("data:", "#", "logs/")) for address in outside)
    assert "http://" not in text and "https://" not in text and "@import" not in text


def test_verdicts_come_before_the_leaderboard_and_the_rest(text: str):
    sections = ("verdicts-title", "leaderboard", "cost-title", "curves-title", "confusion-title", "reproduce-title")
    order = [text.index(f'id="{name}"') for name in sections]
    assert order == sorted(order)


def test_pictures_headings_and_controls_are_accessible(text: str):
    tags = Page(text).tags
    assert all(attributes.get("aria-label") for tag, attributes in tags if tag == "svg")
    assert all(attributes.get("alt") for tag, attributes in tags if tag == "img")
    assert all(attributes.get("scope") for tag, attributes in tags if tag == "th")
    levels = [int(tag[1]) for tag, _ in tags if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels)), "no level is left out"


def contrast(first: str, second: str) -> float:
    """WCAG 2's ratio of two colours."""

    def luminance(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    light, dark = sorted((luminance(first), luminance(second)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_words_have_enough_contrast_in_light_and_dark(text: str):
    blocks = re.findall(r"--paper: #[0-9a-f]{6}.*?}", text, re.S)
    themes = [dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", block)) for block in blocks]
    assert len(themes) == 3  # light, dark by the system, dark by choice
    for theme in themes:
        for ink in ("ink", "soft", "accent"):
            assert contrast(theme[ink], theme["paper"]) >= 4.5 and contrast(theme[ink], theme["card"]) >= 4.5
        for tone in ("good", "warn"):
            assert contrast(theme[tone], theme[f"{tone}-paper"]) >= 4.5
        for number in range(10):
            assert contrast(theme[f"c{number}"], theme["card"]) >= 3  # WCAG 1.4.11: graphics


def test_names_from_data_are_escaped(tmp_path: Path):
    make_study(tmp_path, CANDIDATES)
    summary = summarise(collect(tmp_path))
    summary["source"]["name"] = "<script>alert(1)</script>"
    assert "<script>alert(1)" not in render(summary)


def test_two_hundred_runs_of_a_thousand_points_in_six_megabytes(tmp_path: Path):
    make_study(tmp_path, {f"mlp@{number}": 0.5 + number / 100 for number in range(40)}, seeds=5, points=1000)
    draw_report(tmp_path)
    assert (tmp_path / "report.html").stat().st_size < 6_000_000


def test_a_study_with_nothing_finished_still_has_a_page(tmp_path: Path):
    study = make_study(tmp_path, {"mlp": 0.9})
    for job in study.jobs:
        (study.run_folder(job).path / "record.json").unlink()
    draw_report(tmp_path)
    assert "not run yet" in (tmp_path / "report.html").read_text()


def test_pages_of_searches_and_maps():
    trials = [
        {"number": n, "value": 0.8 + n / 100, "state": "COMPLETE", "settings": {"rate": 0.001 * n}} for n in range(5)
    ]
    best = {"number": 4, "value": 0.84, "settings": {"rate": 0.004}}
    found = {"source": "digits", "model": "mlp", "best": best, "states": {"COMPLETE": 5, "PRUNED": 0, "FAIL": 0},
             "trials": trials, "importance": {"rate": 0.8, "width": 0.2}}  # fmt: skip
    assert "rate 80 %" in render_search(found)
    cells = [[0.9, 0.95], [None, 0.5]]
    page = render_maps({"source": "digits", "rates": [1e-3, 1e-2], "widths": [1, 2], "maps": {"vit": cells}})
    assert "vit: 2 of 4 settings come within a tenth of its best" in page and "✗" in page
    assert "<h2>vit</h2>" in page
    levels = [tag for tag, _ in Page(render_search(found)).tags if tag in ("h1", "h2")]
    assert levels == ["h1", "h2", "h2", "h2"]


def test_a_confusion_says_whether_it_is_of_one_run_or_a_sum(text: str):
    assert "sum of 3 runs with different seeds, 400 answers each" in text  # the networks
    assert "one run, 400 answers" in text  # the baseline


def test_mistakes_say_whose_they_are(tmp_path: Path):
    make_study(tmp_path, CANDIDATES)
    example = {"target": 0, "predicted": 1, "confidence": 0.9, "wrong": 7, "of": 13, "text": "words", "place": "row 5"}
    page = render(summarise(collect(tmp_path)), {"candidate": "mlp", "seed": 2, "examples": [example]})
    said = " ".join(re.sub("<[^>]*>", "", page).split())
    assert "What mlp gets wrong Test examples that its run with seed 2 answers wrong" in said
    assert "of all 13 runs of all candidates" in said


def test_many_classes_are_listed_rather_than_drawn(tmp_path: Path):
    make_study(tmp_path, {"mlp": 0.9}, classes=[f"class_{n}" for n in range(60)])
    page = render(summarise(collect(tmp_path)))
    assert 'class="heat"' not in page and "<td>class_<wbr>0</td><td>class_<wbr>1</td>" in page


def test_a_study_may_have_a_heading_of_its_own(tmp_path: Path):
    make_study(tmp_path, {"mlp": 0.9})
    summary = summarise(collect(tmp_path))
    assert "Which network for" in render(summary)
    page = render(summary | {"heading": "Common training issues"})
    assert "<h1>Common training issues on" in page and "Which network for" not in page


def test_columns_that_nobody_has_are_left_out(tmp_path: Path):
    make_study(tmp_path, {"mlp": 0.9})
    summary = summarise(collect(tmp_path))
    assert ">Money<" in render(summary)
    for row in summary["rows"]:
        row["money"] = None
    assert ">Money<" not in render(summary)
