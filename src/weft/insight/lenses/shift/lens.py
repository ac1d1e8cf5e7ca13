"""The lens `shift`: how many answers stay the same, and how many are right, as inputs move; several runs too."""

from __future__ import annotations

from typing import Any

from weft.errors import WeftError
from weft.insight.finding import Cell, Finding, Picture, Table, Unfit
from weft.insight.lenses.shift.shifted_inputs import Tally, moved_images, tallied, text_mover
from weft.insight.options import ShiftOptions
from weft.insight.subject import Subject, open_subject
from weft.report.chart import short
from weft.report.columns import share
from weft.report.curves import Points, curves

Line = list[Tally]  # by shift, from 0


def shift(subject: Subject, asked: ShiftOptions) -> Finding:
    """Consistency and accuracy by shift for the subject, and for the runs asked for beside it."""
    subjects = named([subject, *(open_subject(path, split=subject.split) for path in asked.others)])
    shifts = list(range(min(asked.largest, *(farthest(name, one, subject) for name, one in subjects.items())) + 1))
    lines: dict[str, Line] = {}
    for name, one in subjects.items():
        lines |= lines_of(name, one, shifts, asked.examples)
    pictures = drawn(lines, shifts, subject)
    rows: list[list[Cell]] = [
        [name, by, tally.consistency, tally.score, tally.score - line[0].score, *(tally.change() or (None, None))]
        for name, line in lines.items()
        for by, tally in zip(shifts, line, strict=True)
    ]
    columns = ["network", "shift", "consistency", metric(subject), "change", "change, low", "change, high"]
    record: dict[str, Any] = {"examples": lines[next(iter(lines))][0].examples}
    record["shifts"] = [dict(zip(columns, row, strict=True)) for row in rows]
    return Finding("shift", "Shifts", verdict(lines, shifts, subject), pictures, Table(columns, rows), record)


def named(subjects: list[Subject]) -> dict[str, Subject]:
    """Subjects by names that tell them apart."""
    found: dict[str, Subject] = {}
    for one in subjects:
        name = one.name
        if name in found and one.folder is not None:
            name = f"{one.folder.resolve().parent.name}/{one.name}"
        if name in found:
            raise WeftError(f"the run {name} was given twice")
        found[name] = one
    return found


def farthest(name: str, one: Subject, first: Subject) -> int:
    """The largest shift that a subject can be asked for: half of its image, or of its longest text."""
    config: Any = one.config
    if config.input != first.config.input:
        raise WeftError(f"{name} takes {config.input}, {first.name} {first.config.input}: they do not fit one chart")
    if not config.num_classes or config.family == "filternet":
        raise Unfit(f"{name} has no classes, so that there are no answers that could stay the same")
    return min(config.img_size) // 2 if config.input == "image" else config.max_length // 2


def lines_of(name: str, subject: Subject, shifts: list[int], examples: int) -> dict[str, Line]:
    """The line of one subject; for texts two, as padding after the words must change nothing."""
    if subject.config.input == "image":
        return {name: tallied(subject, moved_images, shifts, examples)}
    config: Any = subject.config
    room = config.max_length - shifts[-1]
    return {
        f"{name}, padding before": tallied(subject, text_mover(room, before=True), shifts, examples),
        f"{name}, padding after": tallied(subject, text_mover(room, before=False), shifts, examples),
    }


def metric(subject: Subject) -> str:
    return "error" if subject.card.task == "regression" else "accuracy"


def drawn(lines: dict[str, Line], shifts: list[int], subject: Subject) -> dict[str, Picture]:
    """Two charts: answers that stay, answers that are right."""
    unit = "pixels" if subject.config.input == "image" else "tokens of padding"
    titles = {"consistency": "answers that stay the same", "score": metric(subject)}
    pictures = {}
    for kind, title in titles.items():
        series = {name: (shifts, [getattr(tally, kind) for tally in line]) for name, line in lines.items()}
        values = [value for _, ys in series.values() for value in ys]
        reach = (min(0.0, *values), max(1.0, *values) * 1.02) if kind == "consistency" or title == "accuracy" else None
        said = f"{title} as inputs move by up to {shifts[-1]} {unit}: {verdict(lines, shifts, subject)}"
        write = (short, percent) if reach else (short, short)
        bands = bands_of(lines, kind)
        chart = curves(
            series, (f"shift, {unit}", title), said, reach=reach, dots=True, whole=True, bands=bands, write=write
        )
        examples = f", with its 95 % interval over {next(iter(lines.values()))[0].examples} examples" if bands else ""
        caption = f"{title[0].upper()}{title[1:]}{examples}"
        pictures[kind if kind == "consistency" else metric(subject)] = Picture(chart, caption)
    return pictures


def bands_of(lines: dict[str, Line], figure: str) -> dict[str, Points]:
    """The intervals of a figure, for networks that answer with classes."""
    found = {name: [tally.interval(figure) for tally in line] for name, line in lines.items()}
    return {
        name: ([ends[0] for ends in line if ends], [ends[1] for ends in line if ends])
        for name, line in found.items()
        if all(line)
    }


def percent(value: float) -> str:
    return f"{100 * value:.0f} %"


def verdict(lines: dict[str, Line], shifts: list[int], subject: Subject) -> str:
    """What half of the largest shift does to each network."""
    at = max(1, len(shifts) // 2) if len(shifts) > 1 else 0
    unit = "pixels" if subject.config.input == "image" else "tokens"
    unit = unit.removesuffix("s") if shifts[at] == 1 else unit
    parts = []
    for name, line in lines.items():
        parts.append(f"{name} keeps {share(line[at].consistency)} of its answers{change_of(line, at)}")
    return f"Moved by {shifts[at]} {unit}, {'; '.join(parts)}."


def change_of(line: Line, at: int) -> str:
    """What a shift changes of the accuracy, with its interval; nothing where answers are numbers."""
    ends = line[at].change()
    if ends is None:
        return ""
    change, low, high = (f"{100 * value:+.1f}" for value in (line[at].score - line[0].score, *ends))
    words = f" ({change} points of accuracy, 95 % interval {low}…{high}, {line[at].examples} examples)"
    return words.replace("-", "−")
