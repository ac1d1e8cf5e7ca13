"""Examples on which two networks give different answers, with their pictures or words."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft.disk import brief
from weft.errors import WeftError
from weft.serve.pages.comparisons.summaries import Comparison
from weft.studies.results.error_examples import read_examples
from weft.studies.results.load import BY_ANSWER, Result
from weft.studies.statistics.intervals import mcnemar
from weft.training.config import RunConfig, from_dict

SIZE = 24  # examples on a page
WHICH = {
    "all": "all",
    "first": "only the first is right",
    "second": "only the second is right",
    "neither": "both are wrong",
}
_opening = Lock()  # sources are opened one at a time


@dataclass(frozen=True)
class Disagreement:
    """How often two networks agree, and some examples on which they do not."""

    first: str
    second: str
    counts: dict[str, int]
    """examples: both right, the same wrong answer, and the keys of WHICH"""
    p: float | None
    which: str
    page: int
    pages: int
    examples: list[dict[str, Any]] = field(default_factory=list)
    trouble: str = ""


def disagreement(found: Comparison, first: str, second: str, which: str, page: int) -> Disagreement | None:
    """Of two candidates by their best runs; None where there are no two to set side by side."""
    chosen = found.chosen()
    names = [row["name"] for row in found.summary["rows"] if row["name"] in chosen]
    if len(names) < 2 or found.summary["metric"] not in BY_ANSWER:
        return None
    first = first if first in chosen else names[0]
    second = second if second in chosen and second != first else next(name for name in names if name != first)
    one, other = chosen[first].predictions, chosen[second].predictions
    assert one is not None and other is not None
    if not np.array_equal(one["target"], other["target"]):
        return None
    right, also = one["predicted"] == one["target"], other["predicted"] == other["target"]
    apart = one["predicted"] != other["predicted"]
    kinds = {"all": apart, "first": right & ~also, "second": ~right & also, "neither": apart & ~right & ~also}
    counts = {name: int(mask.sum()) for name, mask in kinds.items()}
    counts |= {"both": int((right & also).sum()), "same": int((~right & ~apart).sum())}
    which = which if which in kinds else "all"
    numbers = surest_first(kinds[which], one["confidence"] + other["confidence"])
    pages = max(1, math.ceil(len(numbers) / SIZE))
    page = min(max(1, page), pages)
    part = numbers[(page - 1) * SIZE : page * SIZE]
    examples, trouble = shown(chosen[first], part)
    for number, example in zip(part.tolist(), examples, strict=True):
        example["target"] = int(one["target"][number])
        example["said"] = [(int(each["predicted"][number]), float(each["confidence"][number])) for each in (one, other)]
    return Disagreement(first, second, counts, mcnemar(right, also), which, page, pages, examples, trouble)


def surest_first(mask: NDArray[np.bool_], confidence: NDArray[Any]) -> NDArray[np.int64]:
    """Numbers of the examples of a mask, those first of which both networks are surest."""
    numbers = np.flatnonzero(mask)
    return numbers[np.argsort(-confidence[numbers], kind="stable")]


def shown(result: Result, numbers: NDArray[np.int64]) -> tuple[list[dict[str, Any]], str]:
    """Pictures or words of some examples; where the data is not to be had, their numbers, and why."""
    assert result.record is not None and result.predictions is not None
    of_folds = result.predictions.get("row")
    rows = [int(row) for row in (numbers if of_folds is None else of_folds[numbers])]
    try:
        with _opening:
            config = config_of(result.record)
            require_same(config, result.record)
            return [dict(example) for example in read_examples(config, rows)] if rows else [], ""
    except (WeftError, OSError) as error:
        return [{"place": f"test example {row}"} for row in rows], f"The data cannot be shown: {brief(error)}"


def config_of(record: dict[str, Any]) -> RunConfig:
    """The configuration that reads the data of a run; its weights have no part in it."""
    asked = record["config"]
    named = {name: asked[name] for name in ("source", "reading", "transform") if name in asked}
    if str(named["source"]).startswith("hub:"):
        raise WeftError("it is on the Hub, and a server fetches nothing from there")
    return from_dict(RunConfig, named)


def require_same(config: RunConfig, record: dict[str, Any]) -> None:
    """Refuse data that is no longer what the run was judged on."""
    from weft.studies.engine.data_facts import data_of

    source, _ = data_of(config)
    if source.fingerprint != record["source"]["fingerprint"]:
        raise WeftError(f"{config.source} is not what it was when the networks were judged on it")
