"""The lens `saliency`: which patches, words or columns an answer is due to, and whether that is true to the network."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from weft.insight.drawing.highlight import Sentence, enlarged, highlighted, texts
from weft.insight.drawing.raster import WEIGHTS, Key
from weft.insight.drawing.tiles import Tile, sheet
from weft.insight.finding import Cell, Finding, Picture, Table, Unfit
from weft.insight.lenses.saliency.attribution import Explained, explained, integrated_gradients, occlusion, unit_grid
from weft.insight.lenses.saliency.faithfulness import CONTROLS, STEPS, Curves, ordered, random_order
from weft.insight.options import SaliencyOptions
from weft.insight.subject import Subject
from weft.report.curves import bars, curves

INTEGRATED, OCCLUDED, RANDOM = "integrated gradients", "occlusion", "random order"
ORDERS = INTEGRATED, OCCLUDED, RANDOM
BATCH = 16  # examples at a time: each is seen hundreds of times
SIDES = "deletion", "insertion"
KEY = Key(WEIGHTS, "speaks against the answer", "speaks for it")
UNITS = {"image": "patches", "text": "words", "vector": "columns"}


@dataclass
class Collected:
    """Curves, the gap of completeness, and the examples that are drawn."""

    found: dict[str, Curves] = field(default_factory=lambda: {name: Curves.empty() for name in ORDERS})
    gap: float = 0.0
    due: float = 0.0
    first: list[tuple[Explained, Tensor, Tensor]] = field(default_factory=list)
    sizes: Tensor = field(default_factory=lambda: torch.zeros(1))

    @property
    def completeness(self) -> float:
        """Mean size of (sum of attributions − difference of outputs), over that of the difference."""
        return self.gap / max(self.due, 1e-12)


def saliency(subject: Subject, asked: SaliencyOptions) -> Finding:
    """Attributions on some examples, drawn; deletion and insertion over all of them."""
    if subject.card.task == "regression" or not subject.config.num_classes:
        raise Unfit(f"the lens saliency asks what a class is due to, and {subject.name} has no classes")
    collected = Collected()
    for batch in subject.batches(asked.examples, BATCH):
        explain(collected, explained(subject, batch), asked)
    areas = {name: found.areas() for name, found in collected.found.items()}
    rows: list[list[Cell]] = [
        [name, *pair, areas[RANDOM][0] - pair[0], pair[1] - areas[RANDOM][1]] for name, pair in areas.items()
    ]
    columns = ["order", "deletion", "insertion", "deletion, better than random", "insertion, better than random"]
    record = {
        "examples": collected.found[RANDOM].count // CONTROLS,
        "areas": {name: dict(zip(SIDES, pair, strict=True)) for name, pair in areas.items()},
        "curves": {name: dict(zip(SIDES, each.means(), strict=True)) for name, each in collected.found.items()},
        "completeness gap": collected.completeness,
    }
    return Finding(
        "saliency", "Saliency: what an answer is due to", sentence(subject, areas, collected),
        {**shown(subject, collected), **charts(collected)}, Table(columns, rows), record,
    )  # fmt: skip


def explain(collected: Collected, batch: Explained, asked: SaliencyOptions) -> None:
    """Explain one batch and follow its orders."""
    integrated, occluded = integrated_gradients(batch, asked.steps), occlusion(batch)
    for name, values in ((INTEGRATED, integrated), (OCCLUDED, occluded)):
        collected.found[name].add(batch, ordered(values, batch.real))
    for seed in range(CONTROLS):
        collected.found[RANDOM].add(batch, random_order(batch.real, seed))
    with torch.no_grad():
        change = batch.outputs(batch.x) - batch.outputs(batch.base)
    change = change.gather(1, batch.output[:, None])[:, 0] * batch.sign
    collected.gap += float((integrated.sum(1) - change).abs().sum())
    collected.due += float(change.abs().sum())
    if not collected.first:
        collected.first = [(batch, integrated[: asked.shown], occluded[: asked.shown])]
        collected.sizes = torch.zeros(integrated.shape[1])
    if batch.subject.config.input == "vector":
        collected.sizes = collected.sizes + integrated.abs().sum(0)


def sentence(subject: Subject, areas: dict[str, tuple[float, float]], collected: Collected) -> str:
    """Whether the orders are better than chance."""
    units, random = UNITS[subject.config.input], areas[RANDOM]
    best = min((INTEGRATED, OCCLUDED), key=lambda name: areas[name][0] - areas[name][1])
    better = areas[best][0] < random[0] and areas[best][1] > random[1]
    judged = "truer to the network than chance" if better else "no better than chance"
    return (
        f"The {units} named first by {best} are {judged}: as they are taken away, the predicted class keeps a "
        f"mean probability of {areas[best][0]:.2f} (random order {random[0]:.2f}); as they are put back, "
        f"{areas[best][1]:.2f} (random order {random[1]:.2f}). Integrated gradients add up to the change of the output "
        f"within {100 * collected.completeness:.1f} %."
    )


def charts(collected: Collected) -> dict[str, Picture]:
    """Deletion and insertion."""
    share = [step / STEPS for step in range(STEPS + 1)]
    most = max((mean for each in collected.found.values() for means in each.means()[:2] for mean in means), default=1.0)
    top = min(1.02, 1.15 * most) or 1.02  # of many classes each has little, which would lie on the axis
    found = {}
    for place, name, what in ((0, "deletion", "taken away"), (1, "insertion", "put back")):
        series = {order: (share, each.means()[place]) for order, each in collected.found.items()}
        titles = f"share {what}, most important first", "probability of the predicted class"
        said = f"Probability of the predicted class as units are {what}, by {', '.join(series)}"
        caption = f"{name.capitalize()}: units {what} in order"
        found[name] = Picture(curves(series, titles, said, reach=(0, top)), caption)
    return found


def shown(subject: Subject, collected: Collected) -> dict[str, Picture]:
    """Some examples under their attributions."""
    batch, integrated, occluded = collected.first[0]
    kind = subject.config.input
    if kind == "vector":
        return {"columns": Picture(column_bars(subject, collected), "Mean size of the attribution to each column")}
    if kind == "text":
        said = f"Words of {len(integrated)} texts by integrated gradients for the predicted class"
        caption = "What speaks for the class that is predicted, word by word, by integrated gradients"
        return {"examples": texts(text_lines(subject, batch, integrated), said, caption, KEY)}
    grid = unit_grid(subject.config)
    tiles: list[Tile] = []
    for number, pixels in enumerate(subject.pixels(batch.x[: len(integrated)])):
        tiles.append((f"answer: {class_name(subject, batch, number)}", enlarged(pixels)))
        for label, values in (("integrated gradients", integrated), ("occlusion", occluded)):
            tiles.append((label, highlighted(pixels, values[number].reshape(grid).numpy())))
    said = f"{len(integrated)} pictures with integrated gradients and occlusion for the class that is predicted"
    caption = "What speaks for the class that is predicted, by integrated gradients and by occlusion"
    return {"examples": sheet(tiles, said, caption, columns=6, together=3, key=KEY)}


def class_name(subject: Subject, batch: Explained, number: int) -> str:
    """The predicted class of an example."""
    target, classes = int(batch.target[number]), subject.card.classes
    return classes[target] if target < len(classes) else str(target)


def text_lines(subject: Subject, batch: Explained, values: Tensor) -> list[Sentence]:
    """Each text's title, words and weights."""
    lines: list[Sentence] = []
    for number, weights in enumerate(values):
        mask: Any = batch.rest[0][number]
        title = f"answer: {class_name(subject, batch, number)}"
        lines.append((title, subject.words(batch.x[number][mask]), weights[mask].tolist()))
    return lines


def column_bars(subject: Subject, collected: Collected, most: int = 24) -> str:
    """The columns that matter most, as shares of all."""
    names = getattr(subject.transform, "columns", ()) or [f"column {n + 1}" for n in range(len(collected.sizes))]
    parts = collected.sizes / collected.sizes.sum()
    rows = [(names[n], (float(parts[n]),)) for n in parts.argsort(descending=True)[:most].tolist()]
    return bars(rows, ("share",), "Share of the size of all attributions by column", most=max(rows[0][1][0], 1e-9))
