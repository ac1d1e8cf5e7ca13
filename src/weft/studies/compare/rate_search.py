"""A rate search of equal size for every candidate, judged on the validation split alone."""

from __future__ import annotations

from dataclasses import replace

from weft.studies.engine.study import Job, Study
from weft.training.config import SHORT_RUN_RATE, DurationConfig, RunConfig, muon_rate, seconds
from weft.training.storage.record import best_validation

STEP = 10**0.5  # between rates: the optimum is flat over about half a decade

SHARE = 4  # a trial takes this part of a run: rates that suit a quarter suit the whole within their spacing


def short_run_rate(optimiser: str, model: str) -> float:
    """The rate of runs of some hundred steps of a small network.

    Score of 300 steps on the validation split (benchmarks/rates.py; all figures are in its results): with Muon at 0.01
    the families are 0.2 to 25 points above AdamW at 0.003 on sign digits, CIFAR-10 and Rotten Tomatoes, one seed each;
    MLP alone needs 0.003, with which it is 2 points above. Other optimisers have their usual rate.
    """
    if optimiser == "muon":
        return muon_rate(model)
    if optimiser in ("adam", "adamw"):
        return SHORT_RUN_RATE
    from weft.training.optim.optimisers import USUAL_RATE  # loads torch

    return USUAL_RATE[optimiser]


def rates(optimiser: str, model: str, count: int) -> list[float]:
    """`count` rates, half a decade apart, around the one that suits short runs."""
    return around(short_run_rate(optimiser, model), count)


def around(usual: float, count: int) -> list[float]:
    """`count` rates, half a decade apart, around a usual one."""
    return [float(f"{usual * STEP ** (number - (count - 1) // 2):.3g}") for number in range(count)]


def trial(config: RunConfig, rate: float) -> RunConfig:
    """A quarter of the run, at a given rate: what its schedule does in all of its steps, it does in that quarter."""
    whole = config.duration
    if whole.time is not None:
        short = DurationConfig(time=f"{seconds(whole.time) / SHARE:g}s")
    else:
        assert whole.steps is not None
        short = DurationConfig(steps=max(1, whole.steps // SHARE))
    objective = replace(config.objective, judged_on="validation")
    return replace(config, optimisation=replace(config.optimisation, lr=rate), duration=short, objective=objective)


def best_rates(study: Study, tried: list[Job]) -> dict[str, float]:
    """The rate of each candidate's run with the best validation metric; without a finished trial it is left out."""
    best: dict[str, tuple[float, float]] = {}
    for job in tried:
        record = study.run_folder(job).record()
        if record is None or record["status"] != "finished":
            continue
        metric = best_validation(record)
        rate = job.config.optimisation.lr
        assert isinstance(rate, float)
        if job.candidate not in best or metric > best[job.candidate][0]:
            best[job.candidate] = metric, rate
    return {candidate: rate for candidate, (_, rate) in best.items()}
