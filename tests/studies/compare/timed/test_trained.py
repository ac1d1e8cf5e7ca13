"""Networks on the embeddings of a trained encoder among the candidates of a comparison by time."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from studies.fabricated import facts, finish, make_study
from training.encoders import LENGTH, make_encoder
from training.runs import sentences
from weft.data.config import AugmentConfig, TransformConfig
from weft.errors import WeftError
from weft.studies.compare import trained
from weft.studies.compare.candidates import Candidate
from weft.studies.compare.comparison import compare
from weft.studies.compare.config import ComparisonConfig
from weft.studies.compare.progress import unwatched
from weft.studies.compare.run_configs import FINETUNING_RATE, run_config, with_fraction
from weft.studies.compare.timed import members, plan
from weft.studies.compare.timed.clock import Clock, Gate
from weft.studies.compare.timed.full_runs import learning_curve
from weft.studies.compare.timed.layout import Stages
from weft.studies.compare.timed.members import embedded
from weft.studies.compare.timed.pace import Pace
from weft.studies.compare.timed.session import Session
from weft.studies.compare.timed.sizes import other_settings
from weft.studies.compare.timed.state import Setting, State
from weft.studies.compare.trained import HEADS, Probe, heads
from weft.studies.engine import tasks
from weft.studies.head_comparison import head_configs
from weft.studies.results.load import collect
from weft.studies.results.summary import draw_report
from weft.training.config import OptimisationConfig, ReadingConfig, RunConfig
from weft.training.finetuning.config import FinetuneConfig

pytestmark = pytest.mark.usefixtures("quick_workers")

PROBE = Probe(Candidate("encoder+probe", "encoder+logistic", "hybrid", start="encoder", share=0.5), 60.0, 0.1)
TEXTS = replace(facts(), modality="text")


def session_of(folder: Path, answer: Any = (1, 2), left: float = 900.0, modality: str = "text") -> Session:
    """A comparison of one network and one probe, whose worker answers what it is asked for."""

    def first(task: object, config: FinetuneConfig, threads: int, encoders: int, within: float) -> Any:
        assert within == pytest.approx(left / 4, abs=1), "they have a quarter of the time that is left"
        assert config.start == "encoder" and config.reading.train_fraction == 0.5 and (threads, encoders) == (2, 1)
        if isinstance(answer, Exception):
            raise answer
        return answer

    study = make_study(folder, {"gmlp": 0.9}, seeds=1)
    study = replace(study, facts=replace(facts(), modality=modality), candidates=[Candidate("gmlp", "mlp", "mlp")])
    question = ComparisonConfig(source="photos", time="1000s")
    pool: Any = SimpleNamespace(workers=[None, None], threads=1, cores=2, settled=False, first=first)
    clock, state = Clock(1000.0, 0.0, time.perf_counter() - (985.0 - left)), State(probes=[PROBE])
    session = Session(question, question, None, study, pool, state, clock, lambda sentence: None, unwatched, print)
    session.state.paces[session.usual(study.candidates[0]).size] = Pace(0.01, 0.05, 0.1)
    return session


def test_embeddings_are_computed_once_and_kept_in_mind(tmp_path: Path):
    session = session_of(tmp_path)
    found = [setting.candidate for setting in embedded(session, 0, PROBE)]
    assert [candidate.name for candidate in found] == ["encoder+gmlp", "encoder+tmlp", "encoder+amlp"]
    assert all(candidate.layers == (1, 2) and candidate.share == 0.5 for candidate in found)
    assert session.state.probes == [replace(PROBE, layers=(1, 2))] and "about 30 s" in session.state.story[-1][1]
    session.pool = SimpleNamespace(first=lambda *_: pytest.fail("they are there"))  # type: ignore[assignment]
    assert len(embedded(session, 0, session.state.probes[0])) == 3
    session.add(found[1])
    assert [s.candidate.name for s in embedded(session, 0, session.state.probes[0])] == ["encoder+gmlp", "encoder+amlp"]


@pytest.mark.parametrize(("left", "share"), [(900.0, 0.5), (100.0, 0.2)])
def test_networks_on_embeddings_follow_their_probe_to_more_rows(left: float, share: float, tmp_path: Path):
    session = session_of(tmp_path, left=left)
    fewer = heads(TEXTS, replace(PROBE, candidate=replace(PROBE.candidate, share=0.2), layers=(1, 2)))
    for head in fewer:
        session.add(head)
        session.state.chosen[head.name] = replace(session.usual(head), lr=0.003)
        session.state.paces[session.usual(head).size] = Pace(0.01, 0.05, 0.1)
    session.pool.each = lambda task, arguments, within: [(0.01, 0.05, 0.1)] * len(arguments)  # type: ignore[assignment, method-assign]
    members.add_finetuned(session, Stages(1.0, 4.0, 1, 1))
    chosen = [session.state.chosen[head.name] for head in fewer]
    assert {setting.candidate.share for setting in chosen} == {share} and {setting.lr for setting in chosen} == {0.003}
    assert [candidate.name for candidate in session.learnt].count("encoder+gmlp") == 1
    assert any("rows and images as before: embeddings take 30 s" in told for _, told in session.state.story) == (
        left < 900
    )


@pytest.mark.parametrize(("validation", "there"), [(0.05, True), (30.0, True), (60.0, False)])
def test_a_trained_network_whose_runs_would_be_mostly_judged_is_left_out(
    validation: float, there: bool, tmp_path: Path
):
    """Long texts take so long to evaluate that training would be a small part of what its runs take from others."""
    session = session_of(tmp_path)
    session.pool.each = lambda task, arguments, within: [(0.01, validation, 0.1)] * len(arguments)  # type: ignore[assignment, method-assign]
    members.add_finetuned(session, Stages(1.0, 4.0, 1, 1))
    assert ("encoder+gmlp" in session.names) is there
    why = "left out: encoder+gmlp: a run takes 65 s for 4 s of training, the rest is judging"
    assert any(sentence.startswith(why) for _, sentence in session.state.story) is not there


def test_on_a_cluster_embeddings_have_the_cores_of_one_worker(tmp_path: Path):
    session, asked = session_of(tmp_path), []
    session.pool.settled = True
    session.pool.first = lambda task, config, *how, within: asked.append(how) or (1, 2)  # type: ignore[assignment, method-assign, func-returns-value]
    assert len(embedded(session, 0, PROBE)) == 3
    assert asked == [(1, 1)] and "about 60 s" in session.state.story[-1][1]


def test_what_there_is_no_time_for_or_cannot_be_is_left_out_with_a_note(tmp_path: Path):
    session = session_of(tmp_path / "late", left=100.0)
    assert embedded(session, 0, PROBE) == []
    assert "embeddings take 30 s; give more --time" in session.state.story[-1][1]
    session = session_of(tmp_path / "odd", WeftError("--frozen needs an encoder such as BERT"))
    assert embedded(session, 0, PROBE) == []
    assert session.state.story[-1][1].startswith("left out: encoder+gmlp, encoder+tmlp, encoder+amlp: --frozen needs")
    assert embedded(session_of(tmp_path / "photos", modality="image"), 0, PROBE) == []


@pytest.mark.parametrize("change", [{}, {"model": "encoder"}])
def test_trained_networks_learn_from_no_more_of_the_source_than_was_asked_for(change: dict[str, Any]):
    """A comparison on a fifth of the source counts its rows; a candidate's share is of these."""
    question = ComparisonConfig(source="texts", reading=ReadingConfig(train_fraction=0.2))
    config = run_config(question, replace(PROBE.candidate, share=0.5, **change), 0, 1000, 50)
    assert config.reading.train_fraction == pytest.approx(0.1)
    assert with_fraction(config, 0.3).reading.train_fraction == pytest.approx(0.03)


def test_the_plan_has_room_for_embeddings_and_what_stands_on_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    found = []
    monkeypatch.setattr(plan, "lay_out", lambda paces, room, *_: found.append((len(paces), room.left)) or "stages")
    for name in ("image", "text"):
        plan.laid_out(session_of(tmp_path / name, modality=name))
    session = session_of(tmp_path / "more")
    session.state.chosen = {"gmlp": session.usual(session.learnt[0])}  # by a session of fewer rows
    plan.laid_out(session)
    (images, left), (texts, less), (chosen, same) = found
    assert chosen == 1 and same == pytest.approx(less, abs=1), "the embeddings of more rows take their time, too"
    assert (images, texts) == (1 + 1, 1 + 1 + len(HEADS)) and less == pytest.approx(left - 30, abs=1)


def test_images_of_a_fine_tuned_network_are_varied_as_asked_and_its_rates_tried_beside_a_given_one(tmp_path: Path):
    question = ComparisonConfig(
        source="photos", augment=AugmentConfig(flip=True), optimisation=OptimisationConfig(opt="adamw", lr=0.01)
    )
    tuned = trained.finetuned(PROBE.candidate)
    config = run_config(question, tuned, 0, 1000, 50)
    assert config.augment.flip is True and config.optimisation.lr == FINETUNING_RATE
    assert len({setting.lr for setting in other_settings(question, tuned, facts(), 3, None)}) == 2
    session, told = session_of(tmp_path, modality="image"), list[str]()
    session.asked, session.tell = question, told.append
    plan.announce(session, Stages(0.1, 1.0, 1, 2))
    assert any(line.startswith("  --lr is of networks from scratch alone") for line in told), "from which --opt follows"
    session.asked, session.state.probes = replace(question, optimisation=OptimisationConfig(opt="muon")), [PROBE]
    told.clear()
    plan.announce(session, Stages(0.1, 1.0, 1, 2))
    assert not any("from scratch alone" in line for line in told)


def test_a_network_on_embeddings_is_trained_as_worked_best(tmp_path: Path):
    head = heads(TEXTS, replace(PROBE, layers=(1, 2, 3)))[2]
    config = run_config(ComparisonConfig(source="texts"), head, 0, 1000, 50)
    assert isinstance(config, FinetuneConfig) and config.thawing.frozen and config.thawing.layers == (1, 2, 3)
    assert (config.model, config.network) == ("amlp_text_tiny", {"drop_rate": 0.3})
    optimisation = config.optimisation
    assert (optimisation.lr, optimisation.weight_decay, optimisation.model_ema_decay) == (1e-3, 0.05, 0.998)
    assert config.reading.train_fraction == 0.5 and config.duration.steps == 50


def test_networks_on_embeddings_are_called_as_in_the_table_of_all_of_them():
    table = head_configs(FinetuneConfig(start="encoder"))
    for head in heads(TEXTS, PROBE):
        name = head.name.removeprefix("encoder+")
        assert (table[name].model, {**table[name].network, "drop_rate": 0.3}) == (head.model, head.network)


def test_networks_on_embeddings_stand_beside_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(trained, "HEADS", {"tmlp": HEADS["tmlp"]})
    monkeypatch.setattr(members, "FINETUNING_STEPS", 1)
    monkeypatch.setattr(members, "BACKWARD", 1e9)  # which leaves the fine-tuned network out
    monkeypatch.setattr(members, "seconds", lambda text: 1000.0)  # for features, however busy the machine is
    encoder, texts = make_encoder(tmp_path / "encoder"), tmp_path / "texts"
    texts.mkdir()
    head, *lines = sentences().read_text().splitlines()
    for name, rows in (("train", lines[:200]), ("test", lines[200:260])):
        (texts / f"{name}.csv").write_text("\n".join([head, *rows]) + "\n")
    question = ComparisonConfig(
        source=str(texts), models="conv_text", match="time", amount="0.1s", seeds=1, trials=1, controls=False,
        baseline=False, pretrained=False, start=(str(encoder),), jobs=1, transform=TransformConfig(max_length=LENGTH),
    )  # fmt: skip
    said: list[str] = []
    study = compare(question, tmp_path / "out", "weft compare", said.append)
    names = {candidate.name for candidate in study.candidates}
    assert names == {"conv_text", "encoder+probe", "encoder+tmlp"}, said
    results = {result.candidate: result for result in collect(tmp_path / "out").results}
    assert all(results[name].finished for name in names)
    record = results["encoder+tmlp"].record or {}
    assert record["config"]["thawing"]["layers"] == [1, 2, 3] and record["config"]["network"] == {"drop_rate": 0.3}
    probed = results["encoder+probe"].record or {}
    assert record["multiply_adds"] > probed["multiply_adds"], "a text goes through the encoder, too"
    summary = draw_report(tmp_path / "out")
    row = next(row for row in summary["rows"] if row["name"] == "encoder+tmlp")
    assert "--frozen --layers 1 2 3" in row["commands"][0] and row["speed"] and row["latency"]
    assert summary["verdicts"][0]["question"] == "pre-training"
    again = compare(question, tmp_path / "out", "weft compare", said.append)
    assert [job.name for job in again.jobs] == [job.name for job in study.jobs]


def test_a_streamed_source_is_not_probed(tmp_path: Path):
    """Features are kept for rows in memory: told before a run of it fails."""
    texts = ["red day", "blue night", "red sun", "blue moon"] * 10
    pq.write_table(pa.table({"text": texts, "label": ["r", "b"] * 20}), tmp_path / "train.parquet", row_group_size=8)
    config = RunConfig(source=str(tmp_path), reading=ReadingConfig(stream=True))
    with pytest.raises(WeftError, match=r"is streamed.*raise --memory"):
        tasks.probe_seconds(config, "encoder", 1)


@pytest.mark.parametrize(("fitting", "tried"), [(0.0, [224, 160, 128, 96]), (1.0, [224])])
def test_regressions_are_timed_once_and_end_the_search_where_they_alone_are_too_long(fitting: float, tried: list[int]):
    """Smaller images do not shorten them."""
    sides, known = list[Any](), list[Any]()

    def first(task: object, *given: Any, within: float | None = None) -> Any:
        if task is tasks.trained_side:
            return 224
        config, _, _, before, _ = given
        sides.append(config.transform.img_size)
        known.append(before)
        return 1.0, fitting

    pool: Any = SimpleNamespace(first=first, threads=1)
    question, images = ComparisonConfig(source="photos", time="30s"), replace(facts(), modality="image", rows=2000)
    probe = trained.fitting_probe(question, images, pool, "efficientnet_lite0", within=50.0)
    assert probe is None and sides == tried and known == [None, *[fitting] * (len(tried) - 1)]


def probing_images(folder: Path, late: bool, monkeypatch: pytest.MonkeyPatch) -> tuple[Session, list[Any]]:
    """A comparison of images whose probe has not been run yet, and what is run."""
    session, begun = session_of(folder, modality="image"), list[Any]()
    session.pool.each = lambda task, arguments, within: [(0.01, 0.05, 0.1)] * len(arguments)  # type: ignore[assignment, method-assign]

    def run(jobs: list[Any], stage: str, gate: Gate) -> list[Any]:
        begun.append((jobs, gate))
        return jobs if late else []

    monkeypatch.setattr(session, "run", run)
    return session, begun


@pytest.mark.parametrize("late", [False, True])
def test_the_features_that_a_head_starts_from_are_read_by_the_probe_before_steps_are_timed(
    late: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    session, begun = probing_images(tmp_path, late, monkeypatch)
    members.add_finetuned(session, Stages(100.0, 400.0, 1, 1))
    ((jobs, gate),) = begun
    assert [job.candidate for job in jobs] == ["encoder+probe"]
    assert gate.end == pytest.approx(session.clock.spent() + 1.5 * PROBE.seconds, abs=1), (
        "and are not waited for longer"
    )
    assert ("encoder+finetune" in session.names) is not late
    told = [sentence for _, sentence in session.state.story]
    assert told == (
        ["left out: encoder+finetune: the features that its head starts from take too long; give more --time"]
        if late
        else []
    )


def test_features_are_not_read_for_a_head_that_is_drawn_or_once_they_are_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    session, begun = probing_images(tmp_path / "many", True, monkeypatch)
    session.study = replace(session.study, facts=replace(session.study.facts, rows=50_000))
    assert members.features_are_there(session, PROBE)
    session, begun = probing_images(tmp_path / "there", True, monkeypatch)
    finish(session.study, session.runs.seed(Setting(PROBE.candidate, 0.0), 0, 0.0)[0], 0.9)
    assert members.features_are_there(session, PROBE) and not begun


def test_a_learning_curve_leaves_alone_what_learns_from_fewer_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    session, shares = session_of(tmp_path), []
    own, head = session.learnt[0], heads(TEXTS, replace(PROBE, layers=(1,)))[0]
    chosen = {candidate.name: session.usual(candidate) for candidate in (own, replace(head, share=0.2))}
    seed = lambda setting, seed, full, share: shares.append((setting.candidate.name, share)) or []  # noqa: E731
    monkeypatch.setattr(session.runs, "seed", seed)
    monkeypatch.setattr(session, "run", lambda jobs, stage: [])
    learning_curve(session, Stages(1.0, 4.0, 1, 1), chosen, [0])
    assert shares == [("gmlp", 0.1), ("encoder+gmlp", 0.1), ("gmlp", 0.3)]
