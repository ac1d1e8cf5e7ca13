"""The configuration of each run of a comparison. No torch here."""

from __future__ import annotations

import math
from dataclasses import replace

from weft.data.config import EMBEDDED, TransformConfig
from weft.studies.compare.candidates import Candidate, Facts
from weft.studies.compare.config import ComparisonConfig
from weft.studies.compare.rate_search import short_run_rate
from weft.training.config import DurationConfig, OptimisationConfig, RunConfig, batch_for
from weft.training.finetuning.config import USUAL_BATCH, FinetuneConfig, ThawingConfig

STEPS = 300  # at least: fewer do not tell networks apart
EMBEDDED_STEPS = 200  # of the sources that come along: an answer to look at, soon
EPOCHS = 10
BATCH, SMALLEST, BATCHES = 64, 4, 8  # examples of a batch, at most and at least; batches of an epoch at least
TIMED_BATCH, LIGHT_SIDE = 32, 16  # at most, in a given time, and the px of images up to which it is as large as else
EVALUATIONS, FEWEST_EVALUATIONS = 15, 4  # points of a run's curve on the validation split
FINETUNING_RATE = 1e-4  # of AdamW on a trained network
HEAD_RATE, HEAD_AVERAGE = 1e-3, 0.998  # of AdamW on a frozen encoder's embeddings, and the decay of its mean weights
SHARES = (0.1, 0.3)  # of the training rows, besides all of them, in a learning curve


def run_config(
    asked: ComparisonConfig, candidate: Candidate | None, seed: int, rows: int, steps: int | None = None
) -> RunConfig:
    """The configuration of one run, of as many steps as were asked for unless told otherwise."""
    steps = steps or steps_of(asked, rows)
    evaluations = replace(asked.execution, eval_every=steps_per_evaluation(asked, steps, rows))
    if candidate is not None and candidate.start:
        return of_trained(asked, candidate, seed, steps)
    side, model = (candidate.img_size, candidate.model) if candidate else (None, "")
    rate = asked.optimisation.lr or short_run_rate(asked.optimisation.optimiser, model)
    return RunConfig(
        source=asked.source,
        model=model,
        network=candidate.network if candidate else {},
        seed=seed,
        reading=asked.reading,
        transform=asked.transform if side is None else replace(asked.transform, img_size=side),
        augment=asked.augment,
        optimisation=replace(asked.optimisation, lr=rate),
        objective=asked.objective,
        duration=DurationConfig(steps=steps),
        execution=evaluations,
    )


def of_trained(asked: ComparisonConfig, candidate: Candidate, seed: int, steps: int) -> RunConfig:
    """The configuration of a candidate that starts from a trained network: a probe, all of it fine-tuned, or a network
    on its embeddings."""
    length = candidate.max_length or asked.transform.max_length
    transform = TransformConfig(img_size=candidate.img_size, max_length=length)
    reading = replace(asked.reading, train_fraction=asked.reading.train_fraction * candidate.share)
    if candidate.fixed:
        return RunConfig(
            source=asked.source,
            model=candidate.model,
            reading=reading,
            transform=transform,
            objective=asked.objective,
            execution=asked.execution,
        )
    usual, size = FinetuneConfig(), asked.optimisation.batch_size or USUAL_BATCH
    config = FinetuneConfig(
        source=asked.source,
        start=candidate.start,
        seed=seed,
        reading=reading,
        transform=transform,
        augment=asked.augment,
        optimisation=replace(usual.optimisation, batch_size=min(USUAL_BATCH, size), lr=FINETUNING_RATE),
        objective=asked.objective,
        duration=DurationConfig(steps=steps),
        execution=asked.execution,
    )
    return on_embeddings(config, candidate, size) if candidate.layers else config


def on_embeddings(config: FinetuneConfig, candidate: Candidate, size: int) -> FinetuneConfig:
    """The run with a network on the embeddings of the trained one, trained like any network from scratch."""
    return replace(
        config,
        model=candidate.model,
        network=candidate.network,
        thawing=ThawingConfig(frozen=True, layers=candidate.layers),
        optimisation=OptimisationConfig(batch_size=size, lr=HEAD_RATE, model_ema_decay=HEAD_AVERAGE),
    )


def steps_of(asked: ComparisonConfig, rows: int) -> int:
    """Steps of every run, the same on any share of the rows."""
    if asked.steps is not None:
        return asked.steps
    an_epoch = max(1, rows // (asked.optimisation.batch_size or BATCH))
    if asked.epochs is not None:
        return max(1, math.ceil(asked.epochs * an_epoch))
    return EMBEDDED_STEPS if asked.source in EMBEDDED else max(STEPS, EPOCHS * an_epoch)


def steps_per_evaluation(asked: ComparisonConfig, steps: int, rows: int) -> int:
    """Steps between evaluations, in whole epochs, that give a curve of about fifteen points; of few or no epochs, a
    quarter of the run."""
    an_epoch = max(1, rows // (asked.optimisation.batch_size or BATCH))
    return min(an_epoch * max(1, round(steps / an_epoch / EVALUATIONS)), math.ceil(steps / FEWEST_EVALUATIONS))


def largest_batch(facts: Facts, by_time: bool) -> int:
    """Half as many examples in a given time, as steps are few then; but where inputs are so small that half a batch
    takes about as long as a whole one."""
    small = facts.modality == "vector" or (facts.modality == "image" and facts.side <= LIGHT_SIDE)
    return TIMED_BATCH if by_time and not small else BATCH


def with_batch(asked: ComparisonConfig, rows: int, largest: int = BATCH) -> ComparisonConfig:
    """A batch that the training rows hold several times: the same whether or not parts of them are learnt from too, so
    that runs on all rows stay the same."""
    if asked.optimisation.batch_size is not None:
        return asked
    size = batch_for(max(2, rows), BATCHES, SMALLEST, largest)
    return replace(asked, optimisation=replace(asked.optimisation, batch_size=size))


def with_fraction(config: RunConfig, share: float) -> RunConfig:
    """The configuration with a share of the training rows that it has, which may be a part of the source alone."""
    fraction = share * config.reading.train_fraction
    return replace(config, reading=replace(config.reading, train_fraction=fraction))


def on_part(config: RunConfig, share: float, rows: int) -> RunConfig:
    """The run on a part of the training rows in a learning curve, with a batch that this part holds several times."""
    if share == 1:
        return config
    held = batch_for(max(2, int(share * rows)), BATCHES, SMALLEST, BATCH)
    moved = config.optimisation
    size = max(moved.grad_accum_steps, min(moved.batch_size or BATCH, held))
    return with_fraction(replace(config, optimisation=replace(moved, batch_size=size)), share)
