"""Two given networks on the same examples: McNemar's exact test. It says nothing of how they were trained."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from weft.errors import WeftError
from weft.studies.statistics.intervals import mcnemar
from weft.studies.statistics.verdicts import SIGNIFICANCE
from weft.training.storage.record import Predictions, read_predictions
from weft.training.storage.run_folder import open_run


def compare_two(first: Path, second: Path) -> str:
    """A sentence about the difference of two finished runs of one source."""
    one, other = judged(first), judged(second)
    if one["target"].shape != other["target"].shape or not np.array_equal(one["target"], other["target"]):
        raise WeftError(
            f"{first} and {second} were judged on different examples, so they cannot be paired; "
            "give two runs of one source"
        )
    right, also = one["predicted"] == one["target"], other["predicted"] == other["target"]
    p = mcnemar(right, also)
    counts = f"{int((right & ~also).sum())} only the first gets right, {int((~right & also).sum())} only the second"
    scores = f"{first.name} {right.mean():.2%}, {second.name} {also.mean():.2%}"
    verdict = "the networks differ" if p < SIGNIFICANCE else "no difference shown"
    scope = "This is about these two networks; for how they are trained, compare several seeds."
    return f"{scores}: {verdict} (McNemar, p = {p:.2g}; of the examples {counts}). {scope}"


def judged(path: Path) -> Predictions:
    """The predictions of a finished classification run."""
    run = open_run(path)
    record = run.record()
    if record is None or record["status"] != "finished":
        raise WeftError(f"{path} is not a finished run; `{run.resuming()}` finishes it")
    if record["metric"] != "accuracy":
        raise WeftError("McNemar's test counts right and wrong answers; for regression compare several seeds")
    return read_predictions(path)
