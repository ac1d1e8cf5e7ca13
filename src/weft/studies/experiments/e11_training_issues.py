"""Study e11, "common training issues": claims about the training of an MLP, each trained both ways and judged.

First the claims; then what trains their sides on digits, in minutes, and gives one verdict a claim.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from weft.disk import write_json
from weft.errors import WeftError
from weft.studies.compare.candidates import Candidate, Facts
from weft.studies.engine import tasks
from weft.studies.engine.folder_lock import driving
from weft.studies.engine.place import open_pool
from weft.studies.engine.runner import Pool, Say, run_jobs
from weft.studies.engine.study import Job, Study
from weft.studies.statistics.intervals import Estimate, corrected, difference
from weft.studies.statistics.rows import Scores
from weft.studies.statistics.verdicts import ENOUGH, SIGNIFICANCE
from weft.training.config import DurationConfig, OptimisationConfig, ReadingConfig, RunConfig
from weft.training.storage.record import read_predictions
from weft.training.storage.run_folder import RunFolder, open_run

STEPS, SEEDS = 200, 5
EARLY = 1 / 3  # of the run: what "faster" is judged by
FILE = "claims.json"

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


@dataclass(frozen=True)
class JudgedClaim:
    """What a claim came to, as claims.json keeps it."""

    question: str
    sentence: str
    shown: bool = False
    preliminary: bool = False
    p: float = 1.0
    mean: float = 0.0
    low: float = 0.0
    high: float = 0.0


def run_claims(
    folder: Path, source: str, seeds: int, steps: int, command: str, say: Say, on: str | None = None
) -> list[dict[str, Any]]:
    """Train both sides of every claim, each configuration once, and write down what each claim came to."""
    with driving(folder), open_pool(on, folder, say) as pool:
        facts: Facts = pool.first(tasks.look, RunConfig(source=source))
        if facts.modality != "image" or facts.task == "regression":
            raise WeftError(f"the claims of e11 are about classes of images; {source} holds {facts.modality}s")
        study = plan_claims(folder, facts, source, seeds, steps, command)
        study.save()
        say(f"{len(CLAIMS)} claims, {len(study.jobs)} runs in {folder}")
        run_jobs(study, pool, study.jobs, say)
        found = judge_all(study, pool)
        write_json(folder / FILE, found)
    return found


def plan_claims(folder: Path, facts: Facts, source: str, seeds: int, steps: int, command: str) -> Study:
    """Every side of every claim; those of one name are one candidate."""
    sides = {side.name: side for claim in CLAIMS for side in (claim.first, claim.second)}
    jobs = [
        Job(name, configure(source, side, seed, steps), facts.fingerprint)
        for seed in range(seeds)
        for name, side in sides.items()
    ]
    candidates = [Candidate(name, "mlp", "mlp", side.network) for name, side in sides.items()]
    return Study(folder, "common training issues", facts, candidates, jobs, command=command)


def configure(source: str, side: Side, seed: int, steps: int) -> RunConfig:
    return RunConfig(
        source=source,
        model="mlp",
        network=side.network,
        seed=seed,
        reading=ReadingConfig(train_fraction=side.share),
        optimisation=OptimisationConfig(**{"batch_size": 64, **side.optimisation}),
        duration=DurationConfig(steps=steps),
    )


def judge_all(study: Study, pool: Pool) -> list[dict[str, Any]]:
    """Every claim with its difference, corrected over all claims."""
    measured = [claim_estimate(study, pool, claim) for claim in CLAIMS]
    found = iter(corrected([value for value in measured if value is not None]))
    judged = [(None, 1.0) if value is None else next(found) for value in measured]
    return [in_words(claim, value, p, study) for claim, (value, p) in zip(CLAIMS, judged, strict=True)]


def claim_estimate(study: Study, pool: Pool, claim: Claim) -> Estimate | None:
    """By how much the first side is better, or None where a side has no finished run."""
    first, second = (runs_of(study, side) for side in (claim.first, claim.second))
    if not first or not second:
        return None
    if claim.quantity == "accuracy":
        return difference(per_example(first), per_example(second))
    if claim.quantity == "early_loss":
        return difference(-early_losses(first), -early_losses(second))
    own = np.array([[pool.first(tasks.accuracy_on, path, "train")] for path in first])  # of these very rows: no sample
    others = per_example(second)
    return difference(np.broadcast_to(own, others.shape), others)


def runs_of(study: Study, side: Side) -> list[Path]:
    return [study.run_folder(job).path for job in study.jobs if job.candidate == side.name and study.finished(job)]


def per_example(paths: list[Path]) -> Scores:
    found = [read_predictions(path) for path in paths]
    return np.stack([(p["predicted"] == p["target"]).astype(np.float64) for p in found])


def early_losses(paths: list[Path]) -> Scores:
    """(seeds, 1): mean training loss over the first third of each run, or the first that was noted."""
    means = []
    for path in paths:
        record = RunFolder(path).record() or {}
        points = [event for event in record["curve"] if event["kind"] == "train"]
        early = [event["loss"] for event in points if event["step"] <= EARLY * record["steps"]]
        means.append([float(np.mean(early or [points[0]["loss"]]))])
    return np.array(means)


def measure_accuracy(path: Path, split: str) -> float:
    """Accuracy of a run's network on a split of its own source, its share of the rows alone; a worker calls it."""
    from weft.data.batch.loader import batches
    from weft.studies.engine.data_facts import data_of
    from weft.training.inference.network_folder import read_network
    from weft.training.loop.events import outputs_of
    from weft.training.metrics import headline

    config = open_run(path).labelled()
    source, transform = data_of(config)
    _, network, _ = read_network(path)
    loader = batches(source, split, batch_size=256, transform=transform, train=False)
    outputs, targets = outputs_of(network, loader)
    return headline(source.task, outputs, targets)


def in_words(claim: Claim, value: Estimate | None, p: float, study: Study) -> dict[str, Any]:
    """A verdict row for tables and the report."""
    if value is None:
        sentence = f"{claim.name}: no verdict, a side has no finished run"
        return asdict(JudgedClaim(claim.name, sentence))
    seeds = len({job.seed for job in study.jobs})
    shown = p < SIGNIFICANCE and seeds > 1  # one seed tells nothing of another training
    outcome = ("confirmed" if value.mean > 0 else "refuted") if shown else "not shown"
    few = f"; preliminary: {seeds} seeds" if shown and seeds < ENOUGH else ""
    text = f"{claim.name}: {outcome}: {claim.says} ({claim.first.name} {claim_amount(claim, value)}{few})"
    return asdict(JudgedClaim(claim.name, text, shown, bool(few), p, value.mean, value.low, value.high))


def claim_amount(claim: Claim, value: Estimate) -> str:
    """By how much the first side is better, in the unit of the quantity."""
    loss = claim.quantity == "early_loss"
    scale, digits, unit = (1, 2, "less early loss") if loss else (100, 1, "points")
    low, mean, high = (f"{scale * x:+.{digits}f}".replace("-", "−") for x in (value.low, value.mean, value.high))
    return f"{mean} {unit}, corrected 95 % interval {low}…{high}"
