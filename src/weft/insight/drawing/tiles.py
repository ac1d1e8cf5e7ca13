"""Sheets of small pictures under their labels: as SVG for a file, and for a page as a grid that follows its width."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from weft.insight.drawing.raster import Key, Pixels, address, embedded
from weft.insight.finding import Picture
from weft.report.chart import picture
from weft.report.words import LINE, block, breakable, text, wrapped
from weft.terminal import for_page

Tile = tuple[str, Pixels]  # label and picture
WIDTH, GAP = 560.0, 8.0
SMALLEST = {1: 16.0, 2: 14.0, 3: 11.0, 4: 9.0, 5: 8.0, 6: 7.0}  # rem of a tile on a page, by tiles in a row of the file


def sheet(
    tiles: Sequence[Tile] | Mapping[str, Sequence[Tile]],
    said: str,
    caption: str,
    *,
    columns: int = 6,
    together: int = 1,
    key: Key | None = None,
) -> Picture:
    """Tiles, or rows of them under titles; `together` of them belong to each other and are never parted."""
    groups = tiles if isinstance(tiles, Mapping) else {"": tiles}
    inner = "".join(page_group(title, row, columns, together) for title, row in groups.items())
    least = max(len(row) for row in groups.values()) * SMALLEST.get(columns, 5.0)
    page = f'<div class="groups" style="--group: {least:g}rem">{inner}</div>' if len(groups) > 1 else inner
    return Picture(
        svg(groups, said, columns, key),
        caption,
        page=f'<div role="group" aria-label="{for_page(said)}">{page}</div>{key.page() if key else ""}',
    )


def svg(groups: Mapping[str, Sequence[Tile]], said: str, columns: int, key: Key | None) -> str:
    """Rows of tiles, each tile under its label, which takes as many lines as it needs."""
    columns = max(1, min(columns, sum(len(row) for row in groups.values())))
    side = (WIDTH - GAP * (columns + 1)) / columns
    parts, top = [], GAP
    for title, tiles in groups.items():
        if title:
            lines = wrapped(title, WIDTH - 2 * GAP, most=2, bold=True)
            parts.append(block(GAP, top + 12, lines, "start", "title"))
            top += LINE * len(lines) + 4
        for start in range(0, len(tiles), columns):
            drawn, used = svg_row(tiles[start : start + columns], side, top)
            parts.append(drawn)
            top += used + GAP
    if key is not None:
        parts.append(key.svg(top, WIDTH))
        top += 20
    return picture(WIDTH, top, "".join(parts), said, "sheet")


def svg_row(tiles: Sequence[Tile], side: float, top: float) -> tuple[str, float]:
    """One row, and its height."""
    labels = [wrapped(label, side, most=4) if label else [] for label, _ in tiles]
    head = LINE * max(map(len, labels)) + (4 if any(labels) else 0)
    parts = []
    for column, ((label, pixels), lines) in enumerate(zip(tiles, labels, strict=True)):
        left, high = GAP + column * (side + GAP), side * pixels.shape[0] / pixels.shape[1]
        parts += [text(left, top + 11 + LINE * n, line, "start") for n, line in enumerate(lines)]
        parts.append(embedded(pixels, left, top + head, side, high, label))
    return "".join(parts), head + max(pixels.shape[0] / pixels.shape[1] for _, pixels in tiles) * side


def page_group(title: str, tiles: Sequence[Tile], columns: int, together: int) -> str:
    """Tiles as a list that a browser lays out."""
    heading = f'<h4 class="rows">{breakable(title)}</h4>' if title else ""
    sets = [tiles[start : start + together] for start in range(0, len(tiles), together)]
    items = "".join(f"<li>{''.join(page_tile(*tile) for tile in each)}</li>" for each in sets)
    least = SMALLEST.get(columns, 5.0) * together
    return f'<div>{heading}<ul class="tiles" style="--tile: {least:g}rem; --together: {together}">{items}</ul></div>'


def page_tile(label: str, pixels: Pixels) -> str:
    """A picture over its label."""
    image = f'<img src="{address(pixels)}" alt="{for_page(label)}">'
    return f"<figure>{image}{f'<figcaption>{breakable(label)}</figcaption>' if label else ''}</figure>"
