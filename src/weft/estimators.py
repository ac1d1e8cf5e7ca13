"""`weft.Classifier` and `weft.Regressor`: the networks in scikit-learn's manner, for pipelines and cross-validation.

They train with the same loop as `weft train`, in memory: no folder, no probe, no validation split.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable
from typing import Any, Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from weft.data.config import SourceConfig, Task, TransformConfig
from weft.data.open.labels import wide
from weft.data.open.source import Source
from weft.data.open.splits import MemorySplit
from weft.data.read.cache import digest
from weft.data.sources.arrays import Examples, is_missing, recognise
from weft.data.sources.table import Table, as_number
from weft.data.transform.fit import fit as fit_transform
from weft.training.config import DurationConfig, OptimisationConfig, OptimiserName, RunConfig
from weft.training.inference.network_folder import NetworkMetadata
from weft.training.inference.predictor import Predictor
from weft.training.loop.display import Silent
from weft.training.loop.loop import train
from weft.training.loop.progress import Progress
from weft.training.metrics import class_probabilities
from weft.training.objective import create_objective
from weft.training.optim.optimisers import create_optimiser
from weft.training.run.context import Run
from weft.training.run.distributed import SingleProcess
from weft.training.run.inputs import LabelledInputs, check_source, size_network
from weft.training.run.probe import draft
from weft.training.storage.metrics_log import Journal


class _Estimator(BaseEstimator):
    """What both have in common: the parameters of a run, and fitting."""

    def __init__(
        self,
        model: str = "mlp",
        *,
        epochs: float = 50,
        batch_size: int = 32,
        lr: float | None = None,
        opt: OptimiserName = "adamw",
        weight_decay: float = 0.01,
        network: dict[str, Any] | None = None,
        preprocessing: dict[str, Any] | None = None,
        random_state: Any = 0,
    ) -> None:
        self.model = model
        self.epochs = epochs
        self.batch_size = batch_size
        self.lr = lr
        self.opt = opt
        self.weight_decay = weight_decay
        self.network = network
        self.preprocessing = preprocessing
        self.random_state = random_state

    def _config(self, examples: int) -> RunConfig:
        return RunConfig(
            source="arrays",
            model=self.model,
            network=self.network or {},
            seed=int(check_random_state(self.random_state).randint(2**31 - 1)),
            transform=TransformConfig(**(self.preprocessing or {})),
            optimisation=OptimisationConfig(
                batch_size=min(self.batch_size, examples), opt=self.opt, lr=self.lr, weight_decay=self.weight_decay
            ),
            duration=DurationConfig(epochs=self.epochs),
        )

    def _fit(
        self,
        examples: Examples,
        targets: NDArray[Any],
        task: Literal["binary", "classes", "regression"],
        classes: list[str],
    ) -> None:
        source = source_of(examples, targets, task, classes)
        config = self._config(len(targets))
        check_source(config, source)
        self.predictor_ = train_in_memory(config, source)
        vectors = self.predictor_.modality == "vector"
        self._precise = copy.deepcopy(self.predictor_.network).double() if vectors else None

    def save_pretrained(self, folder: str) -> None:
        """Write the network as `weft train` would; `weft.load` reads it."""
        check_is_fitted(self)
        self.predictor_.save_pretrained(folder)

    def _outputs(self, X: Any) -> torch.Tensor:
        """Outputs for checked inputs; vectors in float64, so that a row's result does not depend on its neighbours."""
        check_is_fitted(self)
        if self._precise is None:
            return self.predictor_.outputs(X)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        rows = self.predictor_.transform.normalize(X).double()  # type: ignore[union-attr]
        with torch.no_grad():
            return self.predictor_.card.objective().answers(self._precise(rows))


def train_in_memory(config: RunConfig, source: Source) -> Predictor:
    """Train without a folder; returns the network with its last weights."""
    transform = fit_transform(source, config.transform)
    objective = create_objective(source.task, source.splits["train"].targets, len(source.classes))
    inputs = LabelledInputs(config, source, transform, size_network(config, source, transform), objective)
    core = inputs.create()
    loader = inputs.batches("train")
    plan = draft(config, loader.steps_per_epoch, "")
    run = Run(
        config=config,
        plan=plan,
        team=SingleProcess(),
        core=core,
        net=core,
        optimiser=create_optimiser(config.optimisation.optimiser, inputs.groups(core), plan.lr, core),
        objective=objective,
        ema=None,
        train=loader,
        validation=None,
        store=None,
        journal=Journal(None),
        display=Silent(),
    )
    train(run, Progress(), lambda: False)
    pairs = source.modality == "pair"
    card = NetworkMetadata(config.model, objective.task, source.classes, objective.centre, objective.scale, pairs)
    return Predictor(card, core.eval(), transform)


def source_of(examples: Examples, targets: NDArray[Any], task: Task, classes: list[str]) -> Source:
    """A source whose only examples are these; all of them are for training.

    Selection reads them too, since there are no others: an estimator keeps its last weights, not its best.
    """
    table = Table(inputs=examples.rows, labels=targets, place=lambda row: f"row {row}")
    split = MemorySplit(table, np.arange(len(targets)), targets, "given")
    return Source(
        name="arrays",
        modality=examples.modality,
        task=task,
        classes=classes,
        splits={"train": split, "validation": split},
        files={"inputs": digest(*content(examples.rows))},
        notes=[],
        config=SourceConfig(),
    )


def content(rows: Any) -> Iterable[str | bytes]:
    """What tells inputs from others: the cache knows them by it."""
    for part in [rows] if isinstance(rows, np.ndarray) else rows:
        if isinstance(part, np.ndarray):
            yield f"{part.dtype} {part.shape}"
            yield part.tobytes()
        else:
            yield json.dumps(part)


def refuse_missing(labels: NDArray[Any]) -> None:
    """Refuse labels that are None or NaN among words; numbers are checked by scikit-learn."""
    missing = [row for row, label in enumerate(labels) if is_missing(label)] if labels.dtype.kind == "O" else []
    if missing:
        raise ValueError(f"the label of row {missing[0]} (counted from 0) is missing; fill it or leave the row out")


def numbers_of(y: NDArray[Any]) -> NDArray[Any]:
    """Targets as numbers, each of them finite; scikit-learn looks at those of vectors alone."""
    numbers = np.array([as_number(value) for value in y.tolist()]) if y.dtype.kind == "O" else y.astype(np.float64)
    with np.errstate(over="ignore"):
        targets = numbers if wide(numbers) else numbers.astype(np.float32)
    if len(bad := np.flatnonzero(~np.isfinite(targets))):
        row = int(bad[0])
        raise ValueError(
            f"the number of row {row} (counted from 0) is missing or not finite, {y[row]}; fill it or leave the row out"
        )
    return targets


class Classifier(ClassifierMixin, _Estimator):
    """A network that tells classes apart.

    X holds vectors (an array or a table (n, features)), texts (a list, or a column of a table), pairs of texts (two
    columns), or images (an array (n, height, width), with channels before or after height and width or without, or a
    list of arrays or Pillow images, of uint8 or of floats from 0 to 1); y holds one label each.
    """

    def fit(self, X: Any, y: Any) -> Self:
        """Train on labelled examples."""
        examples = recognise(X)
        if examples.modality == "vector":
            examples = Examples("vector", validate_data(self, X, dtype=np.float64))
        y = column_or_1d(y, warn=True)
        refuse_missing(y)
        check_classification_targets(y)
        if len(examples) != len(y):
            raise ValueError(f"{len(examples)} inputs and {len(y)} labels: one label an input is needed")
        self.classes_, codes = np.unique(y, return_inverse=True)
        names = [str(label) for label in self.classes_]
        if len(names) < 2:
            raise ValueError(f"a classifier needs two classes at least; y has one class only: {names[0]}")
        binary = len(names) == 2
        self._fit(examples, codes.astype(np.float32 if binary else np.int64), "binary" if binary else "classes", names)
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Probability of each class, (n, K), columns in the order of `classes_`."""
        probabilities: NDArray[np.float64] = class_probabilities(self._card().task, self._outputs(X)).numpy()
        return probabilities

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Logits: (n,) for two classes, else (n, K)."""
        outputs = self._outputs(X)
        logits: NDArray[np.float64] = (outputs.squeeze(1) if len(self.classes_) == 2 else outputs).numpy()
        return logits

    def predict(self, X: Any) -> NDArray[Any]:
        """The likeliest class for each input."""
        numbers = self.predict_proba(X).argmax(1)
        found: NDArray[Any] = self.classes_[numbers]
        return found

    def _card(self) -> NetworkMetadata:
        check_is_fitted(self)
        return self.predictor_.card


class Regressor(RegressorMixin, _Estimator):
    """A network that predicts a number. X as for Classifier; y holds numbers."""

    def fit(self, X: Any, y: Any) -> Self:
        """Train on examples with their numbers."""
        examples = recognise(X)
        if examples.modality == "vector":
            X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
            examples = Examples("vector", X)
        targets = numbers_of(column_or_1d(y, warn=True))
        if len(examples) != len(targets):
            raise ValueError(f"{len(examples)} inputs and {len(targets)} numbers: one number an input is needed")
        self._fit(examples, targets, "regression", [])
        return self

    def predict(self, X: Any) -> NDArray[np.float64]:
        """The number for each input."""
        found: NDArray[np.float64] = self._outputs(X).squeeze(1).double().numpy()
        return found
