"""Test examples for the report, with their pictures or words: what the best candidate gets wrong, and what the two best
networks disagree on. They are kept beside the runs, in mistakes.json."""

from __future__ import annotations

import base64
import io
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from weft.disk import Damaged, write_json
from weft.studies.engine import tasks
from weft.studies.engine.runner import Pool
from weft.studies.engine.study import Study, read_whole
from weft.studies.results.folds import joined
from weft.studies.results.load import Collection, Result, collect, validation_metric
from weft.training.config import RunConfig

FILE = "mistakes.json"
MOST = 12
BESIDES = ("control", "classical")  # groups that are no networks anybody would choose between


@dataclass(frozen=True)
class Example:
    """A mistake, besides its picture or its words."""

    target: int
    predicted: int
    confidence: float
    wrong: int
    of: int


@dataclass(frozen=True)
class Disputed:
    """An example that two networks answer differently."""

    target: int
    answers: list[int]
    confidences: list[float]


@dataclass(frozen=True)
class Disagreement:
    """How two networks answer the same examples; `alone` is how often each is right where the other is not."""

    names: list[str]
    alone: list[int]
    apart: int
    of: int
    examples: list[Disputed]


@dataclass(frozen=True)
class Kept:
    """The shape of mistakes.json."""

    candidate: str
    examples: list[Example]
    seed: int | None = None
    fingerprint: str = ""
    disagreement: Disagreement | None = field(default=None)


def keep_mistakes(study: Study, pool: Pool) -> None:
    """Write mistakes.json: the commonest mistakes of the best candidate by validation, and what two dispute."""
    every = joined(collect(study.folder).results)
    most = {result.candidate: max(r.share for r in every if r.candidate == result.candidate) for result in every}
    done = [result for result in every if result.finished and result.share == most[result.candidate]]
    if not done or study.facts.task == "regression":
        return
    chosen, best = max(done, key=validation_metric), two_best(study, done)
    numbers = common_mistakes(chosen, done)
    disputed = most_disputed(*best) if best else []
    shown = read_rows(study, pool, chosen, [*numbers, *disputed])
    pairs = list(zip([*numbers, *disputed], shown, strict=True))
    examples = [{**about(chosen, done, row), **example} for row, example in pairs[: len(numbers)]]
    found = {"candidate": chosen.candidate, "seed": chosen.seed, "examples": examples}
    found["fingerprint"] = study.facts.fingerprint
    if best:
        told = [{**answers_of(best, row), **example} for row, example in pairs[len(numbers) :]]
        found["disagreement"] = {**counted(*best), "examples": told}
    write_json(study.folder / FILE, found)


def read_rows(study: Study, pool: Pool, chosen: Result, numbers: list[int]) -> list[dict[str, str]]:
    """Pictures or words of examples, by their numbers in the predictions."""
    of_folds = (chosen.predictions or {}).get("row")
    rows = numbers if of_folds is None else of_folds[numbers]
    config = min((job.labelled for job in study.jobs), key=lambda config: bool(getattr(config, "start", "")))
    asked = RunConfig(source=config.source, reading=config.reading, transform=config.transform)
    return pool.first(tasks.examples_for_page, asked, [int(row) for row in rows])


def common_mistakes(chosen: Result, every: list[Result]) -> list[int]:
    """Numbers of the examples that `chosen` gets wrong, those that most runs get wrong first."""
    wrong = np.mean([miss(result) for result in every], axis=0)
    own = np.flatnonzero(miss(chosen))
    return [int(row) for row in own[np.argsort(-wrong[own], kind="stable")][:MOST]]


def miss(result: Result) -> Any:
    assert result.predictions is not None
    return result.predictions["predicted"] != result.predictions["target"]


def about(chosen: Result, every: list[Result], row: int) -> dict[str, Any]:
    """Truth, answer, confidence, and how many runs got it wrong."""
    assert chosen.predictions is not None
    found = {name: chosen.predictions[name][row].item() for name in ("target", "predicted", "confidence")}
    return {**found, "wrong": sum(bool(miss(result)[row]) for result in every), "of": len(every)}


# ---- What the two best networks disagree on.


def two_best(study: Study, done: list[Result]) -> tuple[Result, Result] | None:
    """The best run of each of the two networks that lead on the validation split; None where there is only one."""
    networks = {candidate.name for candidate in study.candidates if candidate.group not in BESIDES}
    ordered = sorted((r for r in done if r.candidate in networks), key=validation_metric, reverse=True)
    best = {result.candidate: result for result in reversed(ordered)}
    first_two = sorted(best.values(), key=validation_metric, reverse=True)[:2]
    if len(first_two) < 2 or len(miss(first_two[0])) != len(miss(first_two[1])):
        return None
    return first_two[0], first_two[1]


def most_disputed(first: Result, second: Result) -> list[int]:
    """Numbers of examples that two networks answer differently: by turns those that one alone gets right, and at last
    those that both get wrong, the surest first."""
    assert first.predictions is not None and second.predictions is not None
    sure = first.predictions["confidence"] + second.predictions["confidence"]
    apart = first.predictions["predicted"] != second.predictions["predicted"]
    cases = [~miss(first) & apart, ~miss(second) & apart]
    one, other = ([int(row) for row in np.flatnonzero(case)[np.argsort(-sure[case], kind="stable")]] for case in cases)
    turns = [row for pair in zip(one, other, strict=False) for row in pair]
    shorter = min(len(one), len(other))
    both = np.flatnonzero(apart & miss(first) & miss(second))
    rest = [*one[shorter:], *other[shorter:], *(int(row) for row in both[np.argsort(-sure[both], kind="stable")])]
    return (turns + rest)[:MOST]


def counted(first: Result, second: Result) -> dict[str, Any]:
    """Who they are, and how often each alone is right."""
    assert first.predictions is not None and second.predictions is not None
    apart = first.predictions["predicted"] != second.predictions["predicted"]
    alone = [int((~miss(result) & apart).sum()) for result in (first, second)]
    return {
        "names": [first.candidate, second.candidate], "alone": alone, "apart": int(apart.sum()), "of": len(apart)
    }  # fmt: skip


def answers_of(best: tuple[Result, Result], row: int) -> dict[str, Any]:
    """Truth, and the two answers with their confidences."""
    found = [result.predictions or {} for result in best]
    return {
        "target": found[0]["target"][row].item(),
        "answers": [each["predicted"][row].item() for each in found],
        "confidences": [each["confidence"][row].item() for each in found],
    }


# ---- Examples as a page shows them.


def read_examples(config: RunConfig, rows: list[int]) -> list[dict[str, str]]:
    """Examples of the test split for a page: a picture as a data address, or the words, and where it is from.

    Of a source that is cut into folds they are numbered by their rows in all of them.
    """
    from weft.data.open.splits import MemorySplit
    from weft.data.transform.transforms import ImageTransform
    from weft.studies.engine.data_facts import data_of

    source, transform = data_of(config)
    split = source.splits["test"]
    if config.reading.folds is not None and isinstance(split, MemorySplit):
        whole = np.arange(len(split.table))
        split = MemorySplit(split.table, whole, whole, split.origin)
    raws, _ = split.read(np.array(rows, dtype=np.int64))
    found = []
    for row, raw in zip(rows, raws, strict=True):
        place = split.place(row)
        if isinstance(transform, ImageTransform):
            found.append({"picture": data_address(transform.pixels(raw).numpy()), "place": place})
        else:
            words = " / ".join(raw) if isinstance(raw, tuple | list) else str(raw)
            found.append({"text": words[:300], "place": place})
    return found


def data_address(pixels: np.ndarray) -> str:
    """A picture (channels, height, width) of bytes as a PNG that stands in the page itself."""
    from PIL import Image

    image = Image.fromarray(pixels[0] if len(pixels) == 1 else pixels.transpose(1, 2, 0))
    image.thumbnail((96, 96))
    file = io.BytesIO()
    image.save(file, "PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(file.getvalue()).decode()


def mistakes_of(folder: Path, collection: Collection) -> dict[str, Any]:
    """What `keep_mistakes` wrote of the data that the results are of, or nothing."""
    with suppress(Damaged):
        found = read_whole(folder / FILE, Kept, "")
        if found.get("fingerprint") == collection.study["facts"].get("fingerprint"):
            return found
    return {"candidate": "", "examples": []}
