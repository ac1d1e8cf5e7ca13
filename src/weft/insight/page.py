"""One HTML file with the findings of all lenses in it, in the report's style."""

from __future__ import annotations

import re
import struct
from base64 import b64encode
from collections.abc import Sequence
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from weft import __version__
from weft.insight.finding import Finding, Picture, Table, numeric, written
from weft.insight.subject import Subject
from weft.report.page import style
from weft.terminal import for_page, shown

FEW, MANY = 6, 200  # rows of a table that is open from the start, and that are shown at most
WIDE = 700  # pixels from which a picture takes a row of its own

THEME = """document.getElementById("theme").addEventListener("click", () => {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
});"""


def render(subject: Subject, found: Sequence[Finding | str]) -> str:
    """The page as text; a string among `found` says why a lens was left out."""
    environment = Environment(
        loader=PackageLoader("weft.insight", "pages"), autoescape=True, finalize=shown, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    own = files("weft.insight").joinpath("pages", "insight.css").read_text(encoding="utf-8")
    return environment.get_template("insight.html.j2").render(
        subject=subject.name,
        lead=lead(subject),
        findings=[finding for finding in found if isinstance(finding, Finding)],
        left_out=[reason for reason in found if isinstance(reason, str)],
        style=Markup(style() + own),
        script=Markup(THEME),
        version=__version__,
        few=FEW, many=MANY, tables=tables, wide=wide, drawn=drawn, numeric=numeric, written=written,
    )  # fmt: skip


def lead(subject: Subject) -> str:
    """What is looked at, in one sentence."""
    parameters = sum(weight.numel() for weight in subject.network.parameters())
    kind = "trained" if subject.folder else "untrained"
    shown = f", shown {subject.source.name} ({subject.split})" if subject.opener else ""
    return f"{subject.card.model}, {kind}, {parameters:,} parameters{shown}."


def tables(finding: Finding) -> list[tuple[str, Table]]:
    """The tables of a finding with their names; the first has none."""
    return [("", finding.table), *((name, table) for name, table in finding.more.items() if table != finding.table)]


def drawn(picture: Picture) -> Markup:
    """A picture as a part of the page."""
    if isinstance(picture.content, str):
        return Markup(picture.content)
    data, (width, height) = b64encode(picture.content).decode(), png_size(picture.content)
    alternative = for_page(picture.alternative or picture.caption)
    return Markup(
        f'<img src="data:image/png;base64,{data}" width="{width}" height="{height}" alt="{alternative}" loading="lazy">'
    )


def wide(picture: Picture) -> bool:
    """Whether a picture needs the page's whole width."""
    if isinstance(picture.content, bytes):
        return png_size(picture.content)[0] >= WIDE
    box = re.search(r'viewBox="0 0 (\d+) ', picture.content)
    return box is not None and int(box[1]) >= WIDE


def png_size(content: bytes) -> tuple[int, int]:
    """Width and height of a PNG, from its header."""
    width, height = struct.unpack(">II", content[16:24])
    return width, height
