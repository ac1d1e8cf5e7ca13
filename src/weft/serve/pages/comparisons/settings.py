"""Settings in which the candidates of a comparison differ."""

from __future__ import annotations

from typing import Any

from weft.studies.results.load import Result

SAME = ("seed", "execution", "duration")  # what differs between runs of one candidate, or follows from the budget
PARTS = ("reading.fold",)


def settings_that_differ(results: list[Result]) -> tuple[list[str], list[tuple[str, list[str]]]]:
    """The candidates, and of each setting that is not the same for all of them the value for each."""
    found: dict[str, dict[str, set[str]]] = {}
    for result in results:
        if result.record is not None:
            values = found.setdefault(result.candidate, {})
            for name, value in flat(result.record["config"]).items():
                values.setdefault(name, set()).add(shown(value))
            values.setdefault("rate", set()).add(shown((result.record.get("plan") or {}).get("lr")))
    names = list(dict.fromkeys(name for values in found.values() for name in values))
    rows = []
    for name in names:
        cells = [" / ".join(sorted(values.get(name, {"–"}))) for values in found.values()]
        if len(set(cells)) > 1:
            rows.append((name, cells))
    return list(found), rows


def flat(values: Any, before: str = "") -> dict[str, Any]:
    """Settings by their whole names."""
    found: dict[str, Any] = {}
    for name, value in values.items() if isinstance(values, dict) else ():
        if not before and name in SAME:
            continue
        if isinstance(value, dict):
            found |= flat(value, f"{before}{name}.")
        elif f"{before}{name}" not in PARTS:
            found[f"{before}{name}"] = value
    return found


def shown(value: Any) -> str:
    """A value in few letters."""
    text = f"{value:.3g}" if isinstance(value, float) else "–" if value is None else str(value)
    return text if len(text) <= 60 else f"{text[:59]}…"
