"""Back-propagation through two networks small enough to follow by hand: one value a row, its sum written out."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from weft.insight.finding import Cell, Table
from weft.insight.lenses.backprop.numpy_backprop import (
    Activate,
    Array,
    Backward,
    Convolution,
    Dense,
    Flatten,
    Part,
    forward,
    recursion,
    softmax_loss,
)

COLUMNS = ("step", "value of", "how", "=")

MLP: list[Part] = [
    Dense(np.array([[0.4, -0.6], [0.3, 0.5]]), np.array([0.1, -0.2])),
    Activate("logistic"),
    Dense(np.array([[0.7, -0.3], [-0.5, 0.8]]), np.array([0.0, 0.1])),
]
MLP_INPUT = np.array([[0.5, 1.0]])

CONVNET: list[Part] = [
    Convolution(np.array([[[[0.5, -0.5], [0.25, -0.25]]]]), np.array([0.1])),
    Activate("relu"),
    Flatten(),
    Dense(np.array([[0.6, -0.4, 0.2, 0.1], [-0.3, 0.5, 0.4, -0.2]]), np.array([0.0, 0.0])),
]
CONVNET_INPUT = np.array([[[[1.0, 0.0, 0.5], [0.5, 1.0, 0.0], [0.0, 0.5, 1.0]]]])
CLASS = 0  # the true one, in both


def mlp_table() -> Table:
    """A perceptron stack of 2–2–2 with a logistic layer and softmax cross entropy."""
    return worked(MLP, MLP_INPUT)


def convnet_table() -> Table:
    """A 3×3 image, one 2×2 kernel, ReLU, and two outputs."""
    return worked(CONVNET, CONVNET_INPUT)


def worked(parts: list[Part], x: Array) -> Table:
    """All values of one example, forward and then backward."""
    values = forward(parts, x)
    loss, delta = softmax_loss(values[-1], np.array([CLASS]))
    back = recursion(parts, values, delta)
    rows = [
        *forward_rows(parts, values),
        *loss_rows(values[-1][0], delta[0], loss),
        *backward_rows(parts, values, back),
    ]
    return Table(COLUMNS, rows)


Row = list[Cell]


def forward_rows(parts: list[Part], values: list[Array]) -> Iterator[Row]:
    """z and a of each layer. Layers are counted from 1; an activation belongs to the layer before it."""
    layer = 0
    for part, a, z in zip(parts, values[:-1], values[1:], strict=True):
        layer += isinstance(part, Dense | Convolution)
        if isinstance(part, Dense):
            for i, value in enumerate(z[0]):
                how = f"{sums(part.weight[i], a[0])} {plus(part.bias[i])}"
                yield ["forward", f"z{layer}[{i}]", how, float(value)]
        elif isinstance(part, Convolution):
            side = part.kernel.shape[2]
            for i, j in np.ndindex(*z.shape[2:]):
                window = a[0, 0, i : i + side, j : j + side]
                how = f"{sums(part.kernel[0, 0].ravel(), window.ravel())} {plus(part.bias[0])}"
                yield ["forward", f"z{layer}[{i},{j}]", how, float(z[0, 0, i, j])]
        elif isinstance(part, Activate):
            for place in np.ndindex(*a.shape[1:]):
                value = float(z[0][place])
                yield ["forward", f"a{layer}[{named(place)}]", f"{part.act}({number(a[0][place])})", value]


def loss_rows(outputs: Array, delta: Array, loss: float) -> Iterator[Row]:
    """Softmax, loss and the first δ."""
    chances = delta + np.eye(len(outputs))[CLASS]
    for i, chance in enumerate(chances):
        below = " + ".join(f"e^{number(value)}" for value in outputs)
        yield ["forward", f"p[{i}]", f"e^{number(outputs[i])} / ({below})", float(chance)]
    yield ["forward", "loss", f"−log p[{CLASS}] = −log {number(chances[CLASS])}", loss]


def backward_rows(parts: list[Part], values: list[Array], back: Backward) -> Iterator[Row]:
    """δ, then the gradients of weights and bias, layer by layer from the top."""
    layer = sum(isinstance(part, Dense | Convolution) for part in parts)
    for index in range(len(parts) - 1, -1, -1):
        part, a, delta = parts[index], values[index], back.deltas[index][0]
        if isinstance(part, Dense):
            yield from delta_rows(parts, values, back, index, layer)
            for i, j in np.ndindex(*part.weight.shape):
                how = f"δ{layer}[{i}] · a{layer - 1}[{j}] = {number(delta[i])} · {number(a[0, j])}"
                yield ["backward", f"∂L/∂Θ{layer}[{i},{j}]", how, float(back.gradients[index]["weight"][i, j])]
            for i, value in enumerate(back.gradients[index]["bias"]):
                yield ["backward", f"∂L/∂b{layer}[{i}]", f"δ{layer}[{i}]", float(value)]
        elif isinstance(part, Convolution):
            yield from delta_rows(parts, values, back, index, layer)
            rows, columns = delta.shape[1:]
            for m, n in np.ndindex(*part.kernel.shape[2:]):
                how = sums(delta[0].ravel(), a[0, 0, m : m + rows, n : n + columns].ravel())
                yield ["backward", f"∂L/∂K{layer}[{m},{n}]", how, float(back.gradients[index]["kernel"][0, 0, m, n])]
            how = " + ".join(number(value) for value in delta.ravel())
            yield ["backward", f"∂L/∂b{layer}", how, float(back.gradients[index]["bias"][0])]
        layer -= isinstance(part, Dense | Convolution)
    for place in np.ndindex(*back.input.shape[1:]):
        yield ["backward", f"∂L/∂x[{named(place)}]", how_input(parts[0], back, place), float(back.input[0][place])]


def delta_rows(parts: list[Part], values: list[Array], back: Backward, index: int, layer: int) -> Iterator[Row]:
    """δ at the output of a dense or convolution layer: from softmax at the top, from the layer above elsewhere."""
    delta = back.deltas[index][0]
    above = next((k for k in range(index + 1, len(parts)) if isinstance(parts[k], Dense)), None)
    for order, place in enumerate(np.ndindex(*delta.shape)):
        if above is None:
            how = f"p[{order}] − {int(order == CLASS)}"
        else:
            act, upper = parts[index + 1], parts[above]
            assert isinstance(act, Activate) and isinstance(upper, Dense)
            z = values[index + 1][0][place]
            how = f"{act.act}′({number(z)}) · ({sums(upper.weight[:, order], back.deltas[above][0])})"
        yield ["backward", f"δ{layer}[{named(place)}]", how, float(delta[place])]


def how_input(part: Part, back: Backward, place: tuple[int, ...]) -> str:
    """The sum behind one value of the gradient by the input."""
    delta = back.deltas[0][0]
    if isinstance(part, Dense):
        return sums(part.weight[:, place[0]], delta)
    assert isinstance(part, Convolution)
    _, i, j = place
    pairs = [
        (part.kernel[0, 0, m, n], delta[0, i - m, j - n])
        for m, n in np.ndindex(*part.kernel.shape[2:])
        if 0 <= i - m < delta.shape[1] and 0 <= j - n < delta.shape[2]
    ]
    return sums(np.array([k for k, _ in pairs]), np.array([d for _, d in pairs]))


def sums(weights: Array, values: Array) -> str:
    """0.4·0.5 − 0.6·1 and so on."""
    terms = [f"{number(w)}·{number(v)}" for w, v in zip(weights, values, strict=True)]
    return " + ".join(terms).replace("+ −", "− ")


def plus(bias: float) -> str:
    return f"− {number(-bias)}" if bias < 0 else f"+ {number(bias)}"


def number(value: float) -> str:
    """Four decimals at most."""
    return f"{round(float(value), 4):g}".replace("-", "−")


def named(place: tuple[int, ...]) -> str:
    """A place without its leading channel 0."""
    return ",".join(str(axis) for axis in (place[1:] if len(place) == 3 else place))
