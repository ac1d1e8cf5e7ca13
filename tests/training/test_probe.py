"""What is predicted and decided before step 0: memory, time, form, rate."""

from __future__ import annotations

import dataclasses
import math
import runpy
import shutil
import time
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

from training.runs import Stop, assert_same_bits, configure, last_checkpoint, train
from weft import machine
from weft.data.batch.loader import Batch
from weft.errors import WeftError
from weft.training.config import DurationConfig
from weft.training.loop import events, loop
from weft.training.loop.display import Silent, duration
from weft.training.loop.progress import Best
from weft.training.optim.rate_finder import draw, find_rate
from weft.training.run import lifecycle, memory, probe, rehearsal
from weft.training.run.distributed import SingleProcess
from weft.training.run.plan import Timing
from weft.training.run.rehearsal import Answer
from weft.training.storage.run_folder import RunFolder


def test_saved_activations_are_counted_by_example() -> None:
    """A linear layer keeps its input, ReLU its output: 8 × 100 and 8 × 50 floats a batch of eight."""
    net = nn.Sequential(nn.Linear(100, 50), nn.ReLU(), nn.Linear(50, 10))
    batch = Batch({"input": torch.randn(8, 100)}, torch.zeros(8), torch.arange(8), 8)
    assert memory.bytes_per_example(net, batch) == pytest.approx(4 * (100 + 50), rel=0.01)


def test_inputs_go_where_the_network_is() -> None:
    """Batches are made in the memory of the machine; `meta` stands for a GPU."""
    seen: list[str] = []

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.empty(3, device="meta"))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            seen.append(x.device.type)
            return x * self.weight

    memory.bytes_per_example(Net(), Batch({"x": torch.randn(8, 3)}, torch.zeros(8), torch.arange(8), 8))
    assert seen == ["meta", "meta"]


def test_memory_that_will_not_suffice_is_refused_with_a_batch_that_would(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = configure("resnet", batch_size=256, steps=5)
    seen = {}
    original = memory.check

    def check(net: nn.Module, per_example: float, examples: int, states: int, parts: int) -> int:
        room = memory.predicted(net, per_example, 100, states) - memory.resident()
        monkeypatch.setattr(memory, "available", lambda *_: int(room))
        seen["need"] = per_example
        return original(net, per_example, examples, states, parts)

    monkeypatch.setattr(memory, "check", check)
    with pytest.raises(WeftError, match=r"--batch-size 64, or keep the batch and use --grad-accum-steps 4"):
        lifecycle.start(config, tmp_path / "run", Silent())
    assert seen["need"] > 0
    assert not (tmp_path / "run").exists(), "a refused run leaves no folder"
    lifecycle.start(configure("resnet", batch_size=64, steps=5), tmp_path / "fits", Silent())


def test_the_predicted_memory_is_near_the_peak(tmp_path: Path) -> None:
    record = train(configure("resnet", batch_size=512, steps=5), tmp_path / "run")
    assert 0.5 < record["plan"]["memory"] / record["peak_memory"] < 1.5


def test_the_predicted_memory_counts_the_copies_that_a_checkpoint_takes(tmp_path: Path) -> None:
    """A wide network on small batches needs most of its memory when it is saved."""
    machine.forget_peak()
    config = lifecycle.replace(configure("mlp", steps=5, checkpoint_every=2), network={"hidden": [3000, 3000]})
    record = train(config, tmp_path / "run")
    assert 0.9 < record["plan"]["memory"] / record["peak_memory"] < 1.3


@pytest.mark.parametrize(("opt", "average"), [("adamw", 0.0), ("sgd", 0.9), ("momentum", 0.0)])
def test_later_checkpoints_are_larger_as_foreseen(opt: str, average: float, tmp_path: Path) -> None:
    """By the optimiser's state and the best weights, which that of step 0 has not."""
    config = lifecycle.replace(configure(steps=4, opt=opt, model_ema_decay=average), network={"hidden": [512]})

    def size(step: int) -> int:
        return (tmp_path / "run" / "checkpoints" / f"{step:08d}" / "state.safetensors").stat().st_size

    class Weigh(Silent):
        def begin(self, *_: object) -> None:
            self.first = size(0)

    display = Weigh()
    lifecycle.start(config, tmp_path / "run", display)
    foreseen = probe.growth(SimpleNamespace(config=config, ema=average or None))  # type: ignore[arg-type]
    assert size(4) / display.first == pytest.approx(foreseen, rel=0.02)


def test_a_time_budget_becomes_steps_evaluations_and_checkpoints_included() -> None:
    config = configure()
    config = lifecycle.replace(
        config, duration=DurationConfig(time="100s"), execution=lifecycle.replace(config.execution, checkpoint_every=10)
    )
    plan = probe.schedule(probe.draft(config, 50, ""), config, step=0.1, evaluation=1.0, saving=0.5, rest=90.0)
    each = 0.1 + 1.0 / plan.eval_every + 0.5 / 10
    assert plan.steps == round((90 - 0.5) / each) and plan.limit == 89.5
    assert plan.seconds == pytest.approx(plan.steps * each)
    assert plan.cost == pytest.approx(plan.seconds / 3600 * 0.1)


@pytest.mark.parametrize(("saving", "step"), [(0.01, 0.1), (2.0, 0.1), (0.01, 300.0)])
def test_the_default_checkpoint_interval_costs_less_than_a_hundredth(saving: float, step: float) -> None:
    config = configure()
    config = lifecycle.replace(config, execution=lifecycle.replace(config.execution, checkpoint_every=None))
    plan = probe.schedule(probe.draft(config, 50, ""), config, step, 0.0, saving, None)
    assert saving / (plan.checkpoint_every * step) < 0.01


@pytest.mark.parametrize("timing", [None, Timing(0.01, 0.02)])
def test_a_plan_that_is_known_saves_the_probe_and_changes_nothing(
    timing: Timing | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As for the second seed of a candidate, or where its steps were timed before; killed before its first checkpoint
    it can be resumed."""
    config = configure(steps=30, log_every=10, checkpoint_every=20)
    measured = train(config, tmp_path / "measured")
    plan = lifecycle.RunFolder(tmp_path / "measured").plan()
    monkeypatch.setattr(probe, "measure", lambda *_: pytest.fail("the plan was known"))
    assert lifecycle.start(config, tmp_path / "known", Stop(10), known=timing or plan).record is None
    shutil.rmtree(tmp_path / "known" / "checkpoints" / "00000010")
    assert lifecycle.resume(tmp_path / "known", Silent()).record["metrics"] == measured["metrics"]  # type: ignore[index]
    assert_same_bits(last_checkpoint(tmp_path / "known"), last_checkpoint(tmp_path / "measured"))


def test_the_probe_of_a_short_run_is_short() -> None:
    def steps(duration: DurationConfig) -> int:
        config = dataclasses.replace(configure(), duration=duration)
        return probe.probe_steps(SimpleNamespace(config=config, plan=probe.draft(config, 50, "")))  # type: ignore[arg-type]

    assert [steps(DurationConfig(steps=number)) for number in (10, 300, 5000)] == [3, 12, 20]
    assert steps(DurationConfig(time="5s")) == 20, "its steps come from the probe"


EAGER = 20.0  # seconds of a step


class Compiler:
    """Stands for torch.compile: a step takes EAGER seconds, and `ratio` of it compiled, as another process finds."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, ratio: float) -> None:
        self.calls, self.tried = 0, 0

        def compile_(net: nn.Module) -> None:
            self.calls += 1

        def try_steps(*_: object) -> Answer:
            self.tried += 1
            return Answer(True, ratio=ratio, first=100.0)

        monkeypatch.setattr(nn.Module, "compile", compile_)
        monkeypatch.setattr(probe, "mean_step", lambda *_, **__: EAGER)
        monkeypatch.setattr(rehearsal, "try_steps", try_steps)


@pytest.mark.parametrize(("ratio", "pays"), [(0.8, True), (0.95, False), (1.1, False)])
def test_compiling_is_accepted_when_it_pays_and_never_measured_again(
    ratio: float, pays: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """70 steps of 20 s each: long enough to try; 280 s saved are more than the 100 that the compiler took, 70 less."""
    compiler = Compiler(monkeypatch, ratio)
    assert lifecycle.start(configure(steps=70, compile=None, log_every=10), tmp_path, Stop(50)).record is None
    plan = lifecycle.RunFolder(tmp_path).plan()
    assert plan is not None and plan.compile is pays
    assert (compiler.tried, compiler.calls) == (1, int(pays))
    record = lifecycle.resume(tmp_path, Silent()).record
    assert record is not None and record["plan"]["compile"] is pays
    assert compiler.tried == 1
    assert compiler.calls == 2 * pays, "a resumed run is compiled as its plan says"


def test_compiling_for_text_is_tried_only_in_runs_four_times_as_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its batches differ in width, so torch compiles several times."""
    compiler = Compiler(monkeypatch, 0.5)
    lifecycle.start(configure("text", steps=230, compile=None), tmp_path / "short", Stop(2))
    assert compiler.tried == 0
    lifecycle.start(configure("text", steps=250, compile=None), tmp_path / "long", Stop(2))
    assert compiler.tried == 1


def test_compiling_is_not_even_tried_for_a_short_run(tmp_path: Path) -> None:
    config = configure(steps=5)
    config = lifecycle.replace(config, execution=lifecycle.replace(config.execution, compile=None))
    assert train(config, tmp_path / "run")["plan"]["compile"] is False


def valley(lr: float) -> float:
    """A loss that falls as the rate rises to 0.02, then rises, and blows up at 0.3."""
    return 1 + math.log10(lr / 0.02) ** 2 if lr < 0.3 else 1e6


def test_the_rate_finder_stays_below_the_rate_that_blows_up() -> None:
    lr, curve = find_rate(lambda _, lr: valley(lr), usual=0.01)
    assert 0.002 <= lr < 0.01, "about a tenth of the rate of the lowest loss"
    assert len(curve) < 100, "it must stop when the loss blows up"
    assert "<- chosen" in draw(curve, lr)


@pytest.mark.parametrize("steps", [20, 50])
def test_a_rate_is_found_in_fewer_steps_too(steps: int) -> None:
    """They span the same rates; a loss that is smoothed over as many decades is lowest near the same one."""
    lr, curve = find_rate(lambda _, lr: valley(lr), usual=0.01, steps=steps)
    usual, _ = find_rate(lambda _, lr: valley(lr), usual=0.01)
    assert lr == pytest.approx(usual, rel=0.6) and len(curve) < steps


class Slow:
    """A clock that only updates move: by so many seconds an example."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, each: float) -> None:
        self.now, self.sizes = 1000.0, []
        original = probe.update

        def update(run: Any, batch: Any, *arguments: Any) -> Any:
            self.now += each * len(batch.index)
            self.sizes.append(len(batch.index))
            return original(run, batch, *arguments)

        monkeypatch.setattr(time, "perf_counter", lambda: self.now)
        monkeypatch.setattr(probe, "update", update)


@pytest.mark.parametrize(("asked", "searched"), [("100s", 25), ("400s", 100)])
def test_the_search_for_a_rate_takes_a_tenth_of_the_time(
    asked: str, searched: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Steps of 32 examples take 0.4 s: 25 of them in a tenth of 100 s."""
    given: list[int] = []
    monkeypatch.setattr(probe, "find_rate", lambda step, usual, steps: given.append(steps) or (1e-3, [(1e-3, 1.0)]))
    clock = Slow(monkeypatch, 0.4 / 32)
    config = lifecycle.replace(configure(lr="auto"), duration=DurationConfig(time=asked))
    lifecycle.start(config, tmp_path / "run", Silent(), began=clock.now, until=1)
    assert given == [searched]


def test_a_search_for_a_rate_that_does_not_fit_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Slow(monkeypatch, 1 / 32)
    config = lifecycle.replace(configure(lr="auto"), duration=DurationConfig(time="100s"))
    with pytest.raises(WeftError, match=r"--lr auto takes 20 steps at least, and 10 fit .* --time 100s; give a rate"):
        lifecycle.start(config, tmp_path / "run", Silent(), began=clock.now)


def test_no_rate_is_looked_for_where_no_steps_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The search once took a hundred whole steps before the time was found to be too short for ten."""
    clock = Slow(monkeypatch, 1.0)
    config = lifecycle.replace(configure(lr="auto"), duration=DurationConfig(time="20s"))
    with pytest.raises(WeftError, match="too few steps"):
        lifecycle.start(config, tmp_path / "run", Silent(), began=clock.now)
    assert set(clock.sizes) <= {2, 4}


def test_a_loss_that_is_never_finite_gives_the_smallest_rate() -> None:
    lr, curve = find_rate(lambda number, lr: math.nan, usual=1.0)
    assert (lr, curve) == (1e-3, [])


def test_lr_auto_without_a_finite_loss_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = configure(steps=10)
    config = lifecycle.replace(config, optimisation=lifecycle.replace(config.optimisation, lr="auto"))
    monkeypatch.setattr(probe, "update", lambda *_: (torch.tensor(math.nan), {}, True))
    with pytest.raises(WeftError, match=r"--lr auto finds no rate: the loss is not finite"):
        lifecycle.start(config, tmp_path / "run", Silent())
    assert not (tmp_path / "run").exists()


def test_lr_auto_trains_with_the_rate_it_found(tmp_path: Path) -> None:
    said: list[str] = []

    class Listen(Silent):
        def say(self, sentence: str) -> None:
            said.append(sentence)

    config = configure(steps=10)
    config = lifecycle.replace(config, optimisation=lifecycle.replace(config.optimisation, lr="auto"))
    record = lifecycle.start(config, tmp_path / "run", Listen()).record
    assert record is not None
    assert any("<- chosen" in sentence for sentence in said)
    assert f"learning rate {record['plan']['lr']:g}" in " ".join(said)
    assert 1e-6 < record["plan"]["lr"] < 0.1


def test_plans_survive_the_way_to_disk(tmp_path: Path) -> None:
    train(configure(steps=5), tmp_path / "run")
    plan = lifecycle.run_folder.open_run(tmp_path / "run").plan()
    assert plan is not None and dataclasses.asdict(plan)["steps"] == 5


@pytest.mark.parametrize(
    ("seconds", "words"), [(4.21, "4.2 s"), (59, "59 s"), (200, "3 min 20 s"), (7500, "2 h 5 min")]
)
def test_durations_as_people_write_them(seconds: float, words: str) -> None:
    assert duration(seconds) == words


def test_a_plan_that_is_too_slow_is_revised_until_its_time_is_kept():
    config = lifecycle.replace(configure(), duration=DurationConfig(time="100s"))
    plan = probe.schedule(probe.draft(config, 50, ""), config, step=0.1, evaluation=0.0, saving=0.0, rest=90.0)
    step, passed, looked, places = 0, 0.0, 0.0, [plan.schedule_step(0)]
    while step < plan.steps:
        step, passed = step + 1, passed + (0.3 if step > 200 else 0.15)  # slower than measured, then much slower
        places.append(plan.schedule_step(step))
        if plan.due_revision(step, passed, looked):
            plan, looked = plan.revision(step, passed, passed), passed
            assert plan.schedule_step(step) == pytest.approx(places[-1])
    assert passed == pytest.approx(90, rel=0.03) and step < plan.schedule_length == 900
    assert all(after > before for before, after in pairwise(places)) and places[-1] == pytest.approx(900)


@pytest.mark.parametrize("times", [1, 3, 8, 20, 100])
def test_steps_many_times_as_long_as_those_of_the_probe_keep_the_time(times: int):
    """An eighth of the steps that were planned would take all of the time, or twelve times as long."""
    config = lifecycle.replace(configure(), duration=DurationConfig(time="20s"))
    plan = probe.schedule(probe.draft(config, 50, ""), config, step=0.01, evaluation=0.0, saving=0.0, rest=20.0)
    step, passed, looked = 0, 0.0, 0.0
    while step < plan.steps:
        step, passed = step + 1, passed + 0.01 * times
        if plan.due_revision(step, passed, looked):
            plan, looked = plan.revision(step, passed, passed), passed
    assert passed == pytest.approx(20, rel=0.03)


@pytest.mark.parametrize(
    ("step_seconds", "evaluation"), [(0.05, 0.2), (0.05, 3.0), (2.5, 0.2), (2.5, 1.0), (4.4, 0.2), (4.4, 1.0)]
)
def test_few_long_steps_and_evaluations_unlike_the_measured_one_keep_the_time(step_seconds: float, evaluation: float):
    config = lifecycle.replace(configure(), duration=DurationConfig(time="60s"))
    draft = lifecycle.replace(probe.draft(config, 8, ""), last_evaluations=2.0)
    rest = 60 - 3 * 0.5  # an evaluation takes half a second in the probe: that of the last step, and two after it
    plan = probe.schedule(draft, config, step=step_seconds, evaluation=0.5, saving=0.0, rest=rest)
    step, passed, evaluating, looked = 0, 0.0, 0.0, 0.0
    while step < plan.steps:
        step, passed = step + 1, passed + step_seconds
        if plan.due_evaluation(step):
            passed, evaluating = passed + evaluation, evaluating + evaluation
        if plan.due_revision(step, passed, looked):
            plan, looked = plan.revision(step, passed, passed - evaluating, evaluating), passed
    assert passed + 2 * evaluation == pytest.approx(60, rel=0.05)


@pytest.mark.parametrize(("passed", "more"), [(50.0, 5), (88.9, 1), (89.1, 0), (95.0, 0)])
def test_a_step_is_added_where_half_of_one_fits_at_least(passed: float, more: int):
    config = lifecycle.replace(configure(), duration=DurationConfig(time="100s"))
    plan = probe.schedule(probe.draft(config, 50, ""), config, step=1.0, evaluation=0.0, saving=0.0, rest=90.0)
    step = round(passed / 8)
    assert plan.revision(step, passed, stepping=2.0 * step if more < 5 else 8.0 * step).steps == step + more


def test_a_plan_that_goes_back_is_as_it_was_then():
    config = lifecycle.replace(configure(), duration=DurationConfig(time="100s"))
    first = probe.schedule(probe.draft(config, 50, ""), config, step=1.0, evaluation=0.0, saving=0.0, rest=90.0)
    second = first.revision(10, 20.0, 20.0)
    third = second.revision(20, 50.0, 50.0)
    assert third.gone_back(20) == third and third.gone_back(19) == second and third.gone_back(9) == first
    assert [third.gone_back(15).schedule_step(step) for step in range(16)] == [
        second.schedule_step(step) for step in range(16)
    ]


class AsItIs(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x


def test_what_is_loaded_to_judge_is_loaded_before_the_plan_and_judging_is_part_of_it(monkeypatch: pytest.MonkeyPatch):
    """Libraries of metrics that were loaded after the last step once took most of a short run on a busy machine."""
    now, judged = [100.0], []

    def judge(outputs: torch.Tensor, targets: torch.Tensor) -> None:
        now[0] += (0.0 if judged else 16.0) + 0.001 * len(outputs)
        judged.append((len(outputs), len(targets)))

    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    batch = Batch({"x": torch.zeros(8, 3)}, torch.zeros(8), torch.arange(8), 8)
    run: Any = SimpleNamespace(net=AsItIs(), validation=[batch, batch], team=SingleProcess())
    assert probe.judging_seconds(run, judge, tested=5) == pytest.approx(0.001 * 8 * 5)
    assert judged == [(8, 8), (40, 40)] and now[0] > 116


class Evaluated:
    """A run whose evaluation batches take so many seconds the first and each other time, in each format."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, first: float, **others: float) -> None:
        self.now, self.said, self.formats = 100.0, [], []
        batch = Batch({"x": torch.zeros(8, 3)}, torch.zeros(8), torch.arange(8), 8)
        display = SimpleNamespace(say=self.said.append)
        self.run: Any = SimpleNamespace(validation=[batch] * 5, team=SingleProcess(), display=display)

        def evaluate_some(run: Any, start: int, end: int) -> None:
            precision = run.team.precision
            for _ in range(start, end):
                self.now += others[precision] if precision in self.formats else first
                self.formats.append(precision)

        monkeypatch.setattr(time, "perf_counter", lambda: self.now)
        monkeypatch.setattr(probe, "evaluate_some", evaluate_some)


@pytest.mark.parametrize("first", [0.2, 0.9, 7.0])
def test_the_first_batch_of_an_evaluation_is_not_what_the_others_take(first: float, monkeypatch: pytest.MonkeyPatch):
    """It may hold a compilation, or the loading of a block."""
    evaluated = Evaluated(monkeypatch, first, float32=0.5)
    assert probe.evaluation_seconds(evaluated.run, within=10.0) == pytest.approx(5 * 0.5)
    assert len(evaluated.formats) == 1 + 2 * 4 and not evaluated.said


def test_a_batch_that_takes_a_tenth_of_the_time_is_not_evaluated_twice(monkeypatch: pytest.MonkeyPatch):
    evaluated = Evaluated(monkeypatch, 12.0, float32=0.5)
    assert probe.evaluation_seconds(evaluated.run, within=10.0) == pytest.approx(5 * 12)
    assert len(evaluated.formats) == 1 and "12 s" in evaluated.said[0]


def test_batches_of_an_evaluation_are_timed_all_over_it(monkeypatch: pytest.MonkeyPatch):
    """Texts of one batch are longer than those of another; no more are timed than there is time for."""
    now = [0.0]

    def evaluate_some(run: Any, first: int, last: int) -> None:
        now[0] += sum(0.1 * (1 + number) for number in range(first, last))

    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    monkeypatch.setattr(probe, "evaluate_some", evaluate_some)
    run: Any = SimpleNamespace(validation=range(101), team=SingleProcess())
    assert probe.evaluation_seconds(run) == pytest.approx(sum(0.1 * (1 + number) for number in range(101)), rel=0.01)
    assert probe.evaluation_seconds(run, within=8.0) == pytest.approx(101 * (0.25 + 5.15) / 2, rel=0.02)


def test_the_last_evaluations_are_timed_in_float32_whatever_the_steps_are_in(monkeypatch: pytest.MonkeyPatch):
    evaluated = Evaluated(monkeypatch, 9.0, bf16=0.5, float32=2.0)
    evaluated.run.team.use("bf16")
    evaluation = probe.evaluation_seconds(evaluated.run)
    last = probe.last_evaluations(evaluated.run, tested=10, evaluation=evaluation)
    assert evaluation == pytest.approx(5 * 0.5) and last * evaluation == pytest.approx((5 + 10) * 2.0)
    assert evaluated.run.team.precision == "bf16"
    evaluated.run.team.use("float32")
    assert probe.last_evaluations(evaluated.run, tested=10, evaluation=10.0) == pytest.approx(10 / 5)
    assert len(evaluated.formats) == 2 * (1 + 2 * 4), "what is known is not timed again"


def test_the_best_answers_on_validation_are_not_computed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Only those on test are due after the last step, and what is said of the run is what it would be otherwise."""
    computed: list[int] = []

    def counting(net: Any, batches: Any, team: Any) -> Any:
        found = events.outputs_of(net, batches, team)
        computed.append(len(found[1]))
        return found

    monkeypatch.setattr(lifecycle, "outputs_of", counting)
    kept = train(configure(steps=40), tmp_path / "kept")
    monkeypatch.setattr(events, "Best", lambda *parts: Best(*parts[:4]))
    again = train(configure(steps=40), tmp_path / "again")
    assert len(computed) == 1 + 2 and kept["learnt"] == again["learnt"]
    computed.clear()
    trial = train(configure(steps=40, judged_on="validation"), tmp_path / "trial")
    assert len(computed) == 1 and trial["learnt"] == kept["learnt"]


def test_a_plan_without_a_time_is_never_revised():
    plan = probe.draft(configure(steps=100), 50, "")
    assert not any(plan.due_revision(step, float(step), 0.0) for step in range(1, 101)) and plan.schedule_step(37) == 37


def test_a_run_keeps_its_time_when_steps_turn_out_to_be_slow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    original, measured, calls = loop.update, probe.measure, []

    def slow(*arguments: Any, **more: Any) -> Any:
        calls.append(1)
        time.sleep(0.01)
        return original(*arguments, **more)

    def limited(*arguments: Any) -> Any:
        plan = measured(*arguments)
        monkeypatch.setattr(loop, "update", slow)
        return lifecycle.replace(plan, limit=0.5)

    monkeypatch.setattr(probe, "measure", limited)
    outcome = lifecycle.start(configure(steps=400), tmp_path / "run", Silent())
    plan = RunFolder(tmp_path / "run").plan()
    assert outcome.record is not None and plan is not None and plan.revised and plan.planned == 400
    assert plan.steps == outcome.record["steps"] == len(calls) < 100


def test_a_time_too_short_for_a_handful_of_steps_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    config = lifecycle.replace(configure("resnet"), duration=DurationConfig(time="3s"))
    original = probe.update

    def slow(run: Any, batch: Any, *arguments: Any) -> Any:
        time.sleep(0.1 * len(batch.index))
        return original(run, batch, *arguments)

    monkeypatch.setattr(probe, "update", slow)
    with pytest.raises(WeftError, match=r"too few steps of resnet20_cifar .* fit into --time 3s"):
        lifecycle.start(config, tmp_path / "run", Silent())
    assert not (tmp_path / "run").exists()


def test_a_step_is_foreseen_by_what_grows_with_its_examples():
    assert probe.whole_step(0.2, 0.4, 64) == pytest.approx(0.1 * 64 / 2)  # all of it does
    assert probe.whole_step(0.5, 0.5, 64) == 0.5  # none of it: a large network's update of its weights
    assert probe.whole_step(0.5, 0.4, 64) == 0.5  # noise
    assert probe.whole_step(0.3, 0.4, 64) == pytest.approx(0.2 + 0.05 * 64 / 2)


def test_a_time_that_the_last_evaluations_eat_is_refused_by_that_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    config = lifecycle.replace(configure(), duration=DurationConfig(time="100s"))
    monkeypatch.setattr(probe, "evaluation_seconds", lambda *_: 80.0)
    with pytest.raises(WeftError, match=r"the last evaluations take \d+ s.*--test-rows"):
        lifecycle.start(config, tmp_path / "run", Silent())


@pytest.mark.parametrize(("refused", "ratio", "good"), [
    ("", 1.04, True), ("", 0.94, False), ("", 0.3, False), ("too short", 0.1, True), ("too short", 0.7, False),
    ("too short", 1.0, False),
])  # fmt: skip
def test_the_benchmark_counts_a_refusal_only_where_it_comes_early(refused: str, ratio: float, good: bool):
    place = Path(__file__).parents[2] / "benchmarks" / "budgets.py"
    assert runpy.run_path(str(place))["is_good"]({"refused": refused, "ratio": ratio}) is good
