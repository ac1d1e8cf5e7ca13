"""How large networks and images are in a comparison by time: small enough for runs of some hundred steps."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from pathlib import Path

from weft.errors import WeftError
from weft.studies.compare.candidates import PRESETS, Candidate, Facts, default_budget, make_candidates, resized_to
from weft.studies.compare.config import ComparisonConfig
from weft.studies.compare.rate_search import around, short_run_rate
from weft.studies.compare.run_configs import BATCH, FINETUNING_RATE, HEAD_RATE, run_config
from weft.studies.compare.timed.clock import as_duration, in_words
from weft.studies.compare.timed.layout import ENOUGH, FEWEST_SEEDS, steps_worth
from weft.studies.compare.timed.state import Setting, read_state
from weft.studies.engine import tasks
from weft.studies.engine.runner import Pool, Say
from weft.training.config import seconds

SHARES = (1.0, 0.25, 0.0625)  # of the parameters that suit the inputs
WIDER = (1, 4, 16, 64)  # times as many, where inputs are so wide that no network has so few
SMALLER = 0.25  # of the parameters: the other size that is tried
IN_RUNS = 0.8  # of the time goes into runs, about
BESIDES = 1.5  # full runs that first runs and trials of a candidate take
LOOKING, LEAST_LOOKING = 0.5, 60.0  # of the time, and seconds, after which a question about the data is given up
DECODED = 1 / 3  # of the time may go into decoding all images before the first run
ROOMIER = 1.1  # times that, which is named where it is more
SMALL_SIDE = 32  # px of photographs at first: many steps over small ones tell more
SIDES = (96, 64, 48)  # px of photographs that are tried beside it, the largest that leaves enough steps
LEAST_STEPS = 200  # of a full run at such a side


def looking_limit(asked: ComparisonConfig) -> float | None:
    """Seconds that each question about the data may take before there is a plan."""
    return None if asked.time is None else max(LEAST_LOOKING, LOOKING * seconds(asked.time))


def require_time_to_decode(asked: ComparisonConfig, pool: Pool) -> None:
    """Refuse at once a time of which too much would go into decoding images, before any network learns from them."""
    if asked.time is None:
        return
    config, allowed = run_config(asked, None, 0, 1), DECODED * seconds(asked.time)
    images, took = pool.first(tasks.decoding_ahead, config, allowed, within=looking_limit(asked))
    if took > allowed:
        first = f"before the first run {images:,} images are decoded, which takes about {in_words(took)} here"
        enough = as_duration(ROOMIER * took / DECODED)
        raise WeftError(f"{first}, too much of --time {asked.time}; give --time {enough}, or a part of the images")


def with_small_images(asked: ComparisonConfig, pool: Pool, say: Say) -> tuple[ComparisonConfig, int | None]:
    """Where nothing was said about it, photographs are made small; also the side that they have, where they were."""
    if asked.transform.img_size is not None:
        return asked, None
    side = pool.everyone(tasks.image_side, run_config(asked, None, 0, 1), within=looking_limit(asked))
    if side is None or side <= 1.5 * SMALL_SIDE:
        return asked, None
    say(f"images of {SMALL_SIDE} px at first, from {side}: many steps over small ones teach more (--img-size)")
    return replace(asked, transform=replace(asked.transform, img_size=SMALL_SIDE)), side


def fitting_amount(asked: ComparisonConfig, facts: Facts, pool: Pool, folder: Path) -> float | None:
    """Parameters of every candidate with which some hundred steps fit into a run, from the speed of one of them.

    None where networks were named, or something else is held equal: then they have the size that they have.
    """
    if asked.match != "time" or asked.models not in PRESETS:
        return None
    state = read_state(folder, asked, facts.fingerprint)
    if state.amount is not None:
        return state.amount
    budget, speed, everyone, kept = buildable(asked, facts), None, 0, 1.0
    for share in SHARES:
        made = made_with(asked, facts, share * budget)
        if len(made) < max(1, everyone):  # some cannot be so small: rather fewer steps than fewer candidates
            break
        everyone, kept = len(made), share
        macs = sorted(candidate.count["macs"] for candidate in made)
        if speed is None:
            speed = speed_of(asked, made, facts.rows, pool)
        length = full_length(asked, len(made) + 2 * asked.pretrained, len(pool.workers))
        batch = asked.optimisation.batch_size or BATCH
        if speed * length / (macs[len(macs) // 2] * batch) >= steps_worth(ENOUGH, batch):
            break
    state.amount = kept * budget
    state.save(folder)
    return state.amount


def buildable(asked: ComparisonConfig, facts: Facts) -> float:
    """The parameters that suit the inputs, or as many more as a network of so wide inputs has at least."""
    usual = default_budget(facts, "params")
    return next((times * usual for times in WIDER if made_with(asked, facts, times * usual)), usual)


def made_with(asked: ComparisonConfig, facts: Facts, budget: float) -> list[Candidate]:
    """The candidates that can be built with so many parameters."""
    try:
        return make_candidates(facts, asked.models, "params", budget, asked.controls, False, [], quick=True)
    except WeftError:
        return []


def speed_of(asked: ComparisonConfig, candidates: list[Candidate], rows: int, pool: Pool) -> float:
    """Multiply-adds a second of the last candidate whose steps can be timed; others may die of it, or lack memory. All
    tries together have the time of a question about the data."""
    trouble: list[WeftError] = []
    until = time.perf_counter() + (looking_limit(asked) or math.inf)
    for candidate in reversed(candidates):
        config, left = run_config(asked, candidate, 0, rows), until - time.perf_counter()
        if left < 0:
            break
        try:
            step = pool.first(tasks.step_seconds, config, pool.threads, within=left if left < math.inf else None)
        except WeftError as error:
            trouble.append(error)
            continue
        return candidate.count["macs"] * config.optimisation.batch / step
    raise trouble[-1]


def full_length(asked: ComparisonConfig, networks: int, workers: int) -> float:
    """About the seconds of a full run, before anything was measured."""
    if asked.time is None:
        return seconds(asked.amount or "1s")
    each = IN_RUNS * seconds(asked.time) * workers / networks
    return each / (min(asked.seeds, FEWEST_SEEDS) + BESIDES)


# ---- The settings of a candidate.


def usual_setting(asked: ComparisonConfig, candidate: Candidate) -> Setting:
    if candidate.start:
        return Setting(candidate, HEAD_RATE if candidate.layers else FINETUNING_RATE)
    moved = asked.optimisation
    return Setting(candidate, moved.lr or short_run_rate(moved.optimiser, candidate.model))  # type: ignore[arg-type]


def other_settings(
    asked: ComparisonConfig, candidate: Candidate, facts: Facts, count: int, side: int | None
) -> list[Setting]:
    """Up to `count` settings, less the usual one: other rates, then a smaller network and images of another `side`,
    then all of these together."""
    usual = usual_setting(asked, candidate).lr
    fixed = asked.optimisation.lr is not None and not candidate.start
    rates = [usual] if fixed else [rate for number in (3, 5, 7) for rate in around(usual, number)]
    sizes = other_sizes(candidate, facts, side) if asked.match == "time" and not candidate.start else []
    near = rates[:3]
    pairs = [(candidate, rate) for rate in near] + [(size, usual) for size in sizes]
    pairs += [(size, rate) for size in sizes for rate in near]
    pairs += [(size, rate) for rate in rates for size in (candidate, *sizes)]
    found = [Setting(*pair) for pair in pairs if pair != (candidate, usual)]
    return [each for number, each in enumerate(found) if each not in found[:number]][: count - 1]


def other_sizes(candidate: Candidate, facts: Facts, side: int | None) -> list[Candidate]:
    """A smaller network, and where photographs are large both sizes of it at another side; as far as can be built."""
    larger = resized_to(candidate, 1.0, facts, side) if side else None
    wanted = [resized_to(candidate, SMALLER, facts), larger, larger and resized_to(candidate, SMALLER, facts, side)]
    return [size for size in wanted if size is not None]


def other_side(natural: int | None, full: float, step: float) -> int | None:
    """The image side to try beside the small one: the largest at which enough steps of so many seconds at 32 px fit.

    Convolutions take as many times longer as there are more pixels; None where photographs are no larger.
    """
    possible = [side for side in SIDES if natural is not None and side <= natural]
    fitting = [side for side in possible if full / (step * (side / SMALL_SIDE) ** 2) >= LEAST_STEPS]
    return next(iter(fitting), None)
