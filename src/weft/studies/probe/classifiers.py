"""Classifiers on features that take a second: nearest neighbours, ridge regression in closed form, logistic regression.

They are those of scikit-learn, number for number: neighbours by cosine with equal votes, of equals the first class;
ridge on targets of ±1, one column a class, whose intercept is free; logistic regression with C.

    fitted = Ridge.fit(x, targets, classes)
    fitted.alpha                       # of least error when each row in turn is left out
    fitted.predict(other)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import normalize, one_hot

from weft.training.features import linear

ALPHAS = tuple(10.0**power for power in range(-2, 7))
NEIGHBOURS = (1, 5, 10, 20)
STRENGTHS = (1e-3, 1e-2, 1e-1)  # C of logistic regression
ITERATIONS = 200
ROWS = 512  # whose distances to all training rows are in memory at a time

Numbers = NDArray[np.int64]


def nearest_targets(train: Tensor, targets: Tensor, x: Tensor, count: int) -> Tensor:
    """The targets of the `count` nearest training rows by cosine, nearest first: (rows, count)."""
    near = normalize(train)
    return torch.cat([targets[(part @ near.T).topk(count).indices] for part in normalize(x).split(ROWS)])


def votes(targets: Tensor, classes: int) -> Tensor:
    """The class that most neighbours (rows, count) have; of equals the first: (rows,)."""
    return one_hot(targets, classes).sum(1).argmax(1)


@dataclass(frozen=True)
class Decomposed:
    """Training rows less their mean, by their singular values: every strength of ridge follows without a solve."""

    mean: Tensor  # (channels,)
    left: Tensor  # (rows, rank)
    values: Tensor  # (rank,), squared
    right: Tensor  # (channels, rank)

    @classmethod
    def of(cls, x: Tensor) -> Decomposed:
        x = x.double()
        mean = x.mean(0)
        centred = x - mean
        wide = x.shape[1] > x.shape[0]  # the smaller of the two Gram matrices has the same values
        values, vectors = torch.linalg.eigh(centred @ centred.T if wide else centred.T @ centred)
        kept = values > values[-1] * 1e-12
        values, vectors = values[kept], vectors[:, kept]
        other = (centred.T if wide else centred) @ vectors / values.sqrt()
        left, right = (vectors, other) if wide else (other, vectors)
        return cls(mean, left, values, right)

    def shrunk(self, alpha: float) -> Tensor:
        """By how much each direction is kept."""
        return self.values / (self.values + alpha)

    def weights(self, y: Tensor, alpha: float) -> tuple[Tensor, Tensor]:
        """Weight (classes, channels) and intercept for targets (rows, classes)."""
        middle = y.mean(0)
        along = self.left.T @ (y - middle) * (self.shrunk(alpha) / self.values.sqrt())[:, None]
        weight = (self.right @ along).T
        return weight, middle - weight @ self.mean

    def left_out_error(self, y: Tensor, alpha: float) -> float:
        """Mean squared error when each row in turn is left out, without refitting: residuals over 1 − hᵢᵢ."""
        middle, shrunk = y.mean(0), self.shrunk(alpha)
        residual = (y - middle) - self.left * shrunk @ (self.left.T @ (y - middle))
        leverage = 1 / len(y) + self.left.square() @ shrunk
        return float((residual / (1 - leverage).clamp_min(1e-10)[:, None]).square().mean())


@dataclass(frozen=True)
class Ridge:
    """Ridge regression to ±1, one column a class, a single one for two classes."""

    weight: Tensor  # (classes, channels)
    intercept: Tensor
    alpha: float

    @classmethod
    def fit(cls, x: Tensor, targets: Tensor, classes: int, alphas: tuple[float, ...] = ALPHAS) -> Ridge:
        """Of the strength that leaves the least error on rows left out; the smallest of equals."""
        rows, y = Decomposed.of(x), signs(targets, classes)
        alpha = min(alphas, key=lambda alpha: rows.left_out_error(y, alpha))
        return cls(*rows.weights(y, alpha), alpha)

    def predict(self, x: Tensor) -> Tensor:
        return chosen(x.double() @ self.weight.T + self.intercept)


def signs(targets: Tensor, classes: int) -> Tensor:
    """(rows, classes): 1 for the class of a row and −1 for others; (rows, 1) of two classes."""
    found = 2.0 * one_hot(targets, classes).double() - 1
    return found[:, 1:] if classes == 2 else found


def chosen(scores: Tensor) -> Tensor:
    """The class of the highest score, (rows,)."""
    return (scores[:, 0] > 0).long() if scores.shape[1] == 1 else scores.argmax(1)


def logistic(x: NDArray[np.float32], targets: Numbers, strength: float) -> Any:
    """scikit-learn's logistic regression."""
    return linear.logistic(x, targets, strength, ITERATIONS)
