"""Is the advice of a comparison worth its time? What `weft compare` advises after T, beside what the full grid advises.

    python benchmarks/advice.py run WORK digits DATA/sign_digits/images DATA/rotten_tomatoes [--time 1m 5m]
    python benchmarks/advice.py beside WORK digits --time 15m          # another time beside the grid that is there
    python benchmarks/advice.py draw                                   # docs/results/advice.md from the records

Of several times the longest decides how long the runs of the grid are, which is the same for all. The comparisons of
all sources come first: these want a quiet machine, while the runs of the grid have a number of steps, not a time.

The full grid trains every candidate of the comparison but the controls, which are never advised, trained ones and the
baseline on all rows, at every setting that it could have chosen (sizes × rates, image sides), to the end: runs of a
candidate are twice as long as the full runs of the comparison, and twice that if it raises its validation score by a
point. All settings have one seed and the best two of each candidate five (`--finalists`, `--seeds`), of which the best
is chosen, on the validation split; among the candidates the advice is made as that of any comparison, from their test
scores. No run of a network from scratch has fewer than 300 steps, and one that is no better than a guess is not yet at
its end. The grid takes five times T or more: where it would not, all runs are longer. WORK keeps all runs: the same
command goes on where it was stopped. The record is written after every seed of the grid.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from weft.errors import WeftError
from weft.studies.compare.candidates import Candidate
from weft.studies.compare.comparison import Prepared, prepare, session_of
from weft.studies.compare.comparison import plan_comparison as plan
from weft.studies.compare.config import ComparisonConfig, decided
from weft.studies.compare.progress import unwatched
from weft.studies.compare.run_configs import run_config
from weft.studies.compare.timed.members import measure_paces
from weft.studies.compare.timed.plan import SETTINGS, trial_side
from weft.studies.compare.timed.session import Session
from weft.studies.compare.timed.sizes import other_settings
from weft.studies.compare.timed.state import Setting, read_state
from weft.studies.compare.trained import finetuned
from weft.studies.engine import tasks
from weft.studies.engine.runner import Pool, run_jobs
from weft.studies.engine.study import Job, Study
from weft.studies.results.summary import draw_report
from weft.training.config import seconds
from weft.training.storage.record import commit

RESULTS = Path(__file__).parent.parent / "docs" / "results"
SEEDS = 5
FINALISTS = 2  # settings of each candidate that get all seeds; the others have one
LEAST, MOST = 2, 4  # times the full runs of the comparison that those of the grid take
RISE = 0.01  # of a validation score, below which longer runs are no better: few rows move it by as much
STEPS = 300  # of a run from scratch, at least
ABOVE_GUESS = 0.05  # of a score, by which a run has to be better than a guess before it can be at its end
GRID = 5  # times T that the grid takes, at least


def say(sentence: str) -> None:
    print(sentence, flush=True)


def quick(source: str, limit: str, folder: Path) -> dict[str, Any]:
    """The comparison in its time, as a user would run it."""
    if not (folder / "took.json").is_file():
        began = time.perf_counter()
        subprocess.run(
            [sys.executable, "-m", "weft", "compare", source, "--time", limit, "--output", str(folder)], check=True
        )
        took = time.perf_counter() - began
        (folder / "took.json").write_text(json.dumps({"seconds": took, "commit": commit()}))
    return json.loads((folder / "took.json").read_text()) | compared_part(draw_report(folder))


def grid(source: str, limit: str, after: Path, folder: Path, seeds: int, finalists: int) -> Iterator[dict[str, Any]]:
    """All settings of all candidates, trained to the end: what they say after each seed."""
    asked = decided(ComparisonConfig(source=source, time=limit, seeds=seeds))
    with Pool() as pool:
        prepared = prepare(asked, after, pool, say, True, {})
        session = known(prepared, after, pool)
        settings = every_setting(session)  # whose paces stay with those of the comparison
        session.study = replace(session.study, folder=folder)
        lengths = to_the_end(session, settings, seeds, finalists)
        fixed = [c for c in session.study.candidates if c.fixed]
        once = [job for c in fixed for job in session.runs.seed(Setting(c, 0.0), 0, 0.0)]
        jobs: dict[str, list[list[Job]]] = {setting_key(setting): [] for setting in settings}
        for seed in range(seeds):
            for s in settings:
                jobs[setting_key(s)].append(session.runs.seed(s, seed, lengths[s.candidate.name]))
            whole = [job for several in jobs.values() for each in several for job in each] + once
            run(session, whole)
            best = best_first(session, settings, jobs)
            won(session.study, [several[0] for several in best.values()], jobs, once).save()
            settings = [setting for several in best.values() for setting in several[: finalists or None]]
            spent = sum(float((session.study.run_folder(job).record() or {}).get("wall_seconds", 0.0)) for job in whole)
            counts = {"seconds": spent / len(pool.workers), "runs": len(whole), "seeds": seed + 1}
            counts["finalists"] = finalists or "all"
            yield {**counts, **compared_part(draw_report(folder))}


def to_the_end(session: Session, settings: list[Setting], seeds: int, finalists: int) -> dict[str, float]:
    """Seconds of training of each candidate's runs: doubled while its usual setting gets better on the validation
    split, and until the grid takes as long as it must."""
    assert session.state.stages is not None
    full, usual = session.state.stages.full, {s.candidate.name: s for s in reversed(settings)}  # the first of each
    paces, classes = session.state.paces, len(session.study.facts.classes)
    fewest = {name: 0 if s.candidate.start else STEPS for name, s in usual.items()}
    lengths = {name: max(LEAST * full, fewest[name] * paces[s.size].step) for name, s in usual.items()}
    least, most = dict(lengths), {name: MOST / LEAST * length for name, length in lengths.items()}
    scores, guess = dict.fromkeys(usual, -math.inf), 1 / classes if classes else -math.inf
    growing = set(usual)
    while growing:
        tried = {name: session.runs.seed(usual[name], 0, lengths[name]) for name in sorted(growing)}
        run(session, [job for several in tried.values() for job in several])
        for name, several in tried.items():
            score = mean_validation(session, several)
            level = score < scores[name] + RISE and score >= guess + ABOVE_GUESS
            if level:
                lengths[name] = max(least[name], lengths[name] / 2)
            if level or lengths[name] >= most[name]:
                growing.remove(name)
            else:
                scores[name], lengths[name] = score, 2 * lengths[name]
        say(f"training to the end: {', '.join(f'{name} {length:.0f} s' for name, length in lengths.items())}")

    def predicted() -> float:
        jobs = [job for s in settings for job in session.runs.seed(s, 0, lengths[s.candidate.name])]
        once = sum(session.runs.predicted(job) for job in jobs) / session.workers
        return once * (1 + (seeds - 1) * min(1.0, (finalists or len(settings)) * len(usual) / len(settings)))

    while predicted() < GRID * session.clock.total:
        lengths = {name: 2 * length for name, length in lengths.items()}
    say(f"the grid: {len(settings)} settings, {seeds} seeds, about {predicted() / 60:.0f} min")
    return lengths


def run(session: Session, jobs: list[Job]) -> None:
    """Do what is not done yet."""
    session.study = replace(session.study, jobs=jobs)
    session.study.save()
    run_jobs(session.study, session.pool, jobs, say)


def mean_validation(session: Session, jobs: list[Job]) -> float:
    return sum(session.validation(job) for job in jobs) / len(jobs)


def known(prepared: Prepared, after: Path, pool: Pool) -> Session:
    """The comparison as it stands, with its paces and the trained networks that it took in."""
    study = plan(prepared.asked, after, "", prepared.facts, prepared.candidates)
    session = session_of(prepared, study, pool, time.perf_counter(), say, unwatched, lambda study: None)
    state = read_state(after, prepared.asked, prepared.facts.fingerprint)
    probes = [whole(probe.candidate) for probe in state.probes or []]
    session.study = replace(session.study, candidates=[*session.study.candidates, *probes])
    for setting in state.chosen.values():
        if setting.candidate.start:
            session.add(whole(setting.candidate))
    session.asked = session.runs.asked = replace(session.asked, time=None)  # which limits nothing any more
    return session


def whole(candidate: Candidate) -> Candidate:
    """A trained network that learns from all rows."""
    return replace(candidate, share=1.0)


def every_setting(session: Session) -> list[Setting]:
    """The usual setting of each candidate that may be advised, and all that may be tried beside it."""
    stages = session.state.stages
    assert stages is not None
    side = trial_side(session, replace(stages, settings=SETTINGS))
    found = []
    probes = session.state.probes or []
    for probe in probes:  # as the comparison has them computed, but of all rows
        if any(candidate.layers and candidate.start == probe.candidate.start for candidate in session.learnt):
            encoder = run_config(session.asked, finetuned(whole(probe.candidate)), 0, session.study.facts.rows)
            session.pool.first(tasks.embed, encoder, session.together * session.pool.threads, len(probes))
    for candidate in (each for each in session.learnt if each.group != "control"):
        others = other_settings(session.asked, candidate, session.study.facts, SETTINGS, side)
        found += [session.usual(candidate), *others]
    for first in range(0, len(found), session.workers):  # the time of the comparison is over: some seconds for each
        measure_paces(session, found[first : first + session.workers])
    if untimed := [setting_key(setting) for setting in found if setting.size not in session.state.paces]:
        raise WeftError(f"not every setting of the grid could be timed: {', '.join(untimed)}")
    return found


def setting_key(setting: Setting) -> str:
    return f"{setting.candidate.name} {setting.size} {setting.lr:g}"


def best_first(session: Session, settings: list[Setting], jobs: dict[str, list[list[Job]]]) -> dict[str, list[Setting]]:
    """The settings of each candidate, by the mean of their runs on the validation split."""

    def mean(setting: Setting) -> float:
        return mean_validation(session, [job for several in jobs[setting_key(setting)] for job in several])

    found: dict[str, list[Setting]] = {}
    for setting in sorted(settings, key=mean, reverse=True):
        found.setdefault(setting.candidate.name, []).append(setting)
    return found


def won(study: Study, best: list[Setting], jobs: dict[str, list[list[Job]]], once: list[Job]) -> Study:
    """The study with the runs of the best setting of each candidate."""
    chosen = {setting.candidate.name: setting.candidate for setting in best}
    runs = [job for setting in best for several in jobs[setting_key(setting)] for job in several]
    candidates = [chosen.get(c.name, c) for c in study.candidates]
    kept = [candidate for candidate in candidates if candidate.fixed or candidate.name in chosen]
    return replace(study, candidates=kept, jobs=runs + once)


def compared_part(summary: dict[str, Any]) -> dict[str, Any]:
    """What is compared of two answers; verdicts of the grid are not, as it holds no time equal."""
    rows = [
        {name: row[name] for name in ("name", "score", "low", "high", "seeds", "steps", "lr")}
        for row in summary["rows"]
    ]
    return {"advice": summary["recommendation"], "rows": rows}


def used(advice: str) -> str:
    """The candidate that is advised."""
    return advice.removeprefix("Use ").partition(":")[0] if advice.startswith("Use ") else "none"


def level(advice: str) -> list[str]:
    """The candidates that an advice calls level with the one that it names."""
    found = re.search(r"standard error \(([^)]*)\)", advice)
    return found[1].split(", ") if found else []


def agree(first: str, second: str) -> str:
    """Whether two advices are the same, or the first names what the second calls level with its own; where one advises
    nothing, there is nothing to agree on."""
    if "none" in (used(first), used(second)):
        return "no: no advice"
    if used(first) in level(second):
        return "no, but level with it"
    return "yes" if used(first) == used(second) else "no"


def draw(records: dict[str, Any]) -> str:
    lines = [
        "# Is the advice worth its time?",
        "",
        "What `weft compare SOURCE --time T` advises, beside what the full grid advises: every candidate of the",
        "comparison but the controls, trained ones on all rows, at every size, rate and image side that may be tried,",
        "to the end (twice as long as the full runs of the comparison, from scratch at least 300 steps; twice that if",
        "it raises the validation score by a point or the network is no better than a guess; and as many times longer",
        "as make it 5 T, of the longest T that it was made for). All settings have one seed,",
        "the best of each candidate (the table says how many) all seeds; the best of these is chosen on the validation",
        "split, and among the candidates as in any comparison, where test scores decide who is shown to be worse.",
        "Made by `python benchmarks/advice.py run WORK SOURCE …`, drawn from the records beside this page.",
        "",
        "The last two columns say what following the early advice costs: the test scores that both have in the grid,",
        "on the test rows by which the advice is made.",
        "",
        "| source | T | advice after T | full grid | runs | seeds | settings with all seeds | advice of the full grid | the same | score of the first | of the second |",  # noqa: E501
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    records = {name: record for name, record in records.items() if "grid" in record}
    for name, record in records.items():
        second = record["grid"]
        for first in record["quick"].values():
            times = f"{second['seconds'] / 60:.0f} min ({second['seconds'] / first['seconds']:.1f} T)"
            cells = [name, f"{first['seconds'] / 60:.1f} min", used(first["advice"]), times, f"{second['runs']:,}"]
            cells += [str(second["seeds"]), str(second["finalists"]), used(second["advice"])]
            scores = [in_grid(second["rows"], used(each["advice"])) for each in (first, second)]
            known = any(row["name"] == used(first["advice"]) for row in second["rows"])
            cells += [agree(first["advice"], second["advice"]) if known else "no: it is not in the grid", *scores]
            lines.append("| " + " | ".join(cells) + " |")
    for name, record in records.items():
        lines += ["", f"## {name}", ""]
        lines += [f"- after {limit}: {first['advice']}" for limit, first in record["quick"].items()]
        lines += [f"- full grid: {record['grid']['advice']}"]
    return "\n".join(lines) + "\n"


def in_grid(rows: list[dict[str, Any]], name: str) -> str:
    """The score of a candidate with its interval, in percent."""
    found = next((row for row in rows if row["name"] == name and row["score"] is not None), None)
    if found is None:
        return "–"
    return f"{100 * found['score']:.1f} % ({100 * found['low']:.1f}…{100 * found['high']:.1f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("run", "beside", "draw"))
    parser.add_argument("work", type=Path, nargs="?")
    parser.add_argument("sources", nargs="*")
    parser.add_argument("--time", nargs="+", default=["15m"])
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--finalists", type=int, default=FINALISTS, help="0: all")
    asked = parser.parse_args()
    times = sorted(asked.time, key=seconds)
    RESULTS.mkdir(parents=True, exist_ok=True)
    file = RESULTS / "advice.json"
    records = json.loads(file.read_text()) if file.is_file() else {}
    names = {source: source.rstrip("/").removesuffix("/images").rpartition("/")[2] for source in asked.sources}
    early = {
        name: {limit: quick(source, limit, asked.work / name / f"quick-{limit}") for limit in times}
        for source, name in names.items()
    }
    if asked.what == "beside":
        for name in names.values():
            records[name]["quick"] |= early[name]
        file.write_text(json.dumps(records, indent=1, ensure_ascii=False) + "\n")
    for source, name in names.items() if asked.what == "run" else ():
        place = asked.work / name
        records[name] = {"commit": commit(), "quick": early[name]}
        after = place / f"quick-{times[-1]}"
        for found in grid(source, times[-1], after, place / "grid", asked.seeds, asked.finalists):
            records[name]["grid"] = found
            file.write_text(json.dumps(records, indent=1, ensure_ascii=False) + "\n")
    if records:
        (RESULTS / "advice.md").write_text(draw(records))


if __name__ == "__main__":
    main()
