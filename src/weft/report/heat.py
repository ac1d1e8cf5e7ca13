"""Matrices as cells whose shade is a share: confusions, and maps of a metric over two settings."""

from __future__ import annotations

from collections.abc import Sequence

from weft.report.chart import picture
from weft.report.words import LINE, block, shortened, text, width, wrapped
from weft.terminal import for_page

SIDES = ((12, 30.0), (20, 25.0), (40, 15.0))  # up to so many rows or columns, a cell has this side
SMALLEST, READABLE = 9.0, 24.0  # sides of a cell; a number is written into readable ones
NARROWEST = 300.0  # of a picture: on a page, two classes would otherwise be blown up to the width of forty
NAMES, LETTERS = 250.0, 11.0  # pixels of a name in one line, and of its letters
ROOMS = (90.0, 120.0, 150.0, 190.0)  # pixels of a line of a name that has two: the first that holds them all
MANY = 40  # classes up to which a matrix can be read; above, a list of the commonest confusions says more
FAINT = 4  # by how much mistakes are shaded stronger than right answers, so that rare ones are seen

# Colours of the style sheet that a cell is mixed of: full colour and card, in light and in dark.
GROUNDS = {
    "right": ((0x00, 0x72, 0xB2), (0xFF, 0xFF, 0xFF), (0x56, 0xB4, 0xE9), (0x1E, 0x22, 0x26)),
    "wrong": ((0xB3, 0x28, 0x2D), (0xFF, 0xFF, 0xFF), (0xFF, 0x80, 0x85), (0x1E, 0x22, 0x26)),
}
EVEN = 0.179  # luminance at which black and white letters are equally easy to read (WCAG 2)


def heat(
    shades: list[list[float]],
    words: list[list[str]],
    rows: list[str],
    columns: list[str],
    titles: tuple[str, str],
    said: str,
    diagonal: bool = False,
    key: Sequence[tuple[str, str]] = (),
) -> str:
    """Cells shaded by `shades` in [0, 1] with `words` in them; with `diagonal`, cells off it are of another colour.

    `key` says of some kinds of cell, right or wrong, what they stand for.
    """
    count = max(len(rows), len(columns))
    size = next((side for most, side in SIDES if count <= most), SMALLEST)
    down, across = names(rows, size), names(columns, size)
    left, top = 24 + widest(down), 22.0
    floor = top + len(rows) * size
    foot = floor + 10 + widest(across)
    parts = []
    for i, line in enumerate(shades):
        for j, shade in enumerate(line):
            kind = "wrong" if diagonal and i != j else "right"
            about = f"{rows[i]}, {columns[j]}: {words[i][j] or 0}"
            parts.append(cell(left + j * size, top + i * size, size, shade, kind, words[i][j], about))
    for i, lines in enumerate(down):
        first = top + (i + 0.5) * size + 4 - (len(lines) - 1) * 6
        parts.append(titled(block(left - 5, first, lines, "end", "name", step=12), rows[i]))
    for j, lines in enumerate(across):
        first = left + (j + 0.5) * size + 4 - (len(lines) - 1) * 6
        parts.append(titled(block(first, floor + 6, lines, "end", "name", turned=-90, step=12), columns[j]))
    parts.append(text(left, top - 8, f"{titles[0]} ↓   {titles[1]} →", "start", kind="title"))
    wide = max(left + len(columns) * size + 10, left + width(f"{titles[0]} ↓   {titles[1]} →", bold=True), NARROWEST)
    legend, below = swatches(key, wide)
    parts.append(f'<g transform="translate(0 {foot + 8:.1f})">{legend}</g>')
    return picture(wide, foot + 6 + below, "".join(parts), said, "heat")


def names(found: Sequence[str], size: float) -> list[list[str]]:
    """Each name in as many lines as a cell has room for."""
    if size < LETTERS:
        return [[""] for _ in found]
    if size < 2 * 12:
        return [[shortened(name, NAMES, LETTERS)] for name in found]
    room = next((room for room in ROOMS if all(fits(name, room) for name in found)), ROOMS[-1])
    return [wrapped(name, room, 2, LETTERS) for name in found]


def fits(name: str, room: float) -> bool:
    """Whether two lines of so many pixels hold all of a name."""
    return "…" not in "".join(wrapped(name, room, 2, LETTERS))


def widest(found: Sequence[Sequence[str]]) -> float:
    return max((width(line, LETTERS) for lines in found for line in lines), default=0.0)


def titled(content: str, said: str) -> str:
    return f"<g><title>{for_page(said)}</title>{content}</g>"


def swatches(key: Sequence[tuple[str, str]], room: float) -> tuple[str, float]:
    """What the colours of cells stand for, from pale to full, and the height that it takes."""
    parts, y = [], 10.0
    for kind, says in key:
        for number, shade in enumerate((0.1, 0.4, 1.0)):
            box = f'x="{8 + 13 * number}" y="{y - 10:.1f}" width="12" height="12" fill-opacity="{shade}"'
            parts.append(f'<rect class="cell {kind}" {box}/>')
        lines = wrapped(says, room - 62, most=3)
        parts.append(block(54, y, lines, "start"))
        y += 5 + LINE * len(lines)
    return "".join(parts), y if key else 0.0


def cell(x: float, y: float, size: float, shade: float, kind: str, words: str, about: str) -> str:
    """One cell with its tooltip."""
    shade = max(0.0, min(1.0, shade))
    side = f'width="{size - 1:.1f}" height="{size - 1:.1f}"'
    box = f'<rect class="cell {kind}" x="{x:.1f}" y="{y:.1f}" {side} fill-opacity="{strength(shade, kind):.3f}"/>'
    number = ""
    if words and size >= READABLE:
        small = " small" if len(words) > 3 else ""
        number = text(x + size / 2 - 0.5, y + size / 2 + 3.5, words, kind=f"count{ink(shade, kind)}{small}")
    return f"<g><title>{for_page(about)}</title>{box}{number}</g>"


def ink(shade: float, kind: str) -> str:
    """Classes of a number on a cell: `deep` has white letters on a light page, `pale` black ones on a dark page."""
    full, card, dark_full, dark_card = GROUNDS[kind]
    deep = luminance(mixed(full, card, strength(shade, kind))) < EVEN
    pale = luminance(mixed(dark_full, dark_card, strength(shade, kind))) >= EVEN
    return " deep" * deep + " pale" * pale


def strength(shade: float, kind: str) -> float:
    """How much of its colour a cell has."""
    return min(1.0, FAINT * shade) if kind == "wrong" else shade


def mixed(first: Sequence[int], second: Sequence[int], share: float) -> list[float]:
    """A colour between two, as one that lies over the other with this opacity."""
    return [share * a + (1 - share) * b for a, b in zip(first, second, strict=True)]


def luminance(colour: Sequence[float]) -> float:
    """Relative luminance, as WCAG 2 has it."""
    parts = [part / 255 for part in colour]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def labels_of(matrix: Sequence[Sequence[int]], classes: Sequence[str]) -> list[str]:
    """The names of the classes; their numbers where they are not known."""
    return list(classes) if len(classes) == len(matrix) else [str(number) for number in range(len(matrix))]


def confusion(name: str, matrix: list[list[int]], classes: list[str]) -> str:
    """Counts (true class, predicted class), shaded by the share of the true class."""
    count, labels = len(matrix), labels_of(matrix, classes)
    shades = [[value / max(sum(line), 1) for value in line] for line in matrix]
    words = [[str(value) if value else "" for value in line] for line in matrix]
    right, total = sum(matrix[i][i] for i in range(count)), sum(map(sum, matrix))
    said = f"Confusion matrix of {name}: {right:,} of {total:,} right"
    for times, true, predicted, _ in commonest(matrix, classes, 1):
        said += f"; most often {true} is taken for {predicted}, {times} times"
    key = ("right", "right, from few to all of its class"), ("wrong", "mistaken, from few to a quarter or more")
    return heat(shades, words, labels, labels, ("true", "predicted"), said, diagonal=True, key=key)


def commonest(matrix: Sequence[Sequence[int]], classes: Sequence[str], most: int) -> list[tuple[int, str, str, float]]:
    """The commonest confusions: how often, true class, predicted class, share of the true class."""
    labels = labels_of(matrix, classes)
    found = [
        (value, labels[i], labels[j], value / sum(line))
        for i, line in enumerate(matrix)
        for j, value in enumerate(line)
        if i != j and value
    ]
    return sorted(found, key=lambda each: -each[0])[:most]
