"""A comparison by time that is repeated, given more or less time, or killed: what is there stays, and it goes on."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from studies.compare.timed.midway import FAST, under_way
from studies.fabricated import asked, facts, finish, make_study
from weft.errors import WeftError
from weft.studies.compare.candidates import Candidate
from weft.studies.compare.comparison import compare, folded, leaderboard_of
from weft.studies.compare.config import ComparisonConfig
from weft.studies.compare.timed import full_runs, layout, members, plan
from weft.studies.compare.timed.clock import Gate
from weft.studies.compare.timed.layout import Stages
from weft.studies.compare.timed.plan import adapted, laid_out, planned, shortened
from weft.studies.compare.timed.session import Session
from weft.studies.compare.timed.state import (
    FILE,
    SPENT,
    Setting,
    Spent,
    State,
    anew,
    judged_rows,
    question_of,
    read_state,
)
from weft.studies.compare.trained import Probe
from weft.studies.engine import worker_time
from weft.studies.engine.study import Job, Study
from weft.studies.results.load import collect
from weft.training.config import ReadingConfig, RunConfig

pytestmark = pytest.mark.usefixtures("quick_workers")

LAID_OUT = plan.laid_out
QUESTION = asked(models="mlp", match="time", amount=None, time="1000s", steps=None, seeds=2, pretrained=False)


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Comparisons of two seeds of short runs, which end however busy the machine is."""
    monkeypatch.setattr(plan, "laid_out", lambda session: Stages(0.0625, 0.25, 3, 2))
    monkeypatch.setattr(layout, "WORTH", {1: (0.0, 0)})
    monkeypatch.setattr(full_runs, "MOST_SEEDS", 2)


def spend(folder: Path, **changes: Any) -> dict[str, Any]:
    """As if nearly all of the time was over."""
    kept: dict[str, Any] = json.loads((folder / FILE).read_text()) | {"spent": 999.0} | changes
    (folder / FILE).write_text(json.dumps(kept))
    return kept


def names(study: Study) -> list[str]:
    return sorted(job.name for job in study.jobs)


def listed(folder: Path) -> list[str]:
    return sorted(run["name"] for run in json.loads((folder / "study.json").read_text())["runs"])


def test_the_same_time_and_less_of_it_leave_the_leaderboard_and_more_goes_on(
    short: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    said: list[str] = []
    first = compare(QUESTION, tmp_path, "weft compare", said.append)
    assert sorted((r.candidate, r.seed, r.finished) for r in collect(tmp_path).results) == [
        ("hog+logistic", 0, True), ("mlp", 0, True), ("mlp", 1, True)
    ]  # fmt: skip
    assert first.notes and len(first.trials) == 2 and any(line.startswith("so far: ") for line in said)
    told = len(said)
    monkeypatch.setattr(plan, "laid_out", LAID_OUT)
    for length in ("1000s", "500s"):
        stages = spend(tmp_path)["stages"]
        again = compare(replace(QUESTION, time=length), tmp_path, "weft compare", said.append)
        assert names(again) == names(first) == listed(tmp_path) and again.budget == first.budget
        assert (again.notes, [job.name for job in again.trials]) == (first.notes, [j.name for j in first.trials])
        assert json.loads((tmp_path / FILE).read_text())["stages"] == stages
    assert not any(line.startswith("so far: ") for line in said[told:]), "nothing new is there to be shown"
    assert sum("are spent already: this is what there is; --time" in sentence for sentence in said) == 1
    monkeypatch.setattr(plan, "laid_out", lambda session: Stages(0.0625, 0.5, 1, 2))
    more = compare(replace(QUESTION, time="2000s"), tmp_path, "weft compare", said.append)
    shared = set(names(more)) & set(names(first))
    assert {name.split("-seed")[0] for name in shared} == {"hog+logistic"}, "longer runs beside the same baseline"
    assert len(more.jobs) == 3 and more.budget == "0.5 s of training of each network"


def test_a_leaderboard_of_two_seeds_stays_until_there_are_two_of_longer_runs(
    short: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    first = compare(QUESTION, tmp_path, "weft compare", lambda sentence: None)
    monkeypatch.setattr(plan, "laid_out", lambda session: Stages(0.0625, 0.5, 1, 2))
    longer = replace(QUESTION, time="2000s")
    with pytest.raises(Killed):
        compare(longer, tmp_path, "weft compare", killed_at("seed 0: a full run of every candidate"))
    assert listed(tmp_path) == names(first)
    more = compare(longer, tmp_path, "weft compare", lambda sentence: None)
    assert listed(tmp_path) == names(more) != names(first) and len(more.jobs) == 3


def test_a_leaderboard_stays_where_there_is_no_time_for_a_second_seed_of_longer_runs(
    short: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    said: list[str] = []
    first = compare(QUESTION, tmp_path, "weft compare", lambda sentence: None)
    monkeypatch.setattr(plan, "laid_out", lambda session: Stages(0.0625, 0.5, 1, 1))
    monkeypatch.setattr(full_runs, "MOST_SEEDS", 1)
    again = compare(replace(QUESTION, time="2000s"), tmp_path, "weft compare", said.append)
    assert not again.jobs and listed(tmp_path) == names(first)
    assert any(line.startswith("the leaderboard stays as it was") for line in said)


def test_settings_that_there_was_no_time_to_try_are_tried_with_much_more(tmp_path: Path):
    def kept(length: str, settings: int = 1, **changes: Any) -> State:
        now = replace(QUESTION, time="100s", **changes)
        chosen = {"mlp": Setting(Candidate("mlp", "mlp", "mlp"), 0.01)}
        stages = Stages(1.0, 4.0, settings, 2)
        State(question_of(now, "f"), amount=1e5, spent=99.0, total=100.0, stages=stages, chosen=chosen).save(tmp_path)
        return read_state(tmp_path, replace(now, time=length), "f")

    anew = kept("400s")
    assert (anew.amount, anew.stages, anew.chosen, anew.spent) == (None, None, {}, 99.0)
    for same in (kept("399s"), kept("400s", settings=3), kept("400s", trials=0)):
        assert same.stages is not None and same.chosen and same.amount == 1e5


def test_the_short_leaderboard_of_a_session_stays_where_none_of_the_settings_had_a_full_run(
    short: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    began: list[object] = []
    with monkeypatch.context() as patch:
        patch.setattr(Gate, "admits", lambda gate, job: not began.append(job) and len(began) <= 2)
        patch.setattr(Gate, "patience", lambda gate, jobs: 600.0)
        compare(QUESTION, tmp_path, "weft compare", lambda sentence: None)
    before, kept = listed(tmp_path), json.loads((tmp_path / FILE).read_text())
    for setting in kept["chosen"].values():
        setting["lr"] *= 3  # as if a trial had won
    spend(tmp_path, chosen=kept["chosen"])
    again = compare(QUESTION, tmp_path, "weft compare", lambda sentence: None)
    assert not again.jobs and listed(tmp_path) == before
    assert all(result.finished for result in collect(tmp_path).results)


class Killed(BaseException):
    """What no part of a comparison handles."""


def killed_at(words: str) -> Callable[[str], None]:
    def say(sentence: str) -> None:
        if words in sentence:
            raise Killed

    return say


def test_a_comparison_that_was_killed_goes_on_with_its_plan_its_trials_and_its_settings(short: None, tmp_path: Path):
    def finished() -> dict[str, int]:
        return {path.parent.name: path.stat().st_mtime_ns for path in tmp_path.glob("runs/*/record.json")}

    with pytest.raises(Killed):
        compare(QUESTION, tmp_path, "weft compare", killed_at("[1/2] mlp, rate"))
    planned, trained = json.loads((tmp_path / FILE).read_text()), finished()
    assert planned["adapted"] and not planned["chosen"] and planned["reserve"] > 0
    with pytest.raises(Killed):
        compare(QUESTION, tmp_path, "weft compare", killed_at("[1/1] mlp, seed 0"))
    chosen = json.loads((tmp_path / FILE).read_text())
    assert chosen["stages"] == planned["stages"] and chosen["spent"] > planned["spent"] and chosen["chosen"]
    study = compare(QUESTION, tmp_path, "weft compare", lambda sentence: None)
    assert len(study.trials) == 2 and study.notes == ["up to 3 settings were tried for every candidate"]
    assert json.loads((tmp_path / FILE).read_text())["chosen"] == chosen["chosen"]
    assert len(study.jobs) == 3 and all(result.finished for result in collect(tmp_path).results)
    assert finished().items() >= trained.items(), "nothing is trained twice"


def test_time_since_the_last_round_counts_after_a_kill(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(worker_time, "NOTED", 0.01)
    session = under_way(600.0, 1.0, tmp_path)
    session.state.question = question_of(session.asked, "f")
    session.state.save(tmp_path)  # after 0 seconds: nothing has ended since
    until = time.monotonic() + 60
    with session.noting_time():
        while not (tmp_path / SPENT).is_file():
            assert time.monotonic() < until
            time.sleep(0.01)
    assert read_state(tmp_path, session.asked, "f").spent == pytest.approx(385.0, abs=5)
    assert read_state(tmp_path, session.asked, "other data").spent == 0.0
    (tmp_path / SPENT).write_text("{")
    assert read_state(tmp_path, session.asked, "f").spent == 0.0


@pytest.mark.parametrize("more", [-500.0, 1.0])
def test_less_time_or_little_more_than_was_spent_keeps_the_plan(more: float, tmp_path: Path):
    session, before = under_way(-5.0, 1.0, tmp_path), Stages(4.0, 16.0, 3, 2)
    session.state.stages, session.state.total, session.clock.total = before, 1000.0, 1000.0 + more
    with pytest.raises(WeftError, match="too short for a step of each of 8 candidates"):
        planned(session)
    session.state.chosen = {"mlp": session.usual(session.learnt[0])}
    assert planned(session) == before == session.state.stages and session.state.total == 1000.0
    told = r"16.* min are spent already: this is what there is; --time 2\dm goes on"
    assert re.fullmatch(told, session.state.story[-1][1])


def test_trained_networks_are_left_out_where_nothing_fits_beside_them(tmp_path: Path):
    session = under_way(10.0, 1.0, tmp_path)
    probe = Probe(Candidate("net+probe", "net+logistic", "hybrid", start="net", share=0.5), 8.0, 0.1)
    session.state.probes, others = [probe], session.study.candidates
    session.study = replace(session.study, candidates=[*others, probe.candidate])
    assert laid_out(session) is None
    assert planned(session).seeds == 2 and session.study.candidates == others and session.state.probes == []
    assert session.state.story[-1][1] == "left out: net: there is no time for it; give more --time"


def test_a_plan_is_held_against_the_first_runs_once(tmp_path: Path):
    session = under_way(30.0, 1.0, tmp_path)
    stages = Stages(4.0, 16.0, 6, 3)
    first = adapted(session, stages)
    assert first != stages and session.state.adapted
    session.clock.before += 20.0
    assert adapted(session, first) == first, "trials that are done do not count again"


def test_full_runs_of_most_candidates_stay_where_there_is_no_time_for_the_others(tmp_path: Path):
    session = under_way(-50.0, 1.0, tmp_path)
    several = [Candidate(name, "mlp", "mlp") for name in ("mlp", "other", "third")]
    session.learnt, session.study = several, replace(session.study, candidates=several)
    session.state.chosen = {candidate.name: session.usual(candidate) for candidate in several}
    stages = Stages(4.0, 16.0, 1, 2)
    for name, length in (("mlp", 16.0), ("other", 16.0), ("mlp", 4.0)):
        (job,) = session.runs.seed(session.state.chosen[name], 0, length)
        finish(session.study, job, 0.9)
    assert shortened(session, stages).full == 16.0
    for length in (4.0, 16.0):
        (job,) = session.runs.seed(session.state.chosen["third"], 0, length)
        finish(session.study, job, 0.9)
    assert shortened(session, stages).full == 16.0, "nothing is missing"


# ---- what counts as the same question


def test_limits_that_were_given_are_not_kept_for_another_command_and_begin_anew(tmp_path: Path):
    usual = ComparisonConfig(source="photos", time="15m")
    given = replace(usual, reading=ReadingConfig(test_rows=100))
    State(question_of(given, "f"), spent=50.0, judged=(1000, 100)).save(tmp_path)
    asked = judged_rows(usual, tmp_path)
    assert asked.reading.test_rows == 2500 and read_state(tmp_path, asked, "f").spent == 0.0
    assert "judged by 2,500 test rows now, no longer by 100" in anew(tmp_path, asked, "f")
    assert not anew(tmp_path, given, "f") and read_state(tmp_path, given, "f").spent == 50.0


def test_more_test_rows_of_a_usual_number_begin_anew_too(tmp_path: Path):
    usual = judged_rows(ComparisonConfig(source="photos", time="15m"), tmp_path)
    State(question_of(usual, "f"), spent=900.0, judged=(1000, 2500)).save(tmp_path)
    more = replace(usual, reading=replace(usual.reading, test_rows=10_000))
    assert read_state(tmp_path, more, "f").spent == 0.0 and "by 10,000 test rows now" in anew(tmp_path, more, "f")


def test_time_is_counted_for_the_question_that_it_was_spent_on(tmp_path: Path):
    usual = judged_rows(ComparisonConfig(source="photos", time="15m"), tmp_path)
    more = replace(usual, reading=replace(usual.reading, test_rows=4200))
    question = question_of(usual, "f")
    State(question, spent=700.0, judged=(1000, 2500)).save(tmp_path)
    Spent(question, 900.0, 2500).save(tmp_path)
    assert (read_state(tmp_path, usual, "f").spent, read_state(tmp_path, more, "f").spent) == (900.0, 0.0)
    State(question, judged=(1000, 4200), rows_given=True).save(tmp_path)  # which sets the other aside
    Spent(question, 3600.0, 4200).save(tmp_path)
    assert (read_state(tmp_path, usual, "f").spent, read_state(tmp_path, more, "f").spent) == (900.0, 3600.0)


def test_usual_numbers_of_test_rows_that_were_given_do_not_stick_either(tmp_path: Path):
    usual = ComparisonConfig(source="photos", time="15m")
    for given, expected in ((True, 2500), (False, 10_000)):
        State("q", judged=(1000, 10_000), rows_given=given).save(tmp_path)
        assert judged_rows(usual, tmp_path).reading.test_rows == expected


def test_the_leaderboard_of_another_question_does_not_stay(tmp_path: Path):
    """With more time the first question had shown what the second one had left."""
    state = State("first", led=3, judged=(1000, 2500))
    study = replace(make_study(tmp_path, {"mlp": 0.9}, seeds=1), question="first-2500")
    study.save()
    assert leaderboard_of(study, state) == 3
    replace(study, question="second-2500").save()
    assert leaderboard_of(study, state) == 0
    replace(study, question=None).save()  # as before questions were kept
    assert leaderboard_of(study, state) == 3
    (tmp_path / "study.json").write_text("{")
    assert leaderboard_of(study, state) == 0


def test_a_question_is_the_same_by_another_path_to_the_data_and_with_flags_that_change_no_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "photos").mkdir()
    asked = ComparisonConfig(source="photos", time="15m")
    spellings = ("photos/", "./photos", str(tmp_path / "photos"), "../" + tmp_path.name + "/photos")
    assert {question_of(replace(asked, source=source), "f") for source in spellings} == {question_of(asked, "f")}
    priced = replace(asked, execution=replace(asked.execution, price_per_hour=2.0, threads=1, log_every=5))
    assert question_of(priced, "f") == question_of(asked, "f")
    narrow = replace(asked, execution=replace(asked.execution, precision="bf16"))
    assert question_of(narrow, "f") != question_of(asked, "f") != question_of(replace(asked, jobs=1), "f")
    keys = {Job("mlp", RunConfig(source=source), "f").key for source in ("photos", *spellings)}
    assert len(keys) == 1 and Job("mlp", RunConfig(source="other"), "f").key not in keys


def test_what_another_question_left_in_the_folder_is_set_aside_and_found_again(tmp_path: Path):
    asked = ComparisonConfig(source="photos", time="15m")
    other = replace(asked, models="mlp", time="10s")
    left = State(question_of(asked, "f"), amount=1e5, spent=900.0, judged=(1000, 2500))
    left.save(tmp_path)
    State(question_of(other, "f"), judged=(1000, 2500)).save(tmp_path)
    assert read_state(tmp_path, asked, "f") == left and not anew(tmp_path, asked, "f")
    assert json.loads((tmp_path / FILE).read_text())["question"] == question_of(other, "f")


def test_other_folds_begin_anew_with_a_sentence_and_so_do_rows_that_cannot_be_cut(tmp_path: Path):
    question = ComparisonConfig(source="photos", time="2m")
    cut = replace(question, time="5m", reading=ReadingConfig(folds=5))
    State(question_of(question, "f")).save(tmp_path)
    assert "cut into 5 folds now" in anew(tmp_path, cut, "f") and not anew(tmp_path, question, "f")
    State(question_of(cut, "f"), folds=5).save(tmp_path)
    assert not anew(tmp_path, question, "f"), "it is asked once more"
    (tmp_path / "cut").mkdir()
    State(question_of(cut, "f"), folds=5).save(tmp_path / "cut")
    assert "no longer cut into folds" in anew(tmp_path / "cut", question, "f")
    assert not anew(tmp_path / "new", cut, "f")

    def refuse(task: object, config: object, within: float | None = None) -> None:
        raise WeftError("a class has 3 rows")

    said: list[str] = []
    pool: Any = SimpleNamespace(first=refuse)
    assert folded(question, facts(), 5, pool, said.append) == (question, facts())
    assert said == ["no cross-validation: a class has 3 rows"]


# ---- trained networks


def probing(folder: Path, probe: Probe, weights: str = "w") -> Session:
    """A comparison that knows a probe, fitted for 1000 s, and its fine-tuned network."""
    session = under_way(900.0, 1.0, folder)
    session.state.probes, session.state.probed, session.state.total = [probe], 1000.0, 1000.0
    whole = replace(probe.candidate, name="enc+finetune", model="enc")
    session.state.chosen = {"enc+finetune": session.usual(whole)}
    session.state.fitted = {"enc+probe": probe.candidate}
    session.pool.first = lambda task, start: weights  # type: ignore[method-assign, assignment]
    return session


def probe_of(share: float, side: int = 96) -> Probe:
    return Probe(Candidate("enc+probe", "runs/enc+logistic", "hybrid", start="runs/enc", img_size=side, share=share,
                           weights="w"), 10.0, 0.01)  # fmt: skip


def test_other_weights_at_the_same_path_make_other_runs_and_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(members, "trained_probes", lambda *_: [probe_of(0.5)])
    session = probing(tmp_path, probe_of(0.5))
    members.add_probes(session)
    (known,) = session.fixed()["enc+probe"]
    assert session.state.chosen and not any("has changed" in told for _, told in session.state.story)
    session = probing(tmp_path, probe_of(0.5), weights="other")
    tried = session.state.chosen.pop("enc+finetune")  # as if it was killed before its choice
    session.state.tried, session.state.paces[tried.size] = [(tried, 4.0)], FAST
    session.study = replace(session.study, trials=session.trials())
    members.add_probes(session)
    assert not session.study.trials and not session.state.tried
    assert session.fixed()["enc+probe"][0].name != known.name
    assert not session.state.chosen and not session.state.fitted
    assert "runs/enc has changed since the last session" in session.state.story[0][1]


def test_what_an_older_session_made_of_weights_that_it_did_not_note_stays(tmp_path: Path):
    probe = probe_of(0.5)
    session = probing(tmp_path, replace(probe, candidate=replace(probe.candidate, weights="")))
    for _ in range(2):
        members.add_probes(session)
    assert session.state.chosen and session.state.fitted
    (told,) = [sentence for _, sentence in session.state.story]
    assert told == "enc+probe: a linear probe of a trained network, 648 training rows, images at 96 px", "once"


@pytest.mark.parametrize(("total", "share", "known"), [(1500.0, 0.2, 0), (2000.0, 0.8, 0), (2000.0, 0.25, 1)])
def test_probes_learn_from_more_rows_where_there_is_twice_the_time(
    total: float, share: float, known: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    session = probing(tmp_path, probe_of(0.2))
    session.clock.total = total
    found = [] if total < 2000.0 else [probe_of(share)]
    monkeypatch.setattr(members, "trained_probes", lambda *arguments: found)
    members.add_probes(session)
    expected = 0.2 if known else share
    (probe,) = session.state.probes or []
    assert probe.candidate.share == expected
    late = full_runs.fixed_in_time(session, session.fixed(), {"enc+probe"})
    assert [job.config.reading.train_fraction for job in late["enc+probe"]] == [0.2], "what was learnt before stays"


@pytest.mark.parametrize(("step", "left", "told"), [
    (0.01, 900.0, "enc+finetune goes on with 1,036 training rows, images at 128 px"),
    (3.0, 900.0, "enc+finetune: rows and images as before: 5 steps only; --time 27m would do"),
    (3.0, -100.0, "enc+finetune: rows and images as before: 5 steps only; --time 29m would do"),
    (0.01, 5.0, "enc+finetune: rows and images as before: there is no time for a full run; give more --time"),
])  # fmt: skip
def test_a_fine_tuned_network_follows_its_probe_to_more_rows_and_larger_images_where_there_is_time(
    step: float, left: float, told: str, tmp_path: Path
):
    session = probing(tmp_path, probe_of(0.2, 96))
    session.clock.before += 900.0 - left
    before = session.state.chosen["enc+finetune"] = replace(session.state.chosen["enc+finetune"], lr=0.0003)
    session.add(before.candidate)
    session.state.paces[before.size] = FAST
    members.add_finetuned(session, Stages(4.0, 16.0, 1, 2))
    assert session.state.chosen["enc+finetune"] == before and not session.state.story, "its probe is as it was"
    session.state.probes = [probe_of(0.8, 128)]
    (probe,) = session.runs.seed(Setting(probe_of(0.8, 128).candidate, 0.0), 0, 0.0)
    finish(session.study, probe, 0.9)
    session.pool.each = lambda task, arguments, within: [(step, 0.05, 0.1)] * len(arguments)  # type: ignore[method-assign, assignment]
    members.add_finetuned(session, Stages(4.0, 16.0, 1, 2))
    after, (_, sentence) = session.state.chosen["enc+finetune"], session.state.story[-1]
    moved = "goes on" in told
    assert sentence == told and (after.candidate.share, after.candidate.img_size) == (
        (0.8, 128) if moved else (0.2, 96)
    )
    assert after.lr == 0.0003 and session.learnt[-1] == session.study.candidates[-1] == after.candidate


def test_runs_that_started_from_other_weights_than_the_rest_are_left_out(tmp_path: Path):
    study = make_study(tmp_path, {"mlp": 0.9}, seeds=2)
    replace(study, candidates=[replace(study.candidates[0], start="runs/enc", weights="aa+words")]).save()
    for job, digest in zip(study.jobs, ("aa", "bb"), strict=True):
        path = study.run_folder(job).path / "record.json"
        record = json.loads(path.read_text())
        record["source"]["start"] = {"folder": "runs/enc", "digest": digest}
        path.write_text(json.dumps(record))
    found = collect(tmp_path)
    assert [result.finished for result in found.results] == [True, False]
    assert "other weights than the rest, as runs/enc was changed" in found.problems[0]


def test_further_seeds_that_are_asked_for_are_made_rather_than_longer_runs(tmp_path: Path):
    """Three seeds of runs of 4 s are there; there is time for two more of these, and none for five of longer ones."""
    session, before = under_way(100.0, 1.0, tmp_path), Stages(1.0, 4.0, 3, 3)
    session.state.stages, session.state.total, session.before = before, 500.0, 3
    session.state.chosen = {"mlp": session.usual(session.learnt[0])}
    each = sum(pace.seconds(4.0) for pace in session.paces()) / session.workers
    session.asked = replace(session.asked, seeds=5)
    session.clock.before = 0.0
    session.clock.started = time.perf_counter() - (session.clock.total - session.clock.reserve - 2.2 * each)
    assert planned(session) == replace(before, seeds=5)
    session.state.stages, session.state.total = before, 500.0
    session.asked = replace(session.asked, seeds=3)
    assert planned(session).full >= before.full and session.state.stages.seeds <= 3


def test_a_comparison_killed_before_settings_were_chosen_has_no_leaderboard_to_stay(short: None, tmp_path: Path):
    with pytest.raises(Killed):
        compare(QUESTION, tmp_path, "weft compare", killed_at("so far: "))
    assert json.loads((tmp_path / FILE).read_text())["led"] == 0 and listed(tmp_path)
    said: list[str] = []
    study = compare(QUESTION, tmp_path, "weft compare", said.append)
    assert study.jobs and listed(tmp_path) == names(study)
    assert json.loads((tmp_path / FILE).read_text())["led"] == 2
    assert json.loads((tmp_path / "study.json").read_text())["spent"] > 0
