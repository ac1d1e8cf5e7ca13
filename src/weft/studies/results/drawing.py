"""Draws a folder of results: terminal, report.html. Also when nothing is to be run: the records are enough."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from weft.disk import claim, write_bytes
from weft.report.page import render
from weft.studies.results.error_examples import read_mistakes
from weft.studies.results.load import collect
from weft.studies.results.summary import summarise


def draw(folder: Path) -> dict[str, Any]:
    """Write report.html into the folder and return the summary that it shows."""
    summary = summarise(collect(folder))
    write_bytes(claim(folder / "report.html"), render(summary, read_mistakes(folder)).encode())
    return summary
