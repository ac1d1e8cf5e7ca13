"""`weft describe NAME`: stages with shapes, parameters and multiply-adds, receptive field, memory."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from weft.errors import WeftError
from weft.networks.registry import configured
from weft.training.config import Overrides

if TYPE_CHECKING:
    from weft.networks.config import NetworkConfig
    from weft.networks.measure.description import Description


@dataclass(frozen=True)
class Arguments:
    """Describe a network without allocating its weights: stages, shapes, parameters and multiply-adds (by formula and
    as torch counts them), theoretical receptive field, memory."""

    name: Annotated[str, tyro.conf.Positional]
    """A name from `weft models`."""
    img_size: tuple[int, ...] | None = None
    """Side of the images, or height and width."""
    channels: int | None = None
    """Channels of the images."""
    classes: int | None = None
    """Number of outputs; 0 for none."""
    network: Overrides = field(default_factory=dict)
    """Changes to the network's configuration, as pairs: --network depth=12 mixer=identity"""
    gpu: int | None = None
    """Also predict the time of a forward pass and a training step of so many examples on three common GPUs, by the
    roofline: bounds that nothing was measured for."""
    json: bool = False
    """Print JSON."""


def run(arguments: Arguments) -> None:
    changes: dict[str, Any] = dict(arguments.network)
    if arguments.img_size is not None:
        if len(arguments.img_size) > 2:
            raise WeftError("--img-size takes one side, or height and width")
        changes["img_size"] = arguments.img_size if len(arguments.img_size) == 2 else arguments.img_size[0]
    for key, value in {"in_chans": arguments.channels, "num_classes": arguments.classes}.items():
        if value is not None:
            changes[key] = value
    config = configured(arguments.name, **changes)
    from weft.networks.measure.description import describe  # torch: only once the arguments are known to be good

    if arguments.gpu is not None and arguments.gpu < 1:
        raise WeftError("--gpu takes the number of examples in a batch, such as 128")
    description = describe(config)
    predictions = [] if arguments.gpu is None else on_gpus(config, arguments.gpu)
    if arguments.json:
        print(json.dumps({**description.as_dict(), "gpus": predictions}))
    else:
        show(arguments.name, description)
        for sentence in predicted_sentences(predictions, arguments.gpu):
            print(sentence)


def on_gpus(config: NetworkConfig, batch: int) -> list[dict[str, Any]]:
    """Predicted seconds of a forward pass and of a training step, a device each."""
    from weft.networks.measure.roofline import DEVICES, forward_operations, predicted, step_operations

    forward, step = forward_operations(config, batch), step_operations(config, batch)
    return [{"name": gpu.name, "forward": predicted(forward, gpu), "step": predicted(step, gpu)} for gpu in DEVICES]


def predicted_sentences(predictions: list[dict[str, Any]], batch: int | None) -> list[str]:
    """What the roofline says, and that it is a prediction."""
    if not predictions or batch is None:
        return []
    head = f"predicted by the roofline for {batch} examples, not measured (real kernels take 1.3 to 2 times as long):"
    return [head] + [
        f"  {found['name']}: forward {1000 * found['forward']:.2g} ms, training step {1000 * found['step']:.2g} ms, "
        f"{batch / found['step']:,.0f} examples a second"
        for found in predictions
    ]


def show(name: str, description: Description) -> None:
    from rich import box
    from rich.table import Table

    from weft import terminal

    size = "×".join(str(side) for side in description.input_shape)
    table = Table(box=box.SIMPLE_HEAD, title=f"{name}: {description.config.family}, input {size}", title_justify="left")
    for column in ("stage", "shape"):
        table.add_column(column)
    for column in ("parameters", "mult-adds, formula", "mult-adds, torch"):
        table.add_column(column, justify="right")
    for row in description.rows:
        stage = row.stage
        times = f" ×{stage.count}" if stage.count > 1 else ""
        counted = "–" if row.counted_macs is None else f"{row.counted_macs:,}"
        shape = "×".join(str(side) for side in stage.shape)
        table.add_row(
            stage.module + times, shape, f"{row.counted_parameters:,}", f"{stage.macs * stage.count:,}", counted
        )
    counted = "–" if description.counted_macs is None else f"{description.counted_macs:,}"
    table.add_section()
    table.add_row("total", "", f"{description.parameters:,}", f"{description.macs:,}", counted)
    console = terminal.console()
    console.print(table)
    console.print(field_sentence(description))
    console.print(memory_sentence(description))


def field_sentence(description: Description) -> str:
    """Where the receptive field stands at the end, and which layer first saw everything."""
    unit = {"image": "pixels", "text": "tokens", "vector": "values"}[description.config.input]
    whole = next((field.name for field in description.fields if field.side is None), None)
    if whole:
        return f"receptive field: the whole input, from {whole} on"
    if not description.fields:
        return "receptive field: not known of a network that is not weft's"
    last = description.fields[-1]
    span = f"{last.side}×{last.side}" if description.config.input == "image" else f"{last.side}"
    return f"receptive field: {span} {unit} at {last.name}, one value every {last.stride}"


def memory_sentence(description: Description) -> str:
    mib = 2**20
    return (
        f"memory in float32: weights {description.weights / mib:,.1f} MiB; training with Adam "
        f"{description.training_state / mib:,.1f} MiB and {description.activations / mib:,.1f} MiB an example"
    )
