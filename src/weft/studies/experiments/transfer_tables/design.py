"""The rows of e3 and e8, what was published of them, and the questions that are asked.

e3 is table 3 of the course work: the same network after pre-training and from scratch; its side findings, images as
small as they are against enlarged ones and learning without regularisation, are rows of their own. e8 is after figures
3 and 4 of Dosovitskiy et al. 2021: as the set to learn from grows, at an equal number of steps, ConvNets lead while it
is small, attention catches up; Tolstikhin et al. 2021, figure 2, have the same of Mixer.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal

from weft.errors import WeftError
from weft.studies.experiments.transfer_tables.scales import TransferScale

FAMILIES = {"resnet": "ResNet", "vit": "ViT", "mixer": "Mixer", "gmlp": "gMLP"}
LITE = "EfficientNet-Lite0"
SHARES = (0.1, 0.3, 1.0)  # of the larger set
Start = Literal["scratch", "pretrained", "trained"]
Figures = dict[str, float]


@dataclass(frozen=True)
class TransferRow:
    """A way to come by a network for a task."""

    name: str
    family: str
    """of the scale's networks; empty: the network that comes trained"""
    start: Start
    share: float = 1.0
    """of the larger set, that it has learnt from"""
    enlarged: bool = False
    regularised: bool = True
    published: Figures = field(default_factory=dict)
    """task -> percent"""


@dataclass(frozen=True)
class Question:
    """Whether `first` is above `second` in a quantity; with `gains`, whether it has gained more since these rows.

    `says` is what was published, empty where nothing was.
    """

    first: str
    second: str
    says: str = ""
    gains: tuple[str, str] | None = None


def scratch(family: str) -> str:
    return f"{FAMILIES[family]}, from scratch"


def at_share(family: str, share: float) -> str:
    return f"{FAMILIES[family]}, {share:.0%}"


def table_rows(study: str, scale: TransferScale) -> list[TransferRow]:
    """The rows of a study at a scale."""
    if study == "e8":
        return [
            TransferRow(at_share(family, share), family, "pretrained", share) for family in FAMILIES for share in SHARES
        ]
    return [*e3_rows(), *(lite_rows() if scale.trained_side else [])]


def e3_rows() -> list[TransferRow]:
    """Table 3 of the course work; its ViT-B/16 and ResNet-152 have figures after pre-training alone."""
    after: dict[str, Figures] = {
        "mixer": {"cifar10": 97.7, "pets": 97.4},
        "vit": {"cifar10": 98.8},
        "resnet": {"cifar10": 98.9, "pets": 96.6},
    }
    before: dict[str, Figures] = {"mixer": {"cifar10": 82.3, "pets": 79.4}, "gmlp": {"cifar10": 80.2, "pets": 80.3}}
    rows = []
    for family, name in FAMILIES.items():
        rows.append(TransferRow(f"{name}, pre-trained", family, "pretrained", published=after.get(family, {})))
        rows.append(TransferRow(scratch(family), family, "scratch", published=before.get(family, {})))
    rows.append(TransferRow("Mixer, from scratch, enlarged", "mixer", "scratch", enlarged=True))
    rows.append(TransferRow("Mixer, from scratch, unregularised", "mixer", "scratch", regularised=False))
    return rows


def lite_rows() -> list[TransferRow]:
    return [TransferRow(f"{LITE}, ImageNet", "", "trained"), TransferRow(f"{LITE}, from scratch", "", "scratch")]


def questions(study: str, scale: TransferScale) -> list[Question]:
    """What is asked of every quantity."""
    if study == "e8":
        return [*leads(), *catching_up()]
    pairs = [
        Question(f"{name}, pre-trained", scratch(family), "pre-training helps") for family, name in FAMILIES.items()
    ]
    lite = [Question(f"{LITE}, ImageNet", f"{LITE}, from scratch", "pre-training helps")] if scale.trained_side else []
    own = scratch("mixer")
    sides = [Question(f"{own}, enlarged", own), Question(own, f"{own}, unregularised", "regularisation helps")]
    return [*pairs, *lite, *sides]


def leads() -> list[Question]:
    """With the smallest set the ConvNet leads."""
    least = SHARES[0]
    return [
        Question(at_share("resnet", least), at_share(family, least), "ConvNets lead while the set is small")
        for family in FAMILIES
        if family != "resnet"
    ]


def catching_up() -> list[Question]:
    """Others gain more by the whole set than the ConvNet does."""
    least, most = SHARES[0], SHARES[-1]
    return [
        Question(
            at_share(family, most),
            at_share("resnet", most),
            "attention and MLPs catch up as it grows",
            (at_share(family, least), at_share("resnet", least)),
        )
        for family in FAMILIES
        if family != "resnet"
    ]


def named_tasks(source: str, given: tuple[str, ...]) -> dict[str, str]:
    """The tasks by the names of their columns; without any, the source once more."""
    if not given:
        return {f"{task_name(source)} again": source}
    names = [task_name(one) for one in given]
    if len(set(names)) < len(names) or task_name(source) in names:
        twice = next(name for name in (*names, task_name(source)) if [*names, task_name(source)].count(name) > 1)
        raise WeftError(f"{twice} is named twice; give each task once, and none that is the source")
    return dict(zip(names, given, strict=True))


KNOWN = {  # usual name -> how folders are called, as a word of their own
    "cifar100": r"cifar[-_ ]?100(?!\d)",
    "cifar10": r"cifar[-_ ]?10(?!\d)",
    "pets": r"pets?",
    "sign digits": r"signs?[-_ ]?digits?",
}
GENERIC = ("images", "data", "train")  # folders whose parent has the name


def task_name(source: str) -> str:
    """How a source is called in the tables: known sets by their usual name, others by their folder's."""
    parts = [part.lower() for part in source.replace("\\", "/").split("/") if part]
    if not parts:
        return source
    own = parts[-2] if parts[-1] in GENERIC and len(parts) > 1 else parts[-1]
    found = (name for name, words in KNOWN.items() if re.search(rf"(?<![a-z]){words}(?![a-z])", own))
    return next(found, own)
