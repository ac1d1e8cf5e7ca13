"""Runs a transfer study: time every run, say what it will take, learn the larger set, the tasks, then ask few shots.

Rows learn for equally many steps. What was timed is kept, so that the same command goes on after a kill; nothing that
is finished is run again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from weft.disk import mark, write_json
from weft.errors import WeftError, WorkFailed
from weft.networks.measure.cost import total_macs, total_parameters
from weft.networks.registry import configured
from weft.networks.weights.packages import package_of
from weft.studies.compare.candidates import Candidate, Facts, group_of
from weft.studies.engine import tasks
from weft.studies.engine.folder_lock import driving
from weft.studies.engine.place import open_pool
from weft.studies.engine.runner import Pool, choose_schedule, run_jobs
from weft.studies.engine.study import Job, Study
from weft.studies.experiments.text_tables.forecast import ACCELERATOR, PRICE, Prediction, read_prediction
from weft.studies.experiments.text_tables.run_experiment import has_gpu
from weft.studies.experiments.text_tables.timing import SHORTEST, time_runs
from weft.studies.experiments.transfer_tables.design import TransferRow, scratch
from weft.studies.experiments.transfer_tables.few_shot import shot_file, shots_asked
from weft.studies.experiments.transfer_tables.run_configs import (
    EVALUATIONS,
    Asked,
    finetuning,
    from_scratch,
    network_of,
)
from weft.studies.experiments.transfer_tables.scales import TRAINED
from weft.training.config import RunConfig, seconds
from weft.training.run.settings import SIGNS

Parts = dict[tuple[str, str], RunConfig]  # row, column -> a run that can be timed before anything is trained


def run_transfer(asked: Asked) -> None:
    """Run a study in its folder, or go on with it; everything is on the disk when this returns."""
    paper = asked.scale.name == "paper"
    if paper and asked.on is None and not has_gpu():
        refuse(asked)
    if any(not row.family for row in asked.rows):
        package_of(TRAINED).path()  # a sentence before anything runs
    with driving(asked.folder):
        stored = read_prediction(asked.folder)
        check_same(asked, stored)
        size = stored.workers if stored and asked.on is None else None
        threads = stored.threads if stored else None
        with open_pool(asked.on, asked.folder, asked.say, size, threads, gpu=paper) as pool:
            facts = {name: look(asked, pool, source) for name, source in sources(asked).items()}
            if shots := shots_asked(asked):
                for source in asked.tasks.values():
                    pool.first(tasks.few_shot_rows, source, shots)
            signs = all(SIGNS.fullmatch(name) for name in facts[asked.upstream].classes)
            asked = replace(asked, mirrored=not signs)
            prediction = stored or predict(asked, pool)
            mark(asked.folder)
            prediction.save(asked.folder)
            pool.threads = prediction.threads
            first, second = jobs_of(asked, prediction.steps, facts)
            study = study_of(asked, prediction, facts, [*first, *second])
            study.save()
            asked.say(f"{study.title}: {len(asked.rows)} rows, {len(study.jobs)} runs, {study.budget}")
            asked.say(prediction.sentence(asked.seeds))
            run_jobs(study, pool, first, asked.say)
            run_jobs(study, pool, second, asked.say)
            ask_few_shots(asked, study, pool, second)


def sources(asked: Asked) -> dict[str, str]:
    """All columns with their sources, the larger set first."""
    return {asked.upstream: asked.source, **asked.tasks}


def look(asked: Asked, pool: Pool, source: str) -> Facts:
    """What is known of a source; one without classes of images is refused."""
    found: Facts = pool.first(tasks.look, RunConfig(source=source))
    if found.modality != "image" or found.task == "regression":
        raise WeftError(f"{asked.study} is about classes of images; {source} holds {found.modality}s ({found.task})")
    return found


def check_same(asked: Asked, stored: Prediction | None) -> None:
    """Refuse to mix runs of two requests in one folder."""
    if stored is None:
        return
    given = {"study": asked.study, "scale": asked.scale.name, **asked.decides()}
    before = {"study": stored.experiment, "scale": stored.scale, **stored.asked}
    for name, value in given.items():
        if value != before.get(name):
            raise WeftError(
                f"{asked.folder} holds a study with {name} {before.get(name)}, not {value}; ask for the same, or "
                "choose another --output"
            )


# ---- How long it takes.


def predict(asked: Asked, pool: Pool) -> Prediction:
    """Choose a schedule, time a step and an evaluation of everything, and add up."""
    parts = timeable(asked)
    choose_schedule(pool, parts.values(), asked.say)
    costs = dict(zip(parts, time_runs(pool, list(parts.values()), asked.scale.probe), strict=True))
    upstream = [cost for (name, part), cost in costs.items() if learns_upstream(asked, name, part)]
    steps = upstream_steps(asked, upstream)
    found: dict[str, dict[str, float]] = {}
    for (name, part), (step, each) in costs.items():
        count = steps if learns_upstream(asked, name, part) else asked.scale.task_steps
        found.setdefault(name, {})[part] = count * step + EVALUATIONS * each
    price = next(iter(parts.values())).execution.price_per_hour
    asking = asked.decides()
    return Prediction(
        asked.study, asked.scale.name, asking, steps, found, len(pool.workers), pool.threads, price, asked.tasks
    )


def learns_upstream(asked: Asked, name: str, part: str) -> bool:
    """Whether a run has the steps of the larger set."""
    return part == asked.upstream and next(row for row in asked.rows if row.name == name).family != ""


def timeable(asked: Asked) -> Parts:
    """Runs that take the time of those to come: each row as if it were trained from scratch."""
    found: Parts = {}
    for row in asked.rows:
        if not row.family or row.start == "scratch" or asked.study == "e8":
            found[row.name, asked.upstream] = from_scratch(asked, row, asked.source, 0, 1)
        for task, source in asked.tasks.items():
            found[row.name, task] = from_scratch(asked, row, source, 0, 1)
    return found


def upstream_steps(asked: Asked, costs: list[tuple[float, float]]) -> int:
    """The steps asked for, or those for which a mean run takes the time asked for."""
    if asked.scale.steps is not None:
        return asked.scale.steps
    whole = seconds(asked.scale.time[asked.study])
    step, each = (sum(parts) / len(costs) for parts in zip(*costs, strict=True))
    steps = int((whole - EVALUATIONS * each) / step)
    if steps < SHORTEST:
        least = SHORTEST * step + EVALUATIONS * each
        raise WeftError(f"{whole:.0f} s are too short for a run here; give --pretrain-time {least:.0f}s at least")
    return steps


# ---- The runs.


def jobs_of(asked: Asked, steps: int, facts: dict[str, Facts]) -> tuple[list[Job], list[Job]]:
    """Runs on the larger set, and those that may start from them; seed by seed: early results cover all rows."""
    data = facts[asked.upstream].fingerprint
    first = [
        Job(row.name, from_scratch(asked, row, asked.source, seed, steps), data, asked.upstream)
        for seed in range(asked.seeds)
        for row in asked.rows
        if row.family and (row.start == "scratch" or asked.study == "e8")
    ]
    learnt = {(job.candidate, job.seed): job.name for job in first}
    second = [
        task_job(asked, row, name, source, seed, facts[name].fingerprint, learnt)
        for name, source in sources(asked).items()
        for seed in range(asked.seeds)
        for row in asked.rows
        if name != asked.upstream or not row.family
    ]
    return first, second


def task_job(
    asked: Asked, row: TransferRow, name: str, source: str, seed: int, data: str, learnt: dict[tuple[str, int], str]
) -> Job:
    """The run of a row on a task."""
    if row.start == "scratch":
        return Job(row.name, from_scratch(asked, row, source, seed, asked.scale.task_steps), data, name)
    if row.start == "trained":
        return Job(
            row.name, finetuning(asked, row, source, seed, TRAINED), f"{data}+{package_of(TRAINED).digest}", name
        )
    after = learnt[row.name if asked.study == "e8" else scratch(row.family), seed]
    return Job(row.name, finetuning(asked, row, source, seed, after), data, name, after)


def study_of(asked: Asked, prediction: Prediction, facts: dict[str, Facts], jobs: list[Job]) -> Study:
    shares = ", each with a share of it" if asked.study == "e8" else ""
    budget = f"{prediction.steps:,} steps on {asked.upstream}{shares}, {asked.scale.task_steps:,} on each task"
    candidates = [study_candidate(asked, row, facts[asked.upstream]) for row in asked.rows]
    title = f"{asked.study}: {asked.upstream} to {', '.join(asked.tasks)}"
    return Study(asked.folder, title, facts[asked.upstream], candidates, jobs, "none", budget, asked.command)


def study_candidate(asked: Asked, row: TransferRow, facts: Facts) -> Candidate:
    """A row as the study keeps it, with its parameters."""
    model, changes, side = network_of(row, asked.scale)
    config = configured(model, **changes, img_size=side, num_classes=facts.outputs)
    count = {"params": total_parameters(config)}
    return Candidate(row.name, model, group_of(config), changes, count=count, img_size=side, share=row.share)


def ask_few_shots(asked: Asked, study: Study, pool: Pool, jobs: list[Job]) -> None:
    """The few-shot scores, on each task, of every finished run on the larger set that has none yet; kept as they come.

    `jobs` are the runs on tasks, each of which starts from such a run.
    """
    upstream = {job.name: job for job in study.jobs}
    wanted = [
        (job, shots)
        for job in jobs
        for shots in shots_asked(asked)
        if study.finished(upstream[job.after]) and not shot_file(asked.folder, job.name, shots).exists()
    ]
    trouble = []
    for first in range(0, len(wanted), len(pool.workers)):
        these = wanted[first : first + len(pool.workers)]
        calls = [
            (study.run_folder(upstream[job.after]).path, asked.tasks[job.part], asked.scale.side, shots)
            for job, shots in these
        ]
        for (job, shots), answer in zip(these, pool.each(tasks.few_shot, calls), strict=True):
            if isinstance(answer, WeftError):
                trouble.append(f"{job.candidate}, {job.part}: {answer}")
                continue
            path = shot_file(asked.folder, job.name, shots)
            path.parent.mkdir(exist_ok=True)
            write_json(path, {"right": answer})
    if trouble:
        raise WorkFailed(
            f"{len(trouble)} few-shot figures are missing, first {trouble[0]} (the same command tries again)"
        )


# ---- The published scale, which is planned.


def refuse(asked: Asked) -> None:
    """The published networks are for machines with GPUs: say what they would need."""
    for line in plan_lines(asked):
        asked.say(line)
    hours = sum(gpu_hours(asked, row) for row in asked.rows if row.family) * asked.seeds
    raise WeftError(
        f"the paper scale of {asked.study} is not run without a GPU: it needs ImageNet-21k as the source and about "
        f"{hours:,.0f} hours of an A100 for {asked.seeds} seeds (cost {hours * PRICE:,.0f} at {PRICE:g} an hour), "
        f"{hours / 24 / 64:,.0f} days on 64 of them; use --scale cpu, or --on ray"
    )


def plan_lines(asked: Asked) -> Iterator[str]:
    """A line for every row that learns the larger set."""
    for row in asked.rows:
        if row.family:
            model, changes, side = network_of(row, asked.scale)
            size = f"{total_parameters(configured(model, **changes)):,} parameters at {side} px"
            work = (
                f"{asked.scale.steps:,} steps of {asked.scale.batch} images, {gpu_hours(asked, row):,.0f} hours a seed"
            )
            yield f"{row.name}: {model}, {size}, {work}"


def gpu_hours(asked: Asked, row: TransferRow) -> float:
    """Hours of an A100: forward, and twice as many operations backward."""
    model, changes, side = network_of(row, asked.scale)
    macs = total_macs(configured(model, **changes, img_size=side))
    return 2 * 3 * macs * asked.scale.batch * (asked.scale.steps or 0) / ACCELERATOR / 3600
