"""Is the advice of a comparison worth its time? What `weft compare` advises after T, beside what the full grid advises.

    python benchmarks/advice.py run WORK digits DATA/sign_digits/images DATA/rotten_tomatoes [--time 15m] [--seeds 5]
    python benchmarks/advice.py draw                                   # docs/results/advice.md from the records

The full grid trains every candidate at every setting that the comparison could have chosen (sizes × rates, image
sides), with five seeds, each run as long as the full runs of the comparison; the best setting of each is chosen on the
validation split. It takes five times T or more. WORK keeps all runs: the same command goes on where it was stopped.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from weft.studies.compare.comparison import Prepared, prepare, session_of
from weft.studies.compare.comparison import plan_comparison as plan
from weft.studies.compare.config import ComparisonConfig, decided
from weft.studies.compare.progress import unwatched
from weft.studies.compare.timed.members import measure_paces
from weft.studies.compare.timed.plan import SETTINGS, trial_side
from weft.studies.compare.timed.session import Session
from weft.studies.compare.timed.sizes import other_settings
from weft.studies.compare.timed.state import Setting, read_state
from weft.studies.engine.runner import Pool, run_jobs
from weft.studies.engine.study import Job, Study
from weft.studies.results.summary import draw_report
from weft.training.config import seconds

RESULTS = Path(__file__).parent.parent / "docs" / "results"
SEEDS = 5


def say(sentence: str) -> None:
    print(sentence, flush=True)


def quick(source: str, limit: str, folder: Path) -> dict[str, Any]:
    """The comparison in its time, as a user would run it."""
    if not (folder / "took.json").is_file():
        began = time.perf_counter()
        subprocess.run(
            [sys.executable, "-m", "weft", "compare", source, "--time", limit, "--output", str(folder)], check=True
        )
        (folder / "took.json").write_text(json.dumps(time.perf_counter() - began))
    return {"seconds": json.loads((folder / "took.json").read_text()), **compared_part(draw_report(folder))}


def grid(source: str, limit: str, after: Path, folder: Path, seeds: int) -> dict[str, Any]:
    """All settings of all candidates, five seeds each, as long as the comparison's full runs were."""
    asked = decided(ComparisonConfig(source=source, time=limit, seeds=seeds))
    with Pool() as pool:
        prepared = prepare(asked, after, pool, say, True, {})
        session = known(prepared, after, pool)
        study = replace(session.study, folder=folder)
        settings = every_setting(session)
        jobs = {setting_key(s): [runs_of(session, s, seed) for seed in range(seeds)] for s in settings}
        fixed = [c for c in session.study.candidates if c.fixed]
        once = [job for c in fixed for job in session.runs.seed(Setting(c, 0.0), 0, 0.0)]
        whole = [job for several in jobs.values() for each in several for job in each] + once
        study = replace(study, jobs=whole)
        study.save()
        run_jobs(study, pool, whole, say)
        study = won(session, study, settings, jobs, once)
        study.save()
        spent = sum(float((study.run_folder(job).record() or {}).get("wall_seconds", 0.0)) for job in whole)
        return {"seconds": spent / len(pool.workers), "runs": len(whole), **compared_part(draw_report(folder))}


def known(prepared: Prepared, after: Path, pool: Pool) -> Session:
    """The comparison as it stands, with its paces and the trained networks that it took in."""
    study = plan(prepared.asked, after, "", prepared.facts, prepared.candidates)
    session = session_of(prepared, study, pool, time.perf_counter(), say, unwatched, lambda study: None)
    state = read_state(after, prepared.asked, prepared.facts.fingerprint)
    probes = [probe.candidate for probe in state.probes or []]
    session.study = replace(session.study, candidates=[*session.study.candidates, *probes])
    for setting in state.chosen.values():
        if setting.candidate.start:
            session.add(setting.candidate)
    return session


def every_setting(session: Session) -> list[Setting]:
    """The usual setting of each candidate and all that may be tried beside it."""
    stages = session.state.stages
    assert stages is not None
    side = trial_side(session, replace(stages, settings=SETTINGS))
    found = []
    for candidate in session.learnt:
        others = other_settings(session.asked, candidate, session.study.facts, SETTINGS, side)
        found += [session.usual(candidate), *others]
    measure_paces(session, found)
    return [setting for setting in found if setting.size in session.state.paces]


def runs_of(session: Session, setting: Setting, seed: int) -> list[Job]:
    assert session.state.stages is not None
    return session.runs.seed(setting, seed, session.state.stages.full)


def setting_key(setting: Setting) -> str:
    return f"{setting.candidate.name} {setting.size} {setting.lr:g}"


def won(
    session: Session, study: Study, settings: list[Setting], jobs: dict[str, list[list[Job]]], once: list[Job]
) -> Study:
    """The study with the runs of the best setting of each candidate, by their mean on the validation split."""
    looking = replace(session, study=study)

    def mean(setting: Setting) -> float:
        scores = [looking.validation(job) for several in jobs[setting_key(setting)] for job in several]
        return sum(scores) / len(scores)

    best: dict[str, Setting] = {}
    for setting in settings:
        name = setting.candidate.name
        if name not in best or mean(setting) > mean(best[name]):
            best[name] = setting
    runs = [job for setting in best.values() for several in jobs[setting_key(setting)] for job in several]
    candidates = [best[c.name].candidate if c.name in best else c for c in study.candidates]
    kept = [candidate for candidate in candidates if candidate.fixed or candidate.name in best]
    return replace(study, candidates=kept, jobs=runs + once)


def compared_part(summary: dict[str, Any]) -> dict[str, Any]:
    """What is compared of two answers."""
    rows = [
        {name: row[name] for name in ("name", "score", "low", "high", "seeds", "steps", "lr")}
        for row in summary["rows"]
    ]
    return {"advice": summary["recommendation"], "rows": rows, "verdicts": [v["sentence"] for v in summary["verdicts"]]}


def used(advice: str) -> str:
    """The candidate that is advised."""
    return advice.removeprefix("Use ").partition(":")[0] if advice.startswith("Use ") else "none"


def draw(records: dict[str, Any]) -> str:
    lines = [
        "# Is the advice worth its time?",
        "",
        "What `weft compare SOURCE --time T` advises, beside what the full grid advises: every candidate at every",
        "size, rate and image side that may be tried, five seeds of each, all as long as the full runs of the",
        "comparison, the best setting chosen on the validation split.",
        "Made by `python benchmarks/advice.py run WORK SOURCE …`, drawn from the records beside this page.",
        "",
        "| source | T | advice after T | full grid | runs | advice of the full grid | the same |",
        "|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    for name, record in records.items():
        first, second = record["quick"], record["grid"]
        times = f"{second['seconds'] / 60:.0f} min ({second['seconds'] / first['seconds']:.1f} T)"
        same = "yes" if used(first["advice"]) == used(second["advice"]) else "no"
        cells = [name, f"{first['seconds'] / 60:.1f} min", used(first["advice"]), times, f"{second['runs']:,}"]
        lines.append("| " + " | ".join([*cells, used(second["advice"]), same]) + " |")
    for name, record in records.items():
        lines += ["", f"## {name}", "", f"- after T: {record['quick']['advice']}"]
        lines += [f"- full grid: {record['grid']['advice']}"]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("run", "draw"))
    parser.add_argument("work", type=Path, nargs="?")
    parser.add_argument("sources", nargs="*")
    parser.add_argument("--time", default="15m")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    asked = parser.parse_args()
    seconds(asked.time)
    RESULTS.mkdir(parents=True, exist_ok=True)
    file = RESULTS / "advice.json"
    records = json.loads(file.read_text()) if file.is_file() else {}
    for source in asked.sources:
        name = source.rstrip("/").removesuffix("/images").rpartition("/")[2]
        first = quick(source, asked.time, asked.work / name / "quick")
        second = grid(source, asked.time, asked.work / name / "quick", asked.work / name / "grid", asked.seeds)
        records[name] = {"quick": first, "grid": second}
        file.write_text(json.dumps(records, indent=1, ensure_ascii=False) + "\n")
    if records:
        (RESULTS / "advice.md").write_text(draw(records))


if __name__ == "__main__":
    main()
