"""The lens `field`: the receptive field in theory beside the measured one, through depth and through training."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from weft.disk import Damaged
from weft.insight.finding import Cell, Finding, Picture, Table, Unfit
from weft.insight.lenses.field.charts import growth_chart, maps_of_images, profiles_of_texts
from weft.insight.lenses.field.effective import MeasuredField, measure
from weft.insight.lenses.field.theoretical import Place, places
from weft.insight.options import FieldOptions
from weft.insight.subject import Subject, spread
from weft.networks.base.network import Network
from weft.networks.registry import build
from weft.report.columns import share
from weft.training.loop.progress import section, weights_of
from weft.training.storage.checkpoints import CheckpointStore
from weft.training.storage.run_folder import open_run

LAYERS = 8  # measured at most, spread over the depth
BATCH = 32  # examples at a time; each keeps its whole graph
COLUMNS = ("layer", "theoretical side", "stride", "effective side", "energy inside", "middle of the field")


def field(subject: Subject, asked: FieldOptions) -> Finding:
    """Fields of the layers, of the network before and during training, and how much of the theory is used."""
    known = places(subject.config)
    if not known:
        raise Unfit(f"the units of {subject.name} have no place in the input, so that no field lies around them")
    chosen = [known[number] for number in spread(len(known), LAYERS).tolist()]
    layers = {one.place.module: one for one in measure(subject.network, chosen, subject.batches(asked.examples, BATCH))}
    moments = dict(through_training(subject, known[-1], asked.examples))
    pictures = drawn(subject, layers, moments)
    named = {**layers, **{f"{known[-1].module}, {name}": one for name, one in moments.items()}}
    table = Table(COLUMNS, [row(name, one) for name, one in named.items()])
    record = {"examples": asked.examples, "fields": {name: stored(one) for name, one in named.items()}}
    return Finding("field", "Receptive field", verdict(subject, layers, moments), pictures, table, record)


def through_training(subject: Subject, place: Place, examples: int) -> Iterator[tuple[str, MeasuredField]]:
    """The field of the last layer before training and at each stored checkpoint; nothing for what was never trained."""
    if subject.folder is None or not (subject.folder / "run.yaml").is_file():
        return
    run = open_run(subject.folder)
    start = build(subject.config, run.config().seed).eval()
    yield "untrained", measure(start, [place], subject.batches(examples, BATCH))[0]
    store = CheckpointStore(run.checkpoints)
    for step in store.steps():
        if not step:
            continue  # the same as untrained
        try:
            weights = section(store.load(step).tensors, "model.")
        except Damaged:
            continue
        if weights.keys() == subject.network.state_dict().keys():
            yield f"step {step}", measured_with(subject, start, weights, place, examples)


def measured_with(subject: Subject, network: Network, weights: Any, place: Place, examples: int) -> MeasuredField:
    with weights_of(network, weights):
        return measure(network, [place], subject.batches(examples, BATCH))[0]


def drawn(subject: Subject, layers: dict[str, MeasuredField], moments: dict[str, MeasuredField]) -> dict[str, Picture]:
    """Growth through depth, and the fields themselves: maps of images, profiles over words of texts."""
    fields = profiles_of_texts if subject.config.input == "text" else maps_of_images
    unit = "tokens" if subject.config.input == "text" else "pixels"
    pictures = {"maps": fields(layers, "Measured field of each layer")}
    if len(layers) > 1:
        pictures = {"depth": Picture(growth_chart(layers, unit), "Side of the field through depth"), **pictures}
    if moments:
        last = next(reversed(layers))
        caption = f"Measured field of {last} through training"
        pictures["training"] = fields({**moments, "now": layers[last]}, caption)
    return pictures


def row(name: str, one: MeasuredField) -> list[Cell]:
    side: Cell = "everything" if one.place.side is None else one.place.side
    return [name, side, one.place.stride, one.effective_side(), one.inside(), placed(one)]


def placed(one: MeasuredField) -> str:
    """Where the field that was measured lies: a deep layer with few values has none in the very middle."""
    if len(one.middle) == 1:
        return "the middle of each text"
    shares = [f"{100 * (middle + 0.5) / size:.0f} %" for middle, size in zip(one.middle, one.energy.shape, strict=True)]
    return f"{shares[0]} down, {shares[1]} across"


def stored(one: MeasuredField) -> dict[str, Any]:
    """What the record keeps of a field: its figures and its energy, scaled to one."""
    total = float(one.energy.sum()) or 1.0
    figures = dict(zip(COLUMNS[1:], row("", one)[1:], strict=True))
    return {**figures, "energy": (one.energy / total).round(7).tolist()}


def verdict(subject: Subject, layers: dict[str, MeasuredField], moments: dict[str, MeasuredField]) -> str:
    """What the last layer sees in theory and in effect."""
    name, last = next(reversed(layers.items()))
    unit = "tokens" if subject.config.input == "text" else "pixels"
    theory = "the whole input" if last.place.side is None else f"{last.place.side} {unit}"
    where = f" (the one measured has the middle of its field at {placed(last)})" if unit == "pixels" else ""
    sentence = (
        f"A value of {name} can see {theory}{where}; 90 % of what it reacts to lies within {last.effective_side():.0f} "
        f"{unit}, and {share(last.inside())} within the theoretical field"
    )
    if "untrained" in moments:
        sentence += f"; before training it was {moments['untrained'].effective_side():.0f}"
    return sentence + "."
