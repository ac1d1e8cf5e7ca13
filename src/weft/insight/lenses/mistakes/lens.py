"""The lens `mistakes`: the most confident errors, confusions, calibration, and the features in two dimensions."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from weft.insight.drawing.highlight import enlarged
from weft.insight.drawing.highlight import texts as shown_texts
from weft.insight.drawing.tiles import sheet
from weft.insight.finding import Cell, Finding, Picture, Table, Unfit
from weft.insight.lenses.mistakes.charts import cloud, reliability
from weft.insight.lenses.mistakes.collect import Answers, Mistake, in_two_dimensions, purity, watch_answers
from weft.insight.options import MistakesOptions
from weft.insight.subject import Subject
from weft.report.columns import share
from weft.report.heat import MANY, commonest, confusion

COLUMNS = ["example", "true", "predicted", "confidence", "where", "text"]
COMMONEST = 30  # confusions that are listed
LONG = 240  # letters of a text that are shown
FEW = 12  # examples below which a plane of them says nothing


def mistakes(subject: Subject, asked: MistakesOptions) -> Finding:
    """One pass over the split, and pictures of what went wrong."""
    if subject.card.task == "regression" or subject.source.task == "none" or not subject.config.num_classes:
        raise Unfit(f"the lens mistakes is about classes, and {subject.name} answers none on {subject.source.name}")
    answers = watch_answers(subject, asked.examples, asked.shown, asked.points)
    names = class_names(subject, answers)
    texts = texts_of(subject, answers.worst)
    planes = in_two_dimensions(answers.features) if len(answers.features) >= FEW else {}
    record = {
        "examples": answers.count, "accuracy": answers.accuracy, "calibration error": answers.calibration_error,
        "overconfidence": answers.overconfidence, "confusion": answers.confusion.tolist(),
        "bins": answers.bins.tolist(),
        "neighbours of the same class": {
            "features": purity(answers.features, answers.labels),
            **{name: purity(points, answers.labels) for name, points in planes.items()},
        } if planes else {},
    }  # fmt: skip
    rows = [row(subject, each, names, words) for each, words in zip(answers.worst, texts, strict=True)]
    pictures = errors_shown(subject, answers.worst, names, texts) | overview(subject, answers, names, planes)
    more = {"confusions": confusion_table(answers, names), "classes": class_table(answers, names)}
    return Finding("mistakes", "Mistakes", sentence(answers, names), pictures, Table(COLUMNS, rows), record, more)


def confusion_table(answers: Answers, names: list[str]) -> Table:
    """The commonest confusions, in words: a matrix of many classes cannot be read."""
    found = commonest(answers.confusion.tolist(), names, COMMONEST)
    rows: list[list[Cell]] = [[true, predicted, times, part] for times, true, predicted, part in found]
    return Table(["true", "taken for", "times", "share of its class"], rows)


def class_table(answers: Answers, names: list[str]) -> Table:
    """Each class: how many examples it has, how many of them are right, and how often it is answered."""
    rows: list[list[Cell]] = []
    for number, name in enumerate(names):
        count, right = int(answers.confusion[number].sum()), int(answers.confusion[number, number])
        rows.append([name, count, right, right / count if count else None, int(answers.confusion[:, number].sum())])
    return Table(["class", "examples", "right", "share right", "answered"], rows)


def class_names(subject: Subject, answers: Answers) -> list[str]:
    known = subject.card.classes
    return known if len(known) == len(answers.confusion) else [str(n) for n in range(len(answers.confusion))]


def sentence(answers: Answers, names: list[str]) -> str:
    """Accuracy, the commonest confusion, and whether the confidence can be believed."""
    gap = answers.overconfidence
    belief = f"is too {'sure' if gap > 0 else 'unsure'} of itself by {share(abs(gap))}"
    said = (
        f"{share(answers.accuracy)} of {answers.count:,} examples are right; the network {belief} on average "
        f"(calibration error {share(answers.calibration_error)})"
    )
    most = answers.confused(1)
    if not most:
        return f"{said}; it makes no mistake."
    return f"{said}; most often {names[most[0][1]]} is taken for {names[most[0][2]]} ({most[0][0]} times)."


def row(subject: Subject, each: Mistake, names: list[str], words: str) -> list[Cell]:
    place = subject.source.splits[subject.split].place(each.index)
    return [each.index, names[each.target], names[each.predicted], each.confidence, place, words]


def texts_of(subject: Subject, worst: list[Mistake]) -> list[str]:
    """The words of each mistaken text; nothing for other inputs."""
    if subject.config.input != "text" or not worst:
        return [""] * len(worst)
    return [written(raw) for raw in subject.raws(indices(worst))]


def written(raw: Any) -> str:
    """A text, or a pair of texts, not too long to read."""
    whole = raw if isinstance(raw, str) else " ⏐ ".join(map(str, raw))
    return whole if len(whole) <= LONG else whole[: LONG - 1] + "…"


def indices(worst: list[Mistake]) -> Tensor:
    return torch.tensor([each.index for each in worst])


def caption(each: Mistake, names: list[str]) -> str:
    return f"{names[each.target]} → {names[each.predicted]}, {100 * each.confidence:.0f} %"


def errors_shown(subject: Subject, worst: list[Mistake], names: list[str], texts: list[str]) -> dict[str, Picture]:
    """The most confident errors: their pictures or words, under truth → answer."""
    said, title = f"The {len(worst)} most confident errors", "The most confident errors: truth → answer, confidence"
    if not worst or subject.config.input == "vector":
        return {}
    if subject.config.input == "text":
        lines = [
            (caption(each, names), words.split(), [0.0] * len(words.split()))
            for each, words in zip(worst, texts, strict=True)
        ]
        return {"errors": shown_texts(lines, said, title)}
    pixels = [subject.pixels(subject.transform(raw)["x"])[0] for raw in subject.raws(indices(worst))]  # type: ignore
    tiles = [(caption(each, names), enlarged(image)) for each, image in zip(worst, pixels, strict=True)]
    return {"errors": sheet(tiles, said, title, columns=4)}


def overview(subject: Subject, answers: Answers, names: list[str], planes: dict[str, Any]) -> dict[str, Picture]:
    """Calibration, confusions and the planes of features."""
    found = {}
    if len(names) <= MANY:
        drawn = confusion(subject.name, answers.confusion.tolist(), names)
        found["confusions"] = Picture(drawn, f"Confusions of this run on {answers.count:,} examples: row is the truth")
    found["calibration"] = Picture(
        reliability(answers.bins.tolist()), "How often it is right, by its confidence; dashed: as often as it is sure"
    )
    for name, points in planes.items():
        key, title = name.lower().replace("-", ""), f"What the head reads, by {name}; mistakes are ringed"
        drawn = cloud(points.tolist(), answers.labels.tolist(), answers.wrong.tolist(), names, name)
        found[key] = Picture(drawn, title)
    return found
