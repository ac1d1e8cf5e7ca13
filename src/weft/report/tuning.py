"""Pages of a search: which settings matter, what was tried, and maps of rate × width."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from weft.report.chart import brief, plane, short
from weft.report.curves import bars
from weft.report.heat import heat
from weft.report.page import asset, style, template
from weft.terminal import how_many

ENOUGH = 10  # trials a setting from which on its importance is more than a hint
Chart = tuple[str, str, str]  # heading, chart, and a sentence below it


def render_search(summary: dict[str, Any], winner: Sequence[str] = ()) -> str:
    """The page of a search; `winner` has sentences about its best trial."""
    ordered = sorted(summary["trials"], key=lambda trial: -(trial["value"] if trial["value"] is not None else -9e9))
    charts = [
        ("What was found, trial by trial", history(summary["trials"]), "A dot a trial; the line is the best so far."),
        ("Which settings matter", importance_bars(summary["importance"]),
         f"Share of the variance of the results that a setting explains, {caveat(summary)}."),
    ]  # fmt: skip
    return _page(summary, charts, ordered[:20], winner)


def render_maps(summary: dict[str, Any]) -> str:
    """The page of a rate × width map."""
    found = {"source": summary["source"], "model": " against ".join(summary["maps"]), "best": None, "states": {}}
    charts = [rate_map(model, cells, summary) for model, cells in summary["maps"].items()]
    return _page(found, charts, [])


def _page(
    summary: dict[str, Any], charts: list[Chart], trials: list[dict[str, Any]], winner: Sequence[str] = ()
) -> str:
    settings = sorted({name for trial in trials for name in trial["settings"]})
    return template("tuning.html.j2").render(
        summary=summary,
        charts=[(heading, Markup(chart), said) for heading, chart, said in charts if chart],
        trials=trials,
        settings=settings,
        best=settings_in_words(summary["best"]["settings"]) if summary["best"] else "",
        winner=winner,
        style=Markup(style()),
        script=Markup(asset("report.js")),
        written=lambda value: brief(value) if isinstance(value, float) else str(value),
    )


def settings_in_words(settings: dict[str, Any]) -> str:
    """Settings with their values; a width is a factor."""
    shown = {name: f"{value:.3g}" if isinstance(value, float) else str(value) for name, value in settings.items()}
    return ", ".join(f"{n} {value}{' times the named width' if n == 'width' else ''}" for n, value in shown.items())


def caveat(found: dict[str, Any]) -> str:
    """How far the importance of settings can be relied on: a forest is fitted to the trials, and few tell little."""
    done, settings = found["states"]["COMPLETE"], len(found["importance"])
    if done >= ENOUGH * settings:
        return f"from {how_many(done, 'trial')}"
    return f"a hint at best from {how_many(done, 'trial')}; {ENOUGH} a setting ({ENOUGH * settings}) would tell more"


def importance_bars(importance: dict[str, float]) -> str:
    """How much of the result's variance each setting explains."""
    if not importance:
        return ""
    said = "Importance: " + ", ".join(f"{name} {100 * share:.0f} %" for name, share in importance.items())
    rows = [(name, (share,)) for name, share in importance.items()]
    return bars(rows, ("share",), said, write=lambda share: f"{100 * share:.0f} %")


def history(trials: list[dict[str, Any]]) -> str:
    """The result of every trial in order, and the best so far."""
    known = [(trial["number"], trial["value"]) for trial in trials if trial["value"] is not None]
    if not known:
        return ""
    frame = plane([number for number, _ in known], [value for _, value in known], whole=True)
    best = float("-inf")
    path: list[str] = []
    for number, value in known:
        best = max(best, value)
        path.append(f"{'L' if path else 'M'}{frame.x(number):.1f} {frame.y(best):.1f}")
    dots = "".join(f'<circle class="dot c0" cx="{frame.x(n):.1f}" cy="{frame.y(v):.1f}" r="3.5"/>' for n, v in known)
    axes, line = frame.axes("trial", "validation metric", short, short), " ".join(path)
    said = f"{how_many(len(known), 'trial')}; the best is {best:.4f}"
    return frame.svg(f'{axes}<path class="front" d="{line}"/>{dots}', said)


def rate_map(model: str, cells: list[list[float | None]], summary: dict[str, Any]) -> Chart:
    """Selection metric of a network over rate (across) and width (down); a failed run is an empty cell marked ✗."""
    shades = [[0.0 if value is None else value for value in line] for line in cells]
    words = [["✗" if value is None else f"{100 * value:.0f}" for value in line] for line in cells]
    good = sum(value is not None and value >= 0.9 * max(map(max, shades)) for line in cells for value in line)
    said = f"{model}: {good} of {sum(map(len, cells))} settings come within a tenth of its best"
    rows, columns = [f"×{width:g}" for width in summary["widths"]], [short(rate) for rate in summary["rates"]]
    key = (("right", "validation metric in %, from 0 to 100; ✗: the run failed"),)
    return model, heat(shades, words, rows, columns, ("width", "rate"), said, key=key), f"{said}."
