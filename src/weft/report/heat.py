"""Matrices as cells whose shade is a share: confusions, and maps of a metric over two settings."""

from __future__ import annotations

from weft.report.chart import picture, text
from weft.terminal import for_page

LARGEST, SMALLEST, READABLE = 34.0, 9.0, 22.0  # sides of a cell; a number is written into readable ones
NARROWEST = 300.0  # of a picture: on a page, two classes would otherwise be blown up to the width of forty


def heat(
    shades: list[list[float]],
    words: list[list[str]],
    rows: list[str],
    columns: list[str],
    titles: tuple[str, str],
    said: str,
    diagonal: bool = False,
) -> str:
    """Cells shaded by `shades` in [0, 1] with `words` in them; with `diagonal`, cells off it are of another colour."""
    size = max(SMALLEST, min(LARGEST, 320 / max(len(rows), len(columns))))
    left, top = 26 + 6.4 * min(10, max(map(len, rows))), 8.0
    floor = top + len(rows) * size
    width, height = left + len(columns) * size + 10, floor + 26 + 4.8 * min(10, max(map(len, columns)))
    parts = []
    for i, line in enumerate(shades):
        for j, shade in enumerate(line):
            kind = "wrong" if diagonal and i != j else "right"
            about = f"{rows[i]}, {columns[j]}: {words[i][j]}"
            parts.append(cell(left + j * size, top + i * size, size, shade, kind, words[i][j], about))
    for i, name in enumerate(rows):
        parts.append(text(left - 5, top + (i + 0.5) * size + 4, clipped(name), "end"))
    for j, name in enumerate(columns):
        parts.append(text(left + (j + 0.5) * size + 4, floor + 9, clipped(name), "end", turned=-45))
    parts.append(text((left + width) / 2, height - 3, titles[1], kind="title"))
    parts.append(text(11, (top + floor) / 2, titles[0], kind="title", turned=-90))
    return picture(max(width, NARROWEST), height, "".join(parts), said, "heat")


def cell(x: float, y: float, size: float, shade: float, kind: str, words: str, about: str) -> str:
    """One cell with its tooltip."""
    side = f'width="{size - 1:.1f}" height="{size - 1:.1f}"'
    box = f'<rect class="cell {kind}" x="{x:.1f}" y="{y:.1f}" {side} style="--s:{max(0.0, min(1.0, shade)):.3f}"/>'
    number = ""
    if words and size >= READABLE:
        number = text(x + size / 2, y + size / 2 + 4, words, kind="count on" if shade > 0.5 else "count")
    return f"<g><title>{for_page(about)}</title>{box}{number}</g>"


def clipped(name: str) -> str:
    return name if len(name) <= 10 else name[:9] + "…"


def confusion(name: str, matrix: list[list[int]], classes: list[str]) -> str:
    """Counts (true class, predicted class), shaded by the share of the true class."""
    count = len(matrix)
    labels = classes if len(classes) == count else [str(number) for number in range(count)]
    shades = [[value / max(sum(line), 1) for value in line] for line in matrix]
    words = [[str(value) if value else "" for value in line] for line in matrix]
    right, total = sum(matrix[i][i] for i in range(count)), sum(map(sum, matrix))
    worst = max((matrix[i][j], labels[i], labels[j]) for i in range(count) for j in range(count) if i != j)
    said = f"Confusion matrix of {name}: {right:,} of {total:,} right"
    if worst[0]:
        said += f"; most often {worst[1]} is taken for {worst[2]}, {worst[0]} times"
    return heat(shades, words, labels, labels, ("true", "predicted"), said, diagonal=True)
