"""The lens `backprop`: value by value, what the recursion saves, and the gradient's size at each layer."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from weft.insight.finding import Cell, Finding, Picture, Table
from weft.insight.lenses.backprop.ablations import variants
from weft.insight.lenses.backprop.gradient_sizes import gradient_sizes, loss_of
from weft.insight.lenses.backprop.numpy_backprop import (
    Activate,
    Backward,
    Dense,
    Part,
    forward,
    naive,
    recursion,
    softmax_loss,
)
from weft.insight.lenses.backprop.worked_example import convnet_table, mlp_table
from weft.insight.options import BackpropOptions
from weft.insight.subject import Subject
from weft.report.chart import short
from weft.report.columns import duration
from weft.report.curves import curves

WIDTH, BATCH = 32, 16  # of the stack that is timed
TITLE = "Back-propagation"
TEXTBOOK = frozenset({"products", "time", "mlp", "convnet"})


def backprop(subject: Subject, asked: BackpropOptions) -> Finding:
    """Tables of the two small networks, the cost of both ways, and, where there is data, gradients by layer."""
    costs = cost_by_depth(asked.depth)
    pictures = {
        "products": Picture(products_chart(costs), "Steps that δ is handed down, by depth"),
        "time": Picture(time_chart(costs), "Time of a backward pass, by depth"),
    }
    record: dict[str, Any] = {"cost": costs}
    worked = {"mlp": mlp_table(), "convnet": convnet_table()}
    if subject.opener is None:
        return Finding(
            "backprop", TITLE, cost_sentence(costs), pictures, worked["mlp"], record, worked, textbook=TEXTBOOK
        )
    sizes, note = sizes_of_variants(subject, asked.examples)
    pictures = {"gradients": Picture(sizes_chart(sizes), "Size of the gradient by layer"), **pictures}
    record |= {"gradients": sizes, "note": note}
    sentence = " ".join(part for part in (sizes_sentence(subject, sizes), note) if part)
    return Finding("backprop", TITLE, sentence, pictures, sizes_table(sizes), record, worked, textbook=TEXTBOOK)


Sizes = dict[str, dict[str, float]]  # variant -> layer -> size


def sizes_of_variants(subject: Subject, examples: int) -> tuple[Sizes, str]:
    """Gradients of the network itself, and of fresh ones with and without norms and shortcuts."""
    found, note = variants(subject.config)
    networks = {**({"trained": subject.network} if subject.folder else {}), **found}
    sizes = {}
    for name, network in networks.items():
        loss = lambda batch, network=network: loss_of(subject, network, batch)  # noqa: E731
        sizes[name] = gradient_sizes(network, loss, subject.batches(examples))
    return sizes, note


def sizes_chart(sizes: Sizes) -> str:
    """A line a variant over hidden layers, logarithmic where no size is zero."""
    hidden = {name: [size for layer, size in line.items() if layer != "head"] for name, line in sizes.items()}
    series = {name: (list(range(1, len(line) + 1)), line) for name, line in hidden.items()}
    said = f"Root mean square of the gradient by layer, from the input on, for {', '.join(sizes)}"
    titles = "layer, from the input", "∂L/∂output, root mean square"
    return curves(series, titles, said, log=(False, True), dots=True, whole=True)


def sizes_table(sizes: Sizes) -> Table:
    layers = list(next(iter(sizes.values())))
    columns = [list(line.values()) for line in sizes.values()]
    rows: list[list[Cell]] = [[name, *values] for name, *values in zip(layers, *columns, strict=True)]
    return Table(["layer", *sizes], rows)


def sizes_sentence(subject: Subject, sizes: Sizes) -> str:
    """How much of the gradient arrives at the first layer, variant by variant."""
    parts = [f"{name} {short(float(f'{first_to_last(line):.2g}'))}" for name, line in sizes.items()]
    return f"Gradient at the first layer of {subject.name} over that at its last hidden one: {', '.join(parts)}."


def first_to_last(line: dict[str, float]) -> float:
    """Size at the first layer over that at the last before the head; nan where none arrives."""
    values = [value for name, value in line.items() if name != "head"]
    return values[0] / values[-1] if values[-1] else float("nan")


Costs = list[dict[str, float]]


def cost_by_depth(deepest: int) -> Costs:
    """Products (exact) and time (best of three) of both ways for stacks of 1, 2, 4 … dense layers."""
    depths = [2**power for power in range(deepest.bit_length()) if 2**power <= deepest]
    rows = []
    for depth in depths:
        parts, values, delta = stack(depth)
        ways: dict[str, Callable[[], Backward]] = {
            "recursion": lambda: recursion(parts, values, delta),  # noqa: B023
            "naive": lambda: naive(parts, values, delta),  # noqa: B023
        }
        row: dict[str, float] = {"depth": depth}
        for name, way in ways.items():
            row[f"{name}_products"] = way().products
            row[f"{name}_seconds"] = min(timed(way) for _ in range(3))
        rows.append(row)
    return rows


def stack(depth: int) -> tuple[list[Part], list[Any], Any]:
    """A perceptron stack of `depth` layers with tanh between them, what enters each part, and δ at its output."""
    rng = np.random.default_rng(0)
    parts: list[Part] = []
    for _ in range(depth):
        parts += [Dense(rng.normal(0, WIDTH**-0.5, (WIDTH, WIDTH)), np.zeros(WIDTH)), Activate("tanh")]
    values = forward(parts, rng.normal(size=(BATCH, WIDTH)))
    return parts, values, softmax_loss(values[-1], np.zeros(BATCH, dtype=np.int64))[1]


def timed(way: Callable[[], Backward]) -> float:
    start = time.perf_counter()
    way()
    return time.perf_counter() - start


def products_chart(costs: Costs) -> str:
    depths = [row["depth"] for row in costs]
    series = {name: (depths, [row[f"{name}_products"] for row in costs]) for name in ("recursion", "naive")}
    said = f"Steps by depth: {cost_sentence(costs)}"
    return curves(series, ("layers", "steps"), said, log=(True, True), dots=True, whole=True)


def time_chart(costs: Costs) -> str:
    depths = [row["depth"] for row in costs]
    series = {name: (depths, [row[f"{name}_seconds"] for row in costs]) for name in ("recursion", "naive")}
    said = f"Time by depth: {cost_sentence(costs)}"
    return curves(series, ("layers", "time"), said, log=(True, True), dots=True, whole=True, write=(short, duration))


def cost_sentence(costs: Costs) -> str:
    """What the recursion saves at the largest depth."""
    last = costs[-1]
    steps = f"{last['recursion_products']:.0f} against {last['naive_products']:,.0f} steps"
    ratio = last["naive_seconds"] / last["recursion_seconds"]
    return (
        f"With {last['depth']:.0f} layers the recursion takes {steps}, and {ratio:.0f} times less time than working "
        "each gradient out by itself; the tables have every value of two small networks."
    )
