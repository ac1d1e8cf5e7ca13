"""From results to one plain dictionary that every table, chart and page is drawn from, and to report.html.

The records are enough: nothing is run. Beside each candidate stands the command that repeats its runs.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from weft.disk import claim, write_bytes
from weft.report.page import render
from weft.studies.compare.candidates import Candidate
from weft.studies.results.error_examples import mistakes_of
from weft.studies.results.folds import joined, of_record, runs_of, stuck
from weft.studies.results.inference_speed import Inference, read_inference
from weft.studies.results.learnt_rows import learnt_rows, not_from_all, unequal_rows
from weft.studies.results.load import (
    BY_ANSWER,
    Collection,
    Result,
    collect,
    deciding,
    own_metric,
    rows_of,
    scores_of,
    validation_metric,
)
from weft.studies.results.remarks import by_first, in_one_sentence, overfitted, said_of_runs, with_luck
from weft.studies.results.reproduce import command_of
from weft.studies.statistics.extrapolation import more_rows
from weft.studies.statistics.intervals import Estimate, corrected, mean_of
from weft.studies.statistics.rows import Rows
from weft.studies.statistics.settling import Pace, settling
from weft.studies.statistics.verdicts import JudgedCandidate, Verdict, answer, apart, one_seed, recommend
from weft.training.config import is_fitted, trained_start
from weft.training.learnt import remark

UNEQUAL = 1.1  # times as many parameters as the smallest, at which sizes are not called equal
LEAST_BUSY = 0.01  # share of the time that went into training, by which minutes are told
POINTS = 200  # of a drawn curve: more than a screen shows


def draw_report(folder: Path) -> dict[str, Any]:
    """Write report.html into the folder and return the summary that it shows."""
    collection = collect(folder)
    summary, mistakes = summarise(collection), mistakes_of(folder, collection)
    write_bytes(claim(folder / "report.html"), render(summary, mistakes).encode())
    return summary


def summarise(collection: Collection) -> dict[str, Any]:
    """Rows, verdicts, differences, curves, confusions and problems, ready for JSON."""
    study, facts = collection.study, collection.study["facts"]
    collection = replace(collection, results=joined(collection.results, facts["classes"]))
    by_candidate = {
        candidate.name: on_most_rows([result for result in collection.results if result.candidate == candidate.name])
        for candidate in collection.candidates
    }
    whole = [result for results in by_candidate.values() for result in results]
    problems = comparable(by_candidate)
    runs = {name: sum(not result.waiting for result in results) for name, results in by_candidate.items()}
    told = with_luck(
        said_of_runs(by_candidate, partial(remark, classes=facts["classes"])), by_candidate, facts["classes"]
    )
    guesses, idle = by_first(told, runs), by_first(said_of_runs(by_candidate, stuck), runs)
    problems = [*collection.problems, *problems, *idle.values(), *overfitted(by_candidate, runs)]
    metric = deciding(whole)
    judged = [
        made
        for candidate in collection.candidates
        if (made := judged_candidate(candidate, by_candidate[candidate.name], metric))
    ]
    judged = by_cost_in_use(judged, by_candidate) if study["match"] == "time" else judged
    unit = "points" if metric in BY_ANSWER else "value"
    own = next((own for r in whole if r.record and (own := own_metric(r.record)) not in (None, metric)), None)
    learnt = learnt_rows(collection)
    rows = [
        leaderboard_row(candidate, by_candidate[candidate.name], metric) | {"training_rows": learnt.get(candidate.name)}
        for candidate in collection.candidates
    ]
    in_tokens(rows)
    rows.sort(key=lambda row: -(row["score"] if row["score"] is not None else -math.inf))
    verdicts = answer(judged, unit, held_equal(collection))
    curve = learning(collection, metric)
    return {
        "title": study["title"],
        "heading": "",
        "source": {"name": called(facts["name"]), "classes": facts["classes"], "notes": facts["notes"]},
        "match": study["match"],
        "budget": study["budget"],
        "command": study["command"],
        "notes": study["notes"] + [note for note in [study.get("overhead", "")] if note],
        "metric": metric,
        "own_metric": own,
        "unit": unit,
        "recommendation": recommend(judged, verdicts, guesses),
        "verdicts": [as_row(verdict, learnt) for verdict in verdicts],
        "settling": [asdict(one) for one in settling(verdicts, judged, pace_of(collection, rows, whole))],
        "rows": rows,
        "pairs": pairs(judged),
        "curves": {
            candidate.name: curves(by_candidate[candidate.name])
            for candidate in collection.candidates
            if not candidate.fixed
        },
        "confusion": {
            name: total for name, results in by_candidate.items() if (total := confusion(results)) is not None
        },
        "learning": curve,
        "more_rows": more_rows(curve, facts["rows"], unit) if curve and facts.get("rows") else [],
        "environment": environment(whole),
        "cautions": [
            *facts.get("cautions", []),
            *not_deciding(own, metric),
            *drawn_together(judged),
            *not_from_all(rows, in_given_time(study)),
        ],
        "guesses": in_one_sentence(told, runs) if len(guesses) > 1 else list(guesses.values()),
        "guess_details": list(guesses.values()) if len(guesses) > 1 else [],
        "story": study.get("story", []),
        "problems": problems,
    }


def not_deciding(own: str | None, metric: str) -> list[str]:
    """That verdicts are not of the metric that was asked for, and what that one did."""
    if own is None:
        return []
    decides = {"accuracy": "accuracy", "r2": "R²"}.get(metric, metric)
    why = "which not all runs were asked for" if own in BY_ANSWER else "for which there are no intervals"
    chose = "chose the best step of each run and, on the validation split, which candidate stands for its kind"
    return [f"Order, intervals, verdicts and advice are of {decides}: {own}, {why}, {chose}."]


def drawn_together(judged: list[JudgedCandidate]) -> list[str]:
    """How many groups the test rows are of, where they are not on their own."""
    drawn = next((candidate.rows.drawn for candidate in judged), None)
    count = next((candidate.scores.shape[1] for candidate in judged), 0)
    if drawn is None or drawn == count:
        return []
    return [f"The {count:,} test rows are of {drawn:,} groups, which intervals and verdicts count instead of rows."]


def pace_of(collection: Collection, rows: list[dict[str, Any]], whole: list[Result]) -> Pace:
    """What further seeds take: seconds of a run of each candidate, runs side by side, and the time spent so far."""
    place, study = environment(whole), collection.study
    shares: dict[str, set[float]] = {}
    for result in collection.results:
        shares.setdefault(result.candidate, set()).add(result.share)
    return Pace(
        {row["name"]: row["seconds"] or 0.0 for row in rows},
        max(map(len, shares.values()), default=1),
        max(1, int(place.get("cores") or 1) // int(place.get("threads") or 1)),
        max(collection.busy or 1.0, LEAST_BUSY),
        study.get("spent"),
        study["command"].startswith("weft compare"),
        study["facts"].get("test_rows", 0),
    )


def in_given_time(study: dict[str, Any]) -> bool:
    """Whether the time of the whole study was given, so that more of it makes more of everything."""
    return study.get("spent") is not None


def held_equal(collection: Collection) -> str:
    """What the networks have the same of, if they do: several sizes of one family do not."""
    match: str = collection.study["match"]
    counts = [candidate.count[match] for candidate in collection.candidates if candidate.count.get(match)]
    return "none" if counts and max(counts) > UNEQUAL * min(counts) else match


def on_most_rows(results: list[Result]) -> list[Result]:
    """The results on the largest share of the training rows: all rows, unless the candidate is trained on few."""
    largest = max((result.share for result in results), default=1.0)
    return [result for result in results if result.share == largest]


def called(source: str) -> str:
    """A source as a heading has it: the last part of a path."""
    return source if source.startswith("hub:") else source.rstrip("/").rpartition("/")[2] or source


def comparable(by_candidate: dict[str, list[Result]]) -> list[str]:
    """Drop, with a sentence, results judged on other examples than the first."""
    problems: list[str] = []
    targets = None
    for results in by_candidate.values():
        for result in [result for result in results if result.finished]:
            assert result.predictions is not None
            found = result.predictions["target"]
            targets = found if targets is None else targets
            if found.shape != targets.shape or not np.array_equal(found, targets):
                results.remove(result)
                problems.append(f"{result.path} was judged on other examples than the rest and was left out")
    return problems


def judged_candidate(candidate: Candidate, results: list[Result], metric: str) -> JudgedCandidate | None:
    """A candidate as the statistics see it, or None if no run of it finished. Its cost is the time of training, all
    cores counted."""
    done = [result for result in results if result.finished]
    if not done:
        return None
    validation = float(np.mean([validation_metric(result) for result in done]))
    cost = mean([NUMBERS["core_seconds"](result.record) for result in done]) or 0.0
    seen = 0.0 if candidate.fixed else mean([trained(result.record or {}) for result in done])
    return JudgedCandidate(
        candidate.name, candidate.group, scores_of(done, metric), validation, cost, candidate.tokens, candidate.fixed,
        trained=seen or 0.0, pretrained=pretrained(done), rows=known_rows(candidate, done, metric),
        mixer=candidate.mixer,
    )  # fmt: skip


def by_cost_in_use(judged: list[JudgedCandidate], by_candidate: dict[str, list[Result]]) -> list[JudgedCandidate]:
    """The same where training time is equal by design: examples seen are no measure, and cost is what an answer takes,
    seconds on one thread, or multiply-adds where the speed of some was not measured; those of a classical baseline are
    not known then, as nobody counts what its features take."""
    runs = {each.name: [one for one in by_candidate[each.name] if one.finished] for each in judged}
    seconds = {name: seconds_in_use(several) for name, several in runs.items()}
    if any(value is None for value in seconds.values()):
        seconds = {name: mean([NUMBERS["macs"](one.record) for one in several]) for name, several in runs.items()}
        seconds |= {each.name: math.inf for each in judged if each.group == "classical"}
    return [replace(each, cost=seconds[each.name] or 0.0, trained=0.0) for each in judged]


def seconds_in_use(results: list[Result]) -> float | None:
    """What an example of a batch takes on one thread, if it was measured of one of these runs."""
    known = [found.threads / found.throughput for one in results if (found := inference_of(one)) is not None]
    return min(known, default=None)


def known_rows(candidate: Candidate, done: list[Result], metric: str) -> Rows:
    return rows_of(done, metric, of_record(done[0].record), candidate.fixed)


def pretrained(results: list[Result]) -> bool:
    """Whether runs start from weights that were trained before."""
    configs = [(result.record or {})["config"] for result in results]
    return any(config.get("start") or trained_start(config.get("model", "")) for config in configs)


def trained(record: dict[str, Any]) -> float:
    """Examples that a run was to see, whether or not it stopped early."""
    steps = record.get("plan", {}).get("steps") or record.get("steps") or 0
    return float(steps) * float(record["config"].get("optimisation", {}).get("batch_size") or 1)


def as_numbers(value: Estimate) -> dict[str, float]:
    return {"mean": value.mean, "low": value.low, "high": value.high}


def as_row(verdict: Verdict, learnt: Mapping[str, int]) -> dict[str, Any]:
    """A verdict as tables have it; its sentence adds where its two sides `learnt` from other numbers of rows."""
    found = {name: getattr(verdict, name) for name in ("question", "shown", "preliminary", "alone", "unequal")}
    found["sentence"] = verdict.sentence + unequal_rows(verdict.first, verdict.second, learnt)
    return {**found, "p": verdict.adjusted, **as_numbers(verdict.estimate)}


def leaderboard_row(candidate: Candidate, results: list[Result], metric: str) -> dict[str, Any]:
    """A line of the leaderboard: means over the finished seeds."""
    done = [result for result in results if result.finished]
    failed = [r for r in results if not r.finished and not r.waiting]
    found: dict[str, Any] = {
        "name": candidate.name,
        "model": candidate.model,
        "group": candidate.group,
        "side": candidate.img_size,
        "length": candidate.max_length,
        "seeds": len(done),
        "failures": [{"seed": r.seed, "reason": r.reason, "log": r.log} for r in failed],
        "waiting": sum(r.waiting for r in results),
        "commands": [command_of(record) for result in done for record in runs_of(result.record)],
        **dict.fromkeys(NUMBERS),
        **dict.fromkeys(("score", "low", "high", "lr", "folds", "tokens")),
    }
    if not done:
        return found
    found["folds"] = of_record(done[0].record)
    total = mean_of(scores_of(done, metric), known_rows(candidate, done, metric))
    found |= {"score": total.mean, "low": total.low, "high": total.high}
    found |= {name: mean([function(result.record) for result in done]) for name, function in NUMBERS.items()}
    if own := own_metric(done[0].record or {"config": {}}):
        found[own] = mean([(result.record or {})["metrics"].get(own) for result in done])
    found["lr"] = (done[0].record or {}).get("plan", {}).get("lr")
    inference = next((i for r in done if (i := inference_of(r)) is not None), None)
    if inference is not None:
        found |= {"speed": inference.throughput, "latency": inference.latency, "tokens": inference.tokens}
    return found


def in_tokens(rows: list[dict[str, Any]]) -> None:
    """Tell speeds in tokens a second where texts were read: those of what reads no tokens in as many as the networks
    read of a text in the mean."""
    known = [row["tokens"] for row in rows if row["tokens"]]
    for row in rows:
        for name in ("train_speed", "speed") if known else ():
            row[name] = row[name] and row[name] * (row["tokens"] or sum(known) / len(known))


def core_seconds(record: dict[str, Any]) -> float:
    """Processor time of a run, which others on the machine change little; on a GPU, and where that was not written
    down, its time on all of its threads."""
    where = record.get("environment", {})
    if record.get("cpu_seconds") and str(where.get("device", "cpu")).startswith("cpu"):
        return float(record["cpu_seconds"])
    return float(record["wall_seconds"]) * int(where.get("threads", 1))


NUMBERS: dict[str, Any] = {
    "parameters": lambda record: record["parameters"],
    "macs": lambda record: record.get("multiply_adds"),
    "train_speed": lambda record: record["throughput"] / record.get("environment", {}).get("threads", 1),
    "speed": lambda record: None,
    "latency": lambda record: None,
    "memory": lambda record: record.get("peak_memory"),
    "seconds": lambda record: record["wall_seconds"],
    "core_seconds": lambda record: core_seconds(record),
    "money": lambda record: record.get("cost"),
    "steps": lambda record: None if is_fitted(record["config"]["model"]) else record.get("steps"),
    "accuracy": lambda record: record["metrics"].get("accuracy"),
    "balanced_accuracy": lambda record: record["metrics"].get("balanced_accuracy"),
    "macro_f1": lambda record: record["metrics"].get("macro_f1"),
}


def mean(values: list[Any]) -> float | None:
    known = [value for value in values if isinstance(value, int | float)]
    return float(np.mean(known)) if known else None


def inference_of(result: Result) -> Inference | None:
    """What was measured of a run's speed in use, if it was."""
    record = result.record or {}
    return Inference(**record["inference"]) if "inference" in record else read_inference(result.path)


def pairs(judged: list[JudgedCandidate]) -> list[dict[str, Any]]:
    """The difference of every two candidates, corrected over all of them."""
    both = list(itertools.combinations(judged, 2))
    found = corrected([apart(first, second) for first, second in both])
    return [
        {"first": a.name, "second": b.name, "p": p, "alone": one_seed(a, b), **as_numbers(value)}
        for (a, b), (value, p) in zip(both, found, strict=True)
    ]


def curves(results: list[Result]) -> dict[str, Any]:
    """Validation metric and training loss by epoch: mean, lowest and highest over the runs, on a common grid."""
    return {
        "metric": spread(results, "evaluation", "validation_metric"),
        "loss": spread(results, "train", "loss"),
        "validation_loss": spread(results, "evaluation", "validation_loss"),
    }


def spread(results: list[Result], kind: str, name: str) -> dict[str, list[float]] | None:
    lines = []
    for record in (record for result in results for record in runs_of(result.record)):
        events = [e for e in record.get("curve", []) if e["kind"] == kind and finite(e.get(name))]
        if events:
            lines.append((np.array([e["epoch"] for e in events]), np.array([e[name] for e in events])))
    if not lines:
        return None
    first, last = max(x[0] for x, _ in lines), min(x[-1] for x, _ in lines)
    count = min(POINTS, max(len(x) for x, _ in lines))
    grid = np.linspace(first, max(first, last), count)
    values = np.stack([np.interp(grid, x, y) for x, y in lines])
    rounded = {"x": grid, "mean": values.mean(0), "low": values.min(0), "high": values.max(0)}
    return {key: [float(f"{number:.5g}") for number in line] for key, line in rounded.items()}


def finite(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def confusion(results: list[Result]) -> list[list[int]] | None:
    """Counts (true class, predicted class) added up over the seeds."""
    found = [r.record["metrics"]["confusion"] for r in results if r.finished and "confusion" in r.record["metrics"]]  # type: ignore[index]
    return np.sum(found, axis=0).tolist() if found else None


def learning(collection: Collection, metric: str) -> list[dict[str, Any]]:
    """Score of each candidate by share of the training rows; empty unless a learning curve was asked for."""
    shares = sorted({result.share for result in collection.results})
    points = []
    for candidate, share in itertools.product(collection.candidates, shares) if len(shares) > 1 else []:
        done = [r for r in collection.results if r.candidate == candidate.name and r.share == share and r.finished]
        if done:
            found = mean_of(scores_of(done, metric), known_rows(candidate, done, metric))
            points.append({"candidate": candidate.name, "share": share, **as_numbers(found)})
    return points


def environment(results: list[Result]) -> dict[str, Any]:
    """Where the runs were computed."""
    return next((dict(r.record["environment"]) for r in results if r.record and "torch" in r.record["environment"]), {})
