"""Full runs of a comparison by time: baselines, learning curves, and what is said of what is left out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from studies.compare.timed.midway import FAST, under_way
from studies.fabricated import facts, finish
from weft.errors import WeftError, WorkFailed
from weft.studies.compare.candidates import Candidate
from weft.studies.compare.config import ComparisonConfig
from weft.studies.compare.timed import full_runs as stage
from weft.studies.compare.timed import members, sizes, trials
from weft.studies.compare.timed import session as session_module
from weft.studies.compare.timed.clock import Gate
from weft.studies.compare.timed.full_runs import fixed_in_time, keep_fitted
from weft.studies.compare.timed.layout import Stages
from weft.studies.compare.timed.pace import Pace
from weft.studies.compare.timed.plan import early_fixed, room_in
from weft.studies.compare.timed.runs import Runs
from weft.studies.compare.timed.session import Session
from weft.studies.compare.timed.state import Setting
from weft.studies.compare.timed.trials import choose_settings
from weft.studies.engine import step_timing, tasks
from weft.studies.engine.runner import TooLate
from weft.studies.engine.study import Job, Study
from weft.training.config import OptimisationConfig, RunConfig
from weft.training.run import rehearsal
from weft.training.run.plan import Timing

BASELINE = Candidate("hog+logistic", "hog+logistic", "classical")


def with_baseline(folder: Path, each: float, left: float = 900.0) -> Session:
    """A comparison with a baseline that takes so many seconds a row, of 1,295."""
    session = under_way(left, 1.0, folder)
    session.study = replace(session.study, candidates=[*session.study.candidates, BASELINE])
    session.state.baseline = each
    return session


# ---- the classical baseline


def test_a_baseline_is_fitted_again_from_many_more_rows_alone(tmp_path: Path):
    session = with_baseline(tmp_path, 0.2)

    def share(total: float) -> float:
        (job,) = Runs(session.asked, facts(), session.state, total).seed(Setting(BASELINE, 0.0), 0, 0.0)
        return job.config.reading.train_fraction

    assert share(1000.0) == pytest.approx(0.463, abs=0.001) and share(1200.0) > share(1000.0)
    session.state.fitted = {BASELINE.name: replace(BASELINE, share=0.463)}
    assert share(500.0) == share(1000.0) == share(1200.0) == 0.463
    assert share(2000.0) == pytest.approx(0.927, abs=0.001)


def test_a_baseline_whose_timing_takes_too_long_is_left_out(tmp_path: Path):
    session = with_baseline(tmp_path, 0.2)
    session.state.baseline = None
    names = {candidate.name for candidate in session.study.candidates}

    def first(task: object, config: Any, threads: int, within: float) -> float:
        assert within <= 500
        raise TooLate("trying the classical baseline takes longer than there is time for; give more --time")

    session.pool.first = first  # type: ignore[method-assign, assignment]
    members.time_baseline(session)
    assert names - {candidate.name for candidate in session.study.candidates} == {"hog+logistic"}
    assert not session.fixed() and session.state.baseline is None


def test_a_baseline_that_is_late_with_more_rows_stays_as_it_was(tmp_path: Path):
    session = with_baseline(tmp_path, 0.2)
    (known,) = session.fixed()[BASELINE.name]
    finish(session.study, known, 0.8)
    keep_fitted(session, session.fixed())
    session.runs.total = 2000.0
    (more,) = session.fixed()[BASELINE.name]
    assert more.name != known.name
    (found,) = fixed_in_time(session, session.fixed(), {BASELINE.name})[BASELINE.name]
    assert found.name == known.name
    assert "as before: there is no time for more" in session.state.story[-1][1]


def test_runs_that_no_seed_changes_are_planned_for_and_a_long_one_comes_after_the_first_leaderboard(tmp_path: Path):
    quick, slow = with_baseline(tmp_path, 0.01, left=980.0), with_baseline(tmp_path, 0.2, left=880.0)
    assert list(early_fixed(quick)) == [BASELINE.name] and quick.pending() == pytest.approx(12.95)
    assert early_fixed(slow) == {} and slow.pending() == pytest.approx(120.0)
    assert room_in(slow).left == pytest.approx(880.0 - 60.0, abs=1.0)
    assert with_baseline(tmp_path, 0.2, left=100.0).pending() == 0.0, "there is no time for it, so it takes none"


# ---- learning curves


def test_a_learning_curve_has_the_planned_seeds_and_loses_no_more_than_what_was_late(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    session = under_way(900.0, 1.0, tmp_path)
    one = session.learnt[0]
    session.learnt, session.study = [one], replace(session.study, candidates=[one])
    session.asked = replace(session.asked, learning_curve=True, seeds=3)
    session.state.chosen = {"mlp": session.usual(one)}
    asked_for: list[tuple[int, float]] = []

    def run(session: Session, jobs: list[Job], stage: str, gate: Gate | None = None) -> list[Job]:
        found = [(job.seed, job.config.reading.train_fraction) for job in jobs]
        asked_for.extend(found)
        return [job for job, point in zip(jobs, found, strict=True) if point in ((1, 1.0), (0, 0.1))]

    monkeypatch.setattr(Session, "run", run)
    monkeypatch.setattr(Session, "show_so_far", lambda session, beside_runs=False: None)
    stage.full_runs(session, Stages(4.0, 16.0, 1, 2))
    assert asked_for == [(0, 1.0), (1, 1.0), (0, 0.1), (1, 0.1), (0, 0.3), (1, 0.3)]
    there = [(job.seed, job.config.reading.train_fraction) for job in session.study.jobs]
    assert there == [(0, 1.0), (1, 0.1), (0, 0.3), (1, 0.3)]


def test_further_seeds_come_after_the_planned_curve_each_with_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    session, asked_for, reports = under_way(900.0, 1.0, tmp_path), list[tuple[int, float]](), list[int]()
    one = session.learnt[0]
    session.learnt, session.study = [one], replace(session.study, candidates=[one])
    session.asked = replace(session.asked, learning_curve=True)
    session.state.chosen = {"mlp": session.usual(one)}

    def run(session: Session, jobs: list[Job], stage: str, gate: Gate | None = None) -> list[Job]:
        asked_for.extend((job.seed, job.config.reading.train_fraction) for job in jobs)
        return []

    monkeypatch.setattr(stage, "MOST_SEEDS", 3)
    monkeypatch.setattr(Session, "run", run)
    monkeypatch.setattr(Session, "show_so_far", lambda session: reports.append(len(session.study.jobs)))
    stage.full_runs(session, Stages(4.0, 16.0, 1, 2))
    assert reports == [1, 2, 6, 7, 9], "the report is drawn anew after every round"
    planned = [(0, 1.0), (1, 1.0), (0, 0.1), (1, 0.1), (0, 0.3), (1, 0.3)]
    assert asked_for == [*planned, (2, 1.0), (2, 0.1), (2, 0.3)]
    assert len(session.study.jobs) == len(asked_for)


# ---- further seeds, and trials


def ending(session: Session, jobs: list[Job], stage: str, gate: Gate | None = None) -> list[Job]:
    """Runs that are all there at once."""
    for job in jobs:
        finish(session.study, job, 0.8)
        if gate is not None:
            gate.ended(job, 1.0)
            gate.meanwhile()
    return []


@pytest.mark.parametrize(("left", "reports"), [(900.0, 3), (10.0, 1)])
def test_the_report_is_drawn_anew_after_every_seed_while_there_is_time(
    left: float, reports: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    session, drawn = under_way(left, 1.0, tmp_path), list[str]()
    session.state.chosen = {"mlp": session.usual(session.learnt[0])}
    monkeypatch.setattr(stage, "MOST_SEEDS", 3)
    monkeypatch.setattr(Session, "run", ending)
    monkeypatch.setattr(Session, "show_so_far", lambda session, beside_runs=False: drawn.append(session.study.budget))
    measured: list[str] = []
    session.finish = lambda study: measured.append(study.budget)
    stage.full_runs(session, Stages(0.25, 1.0, 1, 1))
    assert len(session.study.jobs) == 3 and len(drawn) == reports
    assert measured == drawn[:1] * (left > 15.0), "speeds in use are measured with the first full runs, not at the end"


@pytest.mark.parametrize("folds", [1, 5])
def test_runs_are_given_the_steps_that_were_timed_before_and_measure_nothing(
    folds: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    session, known = under_way(900.0, 1.0, tmp_path), list[object]()
    session.runs.folds = folds
    setting = session.usual(session.learnt[0])
    jobs = [*session.runs.seed(setting, 0, 1.0), session.runs.trained(setting, 0, 0.5, tested=False)]

    def run(study: Study, pool: object, jobs: list[Job], *_: object) -> list[Job]:
        known.extend(study.known_plan(job, 1) for job in jobs)
        return []

    monkeypatch.setattr(session_module, "run_jobs", run)
    session.run(jobs, "")
    assert known == [Timing(FAST.step, FAST.validation)] * (folds + 1)


def test_no_worker_waits_for_the_end_of_a_seed_after_the_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    session, calls = under_way(900.0, 1.0, tmp_path), list[list[int]]()
    session.state.chosen = {"mlp": session.usual(session.learnt[0])}

    def run(session: Session, jobs: list[Job], stage: str, gate: Gate | None = None) -> list[Job]:
        calls.append([job.seed for job in jobs])
        return ending(session, jobs, stage, gate)

    monkeypatch.setattr(stage, "MOST_SEEDS", 6)
    monkeypatch.setattr(Session, "run", run)
    monkeypatch.setattr(Session, "show_so_far", lambda session, beside_runs=False: None)
    stage.full_runs(session, Stages(0.25, 1.0, 1, 3))
    assert calls == [[0], [1, 2, 3, 4, 5]]


def test_seeds_of_before_are_on_the_leaderboard_before_anything_new_is_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Ctrl-C in the first new run must not leave a leaderboard of one seed."""
    session, seen, drawn = under_way(900.0, 1.0, tmp_path), list[list[int]](), list[int]()

    def show(session: Session, beside_runs: bool = False) -> None:
        drawn.append(len(session.study.jobs))

    setting = session.usual(session.learnt[0])
    session.state.chosen = {"mlp": setting}
    for seed in range(3):
        finish(session.study, session.runs.seed(setting, seed, 1.0)[0], 0.8)

    def run(session: Session, jobs: list[Job], stage: str, gate: Gate | None = None) -> list[Job]:
        seen.append([job.seed for job in session.study.jobs])
        return ending(session, [job for job in jobs if not session.study.done(job)], stage, gate)

    monkeypatch.setattr(stage, "MOST_SEEDS", 4)
    monkeypatch.setattr(Session, "run", run)
    monkeypatch.setattr(
        Session, "show_so_far", lambda session, beside_runs=False: drawn.append(len(session.study.jobs))
    )
    stage.full_runs(session, Stages(0.25, 1.0, 1, 2))
    assert seen[-1] == [0, 1, 2], "as they were"
    assert drawn == [4], "once, with the new one"


def test_seeds_that_are_whole_are_shown_though_one_before_them_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    session = two_networks(900.0, tmp_path)

    def run(session: Session, jobs: list[Job], stage: str, gate: Gate | None = None) -> list[Job]:
        slow = [job for job in jobs if (job.seed, job.candidate) == (1, "vit")]
        ending(session, [job for job in jobs if job not in slow], stage, gate)
        return slow

    monkeypatch.setattr(stage, "MOST_SEEDS", 3)
    monkeypatch.setattr(Session, "run", run)
    monkeypatch.setattr(Session, "show_so_far", lambda session, beside_runs=False: None)
    stage.full_runs(session, Stages(0.25, 1.0, 1, 3))
    there = sorted((job.seed, job.candidate) for job in session.study.jobs)
    assert there == [(0, "mlp"), (0, "vit"), (1, "mlp"), (2, "mlp"), (2, "vit")]


def test_a_candidate_that_is_late_in_the_first_seed_leaves_further_ones_to_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    session = under_way(900.0, 1.0, tmp_path)
    two = [replace(session.learnt[0], name=name) for name in ("mlp", "vit")]
    session.learnt, session.study = two, replace(session.study, candidates=two)
    session.state.chosen = {candidate.name: session.usual(candidate) for candidate in two}

    def run(session: Session, jobs: list[Job], stage: str, gate: Gate | None = None) -> list[Job]:
        slow = [job for job in jobs if job.candidate == "vit"]
        ending(session, [job for job in jobs if job not in slow], stage, gate)
        return slow

    monkeypatch.setattr(stage, "MOST_SEEDS", 3)
    monkeypatch.setattr(Session, "run", run)
    monkeypatch.setattr(Session, "show_so_far", lambda session, beside_runs=False: None)
    stage.full_runs(session, Stages(0.25, 1.0, 1, 2))
    assert [(job.candidate, job.seed) for job in session.study.jobs] == [("mlp", 0), ("mlp", 1), ("mlp", 2)]
    assert [candidate.name for candidate in session.study.candidates] == ["mlp"]


def test_once_there_is_no_time_for_a_candidate_the_others_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """One whose runs are long must not leave the rest of the time unused."""
    session = under_way(900.0, 1.0, tmp_path)
    slow = replace(session.learnt[0], name="vit", network={"depth": 99})
    session.learnt = [session.learnt[0], slow]
    session.state.chosen = {"mlp": session.usual(session.learnt[0]), "vit": session.usual(slow)}
    session.state.paces[session.usual(slow).size] = Pace(0.01, 0.05, 500.0)
    monkeypatch.setattr(Session, "show_so_far", lambda session, beside_runs=False: None)

    def run(session: Session, jobs: list[Job], stage: str, gate: Gate | None = None) -> list[Job]:
        left = []
        for job in jobs:
            if gate is None or gate.admits(job):
                session.clock.before += session.runs.predicted(job)
                finish(session.study, job, 0.8)
                if gate is not None:
                    gate.ended(job, session.runs.predicted(job))
            else:
                left.append(job)
        return left

    monkeypatch.setattr(stage, "MOST_SEEDS", 4)
    monkeypatch.setattr(Session, "run", run)
    stage.full_runs(session, Stages(0.25, 1.0, 1, 3))
    there = sorted((job.candidate, job.seed) for job in session.study.jobs)
    assert there == [("mlp", 0), ("mlp", 1), ("mlp", 2), ("mlp", 3), ("vit", 0)]


def two_networks(left: float, folder: Path) -> Session:
    """A comparison of two networks whose settings were chosen, with so many seconds left."""
    session = under_way(left, 1.0, folder)
    two = replace(session.learnt[0], name="vit")
    session.learnt = [session.learnt[0], two]
    session.state.chosen = {"mlp": session.usual(session.learnt[0]), "vit": Setting(two, 0.003)}
    session.state.paces[session.state.chosen["vit"].size] = session.state.paces[session.state.chosen["mlp"].size]
    return session


def seeds_there(session: Session) -> list[tuple[str, int]]:
    return sorted((job.candidate, job.seed) for job in session.study.jobs)


def test_where_time_is_up_all_seeds_of_before_are_shown_also_unequal_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The same command again shows what there is: it had dropped the seeds beyond the first that a candidate lacks."""
    session = two_networks(-5.0, tmp_path)
    for name, seeds in {"mlp": range(4), "vit": range(1)}.items():
        for seed in seeds:
            finish(session.study, session.runs.seed(session.state.chosen[name], seed, 1.0)[0], 0.8)
    monkeypatch.setattr(Session, "run", lambda session, jobs, *_: [j for j in jobs if not session.study.done(j)])
    monkeypatch.setattr(Session, "show_so_far", lambda session, beside_runs=False: None)
    stage.full_runs(session, Stages(0.25, 1.0, 1, 3))
    assert seeds_there(session) == [("mlp", 0), ("mlp", 1), ("mlp", 2), ("mlp", 3), ("vit", 0)]


def test_a_leaderboard_has_as_many_seeds_as_most_of_its_candidates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A further seed of one candidate alone must not take the place of five seeds of all."""
    session = two_networks(900.0, tmp_path)
    three = replace(session.learnt[0], name="gmlp")
    session.learnt.append(three)
    session.state.chosen["gmlp"] = Setting(three, 0.003)
    session.before = 5

    def run(session: Session, jobs: list[Job], stage: str, gate: Gate | None = None) -> list[Job]:
        late = [job for job in jobs if job.seed and job.candidate != "mlp"]
        ending(session, [job for job in jobs if job not in late], stage, gate)
        return late

    monkeypatch.setattr(stage, "MOST_SEEDS", 3)
    monkeypatch.setattr(Session, "run", run)
    monkeypatch.setattr(Session, "show_so_far", lambda session, beside_runs=False: None)
    stage.full_runs(session, Stages(0.25, 1.0, 1, 3))
    assert [seed for name, seed in seeds_there(session) if name == "mlp"] == [0, 1, 2]
    assert session.led == 1 and not session.leads


def test_seeds_are_shown_though_the_runs_of_one_candidate_die(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    session, shown = two_networks(900.0, tmp_path), list[int]()

    def run(session: Session, jobs: list[Job], stage: str, gate: Gate | None = None) -> list[Job]:
        for job in jobs:
            if job.candidate == "vit" and job.seed:
                session.study.record_failure(job, "its process died")
            else:
                ending(session, [job], stage, gate)
            shown.append(max(each.seed for each in session.study.jobs) if session.study.jobs else -1)
        return []

    monkeypatch.setattr(stage, "MOST_SEEDS", 4)
    monkeypatch.setattr(stage, "at_once", lambda board, first, most: {s: board.jobs_of(s) for s in range(first, most)})
    monkeypatch.setattr(Session, "run", run)
    monkeypatch.setattr(Session, "show_so_far", lambda session, beside_runs=False: None)
    stage.full_runs(session, Stages(0.25, 1.0, 1, 3))
    assert 2 in shown, "seeds that have ended are there before all of them have"
    assert seeds_there(session) == [(name, seed) for name in ("mlp", "vit") for seed in range(4)]


@pytest.mark.parametrize("first", [0.0625, 4.0])
def test_settings_are_tried_for_a_quarter_of_a_run_however_short_the_first_runs_were(
    first: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    session = under_way(900.0, 1.0, tmp_path)
    one = replace(session.learnt[0], count={"params": 50_000, "macs": 50_000})
    session.learnt, session.study = [one], replace(session.study, candidates=[one], jobs=[])
    monkeypatch.setattr(sizes, "other_sizes", lambda *_: [])
    monkeypatch.setattr(Session, "run", lambda session, jobs, stage, gate=None: [])
    monkeypatch.setattr(Study, "done", lambda study, job: True)
    choose_settings(session, Stages(first, 16.0, 3, 2), [one])
    usual = session.usual(one).lr
    rates = [job.config.optimisation.lr for job in session.study.trials]
    assert {job.config.duration.steps for job in session.study.trials} == {400}
    assert (len(rates), usual in rates) == ((3, True) if first < 4.0 else (2, False))
    assert session.state.chosen["mlp"].lr == usual, "where no trial has ended"
    assert [length for _, length in session.state.tried] == [4.0] * len(rates)


def test_larger_images_are_read_before_steps_are_timed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    session, done = under_way(900.0, 1.0, tmp_path), list[tuple[object, int | None]]()
    one = replace(session.learnt[0], count={"params": 50_000, "macs": 50_000})
    larger = replace(one, img_size=96)
    session.asked = replace(session.asked, match="time")
    monkeypatch.setattr(trials, "trial_side", lambda *_: 96)
    monkeypatch.setattr(sizes, "other_sizes", lambda *_: [larger, replace(larger, network={"depth": 1})])

    def first(task: object, config: Any, within: float) -> None:
        done.append((task, config.transform.img_size))
        assert within == pytest.approx(900.0 / 4, abs=1.0), "reading them is not to make the end late"
        raise WeftError("an image is damaged")

    def each(task: object, arguments: list[Any], within: float) -> list[Any]:
        done.extend((task, arguments[0][0].transform.img_size) for _ in arguments)
        return [(0.01, 0.05, 0.1)] * len(arguments)

    session.pool.first, session.pool.each = first, each  # type: ignore[method-assign, assignment]
    for _ in range(2):
        trials.settings_beside(session, Stages(4.0, 16.0, 6, 2), [one])
        assert done == [(tasks.look, 96), *[(tasks.pace, 96)] * 4], "read once for all of that side"


# ---- timing


def test_a_size_that_cannot_be_timed_is_not_tried_and_its_candidate_stays(tmp_path: Path):
    session = under_way(900.0, 1.0, tmp_path)
    session.pool.each = lambda task, arguments, within: [WeftError("no memory")]  # type: ignore[method-assign]
    smaller = replace(session.learnt[0], network={"depth": 1})
    members.measure_paces(session, [session.usual(smaller)])
    assert session.state.story[-1][1] == "a setting of mlp is not tried: no memory" and "mlp" in session.names


def test_what_has_not_been_timed_within_its_share_of_the_time_is_left_out(tmp_path: Path):
    session = under_way(900.0, 1.0, tmp_path)
    session.learnt = [Candidate(name, "mlp", "mlp", {"depth": n}) for n, name in enumerate(["a", "b", "c", "d"])]
    session.study = replace(session.study, candidates=session.learnt)

    def each(task: object, arguments: list[Any], within: float) -> list[Any]:
        session.clock.before += 200.0
        return [(0.01, 0.05, 0.1)] * len(arguments)

    session.pool.each = each  # type: ignore[method-assign]
    members.measure_paces(session, [session.usual(candidate) for candidate in session.learnt])
    assert session.names == {"a", "b"}
    assert [sentence for _, sentence in session.state.story] == [
        f"left out: {name}: there is no time to time its steps; give more --time" for name in ("c", "d")
    ]


@pytest.mark.parametrize(("each", "steps"), [(10.0, 2), (0.4, 3), (0.01, 100)])
def test_timing_ends_with_the_step_that_takes_it_beyond_its_time(
    each: float, steps: int, monkeypatch: pytest.MonkeyPatch
):
    now, done = [0.0], [0]

    def mean_step(run: object, precision: str, steps: int, skipped: int, within: float = 1e9) -> float:
        began = now[0]
        for _ in range(steps + skipped):
            now[0], done[0] = now[0] + each, done[0] + 1
            if now[0] - began > within:
                break
        return each

    monkeypatch.setattr(step_timing.probe, "mean_step", mean_step)
    monkeypatch.setattr(step_timing.time, "perf_counter", lambda: now[0])
    assert step_timing.median_step(cast(Any, None), 1.0, "float32") == each
    assert done[0] == pytest.approx(steps, abs=1)


def test_a_candidate_whose_steps_cannot_be_timed_does_not_stop_the_others():
    slow, dead = Candidate("mlp", "mlp", "mlp", count={"macs": 1000}), Candidate("vit", "vit", "attention")

    def first(task: object, config: Any, threads: int, within: float) -> float:
        assert 449 < within <= 450, "half of the time, for all tries together"
        if config.model == "vit":
            raise WorkFailed("timing a step failed: its process died")
        return 0.5

    pool: Any = SimpleNamespace(first=first, threads=1)
    question = ComparisonConfig(source="photos", time="15m", optimisation=OptimisationConfig(batch_size=64))
    assert sizes.speed_of(question, [slow, dead], 1000, pool) == 1000 * 64 / 0.5
    with pytest.raises(WorkFailed, match="its process died"):
        sizes.speed_of(question, [dead], 1000, pool)


@pytest.mark.parametrize(
    ("works", "narrow", "chosen"), [(True, 0.5, "bf16"), (True, 0.95, "float32"), (False, 0.5, "float32")]
)
def test_a_network_is_timed_in_the_format_in_which_it_is_faster(
    works: bool, narrow: float, chosen: str, monkeypatch: pytest.MonkeyPatch
):
    """A narrow one must work here and be clearly faster; evaluations are timed in it as well."""
    steps = {"float32": 1.0, "bf16": narrow}
    monkeypatch.setattr(step_timing, "median_step", lambda run, duration, precision: steps[precision])
    monkeypatch.setattr(step_timing.rehearsal, "try_format", lambda *_, **__: rehearsal.Answer(works, ratio=0.6))
    monkeypatch.setattr(step_timing, "batch_seconds", lambda run, _: 0.1 if run.team.precision == "bf16" else 1.0)
    config = RunConfig(source="digits", model="mlp", optimisation=OptimisationConfig(batch_size=64))
    step, validation, test, precision, again = step_timing.pace(config, 1, 0.1, ("bf16",))
    assert (step, precision) == (steps[chosen], chosen)
    per_batch = {"bf16": 0.1, "float32": 1.0}
    assert validation == pytest.approx(3 * per_batch[chosen]) and test == pytest.approx(6.0)
    assert again == pytest.approx(3.0 if chosen == "bf16" else 0.0), "what is reported is computed in float32"
    assert step_timing.pace(config, 1, 0.1)[3] == "auto", "none is tried where none is named"


def test_a_run_has_the_format_in_which_its_network_was_timed(tmp_path: Path):
    session = under_way(500.0, 1.0, tmp_path / "study")
    setting = session.usual(session.study.candidates[0])
    assert session.runs.trained(setting, 0, 10.0).labelled.execution.precision == "auto"
    session.state.paces[setting.size] = replace(FAST, precision="bf16")
    assert session.runs.trained(setting, 0, 10.0).labelled.execution.precision == "bf16"
    wide = replace(session.asked, execution=replace(session.asked.execution, precision="float32"))
    session.runs.asked = wide
    assert session.runs.trained(setting, 0, 10.0).labelled.execution.precision == "float32"


@pytest.mark.parametrize(
    ("task", "precision", "total", "found"),
    [
        ("classes", "auto", 900.0, [("bf16",)]),
        ("regression", "auto", 900.0, []),
        ("classes", "float32", 900.0, []),
        ("classes", "auto", 60.0, []),
    ],
)
def test_narrow_formats_are_tried_where_there_is_time_and_nothing_was_asked(
    task: str, precision: Any, total: float, found: list[tuple[str, ...]], tmp_path: Path
):
    session = under_way(500.0, 1.0, tmp_path / "study")
    session.asked = replace(session.asked, execution=replace(session.asked.execution, precision=precision))
    session.study = replace(session.study, facts=replace(session.study.facts, task=task))
    session.clock.total = total
    assert members.narrow_formats(session) == found


def test_a_trial_whose_process_died_is_not_missing_in_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    session = under_way(900.0, 1.0, tmp_path)
    one = replace(session.learnt[0], count={"params": 50_000, "macs": 50_000})
    session.learnt, session.study = [one], replace(session.study, candidates=[one], jobs=[])

    def dying(session: Session, jobs: list[Job], stage: str, gate: Gate | None = None) -> list[Job]:
        for job in jobs:
            session.study.record_failure(job, "its process died (SIGKILL)")
        return []

    monkeypatch.setattr(sizes, "other_sizes", lambda *_: [])
    monkeypatch.setattr(Session, "run", dying)
    choose_settings(session, Stages(4.0, 16.0, 3, 2), [one])
    assert session.study.trials == [] and session.state.tried == []
    told = [sentence for _, sentence in session.state.story if sentence.startswith("not tried: mlp, rate ")]
    assert len(told) == 2 and all("its process died (SIGKILL)" in sentence for sentence in told)
