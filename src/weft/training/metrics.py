"""How good predictions are: accuracy with its interval, Matthews correlation, AUROC, R², MAE, confusion, …

What counts alone tell is counted here, AUROC is scikit-learn's, which is imported where it is asked for: that takes as
long as to import torch. torchmetrics does not import beside a torchvision that does not fit its torch.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from weft import imported
from weft.errors import WeftError, nearest
from weft.training.learnt import matthews_of

Task = Literal["binary", "classes", "regression"]
HEADLINE = {"binary": "accuracy", "classes": "accuracy", "regression": "r2"}

PSEUDO = 4  # answers that an interval of an accuracy adds, half of them right

Metrics = dict[str, Any]


def measure(task: Task, outputs: Tensor, targets: Tensor, classes: int = 2) -> Metrics:
    """All metrics of a task. outputs (n, K), or (n, 1) for binary and regression; targets (n,)."""
    if task == "regression":
        return regression(outputs.flatten(1).squeeze(1), targets)
    probabilities = class_probabilities(task, outputs)
    return classification(probabilities, targets.long(), classes)


def headline(task: Task, outputs: Tensor, targets: Tensor) -> float:
    """The one number that choices go by, cheap enough for every epoch: accuracy or R²; higher is better."""
    if task == "regression":
        return r2(outputs.flatten(1).squeeze(1), targets)
    predicted = (outputs.squeeze(1) > 0).long() if task == "binary" else outputs.argmax(1)
    return float((predicted == targets.long()).double().mean())


def class_probabilities(task: Task, outputs: Tensor) -> Tensor:
    """(n, K) probabilities from logits; a binary network's one logit becomes two columns."""
    if task == "binary":
        positive = torch.sigmoid(outputs.squeeze(1).double())
        return torch.stack([1 - positive, positive], dim=1)
    return torch.softmax(outputs.double(), dim=1)


def classification(probabilities: Tensor, targets: Tensor, classes: int) -> Metrics:
    """Metrics of probabilities (n, K) against class numbers (n,)."""
    predicted = probabilities.argmax(1)
    correct = (predicted == targets).double()
    result: Metrics = {
        "accuracy": float(correct.mean()),
        "accuracy_interval": accuracy_interval(int(correct.sum()), len(correct)),
        "chance": chance(targets),
        "balanced_accuracy": _balanced_accuracy(targets.numpy(), predicted.numpy()),
        "matthews": _matthews(targets.numpy(), predicted.numpy()),
        "macro_f1": _macro_f1(targets.numpy(), predicted.numpy()),
        "calibration_error": calibration_error(probabilities, correct),
        "confusion": _confusion(targets.numpy(), predicted.numpy(), classes).tolist(),
    }
    if classes == 2 and len(targets.unique()) == 2 and bool(probabilities.isfinite().all()):
        result["auroc"] = _auroc(targets.numpy(), probabilities[:, 1].numpy())
    return result


def accuracy_interval(right: int, count: int) -> list[float]:
    """95 % interval of an accuracy after two right and two wrong answers are added (Agresti & Coull 1998).

    15 of 15 right is no proof of 100 %. It is what comparisons give to a single run.
    """
    from scipy.special import stdtrit  # Student's t; scipy.stats has it too, but takes seconds to import

    total = count + PSEUDO
    centre = (right + PSEUDO / 2) / total
    half = float(stdtrit(total - 1, 0.975)) * math.sqrt(centre * (1 - centre) / (total - 1))
    mean = right / count
    return [max(min(centre - half, mean), 0.0), min(max(centre + half, mean), 1.0)]


def chance(targets: Tensor) -> float:
    """Accuracy of naming the commonest class of the split: what a network that learnt nothing can reach."""
    counts = np.bincount(targets.long().numpy())
    return float(counts.max() / counts.sum())


def regression(predicted: Tensor, targets: Tensor) -> Metrics:
    """Metrics of predicted values (n,) against targets (n,)."""
    error = (predicted.double() - targets.double()).abs()
    return {
        "r2": r2(predicted, targets),
        "mae": float(error.mean()),
        "mae_interval": bootstrap(error),
        "rmse": float(error.square().mean().sqrt()),
    }


def r2(predicted: Tensor, targets: Tensor) -> float:
    """Share of the targets' variance that is explained; 0 for a constant target, as nothing is to be explained."""
    spread = (targets.double() - targets.double().mean()).square().sum()
    rest = (targets.double() - predicted.double()).square().sum()
    return float(1 - rest / spread) if spread > 0 else 0.0


def bootstrap(values: Tensor, repeats: int = 1000, level: float = 0.95) -> list[float]:
    """Percentile bootstrap interval of the mean of per-example values (n,); seeded, so that it is reproducible."""
    rng = np.random.default_rng(0)
    array = values.double().numpy()
    means = [array[rng.integers(0, len(array), len(array))].mean() for _ in range(repeats)]
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return [float(low), float(high)]


def calibration_error(probabilities: Tensor, correct: Tensor, bins: int = 15) -> float:
    """Expected calibration error (Guo et al. 2017): mean gap of confidence and accuracy over equal-width bins."""
    confidence = probabilities.max(1).values
    which = (confidence * bins).ceil().long().sub(1).clamp(0, bins - 1)
    gap = torch.zeros(bins, dtype=torch.double).index_add_(0, which, confidence.double() - correct.double())
    return float(gap.abs().sum() / len(confidence))


# ---- A metric that the user asked for: one of these names, or a function of the user's own. Higher is better.

Values = NDArray[Any]


def _confusion(targets: Values, predictions: Values, classes: int = 0) -> NDArray[np.int64]:
    """(K, K) how often each true class (down) got each answer (across), of so many `classes` or of all that occur."""
    size = max(classes, int(max(targets.max(initial=0), predictions.max(initial=0))) + 1)
    counts = np.bincount(targets * size + predictions, minlength=size * size).reshape(size, size)
    return counts[:classes, :classes] if classes else counts


def _matthews(targets: Values, predictions: Values) -> float:
    """Correlation of answers with targets, in [-1, 1]: 0 for a constant answer (Gorodkin 2004 for many classes)."""
    return matthews_of(_confusion(targets, predictions))


def _balanced_accuracy(targets: Values, predictions: Values) -> float:
    return float(np.mean([(predictions[targets == value] == value).mean() for value in np.unique(targets)]))


def _macro_f1(targets: Values, predictions: Values) -> float:
    """Mean over the classes that occur or are answered: one that is neither has no F1."""
    counts = _confusion(targets, predictions)
    either = counts.sum(0) + counts.sum(1)
    return float((2 * counts.diagonal()[either > 0] / either[either > 0]).mean())


def _auroc(targets: Values, probabilities: Values) -> float:
    """Of two classes; of more, the mean over the classes, each against the rest."""
    from sklearn.metrics import roc_auc_score

    if probabilities.ndim == 1:
        return float(roc_auc_score(targets, probabilities))
    found = [roc_auc_score(targets == value, probabilities[:, value]) for value in np.unique(targets)]
    return float(np.mean(found))


NAMED: dict[str, tuple[str, Callable[[Values, Values], float]]] = {  # name: for classes or numbers, and the function
    "accuracy": ("classes", lambda targets, predictions: float((targets == predictions).mean())),
    "balanced_accuracy": ("classes", _balanced_accuracy),
    "macro_f1": ("classes", _macro_f1),
    "matthews": ("classes", _matthews),
    "auroc": ("classes", _auroc),
    "r2": ("numbers", lambda targets, predictions: r2(torch.as_tensor(predictions), torch.as_tensor(targets))),
    "negative_mae": ("numbers", lambda targets, predictions: -float(np.abs(targets - predictions).mean())),
    "negative_rmse": ("numbers", lambda targets, predictions: -float(np.sqrt(((targets - predictions) ** 2).mean()))),
}
PROBABILITIES = ("probabilities", "y_score", "y_prob", "y_proba")  # how a parameter is called that wants them


def find_metric(name: str, task: Task) -> Callable[[Values, Values], float]:
    """The function of a metric's name or import string; a name that does not fit the task is refused."""
    kind = "numbers" if task == "regression" else "classes"
    if ":" in name:
        return imported.function(name, "metric")
    fitting = [known for known, (of, _) in NAMED.items() if of == kind]
    if name not in fitting:
        hint = "it is not for targets that are " + kind if name in NAMED else nearest(name, fitting)
        raise WeftError(f"metric {name!r}: {hint} give one of {', '.join(fitting)}, or package.module:function")
    return NAMED[name][1]


def score(name: str, task: Task, outputs: Tensor, targets: Tensor) -> float:
    """The metric of a whole split: `function(targets, predictions)`, both (n,), classes by their numbers.

    A function whose second parameter is called `probabilities` (or as in PROBABILITIES) gets these instead: (n, K),
    or for two classes (n,), of the second.
    """
    function = find_metric(name, task)
    answers: Tensor
    if task == "regression":
        answers = outputs.flatten(1).squeeze(1).double()
    else:
        answers, targets = class_probabilities(task, outputs), targets.long()
        if not wants_probabilities(function):
            answers = answers.argmax(1)
        elif answers.shape[1] == 2:
            answers = answers[:, 1]
    try:
        found = function(targets.numpy(), answers.numpy())
        value = math.nan if isinstance(found, bool | str) else float(found)
    except Exception as error:  # a user's function may raise anything
        raise WeftError(f"metric {name} returned no number: {type(error).__name__}: {error}") from error
    if not math.isfinite(value):
        raise WeftError(f"metric {name} returned {found!r}, which is no finite number; let it return one")
    return value


def wants_probabilities(function: Callable[..., Any]) -> bool:
    try:
        second = list(inspect.signature(function).parameters)[1]
    except (TypeError, ValueError, IndexError):
        return False
    return second in PROBABILITIES


def try_metric(name: str, task: Task, targets: Tensor, classes: int) -> None:
    """Call a metric on right answers to some targets: one that cannot be used is refused before anything is trained."""
    if task == "regression":
        outputs = targets.double()[:, None]
    elif task == "binary":
        outputs = targets.double()[:, None] * 2 - 1
    else:
        outputs = torch.nn.functional.one_hot(targets.long(), classes).double()
    score(name, task, outputs, targets)
