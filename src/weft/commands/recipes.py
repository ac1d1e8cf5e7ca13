"""`weft recipes`: known-good configurations, what they have reached, and whether they still do."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from tyro.conf import Positional

from weft.errors import Interrupted, WeftError
from weft.training.config import RunConfig
from weft.training.recipes import find, recipe
from weft.training.recipes.evidence import Evidence, around, at, evidence_of
from weft.training.storage.run_folder import as_yaml


@dataclass(frozen=True)
class Arguments:
    """List recipes, show one, or check that one still holds: weft recipes check digits/mixer --fraction 0.3"""

    action: Positional[Literal["list", "show", "check"]] = "list"
    """list: all, with what they have reached; show: one in full; check: run one again, or its first part."""
    name: Positional[str | None] = None
    """Name of a recipe, such as digits/mixer."""
    source: str | None = None
    """For check: where its data lie, if not where the recipe says."""
    fraction: float = 1.0
    """For check: share of the run to repeat, from its beginning, under the schedule of the whole."""
    seed: int = 0
    """For check: seed of the run."""
    output: Path | None = None
    """For check: folder of the run; by default a new one below runs/."""


def run(arguments: Arguments) -> int:
    """Do what was asked."""
    if arguments.action == "list":
        if arguments.name is not None:
            raise WeftError(f"`weft recipes list` takes no name; `weft recipes show {arguments.name}` shows one")
        return list_all()
    if arguments.name is None:
        raise WeftError(f"say which recipe: weft recipes {arguments.action} NAME (`weft recipes` lists them)")
    config = recipe(arguments.name)
    return show(arguments.name, config) if arguments.action == "show" else check(arguments, config)


def list_all() -> int:
    """One line a recipe."""
    for name, function in find().items():
        known = evidence_of(name)
        reached = f"{known.metric} {known.figure()}, {known.core_time()} of a core" if known else ""
        print(f"{name:<22}{(inspect.getdoc(function) or '').splitlines()[0]}")
        if reached:
            print(f"{'':<22}{reached}")
    return 0


def show(name: str, config: RunConfig) -> int:
    """The docstring, what was reached, and the configuration."""
    print(inspect.getdoc(find()[name]))
    if known := evidence_of(name):
        print(f"\nReached on the {known.split} split: {known.metric} {known.figure()}, {known.core_time()} of a core.")
        if known.note:
            print(known.note)
    print()
    print(as_yaml(config), end="")
    return 0


def check(arguments: Arguments, config: RunConfig) -> int:
    """Run a recipe again, or its first part, and say whether it does as it did; 1 where it does not."""
    name = str(arguments.name)
    known = evidence_of(name)
    if known is None:
        raise WeftError(
            f"no runs of {name} are stored that it could be checked against; `weft recipes` shows which are"
        )
    until = part_of(known, arguments.fraction)
    config = replace(config, seed=arguments.seed, source=arguments.source or config.source)
    from weft import api
    from weft.training.run import lifecycle
    from weft.training.storage.metrics_log import read_events

    folder = arguments.output or api.default_run(config)
    outcome = lifecycle.start(config, folder, until=until)
    if outcome.signal:
        print(f"stopped and saved in {folder}")
        return Interrupted.code
    if outcome.record is not None:
        score, low, high = outcome.record["metrics"][known.metric], *around(known.scores)
        return say(name, f"{known.metric} on the {known.split} split", score, low, high)
    curve = [
        (e["step"], e["validation_metric"]) for e in read_events(folder / "metrics.jsonl") if "validation_metric" in e
    ]
    found, bounds = at(curve, until), known.expected(until)
    assert found is not None and bounds is not None  # `until` lies behind an evaluation
    return say(name, f"{known.metric} on validation after {until:,} steps", found, *bounds)


def part_of(known: Evidence, fraction: float) -> int:
    """Steps of the first part of a run; refused where it ends before anything is evaluated."""
    steps = min(run.steps for run in known.runs)
    first = max(run.curve[0][0] for run in known.runs)
    if not 0 < fraction <= 1:
        raise WeftError("--fraction is a share of the run: above 0, at most 1")
    if (until := round(fraction * steps)) < first:
        raise WeftError(
            f"the first evaluation comes after {first:,} steps; give --fraction {first / steps + 0.005:.2f}"
        )
    return until


def say(name: str, what: str, score: float, low: float, high: float) -> int:
    """The sentence, and the exit code."""
    holds = low <= score <= high
    print(f"{name} {'holds' if holds else 'does NOT hold'}: {what} {score:.4f}, expected {low:.4f} to {high:.4f}")
    return 0 if holds else 1
