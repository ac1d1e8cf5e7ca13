"""A linear head on cached features: their batches, the head's start from logistic or ridge regression, and its place on
the network again.

Features are standardised by the training rows, so that one rate and one strength suit all of them; the head that is
kept reads the plain features, with mean and deviation multiplied into its weights.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from weft.data.batch.loader import Batches
from weft.data.batch.noise import in_order, shuffled
from weft.data.batch.stores import made_once
from weft.data.open.source import Source
from weft.data.open.splits import MemorySplit, spread
from weft.training.embeddings.store import tell
from weft.training.features.store import Features, FrozenNetwork, Index, features_of, table_key

STRENGTHS = (1e-3, 3e-3, 1e-2)  # C of logistic regression on a thousand standardised features; validation chooses
HEAD_VERSION = "3"  # raise it when the same features would give another head
Head = tuple[Tensor, Tensor]  # weight (outputs, channels) and bias
ITERATIONS = 60  # of a head that is trained on afterwards
SOLVED_ROWS = 20_000  # training rows that it is solved on, spread evenly; more take minutes
LEAST_DEVIATION = 0.1  # of the features' median: one that is silent on nearly all rows is not made loud on the others


@dataclass(frozen=True)
class Scale:
    """Mean of each feature over the training rows, and what it is divided by: its deviation, or a tenth of the median
    one where it hardly varies. A weight on such a feature would be huge, and so the loss where it does occur."""

    mean: Tensor
    deviation: Tensor

    @classmethod
    def of(cls, x: Tensor) -> Scale:
        deviation = x.std(0, correction=0)
        varying = deviation[deviation > 1e-6]
        least = LEAST_DEVIATION * varying.median() if len(varying) else torch.tensor(1.0)
        return cls(x.mean(0), torch.maximum(deviation, least))

    def __call__(self, x: Tensor) -> Tensor:
        return (x - self.mean) / self.deviation

    def scaled(self, weight: Tensor, bias: Tensor) -> Head:
        """The way back."""
        return weight * self.deviation, bias + weight @ self.mean

    def unscaled(self, weight: Tensor, bias: Tensor) -> Head:
        """The head on plain features that answers as (weight, bias) does on standardised ones."""
        plain = weight / self.deviation
        return plain, bias - plain @ self.mean


class FeatureBatch:
    """The standardised features of a batch's rows."""

    def __init__(self, features: Features, scale: Scale) -> None:
        self.features, self.scale = features, scale

    def __call__(self, step: int, index: Index, mine: slice) -> tuple[dict[str, Tensor], Tensor]:
        chosen = index[mine]
        targets: Any = np.ascontiguousarray(self.features.targets[chosen])
        return {"x": self.scale(self.features.x[torch.from_numpy(chosen)])}, torch.from_numpy(targets)


def feature_batches(
    source: Source, role: str, frozen: FrozenNetwork, *, batch_size: int, seed: int, rank: int = 0, world: int = 1
) -> Batches:
    """What `weft.data.batches` gives, example for example, with features in place of images."""
    split, train = source.splits[role], role == "train"
    scale = Scale.of(features_of(source, "train", frozen).x)
    plan = shuffled(split, batch_size, seed) if train else in_order(len(split), batch_size)
    assemble = FeatureBatch(features_of(source, role, frozen), scale)
    return Batches(split, plan, assemble, None, batch_size, train, rank, world)


def solvable(source: Source, outputs: int) -> bool:
    """Whether the training rows are in memory and lack no class, so that a head can be solved."""
    train = source.splits["train"]
    if not isinstance(train, MemorySplit):
        return False
    return source.task == "regression" or len(np.unique(train.targets)) == max(2, outputs)


def solved_head(source: Source, frozen: FrozenNetwork) -> Head:
    """The linear probe by logistic regression, or ridge regression for numbers, on plain features.

    The validation split chooses its strength, the smaller of equals. Kept in the cache, as the features are.
    """
    recipe: list[bytes | str] = [f"{HEAD_VERSION} {STRENGTHS} {ITERATIONS} {SOLVED_ROWS} {source.task}"]
    for role in ("train", "validation"):
        split = source.splits[role]
        assert isinstance(split, MemorySplit)
        recipe += [table_key(source, split, frozen), split.rows.tobytes(), split.targets.tobytes()]
    about = f"a linear head on features of {source.name}"
    found = made_once(source, "head", about, lambda: solved(source, frozen), *recipe)
    return found["weight"], found["bias"]


def solved(source: Source, frozen: FrozenNetwork) -> dict[str, Tensor]:
    """An entry of the cache: weight and bias of the best of the linear models."""
    train, held = (features_of(source, role, frozen) for role in ("train", "validation"))
    chosen = solved_rows(source.task, train.targets)
    kind = regression_kind(source.task)
    tell(f"solving {kind} regression on the features of {len(chosen):,} images once; the head starts from it")
    targets, known = (found.targets for found in (train, held))
    if source.task == "regression":  # as a network's outputs are
        targets, known = standardised(targets, train.targets), standardised(known, train.targets)
    scale = Scale.of(train.x)
    x, other = scale(train.x[torch.from_numpy(chosen)]).numpy(), scale(held.x).numpy()
    with one_thread():
        fitted = [fit(source.task, strength, x, targets[chosen]) for strength in STRENGTHS]
    best = fitted[int(np.argmax([model.score(other, known) for model in fitted]))]
    weight, bias = np.atleast_2d(best.coef_), np.atleast_1d(best.intercept_)
    if source.task == "classes" and len(weight) == 1:  # of two classes: the same odds from an output for each
        weight, bias = np.concatenate([-weight / 2, weight / 2]), np.concatenate([-bias / 2, bias / 2])
    plain, shift = scale.unscaled(torch.from_numpy(weight).float(), torch.from_numpy(bias).float())
    return {"weight": plain.contiguous(), "bias": shift}  # laid out as it is stored: products of others round otherwise


def regression_kind(task: str) -> str:
    return "ridge" if task == "regression" else "logistic"


def solved_rows(task: str, targets: NDArray[Any]) -> Index:
    """Which training rows a head is solved on: SOLVED_ROWS of them, spread evenly, and one of every class."""
    chosen = spread(len(targets), SOLVED_ROWS)
    return chosen if task == "regression" else np.union1d(chosen, np.unique(targets, return_index=True)[1])


@contextmanager
def one_thread() -> Iterator[None]:
    """Solve on one thread: problems of this size gain little from more, and where other programs use the machine too,
    threads that wait for each other took seven times as long."""
    from threadpoolctl import threadpool_limits

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with threadpool_limits(1):
            yield
    finally:
        torch.set_num_threads(before)


def fit(task: str, strength: float, x: NDArray[Any], targets: NDArray[Any]) -> Any:
    """A linear model."""
    if task == "regression":
        from sklearn.linear_model import Ridge

        return Ridge(alpha=1 / strength).fit(x, targets)
    return logistic(x, targets, strength, ITERATIONS)


def logistic(x: NDArray[Any], targets: NDArray[Any], strength: float, iterations: int) -> Any:
    """scikit-learn's logistic regression, which need not have converged."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return LogisticRegression(C=strength, max_iter=iterations).fit(x, targets)


def standardised(targets: NDArray[Any], train: NDArray[Any]) -> NDArray[Any]:
    return (targets - train.mean()) / (train.std() or 1.0)
