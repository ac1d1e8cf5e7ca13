"""Trained networks among the candidates: what is on this machine, at which image side, from how many rows.

A probe reads the features of the frozen network once; all of it is fine-tuned where there is time for some steps. On
the embeddings of texts stand networks that are trained like those from scratch.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path

from weft.errors import WeftError
from weft.networks.registry import REGISTRY, configured
from weft.networks.weights.packages import INSTALL, PACKAGES
from weft.studies.compare.candidates import Candidate, Facts, group_of
from weft.studies.compare.config import ComparisonConfig
from weft.studies.compare.run_configs import run_config
from weft.studies.engine import tasks
from weft.studies.engine.runner import Pool, Say
from weft.studies.statistics.verdicts import Group
from weft.training.config import FITTED
from weft.training.embeddings.heads import HEADS as ON_EMBEDDINGS
from weft.training.finetuning.lineage import learnt_record, refuse_other_cut

SMALLER = (160, 128, 96)  # px that images are given at where there is no time for the side of the network's training
SHORTER = (128, 64)  # tokens that texts are cut at where there is no time for all that the network reads
ENOUGH, ENOUGH_TEXTS = 10_000, 2_000  # training rows that should fit before images are enlarged, texts longer
HEADS = {name: ON_EMBEDDINGS[name] for name in ("gmlp", "tmlp", "amlp")}
"""Networks on the embeddings of a trained encoder, by what is added to its name."""
HEAD_DROPOUT = 0.3  # without it they know the training rows by heart after two passes
LEAST = 64  # training rows below which a probe is left out for want of time
RETRIED = 0.05  # of a candidate's share of the time may a few texts take that are then timed with more of each length
LEAST_TRYING = 10.0  # seconds that a trained network has for a few rows however short the time


@dataclass(frozen=True)
class Probe:
    """A candidate that reads the features of a trained network, and the seconds that reading them will take."""

    candidate: Candidate
    seconds: float
    each: float
    """seconds of one row"""
    layers: tuple[int, ...] = ()
    """of an encoder of texts, once their embeddings are computed"""
    fitting: float = 0.0
    """seconds of the regressions on the features of all rows, or of a fold"""


def trained_probes(
    asked: ComparisonConfig, facts: Facts, pool: Pool, within: float, say: Say, known: Collection[str] = ()
) -> list[Probe]:
    """A probe of each trained network that suits the data and is not known, of as many rows as can be read in `within`
    seconds."""
    found = []
    for start in starts(asked, facts, say):
        if start in known:
            continue
        try:
            probe = fitting_probe(asked, facts, pool, start, within)
        except WeftError as error:
            say(f"left out: {start}: {error}")
            continue
        if probe is None:
            say(f"left out: {start}: its features of {LEAST} rows take longer than a candidate's share of the time")
        else:
            found.append(probe)
    return found


def starts(asked: ComparisonConfig, facts: Facts, say: Say) -> list[str]:
    """Names and paths of the trained networks that were asked for, or are here."""
    if facts.modality == "vector":
        return []
    fitting = [name for name in PACKAGES if REGISTRY[name].input == facts.modality] if asked.pretrained else []
    here = [name for name in fitting if PACKAGES[name].installed == PACKAGES[name].version]
    if missing := [name for name in fitting if name not in here]:
        say(f"{INSTALL} would add {', '.join(missing)}, trained on {PACKAGES[missing[0]].trained}, to the candidates")
    names = [Path(start).name for start in asked.start]
    if len(set(names)) < len(names):
        raise WeftError(f"--start takes networks of different names, not {', '.join(names)}; rename one of them")
    further = [start for start in asked.start if start not in here]
    for start in further:
        if (name := Path(start).name) in here:  # candidates of one name, whose runs would be taken for one another's
            raise WeftError(
                f"--start {start} has the name of {name}, which is installed here; rename it, or leave the installed "
                "networks out with --no-pretrained"
            )
    return [*here, *further]


def trained_here(asked: ComparisonConfig, facts: Facts) -> list[str]:
    """The starts that learnt from rows of this very source: the rows that they were tested on are the only new ones.

    Refused where others would be tested.
    """
    found = {start: record for start in asked.start if (record := learnt_record(start, facts.fingerprint))}
    if not facts.held_out:
        return list(found)
    for start, record in found.items():
        refuse_other_cut(start, record, asked.reading)
    return list(found)


def fitting_probe(asked: ComparisonConfig, facts: Facts, pool: Pool, start: str, within: float) -> Probe | None:
    """The probe on the largest images, or longest texts, of which enough rows can be read, or on as many small
    ones as can be."""
    reading = asked.reading
    judged, least = min(facts.rows, (reading.validation_rows or 0) + (reading.test_rows or 0)), min(LEAST, facts.rows)
    if reading.folds is not None:  # which together read every row once, so that to leave some out would spare nothing
        judged, least = beside_training(facts.rows, reading.folds, reading.val_fraction), facts.rows
    name = Path(start).name if start not in PACKAGES else start
    probe = Candidate(f"{name}+probe", f"{start}+{FITTED}", group_of_start(start), start=start)
    text, known = facts.modality == "text", None
    for extent in lengths(asked, facts) if text else sides(asked, facts, pool, start):
        probe = replace(probe, max_length=extent) if text else replace(probe, img_size=extent)
        config = run_config(asked, probe, 0, facts.rows)
        limit = None if asked.time is None else max(LEAST_TRYING, within)  # so slow on a few rows is too slow for all
        again = RETRIED * within  # to time more of them is worth that much
        each, fitting = pool.first(tasks.probe_seconds, config, start, pool.threads, known, again, within=limit)
        known, fits = fitting, fitting * (reading.folds or 1)  # every fold has its own
        rows = int((within - judged * each) / (each + fits))
        if rows >= min(facts.rows, ENOUGH_TEXTS if text else ENOUGH) or fits * least > within:
            break  # also where regressions alone, which smaller images do not shorten, take longer
    if rows < least:
        return None
    share = min(1.0, rows / facts.rows)
    learnt = share * facts.rows
    return Probe(replace(probe, share=share), each * (learnt + judged), each, fitting=fitting * learnt)


def beside_training(rows: int, folds: int, held: float) -> int:
    """About how many rows a fold has besides those that it learns from: the tested part, and the share held out."""
    return int(rows / (1 - 1 / folds) / (1 - held)) - rows


def sides(asked: ComparisonConfig, facts: Facts, pool: Pool, start: str) -> tuple[int | None, ...]:
    """Sides that images may be given at, best first: what the network was trained at, or the side that is asked for."""
    if facts.modality != "image" or asked.transform.img_size is not None:
        return (asked.transform.img_size,)
    own: int = pool.first(tasks.trained_side, start)
    return (own, *(side for side in SMALLER if side < own))


def lengths(asked: ComparisonConfig, facts: Facts) -> tuple[int | None, ...]:
    """Tokens that texts may be cut at, best first: what suits them or is asked for, then less."""
    if asked.transform.max_length is not None:
        return (None,)
    return (None, *(length for length in SHORTER if length < facts.shape["max_length"]))


def group_of_start(start: str) -> Group:
    """Which answer a trained network stands for; one that is told by its weights alone may be of any kind."""
    return group_of(configured(start)) if start in REGISTRY else "hybrid"


def finetuned(probe: Candidate) -> Candidate:
    """The same network, all of it trained."""
    name = probe.name.removesuffix("+probe")
    return replace(probe, name=f"{name}+finetune", model=name)


def heads(facts: Facts, probe: Probe) -> list[Candidate]:
    """Networks on the embeddings of a trained encoder, from the rows that its probe learns from."""
    candidate, dropout = probe.candidate, {"drop_rate": HEAD_DROPOUT}
    name = candidate.name.removesuffix("+probe")
    return [
        replace(candidate, name=f"{name}+{head}", model=model, network=changes | dropout, layers=probe.layers)
        for head, (model, changes) in (HEADS.items() if facts.modality == "text" else ())
    ]
