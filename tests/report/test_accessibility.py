"""The report by keyboard and screen reader: axe-core finds no violation of WCAG 2.1 A and AA, light and dark, wide and
narrow. Skipped where npm, the package or a browser is missing."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from report.fabricated_pages import comparison

AXE = "axe-core@4.10.2"
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]


@pytest.fixture(scope="module")
def axe(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The script of axe-core, fetched once and kept in pytest's cache, where that is in use."""
    npm, cache = shutil.which("npm"), getattr(request.config, "cache", None)
    folder = tmp_path_factory.mktemp("axe") if cache is None else cache.mkdir("axe")
    script = Path(folder) / "node_modules" / "axe-core" / "axe.min.js"
    if not script.is_file():
        if npm is None:
            pytest.skip("no npm to fetch axe-core with")
        command = [npm, "install", "--prefix", str(folder), "--no-save", "--no-audit", "--no-fund", AXE]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        except subprocess.TimeoutExpired:
            pytest.skip("npm cannot fetch axe-core within a minute")
        if done.returncode:
            pytest.skip("npm cannot fetch axe-core here")
    return script.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(comparison(tmp_path_factory.mktemp("study"), 10), encoding="utf-8")
    return path.as_uri()


@pytest.mark.parametrize("width", [1280, 420])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_violation(browser: Any, axe: str, address: str, scheme: str, width: int):
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page.goto(address)
    page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
    page.evaluate(axe)
    found = page.evaluate("rules => axe.run(document, {runOnly: rules})", RULES)
    page.close()
    told = [(v["id"], v["help"], [node["html"][:120] for node in v["nodes"][:3]]) for v in found["violations"]]
    assert not told and found["passes"]
