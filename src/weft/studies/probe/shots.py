"""k-shot accuracy: ridge regression on k training rows a class, over several draws."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from weft.data.batch import noise
from weft.errors import WeftError
from weft.studies.probe.classifiers import ALPHAS, Decomposed, chosen, signs

USUAL = (1, 5, 10, 25, 100)
STRENGTHS = ALPHAS[::2]  # tried for every draw
Numbers = NDArray[np.int64]
Scores = NDArray[np.float64]


def fitting_shots(targets: Numbers, classes: list[str], asked: tuple[int, ...]) -> tuple[tuple[int, ...], str]:
    """The numbers of rows a class that every class has, and a sentence on those left out; of asked ones none may be."""
    counts = np.bincount(targets, minlength=len(classes))
    if np.count_nonzero(counts) < 2:
        raise WeftError(
            f"the training rows are all of class {classes[int(counts.argmax())]!r}, and a probe tells classes apart; "
            "use more rows (--train-fraction)"
        )
    rarest = int(counts.argmin())
    if too_many := [k for k in asked if k > counts[rarest]]:
        fewer = f"use --shots {counts[rarest]} or less" if counts[rarest] else "leave out --shots"
        raise WeftError(
            f"class {classes[rarest]!r} has {counts[rarest]} training rows, fewer than the {too_many[0]} of --shots; "
            f"{fewer}, or use more rows"
        )
    found = asked or tuple(k for k in USUAL if k <= counts[rarest])
    left = [k for k in USUAL if k not in found]
    if asked or not left:
        return found, ""
    return found, f"no {left[0]}-shot figure: {classes[rarest]!r} has {counts[rarest]} training rows"


def drawn(targets: Numbers, shots: int, draw: int, seed: int) -> Numbers:
    """Rows of one draw, `shots` of every class; more shots of the same draw hold the fewer."""
    found = []
    for label in np.unique(targets):
        rows = np.flatnonzero(targets == label)
        order = noise.permutation(noise.key(seed, f"shots {draw} {label}"), len(rows))
        found.append(rows[order[:shots]])
    return np.sort(np.concatenate(found))


def shot_scores(
    x: dict[str, Tensor], targets: dict[str, Tensor], classes: int, shots: int, draws: int, seed: int = 0
) -> Scores:
    """(draws, test rows): 1 where a draw's ridge is right. One strength for all draws, which validation rows choose."""
    right: dict[str, list[Tensor]] = {"validation": [], "test": []}  # each (strengths, rows)
    for draw in range(draws):
        rows = torch.from_numpy(drawn(targets["train"].numpy(), shots, draw, seed))
        solved, y = Decomposed.of(x["train"][rows]), signs(targets["train"][rows], classes)
        fitted = [solved.weights(y, alpha) for alpha in STRENGTHS]
        weights, biases = (torch.cat(parts).float() for parts in zip(*fitted, strict=True))
        for role, found in right.items():
            scores = (x[role] @ weights.T + biases).chunk(len(STRENGTHS), dim=1)
            found.append(torch.stack([chosen(part) == targets[role] for part in scores]))
    best = int(torch.stack(right["validation"]).double().mean((0, 2)).argmax())
    answers: Scores = torch.stack(right["test"])[:, best].double().numpy()
    return answers
