"""The runs of an experiment: pre-training first, then every candidate on every task."""

from __future__ import annotations

from dataclasses import dataclass

from weft.errors import WeftError
from weft.studies.compare.candidates import Facts
from weft.studies.engine import tasks
from weft.studies.engine.runner import Pool
from weft.studies.engine.study import Job
from weft.studies.experiments.text_tables.design import ENCODER, PERPLEXITY, TableCandidate
from weft.studies.experiments.text_tables.forecast import repeats
from weft.studies.experiments.text_tables.run_configs import Asked, finetuning, from_scratch, pretraining


@dataclass(frozen=True)
class Known:
    """What was found out about the sources."""

    corpus: Facts
    tasks: dict[str, Facts]
    encoder: str = ""  # fingerprint of the trained one that was given


def task_facts(asked: Asked, task: str, pool: Pool) -> Facts:
    """What is known of a task's source; one that holds no labelled text is refused."""
    found: Facts = pool.first(tasks.look, from_scratch(asked, asked.candidates[0], task, 0))
    if found.modality != "text" or found.task not in ("binary", "classes"):
        raise WeftError(f"{asked.tasks[task]} holds no texts with classes; name tasks that do with --tasks")
    return found


def pretraining_jobs(asked: Asked, steps: int, known: Known) -> list[Job]:
    """All pre-training runs, seed by seed, so that early results cover all candidates."""
    fingerprint = known.corpus.fingerprint
    return [
        Job(candidate.name, pretraining(asked, candidate, seed, steps), fingerprint, PERPLEXITY)
        for seed in range(asked.seeds)
        for candidate in asked.candidates
        if candidate.start == "pretrained" and seed < repeats(candidate.name, asked.seeds)
    ]


def task_jobs(asked: Asked, known: Known, before: list[Job]) -> list[Job]:
    """Every candidate on every task; one that was pre-trained starts from the run of its own seed."""
    trained = {(job.candidate, job.seed): job.name for job in before}
    rows = [candidate for candidate in asked.candidates if candidate.name != ENCODER]
    return [
        task_job(asked, candidate, task, seed, known, trained)
        for task in known.tasks
        for seed in range(asked.seeds)
        for candidate in rows
    ]


def task_job(
    asked: Asked, candidate: TableCandidate, task: str, seed: int, known: Known, trained: dict[tuple[str, int], str]
) -> Job:
    """The run of one candidate on one task."""
    data, rows = known.tasks[task].fingerprint, known.tasks[task].rows
    if candidate.start == "scratch":
        return Job(candidate.name, from_scratch(asked, candidate, task, seed, rows), data, task)
    after = trained[candidate.name, seed] if candidate.start == "pretrained" else trained.get((ENCODER, 0), "")
    config = finetuning(asked, candidate, task, seed, after or str(asked.encoder), rows)
    return Job(candidate.name, config, data if after else f"{data}+{known.encoder}", task, after)
