"""The report in a real browser: sorting, the chart of two columns, themes, a phone's screen, and no outside request.

Skipped where playwright or a Chromium is missing.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from studies.fabricated import CANDIDATES, make_study
from weft.studies.results.summary import draw_report


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder: Path = tmp_path_factory.mktemp("study")
    make_study(folder, CANDIDATES)
    draw_report(folder)
    return (folder / "report.html").as_uri()


@pytest.fixture
def page(browser: Any, report: str) -> Iterator[Any]:
    opened = browser.new_page(viewport={"width": 1280, "height": 900})
    trouble: list[str] = []
    opened.on("pageerror", lambda error: trouble.append(str(error)))
    opened.on(
        "request", lambda request: None if request.url.startswith(("file:", "data:")) else trouble.append(request.url)
    )
    opened.goto(report)
    yield opened
    assert trouble == []
    opened.close()


def column(page: Any, number: int) -> list[str]:
    return page.eval_on_selector_all(
        f".sortable tbody tr > :nth-child({number})", "cells => cells.map(c => c.dataset.value)"
    )


def test_the_leaderboard_sorts_by_a_click_and_by_the_keyboard(page: Any):
    assert column(page, 2) == sorted(column(page, 2), key=float, reverse=True)
    heading = page.locator(".sortable thead th").nth(1)
    heading.locator("button").click()
    assert heading.get_attribute("aria-sort") == "ascending"
    assert column(page, 2) == sorted(column(page, 2), key=float)
    first = page.locator(".sortable thead th").first
    first.locator("button").focus()
    page.keyboard.press("Enter")
    assert column(page, 1) == sorted(column(page, 1), reverse=True)
    assert heading.get_attribute("aria-sort") is None


def test_any_two_columns_can_be_set_against_each_other(page: Any):
    shown = page.locator(".scatters figure:visible")
    assert shown.count() == 1 and shown.get_attribute("data-across") == "core_seconds"
    page.select_option("#across", "parameters")
    assert (shown.get_attribute("data-up"), shown.get_attribute("data-across")) == ("score", "parameters")
    page.select_option("#up", "parameters")
    assert shown.count() == 1 and page.input_value("#across") != "parameters"


def test_the_theme_follows_the_system_until_the_reader_chooses(browser: Any, report: str):
    dark = browser.new_page(color_scheme="dark")
    dark.goto(report)
    ground = "getComputedStyle(document.body).backgroundColor"
    assert dark.evaluate(ground) == "rgb(21, 24, 27)"
    dark.click("#theme")
    assert dark.evaluate(ground) == "rgb(251, 250, 247)"
    dark.close()


@pytest.mark.parametrize("width", [360, 1920])
def test_the_page_never_scrolls_sideways(browser: Any, report: str, width: int):
    screen = browser.new_page(viewport={"width": width, "height": 800})
    screen.goto(report)
    assert screen.evaluate("document.documentElement.scrollWidth") <= width
    screen.close()


def test_it_prints(page: Any):
    page.emulate_media(media="print")
    assert page.locator(".controls").is_hidden()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.pdf()[:5] == b"%PDF-"
