"""Back-propagation written out in plain NumPy for an MLP and a ConvNet: one walk from the loss to the input.

A network is a list of parts. With a_{l−1} the input of part l and δ_l the gradient of the loss by its output,

dense         z = Θ a + b       ∂L/∂Θ_ij = δ_i a_j        ∂L/∂b = δ            δ_{l−1} = Θᵀ δ_l
activation    a = g(z)                                                         δ_{l−1} = g′(z) ⊙ δ_l
convolution   z = a ∗ K + b     ∂L/∂K(m,n) = Σ_ij δ(i,j) a(i+m, j+n)           δ_{l−1}(i,j) = Σ_mn δ(i−m, j−n) K(m,n)
                                ∂L/∂b = Σ_ij δ(i,j): sums over all positions, and over the examples of a batch

Convolution is correlation, (a∗K)(i, j) = Σ a(i+m, j+n) K(m, n); so the kernel's gradient is a correlation of
the input with δ, and the input's one of δ with the kernel turned by 180°. The recursion hands δ down once, O(L);
working each gradient out from the loss by itself takes L(L−1)/2 such steps, O(L²).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

Array = NDArray[np.float64]
Gradients = dict[str, Array]
Function = Callable[[Array], Array]


class Part(Protocol):
    """One step of a network: forward, and from the gradient by its output back to weights and input."""

    def forward(self, a: Array) -> Array: ...

    def gradients(self, a: Array, delta: Array) -> Gradients:
        """Gradients by the part's own weights, summed over the batch."""
        ...

    def back(self, a: Array, delta: Array) -> Array:
        """The gradient by the part's input."""
        ...


@dataclass(frozen=True)
class Dense:
    """z = Θ a + b for each row: weight (outputs, inputs), a (batch, inputs)."""

    weight: Array
    bias: Array

    def forward(self, a: Array) -> Array:
        return a @ self.weight.T + self.bias

    def gradients(self, a: Array, delta: Array) -> Gradients:
        return {"weight": delta.T @ a, "bias": delta.sum(0)}

    def back(self, a: Array, delta: Array) -> Array:
        return delta @ self.weight


@dataclass(frozen=True)
class Convolution:
    """Valid correlation: kernel (D, r, m, m), a (batch, r, n, n) → (batch, D, n−m+1, n−m+1)."""

    kernel: Array
    bias: Array

    def forward(self, a: Array) -> Array:
        windows = sliding_window_view(a, self.kernel.shape[2:], axis=(2, 3))
        return np.einsum("brijmn,drmn->bdij", windows, self.kernel, optimize=True) + self.bias[:, None, None]

    def gradients(self, a: Array, delta: Array) -> Gradients:
        windows = sliding_window_view(a, delta.shape[2:], axis=(2, 3))
        kernel = np.einsum("brmnij,bdij->drmn", windows, delta, optimize=True)
        return {"kernel": kernel, "bias": delta.sum((0, 2, 3))}

    def back(self, a: Array, delta: Array) -> Array:
        rows, columns = (side - 1 for side in self.kernel.shape[2:])
        padded = np.pad(delta, ((0, 0), (0, 0), (rows, rows), (columns, columns)))
        windows = sliding_window_view(padded, self.kernel.shape[2:], axis=(2, 3))
        return np.einsum("bdijmn,drmn->brij", windows, self.kernel[:, :, ::-1, ::-1], optimize=True)


@dataclass(frozen=True)
class Activate:
    """a = g(z), elementwise."""

    act: str

    def forward(self, a: Array) -> Array:
        return FUNCTIONS[self.act][0](a)

    def gradients(self, a: Array, delta: Array) -> Gradients:
        return {}

    def back(self, a: Array, delta: Array) -> Array:
        return FUNCTIONS[self.act][1](a) * delta


@dataclass(frozen=True)
class Flatten:
    """(batch, D, n, n) → (batch, D·n·n)."""

    def forward(self, a: Array) -> Array:
        return a.reshape(len(a), -1)

    def gradients(self, a: Array, delta: Array) -> Gradients:
        return {}

    def back(self, a: Array, delta: Array) -> Array:
        return delta.reshape(a.shape)


def logistic(z: Array) -> Array:
    return 1 / (1 + np.exp(-z))


FUNCTIONS: dict[str, tuple[Function, Function]] = {  # g and g′
    "identity": (lambda z: z, np.ones_like),
    "logistic": (logistic, lambda z: logistic(z) * (1 - logistic(z))),
    "tanh": (np.tanh, lambda z: 1 - np.tanh(z) ** 2),
    "arctan": (np.arctan, lambda z: 1 / (1 + z**2)),
    "relu": (lambda z: np.maximum(z, 0), lambda z: (z > 0).astype(z.dtype)),
    "softplus": (lambda z: np.logaddexp(0, z), logistic),
}


def forward(parts: Sequence[Part], x: Array) -> list[Array]:
    """What enters each part, and last what leaves the network."""
    values = [x]
    for part in parts:
        values.append(part.forward(values[-1]))
    return values


def softmax_loss(outputs: Array, classes: NDArray[np.int64]) -> tuple[float, Array]:
    """Cross entropy of softmax, mean over the batch, and its gradient by the outputs: (softmax − one-hot) / batch."""
    shifted = outputs - outputs.max(1, keepdims=True)
    chances = np.exp(shifted) / np.exp(shifted).sum(1, keepdims=True)
    rows = np.arange(len(outputs))
    delta = chances.copy()
    delta[rows, classes] -= 1
    return float(-np.log(chances[rows, classes]).mean()), delta / len(outputs)


def squared_loss(outputs: Array, targets: Array) -> tuple[float, Array]:
    """Squared error, mean over all outputs, and its gradient by them."""
    difference = outputs - targets
    return float((difference**2).mean()), 2 * difference / difference.size


@dataclass(frozen=True)
class Backward:
    """Gradients of each part's weights, δ at each part's output, δ at the input, and the products that it took."""

    gradients: list[Gradients]
    deltas: list[Array]
    input: Array
    products: int


def recursion(parts: Sequence[Part], values: Sequence[Array], delta: Array) -> Backward:
    """One walk from the loss down: each part is passed once."""
    found: list[Gradients] = []
    deltas: list[Array] = []
    for part, a in zip(reversed(parts), reversed(values[:-1]), strict=True):
        found.append(part.gradients(a, delta))
        deltas.append(delta)
        delta = part.back(a, delta)
    return Backward(found[::-1], deltas[::-1], delta, len(parts))


def naive(parts: Sequence[Part], values: Sequence[Array], delta: Array) -> Backward:
    """Every gradient by itself: for each part, walk again from the loss down to it."""
    found, deltas, products = [], [], 0
    for number, part in enumerate(parts):
        here = delta
        for above in range(len(parts) - 1, number, -1):
            here = parts[above].back(values[above], here)
            products += 1
        found.append(part.gradients(values[number], here))
        deltas.append(here)
    return Backward(found, deltas, parts[0].back(values[0], deltas[0]), products + 1)
