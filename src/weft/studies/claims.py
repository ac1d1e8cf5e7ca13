"""E11: the lecture's "common training issues", one verdict a claim, in minutes on digits.

Each claim sets two arms side by side, which differ in one thing, and names the quantity by which the first is said
to be better. It is confirmed, refuted, or not shown, over seeds and examples as in any comparison.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

Changes = dict[str, Any]
Quantity = Literal["accuracy", "train_accuracy", "early_loss"]

DEEP = [32] * 12  # layers in which gradients vanish


@dataclass(frozen=True)
class Side:
    """One side of a claim: changes to the network, and to how it is trained. Equal names are equal sides."""

    name: str
    network: Changes = field(default_factory=dict)
    optimisation: Changes = field(default_factory=dict)
    share: float = 1.0


@dataclass(frozen=True)
class Claim:
    """`first` is said to have more of the quantity than `second` (less of a loss)."""

    name: str
    says: str
    first: Side
    second: Side
    quantity: Quantity = "accuracy"


def mlp(name: str, *, share: float = 1.0, opt: Changes | None = None, **network: Any) -> Side:
    return Side(name, {"hidden": [64, 64], **network}, opt or {}, share)


SGD: Changes = {"opt": "sgd", "lr": 0.03, "weight_decay": 0.0}

CLAIMS: list[Claim] = [
    Claim(
        "no activation",
        "without an activation a deep stack is a linear map, and a ReLU stack beats it",
        mlp("relu"),
        mlp("identity", act="identity"),
    ),
    Claim("bias", "biases matter", mlp("relu"), mlp("no bias", bias=False)),
    Claim(
        "ReLU against sigmoid",
        "ReLU learns faster than the logistic function",
        mlp("relu, sgd", opt=SGD),
        mlp("logistic, sgd", act="logistic", opt=SGD),
        "early_loss",
    ),
    Claim("ELU against ReLU", "ELU beats ReLU", mlp("elu", act="elu"), mlp("relu")),
    Claim(
        "batch norm",
        "batch normalisation keeps gradients alive in a deep stack",
        mlp("deep with norm", hidden=DEEP, norm=True, act="logistic"),
        mlp("deep without", hidden=DEEP, act="logistic"),
    ),
    Claim(
        "residuals",
        "shortcuts let a stack of 12 layers learn that does not learn without them",
        mlp("deep with residuals", hidden=DEEP, act="logistic", residual=True),
        mlp("deep without", hidden=DEEP, act="logistic"),
    ),
    Claim(
        "step size",
        "too small a step does not get there in time",
        mlp("rate 0.1", opt={**SGD, "lr": 0.1}),
        mlp("rate 0.001", opt={**SGD, "lr": 0.001}),
    ),
    Claim(
        "batch size",
        "at equal steps and rate a larger batch has less noise and does better",
        mlp("batch 256", opt={"batch_size": 256}),
        mlp("batch 8", opt={"batch_size": 8}),
    ),
    Claim(
        "momentum",
        "momentum is faster than plain SGD",
        mlp("momentum", opt={**SGD, "opt": "momentum"}),
        mlp("relu, sgd", opt=SGD),
        "early_loss",
    ),
    Claim(
        "Adam",
        "Adam is faster than plain SGD",
        mlp("adam", opt={"opt": "adam", "weight_decay": 0.0}),
        mlp("relu, sgd", opt=SGD),
        "early_loss",
    ),
    Claim(
        "bigger is faster",
        "a bigger network needs fewer steps",
        mlp("width 256", hidden=[256, 256], opt=SGD),
        mlp("width 16", hidden=[16, 16], opt=SGD),
        "early_loss",
    ),
    Claim(
        "overfitting",
        "a network is right on more of its training rows than of others",
        mlp("few rows", share=0.1, hidden=[256, 256]),
        mlp("few rows", share=0.1, hidden=[256, 256]),
        "train_accuracy",
    ),
]
