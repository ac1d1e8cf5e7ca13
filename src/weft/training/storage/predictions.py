"""predictions.safetensors: what a run says of every example of the test split, for statistics over examples.

`predicted` (n,) is the class, or the value for regression; `confidence` (n,) the probability of that class, 1 for
regression; `target` (n,) what would have been right. Loads without torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load, save

from weft.disk import Damaged, brief, write_bytes

if TYPE_CHECKING:
    from torch import Tensor

FILE = "predictions.safetensors"
NAMES = ("predicted", "confidence", "target")
Predictions = dict[str, NDArray[Any]]


def predictions(task: str, outputs: Tensor, targets: Tensor) -> Predictions:
    """Predictions from a network's answers: outputs (n, K), or (n, 1) for binary and regression; targets (n,)."""
    from weft.training.metrics import class_probabilities

    if task == "regression":
        values = outputs.flatten(1).squeeze(1).to(targets.dtype).numpy()  # float64 where the targets need it
        return {"predicted": values, "confidence": np.ones(len(values), np.float32), "target": targets.numpy()}
    confidence, numbers = class_probabilities(task, outputs).max(1)  # type: ignore[arg-type]
    return {
        "predicted": numbers.int().numpy(),
        "confidence": confidence.float().numpy(),
        "target": targets.int().numpy(),
    }


def write_predictions(folder: Path, content: Predictions) -> None:
    """Store predictions in a run folder."""
    write_bytes(folder / FILE, save({name: np.ascontiguousarray(values) for name, values in content.items()}))


def read_predictions(folder: Path, names: Sequence[str] = NAMES) -> Predictions:
    """The predictions of a run folder; a run that is judged otherwise keeps a number an example under other `names`."""
    try:
        found = load((folder / FILE).read_bytes())
    except (OSError, ValueError, SafetensorError) as error:
        raise Damaged(
            f"{folder / FILE} cannot be read ({brief(error)}); run `weft train` again for this row"
        ) from error
    shapes = [found[name].shape if name in found else () for name in names]
    if len(set(shapes)) != 1 or len(shapes[0]) != 1 or any(found[name].dtype.kind not in "if" for name in names):
        raise Damaged(f"{folder / FILE} does not hold {', '.join(names)} of each example; run `weft train` again")
    return found
