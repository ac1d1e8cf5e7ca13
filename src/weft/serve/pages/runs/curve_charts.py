"""Charts of curves, as the address asks for them: what lies across, logarithms, smoothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from weft.report.curves import curves
from weft.serve.pages.runs.curve_store import ACROSS, Curve, cut, room, smoothed

TITLES = {
    "loss": "training loss",
    "validation_loss": "validation loss",
    "validation_metric": "metric on the validation split",
    "lr": "learning rate",
    "gradient_norm": "gradient norm",
}
FIRST = ("loss", "validation_loss", "validation_metric")  # drawn where nothing else is asked for
SMOOTHEST = 0.99


@dataclass(frozen=True)
class Drawing:
    """How curves are to be drawn."""

    across: str = "step"
    log: bool = False
    smooth: float = 0.0
    more: bool = False
    """rates and norms as well"""

    @classmethod
    def read(cls, values: Any) -> Drawing:
        """From the values of an address; what makes no sense counts as not said."""
        across = values.get("x") if values.get("x") in ACROSS else "step"
        try:
            smooth = min(SMOOTHEST, max(0.0, float(values.get("smooth", 0) or 0)))
        except ValueError:
            smooth = 0.0
        smooth = smooth if smooth == smooth else 0.0
        return cls(across, values.get("log") == "1", smooth, values.get("more") == "1")


def draw(found: Mapping[str, Curve], asked: Drawing) -> list[tuple[str, Markup]]:
    """A chart a series that any of the runs has: its name and the picture."""
    charts = []
    for name, title in TITLES.items():
        if name not in FIRST and not asked.more:
            continue
        lines = {run: line for run, curve in found.items() if len((line := curve.line(name, asked.across))[0])}
        if not lines:
            continue
        points = room(len(lines))
        drawn = {run: cut(smoothed(line, asked.smooth), points) for run, line in lines.items()}
        series = {run: (x.tolist(), y.tolist()) for run, (x, y) in drawn.items()}
        positive = all(min(y) > 0 for _, y in series.values())
        said = f"{title} by {asked.across} of {', '.join(list(series)[:5])}"
        last = "; ".join(f"{run} ends at {y[-1]:.4g}" for run, (_, y) in list(series.items())[:5])
        chart = curves(
            series, (asked.across, title), f"{said}: {last}", log=(False, asked.log and positive),
            whole=asked.across == "step",
        )  # fmt: skip
        charts.append((name, Markup(chart)))
    return charts
