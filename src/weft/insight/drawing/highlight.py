"""Weights shown on what they belong to: patches of a picture, words of a text."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from weft.insight.drawing.raster import ABOVE, BELOW, Key, Pixels, Values
from weft.insight.finding import Picture
from weft.report.chart import picture
from weft.report.words import LINE, block, breakable, width, wrapped
from weft.terminal import for_page

LEAST = 96  # pixels that a highlighted picture has along a side, so that patches have clear borders
STRONGEST = 0.55  # how much colour lies behind the word of the largest weight: the word must stay readable

Weight = float | None  # None: the word has no part in the comparison, and no colour
Sentence = tuple[str, Sequence[str], Sequence[Weight]]  # title, words, weights


def enlarged(pixels: Pixels) -> Pixels:
    """The picture with each pixel a square, at least `LEAST` on its shorter side."""
    factor = -(-LEAST // min(pixels.shape[:2]))
    return pixels.repeat(factor, axis=0).repeat(factor, axis=1)


def highlighted(pixels: Pixels, weights: Values) -> Pixels:
    """A picture in pale grey under its weights (rows, columns): orange above zero, blue below, by their size."""
    base = enlarged(pixels).astype(np.float64)
    grey = 150 + 0.4 * base.mean(axis=2, keepdims=True)
    height, width = base.shape[:2]
    rows = np.arange(height) * weights.shape[0] // height
    columns = np.arange(width) * weights.shape[1] // width
    scaled = weights / (np.abs(weights).max() or 1.0)
    strength = scaled[rows][:, columns][..., None]
    tint = np.where(strength > 0, np.array(ABOVE, dtype=np.float64), np.array(BELOW, dtype=np.float64))
    alpha = 0.85 * np.abs(strength)
    return (grey * (1 - alpha) + tint * alpha).round().astype(np.uint8)


def texts(sentences: Sequence[Sentence], said: str, caption: str, key: Key | None = None) -> Picture:
    """Texts whose words lie on a ground as strong as their weight: orange above zero, blue below."""
    page = "".join(page_text(*sentence) for sentence in sentences)
    legend = key.page() if key else ""
    return Picture(svg(sentences, said, key), caption, page=f'<div class="texts">{page}</div>{legend}')


def strengths(weights: Sequence[Weight]) -> list[float]:
    """Weights over the largest of them."""
    largest = max((abs(weight) for weight in weights if weight is not None), default=0.0) or 1.0
    return [(weight or 0.0) / largest for weight in weights]


def page_text(title: str, words: Sequence[str], weights: Sequence[Weight]) -> str:
    """One text as a paragraph that a browser breaks into lines."""
    parts: list[str] = []
    for word, weight, strength in zip(words, weights, strengths(weights), strict=True):
        shown, gap = word.removeprefix("##"), "" if word.startswith("##") or not parts else " "
        if weight is None:
            parts.append(f'{gap}<span class="aside">{for_page(shown)}</span>')
        elif not weight:
            parts.append(gap + for_page(shown))
        else:
            tint, share = ("c1" if strength > 0 else "c0"), STRONGEST * abs(strength)
            about = for_page(f"{word}: {weight:.3g}")
            parts.append(f'{gap}<mark class="{tint}" style="--s:{share:.2f}" title="{about}">{for_page(shown)}</mark>')
    return f"<div><h4>{breakable(title)}</h4><p>{''.join(parts)}</p></div>"


def svg(sentences: Sequence[Sentence], said: str, key: Key | None, room: float = 460) -> str:
    """The same as a picture."""
    parts, y = [], 4.0
    for title, words, weights in sentences:
        lines = wrapped(title, room - 16, most=3, bold=True)
        parts.append(block(8, y + 14, lines, "start", "title"))
        y += 8 + LINE * len(lines)
        drawn, used = flowing(words, weights, y, room)
        parts.append(drawn)
        y += used + 12
    if key is not None:
        parts.append(key.svg(y, room))
        y += 20
    return picture(room, y, "".join(parts), said, "sheet")


def flowing(words: Sequence[str], weights: Sequence[Weight], top: float, room: float) -> tuple[str, float]:
    """One text's words in lines, and the height that they take. Parts of a word (##…) follow without a gap."""
    parts, x, y = [], 8.0, top
    for word, weight, strength in zip(words, weights, strengths(weights), strict=True):
        shown, joined = word.removeprefix("##"), word.startswith("##")
        wide = width(shown) + 6
        x = x - 4 if joined else x
        if x + wide > room - 8:
            x, y = 8.0, y + 24
        parts.append(one_word(shown, weight, strength, x, y, wide))
        x += wide + 4
    return "".join(parts), y - top + 22


def one_word(word: str, weight: Weight, strength: float, x: float, y: float, wide: float) -> str:
    """A word on its ground."""
    tint = "c1" if strength > 0 else "c0"
    ground = f'class="dot {tint}" style="opacity: {STRONGEST * abs(strength):.2f}; stroke: none"'
    about = word if weight is None else f"{word}: {weight:.3g}"
    ink = "--soft" if weight is None else "--ink"
    return (
        f"<g><title>{for_page(about)}</title>"
        f'<rect {ground} x="{x:.1f}" y="{y:.1f}" width="{wide:.1f}" height="20" rx="3"/>'
        f'<text x="{x + 3:.1f}" y="{y + 14:.1f}" style="fill: var({ink})">{for_page(word)}</text></g>'
    )
