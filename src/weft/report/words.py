"""How wide words are, and how they are broken into lines, where no browser does it: in SVG.

Widths are those of DejaVu Sans, the widest of the fonts that `system-ui` stands for, so that elsewhere there is room
to spare.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from markupsafe import Markup

from weft.terminal import for_page

SIZE = 12.0  # pixels of a chart's letters
LINE = 14.0  # from one line to the next
BOLD = 1.1  # how much wider bold letters are
WIDTHS = {"ijlI'|.,:; !": 0.34, "ftr()[]/-": 0.42, "mwMW@%—": 0.98, "_s czxkvy": 0.58}  # of a letter, in its size
LETTERS = {letter: width for letters, width in WIDTHS.items() for letter in letters}
WITHIN = r"(?<=[_/+@])(?=\S)|(?<=[.,:\-])(?=[^\d\s])"  # where a name may be broken: not within a number
NAMES, BREAKS = re.compile(WITHIN), re.compile(rf"(?<=\s)|{WITHIN}")


def width(words: str, size: float = SIZE, bold: bool = False) -> float:
    """About how many pixels words take in one line."""
    ems = sum(LETTERS.get(letter) or usual(letter) for letter in words)
    return ems * size * (BOLD if bold else 1.0)


def usual(letter: str) -> float:
    """The width of a letter that has none of its own: capitals are wide, those of East Asia square."""
    if ord(letter) >= 0x1100:
        return 1.05
    return 0.76 if letter.isupper() else 0.65


def wrapped(words: str, room: float, most: int = 2, size: float = SIZE, bold: bool = False) -> list[str]:
    """Words in at most `most` lines of `room` pixels, broken between words, then behind _ - . and the like, then
    anywhere; what does not fit is left out of the middle, where names that begin and end alike differ least."""
    lines = [""]
    for piece in pieces(words, room, size, bold):
        if lines[-1] and width((lines[-1] + piece).rstrip(), size, bold) > room:
            lines.append("")
        lines[-1] += piece
    if len(lines) > most:
        lines[most - 1 :] = [shortened("".join(lines[most - 1 :]).strip(), room, size, bold)]
    return [line.strip() for line in lines]


def pieces(words: str, room: float, size: float, bold: bool) -> list[str]:
    """What words may be broken into, each no wider than a line."""
    found: list[str] = []
    for piece in BREAKS.split(words):
        while width(piece.rstrip(), size, bold) > room and len(piece) > 1:
            count = next(n for n in range(len(piece) - 1, 0, -1) if n == 1 or width(piece[:n], size, bold) <= room)
            found.append(piece[:count])
            piece = piece[count:]
        found.append(piece)
    return found


def shortened(words: str, room: float, size: float = SIZE, bold: bool = False) -> str:
    """Words with their middle left out, if they are wider than there is room."""
    if width(words, size, bold) <= room:
        return words
    kept = next(
        (n for n in range(len(words) - 1, 1, -1) if width(around(words, n), size, bold) <= room),
        2,
    )
    return around(words, kept)


def around(words: str, kept: int) -> str:
    """The first and last letters of words, `kept` in all."""
    return f"{words[: kept - kept // 2]}…{words[len(words) - kept // 2 :]}"


def breakable(words: object) -> Markup:
    """Words that a browser may break behind _ . / and the like, as it does between words, and nowhere else."""
    return Markup("<wbr>").join(Markup(for_page(piece)) for piece in NAMES.split(str(words)))


def text(x: float, y: float, words: str, anchor: str = "middle", kind: str = "tick", turned: int = 0) -> str:
    """Words at a place, turned about it by some degrees."""
    place = f'transform="translate({x:.1f} {y:.1f}) rotate({turned})"' if turned else f'x="{x:.1f}" y="{y:.1f}"'
    return f'<text class="{kind}" {place} text-anchor="{anchor}">{for_page(words)}</text>'


def block(
    x: float, y: float, lines: Sequence[str], anchor: str = "middle", kind: str = "tick", turned: int = 0,
    step: float = LINE,
) -> str:  # fmt: skip
    """Lines below each other, the first with its foot at `y`; turned, they lie side by side."""
    if turned:
        return "".join(text(x + number * step, y, line, anchor, kind, turned) for number, line in enumerate(lines))
    return "".join(text(x, y + number * step, line, anchor, kind) for number, line in enumerate(lines))
