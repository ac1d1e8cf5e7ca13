"""The page in a real browser: live filters, themes, three widths, no request to elsewhere, and axe's rules.

Skipped where playwright or a Chromium is missing; axe-core comes by npm, and its test is skipped where that is not to
be had.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tarfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from serve.pages.made_up import make_run
from weft.serve.config import ServeConfig
from weft.training.storage import run_folder

PATIENCE = 120_000  # milliseconds that a view may take on a busy machine
VIEWS = ("/", "/runs/mlp-0", "/curves?run=mlp-0&run=mlp-1", "/comparisons", "/comparisons/study", "/tuning", "/predict",
         "/docs", "/runs/nobody")  # fmt: skip
IN_USE = (
    "/predict?model=digits",
    "/predict?model=words",
    "/predict?model=cells",
    "/start",
    "/start?source=0/reviews.csv",
)


@pytest.fixture(scope="module")
def address(shown: Path, serve: Any) -> Iterator[str]:
    with serve(ServeConfig(folders=(shown / "runs", shown / "comparisons"))) as found:
        yield f"http://{found}"


@pytest.fixture(scope="module")
def in_use(runs: Path, serve: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server of trained networks, with data to start comparisons on."""
    root = tmp_path_factory.mktemp("in_use")
    (root / "data").mkdir()
    rows = "".join(f"{'good' if number % 2 else 'bad'} film {number},{number % 2}\n" for number in range(60))
    (root / "data" / "reviews.csv").write_text("text,label\n" + rows)
    with serve(ServeConfig(folders=(runs, root), data=(root / "data",))) as found:
        yield f"http://{found}"


@pytest.fixture
def page(browser: Any, address: str) -> Iterator[Any]:
    opened = browser.new_page(viewport={"width": 1300, "height": 900})
    opened.set_default_timeout(PATIENCE)
    trouble: list[str] = []
    opened.on("pageerror", lambda error: trouble.append(str(error)))
    opened.on("console", lambda said: trouble.append(said.text) if said.type == "error" else None)
    opened.on("request", lambda asked: None if asked.url.startswith((address, "data:")) else trouble.append(asked.url))
    opened.goto(address)
    yield opened
    assert trouble == []
    opened.close()


def settled(read: Callable[[], Any], expected: Any, seconds: float = 60.0) -> None:
    """Wait until something is as expected; the page's policy forbids Playwright's own way, which evaluates text."""
    until = time.monotonic() + seconds
    while read() != expected and time.monotonic() < until:
        time.sleep(0.05)
    assert read() == expected


def test_the_list_follows_what_is_typed_and_so_does_the_address(page: Any):
    page.fill("input[type=search]", "mlp-(0|2)")
    settled(page.locator("#runs tbody tr").count, 2)
    assert "q=mlp-" in page.url
    page.reload()
    assert page.locator("#runs tbody tr").count() == 2 and page.input_value("input[type=search]") == "mlp-(0|2)"


def test_chosen_runs_are_drawn_together_by_the_keyboard_alone(page: Any):
    assert page.locator("[data-needs-choice]").is_disabled()
    for name in ("mlp-0", "mlp-1"):
        page.locator(f"input[value={name}]").focus()
        page.keyboard.press("Space")
    page.locator("[data-needs-choice]").focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/curves?run=*")
    assert page.locator("figure svg").count() == 3


def test_curves_are_drawn_as_the_form_says_without_leaving_the_page(page: Any, address: str):
    page.goto(f"{address}/runs/mlp-0")
    page.check("input[name=more]")
    settled(page.locator("#charts svg").count, 5)
    assert "more=1" in page.url


def test_a_reader_keeps_the_theme(page: Any):
    ground = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(ground) == "rgb(251, 250, 247)"
    page.click("#theme")
    page.goto(page.url)
    settled(lambda: page.evaluate(ground), "rgb(21, 24, 27)")


def test_every_control_is_reached_by_the_keyboard_and_shows_it(page: Any, address: str):
    for view in ("/", "/runs/mlp-0", "/comparisons/study"):
        page.goto(address + view)
        unseen = page.evaluate(
            """() => [...document.querySelectorAll("a[href], button:not([disabled]), input:not([type=hidden]), select")]
            .filter((each) => each.checkVisibility()).filter((each) => {
                each.focus({ focusVisible: true });
                const style = getComputedStyle(each);
                return document.activeElement !== each || style.outlineStyle === "none" || style.outlineWidth === "0px";
            }).map((each) => each.outerHTML.slice(0, 120))"""
        )
        assert unseen == [], view


def test_a_text_that_is_typed_is_answered_with_bars(browser: Any, in_use: str):
    screen = browser.new_page()
    screen.set_default_timeout(PATIENCE)
    screen.goto(f"{in_use}/predict?model=words&top_k=2")
    screen.fill("textarea", "red abc")
    screen.click("text=Ask")
    settled(screen.locator("[data-answer] .found progress").count, 2)
    screen.close()


def test_a_picture_is_chosen_and_answered_by_two_networks(browser: Any, in_use: str, picture: bytes):
    screen = browser.new_page()
    screen.set_default_timeout(PATIENCE)
    screen.goto(f"{in_use}/predict?model=digits&top_k=3")
    chosen = {"name": "digit.png", "mimeType": "image/png", "buffer": picture}
    screen.locator("input[type=file]").first.set_input_files(chosen)
    settled(screen.locator("[data-answer] .found progress").count, 3)
    assert screen.locator("#preview").is_visible()
    screen.close()


def test_a_source_is_looked_at_before_a_comparison_is_started(browser: Any, in_use: str):
    screen = browser.new_page()
    screen.set_default_timeout(PATIENCE)
    screen.goto(f"{in_use}/start?source=0/reviews.csv")
    screen.click("text=Look at it")
    settled(screen.locator("#holds").count, 1)
    assert screen.locator("ul.bars li").count() == 2 and screen.locator("input[name=time]").is_visible()
    screen.close()


def test_the_curve_of_a_run_grows_while_it_is_watched(browser: Any, serve: Any, tmp_path: Path):
    """Points are written into the run's file, as training does, and come by the stream of events."""
    folder = make_run(tmp_path / "going", 3, None)
    events = folder / "metrics.jsonl"
    with run_folder.open_run(folder).lock(), serve(ServeConfig(folders=(tmp_path,))) as found:
        screen = browser.new_page()
        screen.set_default_timeout(PATIENCE)
        screen.goto(f"http://{found}/runs/going")
        with events.open("a") as file:
            file.write(json.dumps({"kind": "train", "step": 4321, "epoch": 9.0, "loss": 0.25, "lr": 0.1}) + "\n")
        settled(screen.locator("[data-fact=step]").inner_text, "4321")
        assert screen.locator("[data-fact=loss]").inner_text() == "0.2500"
        screen.close()


def test_the_token_is_asked_for_once(browser: Any, serve: Any, shown: Path):
    with serve(ServeConfig(folders=(shown / "runs",), token="correct-horse-battery")) as found:
        screen = browser.new_page()
        screen.set_default_timeout(PATIENCE)
        screen.goto(f"http://{found}/runs/mlp-0")
        screen.fill("#token", "correct-horse-battery")
        screen.click("text=Enter")
        settled(screen.locator("#runs").count, 1)
        assert "correct-horse" not in screen.url
        screen.goto(f"http://{found}/runs/mlp-0")
        assert screen.locator("#charts").count() == 1
        screen.close()


@pytest.mark.parametrize("width", [420, 800, 1300])
def test_no_view_scrolls_sideways(browser: Any, address: str, in_use: str, width: int):
    screen = browser.new_page(viewport={"width": width, "height": 900})
    screen.set_default_timeout(PATIENCE)
    for view in [address + view for view in VIEWS] + [in_use + view for view in IN_USE]:
        screen.goto(view)
        assert screen.evaluate("document.documentElement.scrollWidth") <= width, view
    screen.close()


@pytest.fixture(scope="module")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """axe-core as npm has it."""
    if shutil.which("npm") is None:
        pytest.skip("no npm to fetch axe-core with")
    folder = tmp_path_factory.mktemp("axe")
    try:
        subprocess.run(["npm", "pack", "axe-core@4"], cwd=folder, check=True, capture_output=True, timeout=60)
    except (subprocess.SubprocessError, OSError):
        pytest.skip("npm could not fetch axe-core")
    with tarfile.open(next(folder.glob("*.tgz"))) as archive:
        file = archive.extractfile("package/axe.min.js")
        assert file is not None
        return file.read().decode()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(browser: Any, address: str, in_use: str, axe: str, scheme: str):
    screen = browser.new_page(viewport={"width": 1300, "height": 900}, color_scheme=scheme)
    screen.set_default_timeout(PATIENCE)
    for view in [address + view for view in VIEWS] + [in_use + view for view in IN_USE]:
        screen.goto(view)
        found = screen.evaluate(f"async () => {{ {axe}; return (await axe.run()).violations }}")
        grave = [(each["id"], each["nodes"][0]["html"]) for each in found if each["impact"] in ("serious", "critical")]
        assert grave == [], view
    screen.close()
