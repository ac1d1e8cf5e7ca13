"""No words over words, cut off or out of their picture: 48 pages of comparisons, insight and sources, and some of each
other kind, on a wide screen, a tablet and a phone. Skipped where playwright or a Chromium is missing."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from report import fabricated_pages

WIDTHS = (1300, 800, 420)
CLASSES = (2, 10, 37, 100)
CHECK = Path(__file__).with_name("overlaps.js").read_text()
OTHERS = (
    "inspection_of_texts", "inspection_of_convolutions", "search", "rate_maps", "published_table", "measured_speeds",
    "probed",
)  # fmt: skip


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., str]:
    @cache
    def address(kind: str, *classes: int) -> str:
        folder = tmp_path_factory.mktemp(kind)
        before = (folder / "study",) if kind == "comparison" else ()
        (folder / "page.html").write_text(getattr(fabricated_pages, kind)(*before, *classes))
        return (folder / "page.html").as_uri()

    return address


def faults(browser: Any, address: str, width: int) -> list[str]:
    screen = browser.new_page(viewport={"width": width, "height": 900})
    screen.goto(address)
    found = screen.evaluate(CHECK)
    screen.close()
    return found


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("classes", CLASSES)
@pytest.mark.parametrize("kind", ["comparison", "inspection", "one_lens", "source"])
def test_no_words_overlap_or_are_cut(browser: Any, made: Callable[..., str], kind: str, classes: int, width: int):
    assert faults(browser, made(kind, classes), width) == []


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("kind", OTHERS)
def test_no_words_overlap_or_are_cut_on_other_pages(browser: Any, made: Callable[..., str], kind: str, width: int):
    assert faults(browser, made(kind), width) == []


def test_the_leaderboard_needs_no_scrolling_on_a_wide_screen(browser: Any, made: Callable[..., str]):
    screen = browser.new_page(viewport={"width": 1300, "height": 900})
    screen.goto(made("comparison", 10))
    table = screen.locator(".scroll").first
    assert "Money" in table.inner_text()
    assert table.evaluate("box => box.scrollWidth <= box.clientWidth")
    screen.close()


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ('<p style="margin: 0">some words</p><p style="margin: -1.1em 0 0">other words</p>', "overlap"),
        ('<svg viewBox="0 0 100 40"><text x="5" y="20">one</text><text x="12" y="22">two</text></svg>', "overlap"),
        ('<svg viewBox="0 0 100 40" width="200"><text x="80" y="20">beyond</text></svg>', "outside of its picture"),
        ('<p style="width: 4rem; overflow: hidden; white-space: nowrap">words that are cut off</p>', "cut off"),
        ('<p style="white-space: nowrap; width: 900px">' + "far " * 60 + "</p>", "outside of the page"),
        ('<p style="width: 3rem; word-break: break-all">staffordshire_bull</p>', "broken"),
        ('<svg viewBox="0 0 100 40"><text x="5" y="20">a name that…</text></svg>', "cut without a tooltip"),
        ('<div class="panel"><svg viewBox="0 0 40 90" width="40"><text y="20">a</text></svg></div>', "half empty"),
        ('<svg viewBox="0 0 900 40" width="300"><text x="5" y="20">tiny</text></svg>', "letters of"),
    ],
)  # fmt: skip
def test_each_fault_would_be_found(browser: Any, tmp_path: Path, body: str, fault: str):
    (tmp_path / "page.html").write_text(f"<!doctype html><style>svg {{ display: block }}</style><body>{body}")
    assert any(fault in sentence for sentence in faults(browser, (tmp_path / "page.html").as_uri(), 420))


def test_a_page_without_faults_has_none(browser: Any, tmp_path: Path):
    words = '<p>words, and <b>more</b> words</p><svg viewBox="0 0 100 40"><text x="5" y="20">one</text></svg>'
    (tmp_path / "page.html").write_text(f"<!doctype html><body>{words}")
    assert faults(browser, (tmp_path / "page.html").as_uri(), 420) == []
