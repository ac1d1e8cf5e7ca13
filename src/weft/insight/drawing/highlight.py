"""Weights shown on what they belong to: patches of a picture, words of a text."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from weft.insight.drawing.raster import Pixels, Values
from weft.report.chart import picture, text
from weft.terminal import for_page

ABOVE, BELOW = (230, 80, 20), (0, 110, 200)  # of positive and negative weights
NARROW, BROAD = "ijltfrI.,:;'|!()-", "mwMW@%"  # letters of about half and one and a half times the usual width
LEAST = 96  # pixels that a highlighted picture has along a side, so that patches have clear borders

Sentence = tuple[str, Sequence[str], Sequence[float]]  # title, words, weights


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


def weighted_words(sentences: Sequence[Sentence], said: str, width: float = 460) -> str:
    """Texts as lines of words on a ground whose strength is their weight; orange above zero, blue below."""
    parts, y = [], 4.0
    for title, words, weights in sentences:
        parts.append(text(8, y + 14, title, "start", "title"))
        drawn, used = flowing(words, weights, y + 22, width)
        parts.append(drawn)
        y += 22 + used + 12
    return picture(width, y, "".join(parts), said, "sheet")


def flowing(words: Sequence[str], weights: Sequence[float], top: float, width: float) -> tuple[str, float]:
    """One text's words in lines, and the height that they take. Parts of a word (##…) follow without a gap."""
    largest = max((abs(weight) for weight in weights), default=0.0) or 1.0
    parts, x, y = [], 8.0, top
    for word, weight in zip(words, weights, strict=True):
        shown, joined = word.removeprefix("##"), word.startswith("##")
        wide = width_of(shown) + 6
        x = x - 4 if joined else x
        if x + wide > width - 8:
            x, y = 8.0, y + 24
        parts.append(one_word(shown, weight, weight / largest, x, y, wide))
        x += wide + 4
    return "".join(parts), y - top + 22


def width_of(word: str) -> float:
    """About how wide a word is in letters of 12 pixels."""
    return sum(4.2 if letter in NARROW else 11.0 if letter in BROAD else 7.4 for letter in word)


def one_word(word: str, weight: float, strength: float, x: float, y: float, wide: float) -> str:
    """A word on its ground."""
    tint = "c1" if strength > 0 else "c0"
    ground = f'class="dot {tint}" style="opacity: {0.75 * abs(strength):.2f}; stroke: none"'
    return (
        f"<g><title>{for_page(f'{word}: {weight:.3g}')}</title>"
        f'<rect {ground} x="{x:.1f}" y="{y:.1f}" width="{wide:.1f}" height="20" rx="3"/>'
        f'<text x="{x + 3:.1f}" y="{y + 14:.1f}" style="fill: var(--ink)">{for_page(word)}</text></g>'
    )
