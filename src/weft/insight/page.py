"""One HTML file with the findings of all lenses in it, in the report's style."""

from __future__ import annotations

import re
import struct
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from weft import __version__
from weft.insight.finding import Finding, Picture, Table, numeric, written
from weft.insight.score import score
from weft.insight.subject import Subject
from weft.report.page import style
from weft.report.words import breakable
from weft.terminal import for_page, shown

FEW, MANY = 6, 200  # rows of a table that is open from the start, and that are shown at most
WIDE = 520  # pixels from which a picture takes a row of its own
COLUMNS = 6  # of a wide page
NARROW = 6  # columns of a table that half of the page has room for

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
    environment.filters["breakable"] = breakable
    own = files("weft.insight").joinpath("pages", "insight.css").read_text(encoding="utf-8")
    findings = [finding for finding in found if isinstance(finding, Finding)]
    return environment.get_template("insight.html.j2").render(
        subject=subject.name,
        lead=lead(subject),
        score=score(subject, found),
        sections=[section for finding in findings if (section := about_the_run(finding)).cards or not section.theory],
        theory=[section for finding in findings if (section := in_theory(finding)).cards],
        left_out=[reason for reason in found if isinstance(reason, str)],
        style=Markup(style() + own),
        script=Markup(THEME),
        version=__version__,
        many=MANY, numeric=numeric, written=written,
    )  # fmt: skip


@dataclass(frozen=True)
class Card:
    """A picture or a table, how many of the six columns of a wide page it takes, and whether it is folded."""

    caption: str
    span: int
    drawn: Markup | None = None
    table: Table | None = None
    folded: bool = False


@dataclass(frozen=True)
class Section:
    """What one lens shows; `theory` where it shows textbook things alone."""

    finding: Finding
    cards: list[Card]
    theory: bool


def about_the_run(finding: Finding) -> Section:
    """The pictures and tables that are about the network."""
    pictures = [picture for name, picture in finding.pictures.items() if name not in finding.textbook]
    tables = [(name, table) for name, table in tables_of(finding) if name not in finding.textbook and table.rows]
    bare = not pictures and finding.textbook & finding.pictures.keys()
    return Section(finding, [] if bare else laid_out(pictures, tables), bool(bare))


def in_theory(finding: Finding) -> Section:
    """The pictures and tables that hold for every network."""
    pictures = [picture for name, picture in finding.pictures.items() if name in finding.textbook]
    tables = [(name, table) for name, table in tables_of(finding) if name in finding.textbook and table.rows]
    return Section(finding, laid_out(pictures, tables), True)


def laid_out(pictures: Sequence[Picture], tables: Sequence[tuple[str, Table]]) -> list[Card]:
    """Cards in rows that fill the page: pictures that flow have a row each, charts share one, a lone chart has the
    first table beside it if that is narrow, else a picture that flows, and long tables are folded."""
    flowing = [picture for picture in pictures if wide(picture)]
    charts = [picture for picture in pictures if not wide(picture)]
    cards = [Card(picture.caption, COLUMNS, drawn=drawn(picture)) for picture in flowing]
    lone = len(charts) == 1 and bool(tables) and len(tables[0][1].columns) <= NARROW
    paired = len(charts) == 1 and bool(flowing) and not lone
    if paired:
        cards[-1] = replace(cards[-1], span=COLUMNS // 2)
    spans = [COLUMNS // 2] if lone or paired else spans_of(len(charts))
    cards += [Card(each.caption, span, drawn=drawn(each)) for each, span in zip(charts, spans, strict=True)]
    for number, (name, table) in enumerate(tables):
        beside = lone and not number
        count = f"{len(table.rows)} row{'s' if len(table.rows) != 1 else ''}"
        caption = f"Table{f' of {name}' if name else ''}: {count}"
        folded = not beside and len(table.rows) > FEW
        cards.append(Card(caption, COLUMNS // 2 if beside else COLUMNS, table=table, folded=folded))
    return cards


def spans_of(count: int) -> list[int]:
    """Columns of each of `count` charts in rows of three, with rows of two where three do not come out even."""
    pairs = {0: 0, 1: 2, 2: 1}[count % 3] if count > 1 else 0
    if count == 1:
        return [COLUMNS]
    return [COLUMNS // 2] * (2 * pairs) + [COLUMNS // 3] * (count - 2 * pairs)


def lead(subject: Subject) -> str:
    """What is looked at, in one sentence."""
    parameters = sum(weight.numel() for weight in subject.network.parameters())
    kind = "trained" if subject.folder else "untrained"
    shown = f", shown {subject.source.name} ({subject.split})" if subject.opener else ""
    return f"{subject.card.model}, {kind}, {parameters:,} parameters{shown}."


def tables_of(finding: Finding) -> list[tuple[str, Table]]:
    """The tables of a finding with their names; the first has none, unless it is one of the others."""
    first = next((name for name, table in finding.more.items() if table == finding.table), "")
    rest = [(name, table) for name, table in finding.more.items() if name != first]
    return [(first, finding.table), *rest]


def drawn(picture: Picture) -> Markup:
    """A picture as a part of the page."""
    if picture.page:
        return Markup(picture.page)
    if isinstance(picture.content, str):
        return Markup(picture.content)
    data, (width, height) = b64encode(picture.content).decode(), png_size(picture.content)
    alternative = for_page(picture.alternative or picture.caption)
    return Markup(
        f'<img src="data:image/png;base64,{data}" width="{width}" height="{height}" alt="{alternative}" loading="lazy">'
    )


def wide(picture: Picture) -> bool:
    """Whether a picture needs the page's whole width."""
    if picture.page:
        return True
    if isinstance(picture.content, bytes):
        return png_size(picture.content)[0] >= WIDE
    box = re.search(r'viewBox="0 0 (\d+) ', picture.content)
    return box is not None and int(box[1]) >= WIDE


def png_size(content: bytes) -> tuple[int, int]:
    """Width and height of a PNG, from its header."""
    width, height = struct.unpack(">II", content[16:24])
    return width, height
