"""Parallel coordinates: the settings of trials as lines across upright axes, the last of which is what came out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.disk import is_number
from weft.report.chart import brief, fitting, picture
from weft.report.words import text, width, wrapped
from weft.terminal import for_page, how_many

HIGH, TOP, FOOT, APART = 320.0, 34.0, 26.0, 130.0
BEST = 3  # trials that are drawn strongest
Trial = dict[str, Any]  # number, value, settings


def parallel(trials: Sequence[Trial], settings: Sequence[str], result: str = "result") -> str:
    """A line a trial with a result; "" where there are fewer than two, or no setting."""
    known = [trial for trial in trials if trial["value"] is not None]
    known = [trial for trial in known if all(name in trial["settings"] for name in settings)]
    if len(known) < 2 or not settings:
        return ""
    names = [*settings, result]
    columns = [[trial["settings"][name] for trial in known] for name in settings]
    columns.append([trial["value"] for trial in known])
    ups = [Axis(column) for column in columns]
    lines = [[up(value) for up, value in zip(ups, row, strict=True)] for row in zip(*columns, strict=True)]
    left = 60.0
    order = sorted(range(len(known)), key=lambda n: known[n]["value"])
    parts = [one_line(known[n], lines[n], left, rank - len(order) + BEST) for rank, n in enumerate(order)]
    for number, (name, up) in enumerate(zip(names, ups, strict=True)):
        parts.append(axis(left + number * APART, name, up))
    wide = left + (len(names) - 1) * APART + 60
    best = known[order[-1]]
    many, score = how_many(len(known), "trial"), f"{best['value']:.4g}"
    said = f"Settings of {many}; the best, trial {best['number']}, has {result} {score}"
    return picture(wide, HIGH, "".join(parts), said)


class Axis:
    """Values upwards: numbers by their size, by logarithms where they span tenfold; others one after the other."""

    def __init__(self, values: Sequence[Any]) -> None:
        self.words = [] if all(is_number(value) for value in values) else sorted(set(map(str, values)))
        floor = HIGH - FOOT
        if self.words:
            self.scale = fitting([0.0, max(1.0, len(self.words) - 1.0)], floor, TOP)
        else:
            tenfold = min(values) > 0 and max(values) >= 10 * min(values)
            self.scale = fitting(values, floor, TOP, tenfold)

    def __call__(self, value: Any) -> float:
        return self.scale(float(self.words.index(str(value))) if self.words else float(value))

    def ticks(self) -> list[tuple[float, str]]:
        if self.words:
            return [(self.scale(float(n)), word) for n, word in enumerate(self.words)]
        return [(self.scale(value), brief(value)) for value in self.scale.ticks()]


def one_line(trial: Trial, ups: Sequence[float], left: float, strength: int) -> str:
    """One trial; those of the best few have the other colour, and are drawn last."""
    points = " ".join(f"{left + n * APART:.1f},{y:.1f}" for n, y in enumerate(ups))
    kind = 'class="line c1"' if strength >= 0 else 'class="line c0" opacity=".35"'
    settings = ", ".join(f"{name} {value}" for name, value in trial["settings"].items())
    about = for_page(f"trial {trial['number']}: {trial['value']:.4g}; {settings}")
    return f'<g><title>{about}</title><polyline {kind} points="{points}"/></g>'


def axis(x: float, name: str, up: Axis) -> str:
    """An upright line with its ticks and its name above."""
    parts = [f'<path class="grid" d="M{x:.1f} {TOP:.1f}V{HIGH - FOOT:.1f}"/>']
    for number, line in enumerate(wrapped(name, APART - 12, most=1, bold=True)):
        parts.append(text(x, 16 + 14 * number, line, kind="title"))
    for y, words in up.ticks():
        parts.append(text(x - 5, y + 4, words if width(words) < 56 else words[:7] + "…", "end"))
    return "".join(parts)
