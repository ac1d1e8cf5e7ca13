"""predictions.safetensors: what a run says of every example of the reporting split, for statistics over examples.

`predicted` (n,) is the class, or the value for regression; `confidence` (n,) the probability of that class, 1 for
regression; `target` (n,) what would have been right. Loads without torch.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load, save

from weft.atomic import write_bytes
from weft.errors import WeftError

if TYPE_CHECKING:
    from torch import Tensor

FILE = "predictions.safetensors"
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


def read_predictions(folder: Path) -> Predictions:
    """The predictions of a run folder."""
    try:
        return load((folder / FILE).read_bytes())
    except (OSError, SafetensorError) as error:
        raise WeftError(f"{folder / FILE} cannot be read ({error}); run `weft train` again for this row") from error
