"""Runs an experiment: probe every candidate, say what it will take, run what is not done.

Candidates learn for equally many steps. A time asked for is the mean over them of a pre-training run; how many steps
that is comes from the probe, which is made once and kept, so that the same command goes on after a kill.
"""

from __future__ import annotations

from dataclasses import replace

from weft.errors import WeftError
from weft.networks.measure.cost import total_parameters
from weft.studies.compare.candidates import Candidate, Facts, group_of
from weft.studies.engine import tasks
from weft.studies.engine.folder_lock import driving, status
from weft.studies.engine.place import open_pool
from weft.studies.engine.runner import Pool, run_jobs
from weft.studies.engine.study import Job, Study, read_study
from weft.studies.experiments.text_tables.design import TableCandidate
from weft.studies.experiments.text_tables.forecast import Prediction, needs, plan_lines, read_prediction
from weft.studies.experiments.text_tables.jobs import Known, pretraining_jobs, task_facts, task_jobs
from weft.studies.experiments.text_tables.run_configs import Asked, pretraining
from weft.studies.experiments.text_tables.timing import predict


def run_experiment(asked: Asked) -> None:
    """Run an experiment in its folder, or go on with it; everything is on the disk when this returns."""
    paper = asked.scale.name == "paper"
    if paper and asked.on is None and not has_gpu():
        refuse(asked)
    with driving(asked.folder):
        go_on(asked, read_prediction(asked.folder), paper)


def go_on(asked: Asked, stored: Prediction | None, paper: bool) -> None:
    """Begin, or find what there is and go on with it."""
    check_same(asked, stored)
    if stored is not None and (count := all_done(asked)):
        asked.say(f"all {count} runs have ended already")
        return
    size = stored.workers if stored and asked.on is None else None
    threads = stored.threads if stored else None
    with open_pool(asked.on, asked.folder, asked.say, size, threads, gpu=paper) as pool:
        known = look_at_sources(asked, pool)
        prediction = stored or predict(asked, pool, known)
        prediction.save(asked.folder)
        pool.threads = prediction.threads
        study, stages = plan_experiment(asked, prediction, known)
        study.save()
        announce(asked, study, prediction)
        for stage in stages:
            run_jobs(study, pool, stage, asked.say)


def has_gpu() -> bool:
    """Whether runs have a GPU here, of which one run at a time makes use."""
    import torch

    return torch.cuda.is_available()


def refuse(asked: Asked) -> None:
    """The published shapes are for machines with a GPU: say what they are and what they would need."""
    for line in plan_lines(asked.experiment, asked.scale):
        asked.say(line)
    need = needs(asked.experiment, asked.scale, asked.seeds)
    raise WeftError(
        f"the paper scale of {asked.experiment.name} is not run without a GPU: it needs {need}; use --scale cpu, or "
        "--on ray"
    )


def check_same(asked: Asked, stored: Prediction | None) -> None:
    """Refuse to mix runs of two requests in one folder."""
    if stored is None:
        return
    given = {"experiment": asked.experiment.name, "scale": asked.scale.name, **asked.decides()}
    before = {"experiment": stored.experiment, "scale": stored.scale, **stored.asked}
    changed = [name for name in given if given[name] != before.get(name)]
    if changed:
        name = changed[0]
        raise WeftError(
            f"{asked.folder} holds an experiment with {name} {before.get(name)}, not {given[name]}; "
            "ask for the same, or choose another --output"
        )


def all_done(asked: Asked) -> int:
    """How many runs there are, if each has its record and as many seeds were asked for; else 0. Loads nothing."""
    runs = (read_study(asked.folder) or {"runs": []})["runs"]
    seeds = {run["seed"] for run in runs}
    done = all(status(asked.folder, run) for run in runs)
    return len(runs) if done and len(seeds) == asked.seeds else 0


def look_at_sources(asked: Asked, pool: Pool) -> Known:
    """What the runs have to know of the corpus and of the tasks."""
    encoder = trained_encoder(asked.encoder) if asked.encoder is not None else ""
    corpus: Facts = pool.first(tasks.look, pretraining(asked, asked.candidates[0], 0, 1))
    labelled = {task: task_facts(asked, task, pool) for task in asked.tasks}
    seen = [task for task, facts in labelled.items() if asked.tasks[task] == asked.source and facts.held_out]
    notes = [f"pre-training reads the texts that {task} is judged on, without their labels" for task in seen]
    return Known(replace(corpus, notes=[*corpus.notes, *notes]), labelled, encoder)


def trained_encoder(folder: str) -> str:
    """The fingerprint of a trained encoder; what holds none is refused before anything runs."""
    from weft.networks.config import TextTokensConfig
    from weft.training.finetuning.start import read_start

    start = read_start(folder)
    if not isinstance(start.network, TextTokensConfig):
        raise WeftError(f"{folder} holds no encoder of text; give --encoder a folder of BERT's kind, or leave it out")
    return start.fingerprint


def plan_experiment(asked: Asked, prediction: Prediction, known: Known) -> tuple[Study, list[list[Job]]]:
    """All runs, and the order in which they can be done: a task after the pre-training that it starts from."""
    first = pretraining_jobs(asked, prediction.steps, known)
    second = task_jobs(asked, known, first)
    budget = f"{prediction.steps:,} steps of {asked.scale.batch} × {asked.scale.length} tokens of pre-training each"
    if not first:
        budget = f"{asked.scale.task_epochs:g} epochs of each task"
    candidates = [study_candidate(candidate, asked, known.corpus) for candidate in asked.candidates]
    title = f"table {asked.experiment.table} on {known.corpus.name}"
    study = Study(asked.folder, title, known.corpus, candidates, [*first, *second], "none", budget, asked.command)
    return study, [first, second]


def study_candidate(candidate: TableCandidate, asked: Asked, facts: Facts) -> Candidate:
    """A candidate as the study keeps it, with its parameters."""
    if not candidate.deep:
        return Candidate(candidate.name, candidate.model, "control", candidate.network)
    config = candidate.config(asked.scale).replaced(**facts.shape)
    count = {"params": total_parameters(config)}
    return Candidate(candidate.name, candidate.model, group_of(config), candidate.network, True, count)


def announce(asked: Asked, study: Study, prediction: Prediction) -> None:
    for note in study.facts.notes:
        asked.say(note)
    seeds = f"{asked.seeds} seed{'s' * (asked.seeds > 1)}"
    asked.say(f"{study.title}: {len(study.candidates)} candidates, {seeds}, {study.budget}, in {study.folder}")
    asked.say(prediction.sentence(asked.seeds))
