"""Several fine-tuning runs as one study: other seeds, or the seven networks on a frozen encoder, in one table.

`head_configs` and `finetune_all` are what experiments build on. The same call goes on after a kill.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from weft.errors import WeftError
from weft.studies.compare.candidates import Candidate
from weft.studies.engine import tasks
from weft.studies.engine.folder_lock import driving
from weft.studies.engine.runner import Pool, choose_schedule, run_jobs
from weft.studies.engine.study import Job, Study
from weft.studies.results.load import Result, collect, describe_candidate, rows_of, scores_of
from weft.studies.statistics.intervals import Estimate, difference
from weft.training.embeddings.heads import CONTROLS, HEADS, NOTE
from weft.training.finetuning.config import FinetuneConfig, name_of
from weft.training.learnt import remark

Say = Callable[[str], None]


def head_configs(config: FinetuneConfig) -> dict[str, FinetuneConfig]:
    """The seven heads by name, each as a run like `config`; what `config.network` says holds for all of them."""
    return {
        name: replace(config, model=model, network={**config.network, **changes})
        for name, (model, changes) in HEADS.items()
    }


def finetune_all(
    config: FinetuneConfig, heads: bool, seeds: int, folder: Path, command: str = "", say: Say | None = None
) -> Study:
    """Run all that is not done: `seeds` of them, of the network itself or of each head."""
    say = say or tell
    name = name_of(config)
    configs = head_configs(config) if heads else {name: replace(config, model=name)}
    with driving(folder), Pool() as pool:
        facts = pool.first(tasks.look, config)
        jobs = [
            Job(candidate, replace(made, seed=config.seed + number), facts.fingerprint)
            for number in range(seeds)
            for candidate, made in configs.items()
        ]
        title = f"{'networks on ' if heads else ''}{Path(config.start).resolve().name}, fine-tuned on {facts.name}"
        study = Study(folder, title, facts, [head_candidate(*item) for item in configs.items()], jobs, command=command)
        choose_schedule(pool, configs.values(), say)
        study.save()
        run_jobs(study, pool, jobs, say)
    return study


def head_candidate(name: str, config: FinetuneConfig) -> Candidate:
    """A network of the table as a candidate; a probe, which has no blocks, cannot be described by its named size."""
    if name in CONTROLS:
        return Candidate(name, config.model, "control", config.network)
    return (
        describe_candidate(name, config.model, config.network)
        if config.thawing.frozen
        else Candidate(name, name, "hybrid")
    )


@dataclass(frozen=True)
class NetworkResults:
    """A network over its seeds."""

    name: str
    results: list[Result]  # finished ones
    failed: list[str]  # reasons

    @property
    def scores(self) -> list[float]:
        return [float(record["metrics"][record["metric"]]) for record in self.records]

    @property
    def records(self) -> list[dict[str, Any]]:
        return [result.record for result in self.results if result.record is not None]

    def lead(self, control: NetworkResults) -> Estimate:
        """How much better it is than a control, over seeds and examples."""
        return difference(scores_of(self.results), scores_of(control.results), rows_of(self.results))


def networks_of(folder: Path) -> tuple[list[NetworkResults], dict[str, Any]]:
    """The rows of a study's folder in their order, and what study.json says."""
    found = collect(folder)
    rows = []
    for candidate in found.candidates:
        results = [result for result in found.results if result.candidate == candidate.name]
        failed = [f"seed {result.seed}: {result.reason}" for result in results if not result.finished]
        rows.append(NetworkResults(candidate.name, [result for result in results if result.finished], failed))
    return rows, found.study


def show_table(folder: Path) -> None:
    """Print mean ± spread of every row, its lead over the controls, and what has to be said beside them."""
    from rich.table import Table

    from weft import terminal

    rows, study = networks_of(folder)
    done = [row for row in rows if row.results]
    if not done:
        raise WeftError(f"no run in {folder} has finished: {rows[0].failed[0] if rows[0].failed else 'not run yet'}")
    controls = [row for row in done if row.name in CONTROLS] if len(rows) > 1 else []
    leads = [f"lead over {control.name}" for control in controls]
    steps = unequal_steps(done)
    table = Table("network", "parameters", "seeds", "mean ± deviation, %", *leads, *(["steps"] if steps else []),
                  "seconds", box=None)  # fmt: skip
    for row in done:
        table.add_row(*cells(row, controls, steps))
    console = terminal.console(width=140)
    console.print(study["title"])
    console.print(table)
    for line in remarks(rows, bool(controls)):
        console.print(line)


def unequal_steps(rows: list[NetworkResults]) -> bool:
    """Whether the networks were trained for other numbers of steps."""
    counts = [record["steps"] for row in rows for record in row.records if record.get("steps")]
    return bool(counts) and max(counts) > 1.1 * min(counts)


def cells(row: NetworkResults, controls: list[NetworkResults], steps: bool = False) -> list[str]:
    """A line of the table."""
    scores = 100 * np.array(row.scores)
    spread = f" ± {scores.std(ddof=1):.2f}" if len(scores) > 1 else ""
    leads = ["–" if control is row else interval(row.lead(control)) for control in controls]
    seconds = np.mean([record["wall_seconds"] for record in row.records])
    parameters = f"{row.records[0]['parameters']:,}"
    count = [f"{np.mean([record['steps'] for record in row.records]):,.0f}"] if steps else []
    return [row.name, parameters, str(len(scores)), f"{scores.mean():.2f}{spread}", *leads, *count, f"{seconds:.0f}"]


def interval(lead: Estimate) -> str:
    return f"{100 * lead.mean:+.2f} ({100 * lead.low:+.2f} to {100 * lead.high:+.2f})"


def remarks(rows: list[NetworkResults], heads: bool) -> list[str]:
    """What a reader of the table must know: the fair comparison, the data's notes, runs at chance, runs that failed."""
    found = [NOTE] if heads else []
    if unequal_steps(rows):
        found.append("the networks were trained for unequal numbers of steps: a lead may be due to that alone")
    found += next((record["source"]["notes"] for row in rows for record in row.records), [])
    for row in rows:
        found += [f"{row.name}, seed {r['config']['seed']}: {why}" for r in row.records if (why := remark(r))]
        found += [f"{row.name}, {reason}" for reason in row.failed]
    return found


def tell(sentence: str) -> None:
    print(sentence, flush=True)
