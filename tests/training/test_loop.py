"""The step and what happens along the way: accumulation, averages, trouble, roll-backs, the curve."""

from __future__ import annotations

import json
import math
import shutil
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from training.runs import Stop, assert_same_bits, configure, curve, last_checkpoint, train
from weft.errors import WeftError
from weft.networks.registry import build
from weft.training.config import DurationConfig
from weft.training.inference.verify import verify
from weft.training.loop import loop
from weft.training.loop.display import Silent
from weft.training.loop.divergence import DivergenceMonitor, concerned
from weft.training.loop.events import ROLLBACKS, TrainingFailed
from weft.training.loop.progress import MovingAverage
from weft.training.objective import create_objective
from weft.training.run import inputs, lifecycle, probe
from weft.training.storage.checkpoints import CheckpointStore
from weft.training.storage.metrics_log import Journal, read_events


def test_micro_batches_give_the_gradient_of_the_whole_batch(tmp_path: Path) -> None:
    """Dropout and class weights included: noise is keyed by example, counts are those of the whole batch."""
    changes = {"steps": 10, "class_weights": "balanced", "smoothing": 0.1, "checkpoint_every": 10}
    train(configure("mlp", **changes), tmp_path / "whole")
    train(configure("mlp", grad_accum_steps=3, **changes), tmp_path / "parts")
    one, other = (last_checkpoint(tmp_path / name).tensors for name in ("whole", "parts"))
    for name, value in one.items():
        torch.testing.assert_close(
            other[name], value, rtol=2e-4, atol=2e-6, msg=lambda text, name=name: f"{name}: {text}"
        )


@pytest.mark.parametrize(("family", "accumulate", "said"), [("resnet", 4, 1), ("resnet", 1, 0), ("mlp", 4, 0)])
def test_batch_norm_on_micro_batches_is_told(family: str, accumulate: int, said: int, tmp_path: Path) -> None:
    display = Listen()
    record = lifecycle.start(configure(family, 3, grad_accum_steps=accumulate), tmp_path / "run", display).record
    assert sum("batch norm sees micro-batches of 8" in sentence for sentence in display.said) == said
    assert record is not None and record["checkpoint_seconds"] > 0


def test_the_average_is_the_recursion_written_out() -> None:
    net = nn.Linear(3, 2)
    ema = MovingAverage(net, 0.5)
    expected = net.weight.detach().clone()
    for step in range(5):
        with torch.no_grad():
            net.weight.add_(1.0)
        ema.update(net, step)
        decay = min(0.5, (1 + step) / (10 + step))
        expected = decay * expected + (1 - decay) * net.weight.detach()
    torch.testing.assert_close(ema.average["weight"], expected)


def test_evaluating_the_average_leaves_the_weights_alone(tmp_path: Path) -> None:
    """A run with an average takes the same course as one without; only what is kept differs."""
    train(configure(steps=20, model_ema_decay=0.9), tmp_path / "with")
    train(configure(steps=20), tmp_path / "without")
    one, other = (last_checkpoint(tmp_path / name).tensors for name in ("with", "without"))
    assert all(torch.equal(value, one[name]) for name, value in other.items() if name.startswith("model."))
    assert not torch.equal(one["ema.head.weight"], one["model.head.weight"])


def test_norms_of_every_layer_are_in_the_journal(tmp_path: Path) -> None:
    train(configure(steps=10, log_every=5), tmp_path / "run")
    event = next(event for event in read_events(tmp_path / "run" / "metrics.jsonl") if event["kind"] == "train")
    for kind in ("gradient_norm", "weight_norm", "update_norm"):
        assert event[kind].keys() == {"layers.0", "head"}
        assert all(norm > 0 for norm in event[kind].values())


def test_a_journal_that_is_resumed_holds_the_events_of_its_checkpoint(tmp_path: Path) -> None:
    journal, path = Journal(tmp_path), tmp_path / "metrics.jsonl"
    for step in range(3):
        journal.add({"kind": "train", "step": step, "loss": 1.0})
    journal.close()
    before = path.stat().st_ino
    Journal(tmp_path, 3).close()
    assert path.stat().st_ino == before, "nothing to cut, nothing written"
    Journal(tmp_path, 2).close()
    assert [event["step"] for event in read_events(path)] == [0, 1]
    assert path.stat().st_ino != before, "the shorter one is written aside, so that a kill leaves one of them whole"
    with pytest.warns(UserWarning, match="has lost 5 points"):
        lost = Journal(tmp_path, 7)
    assert lost.count == 2
    lost.close()


def test_cells_of_a_stored_curve_are_numbers_and_no_formulas(tmp_path: Path) -> None:
    event = {"kind": "evaluation", "step": 2, "validation_loss": 0.5, "validation_metric": 0.9}
    odd = [event | {name: "=cmd()"} for name in ("epoch", "train_loss", "lr", "seconds")]
    for last in odd:
        (tmp_path / "metrics.jsonl").write_text(f"{json.dumps(event)}\n{json.dumps(last)}\n")
        assert read_events(tmp_path / "metrics.jsonl") == [event]
    Journal(tmp_path, keep=1).close()
    assert (tmp_path / "summary.csv").read_bytes().splitlines()[1] == b",2,,0.5,0.9,,"


def test_a_full_disk_ends_the_curve_with_a_sentence(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal._file.close()
    journal._file = Path("/dev/full").open("a")  # noqa: SIM115 - the journal closes it
    with pytest.raises(WeftError, match=r"could not write .*metrics.jsonl.*make room and resume"):
        journal.add({"kind": "train", "step": 1})
    with pytest.raises(WeftError, match="make room and resume"):
        journal.close()


class Poison:
    """A forward hook that makes a layer's output infinite in the loop's passes after the first `at`, `times` times.

    Passes without gradient look for the layer concerned: they see what the last training pass has seen.
    """

    def __init__(self, at: int, times: int) -> None:
        self.at, self.times, self.passes, self.active, self.armed = at, times, 0, False, False

    def __call__(self, module: nn.Module, _: Any, output: torch.Tensor) -> torch.Tensor | None:
        if self.armed and module.training and torch.is_grad_enabled():
            self.passes += 1
            self.active = self.at < self.passes and self.times > 0
            self.times -= self.active
        return output * float("inf") if self.active and module.training else None


class Listen(Silent):
    """Keeps what is said."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def say(self, sentence: str) -> None:
        self.said.append(sentence)


def poisoned_run(
    folder: Path, monkeypatch: pytest.MonkeyPatch, times: int, steps: int = 30
) -> tuple[dict[str, Any], list[str]]:
    """A run whose layer `layers.0` goes infinite in step 18 of its loop, however long the probe was, `times` times."""
    display, poison = Listen(), Poison(at=17, times=times)
    original, loop = inputs.build, lifecycle.train

    def create(*arguments: Any) -> Any:
        net = original(*arguments)
        net.layers[0].register_forward_hook(poison)
        return net

    def train(*arguments: Any) -> Any:
        poison.armed = True
        return loop(*arguments)

    monkeypatch.setattr(inputs, "build", create)
    monkeypatch.setattr(lifecycle, "train", train)
    record = lifecycle.start(configure(steps=steps), folder, display).record
    assert record is not None
    return record, display.said


def test_a_nan_is_rolled_back_with_a_smaller_rate_and_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record, said = poisoned_run(tmp_path / "run", monkeypatch, times=1)
    assert record["status"] == "finished"
    (event,) = record["rollbacks"]
    assert (event["step"], event["to"], event["rate_scale"]) == (18, 14, 0.25)
    assert "not a number, first in layers.0" in event["why"]
    assert any("back to step 14 with 0.25 of the rate" in sentence for sentence in said)
    rates = {event["step"]: event["lr"] for event in curve(tmp_path / "run") if event["kind"] == "train"}
    assert rates[21] < 0.3 * rates[14]


@pytest.mark.parametrize("steps", [20, 30])
def test_a_run_that_was_rolled_back_is_verified(steps: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the checkpoint it went back to, which holds the rate of before, and from a later one."""
    record, _ = poisoned_run(tmp_path / "run", monkeypatch, times=1, steps=steps)
    assert [event["to"] for event in record["rollbacks"]] == [14]
    findings = list(verify(tmp_path / "run", 10))
    assert findings and [finding.what for finding in findings if not finding.same] == []


def test_a_run_that_failed_with_answers_that_are_no_numbers_has_a_record(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("\n".join(["a,b,label", *(f"{n},{n % 7},{'xy'[n % 2]}" for n in range(200))]))
    config = configure(
        steps=60, opt="sgd", lr=1e38, clip_grad=0.0, sched="constant", warmup_epochs=0.0, eval_every=2000
    )
    with pytest.raises(TrainingFailed):
        train(lifecycle.replace(config, source=str(tmp_path / "rows.csv")), tmp_path / "run")
    record = lifecycle.run_folder.open_run(tmp_path / "run").record()
    assert record is not None and record["status"] == "failed" and "auroc" not in record["metrics"]


class Clock:
    """A clock that is moved by the updates of the loop alone, by so many seconds each; the plan has a limit."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, each: float, limit: float, **changes: Any) -> None:
        self.now = 1000.0
        update, measure = loop.update, probe.measure

        def slow(*arguments: Any, **more: Any) -> Any:
            self.now += each
            return update(*arguments, **more)

        def limited(*arguments: Any) -> Any:
            return lifecycle.replace(measure(*arguments), limit=limit, evaluation=0.0, saving=0.0, **changes)

        monkeypatch.setattr(time, "perf_counter", lambda: self.now)
        monkeypatch.setattr(loop, "update", slow)
        monkeypatch.setattr(probe, "measure", limited)
        monkeypatch.setattr(probe, "mean_step", lambda *_, **__: each)


def test_a_run_of_few_long_steps_ends_in_time_evaluated_and_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three steps of 3 s leave a second of ten: a fourth would end late. Nothing else was due after the third."""
    Clock(monkeypatch, 3.0, 10.0, eval_every=1000, log_every=1000, checkpoint_every=1000)
    record = train(configure(steps=400), tmp_path / "run")
    assert record["steps"] == 3
    assert [(event["kind"], event["step"]) for event in curve(tmp_path / "run")] == [("train", 3), ("evaluation", 3)]
    ended, events = last_checkpoint(tmp_path / "run"), curve(tmp_path / "run")
    assert ended.step == ended.numbers["best"]["step"] == 3
    (tmp_path / "run" / "record.json").unlink()  # as if it had been killed while it was judged
    again = lifecycle.resume(tmp_path / "run", Silent()).record
    assert again is not None and again["metrics"] == record["metrics"] and curve(tmp_path / "run") == events
    (tmp_path / "run" / "record.json").unlink()
    shutil.rmtree(tmp_path / "run" / "checkpoints" / "00000003")  # and before it was saved
    again = lifecycle.resume(tmp_path / "run", Silent()).record
    assert again is not None and again["metrics"] == record["metrics"]
    assert_same_bits(last_checkpoint(tmp_path / "run"), ended)


def test_a_run_that_goes_back_keeps_its_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of forty steps of a second, four are undone: what was planned after the step it goes back to is forgotten."""
    Clock(monkeypatch, 1.0, 40.0)
    record, _ = poisoned_run(tmp_path / "run", monkeypatch, times=1, steps=400)
    assert [(event["step"], event["to"]) for event in record["rollbacks"]] == [(18, 14)]
    assert record["steps"] == 40 - 4
    assert {steps for after, steps in record["plan"]["revised"] if after > 14} == {36}, (
        "undone steps do not slow others"
    )
    places = [after for after, _ in record["plan"]["revised"]]
    assert places == sorted(set(places)) and any(after < 14 for after in places)


def test_training_gives_up_after_three_roll_backs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TrainingFailed, match=f"after {ROLLBACKS} roll-backs; use a smaller --lr"):
        poisoned_run(tmp_path / "run", monkeypatch, times=999)
    folder = lifecycle.run_folder.open_run(tmp_path / "run")
    record = folder.record()
    assert record is not None and record["status"] == "failed" and len(record["rollbacks"]) == ROLLBACKS
    assert folder.status() == "failed"


def test_divergence_is_noticed_and_survived(tmp_path: Path) -> None:
    """Momentum at a rate of 30 blows up a small ResNet; the smaller rates after the roll-backs do not."""
    config = configure(
        "mlp", steps=150, opt="momentum", lr=30.0, clip_grad=0.0, log_every=5, sched="constant", warmup_epochs=1.0
    )
    try:
        record = train(config, tmp_path / "run")
    except TrainingFailed as failure:
        record = lifecycle.run_folder.open_run(tmp_path / "run").record()
        assert "smaller --lr" in str(failure)
    assert record is not None and record["rollbacks"]


def test_the_watch_tells_trouble_from_health() -> None:
    watch = DivergenceMonitor()
    assert watch.judge(2.3, 2.3, patient=True) is None
    assert watch.judge(0.9, 2.3, patient=True) is None
    assert watch.judge(1.5, 2.3, patient=False) is None
    assert watch.judge(math.nan, 2.3, patient=False) == "not a number"
    assert watch.judge(7.0, 2.3, patient=False) == "diverged"
    assert watch.judge(2.31, 2.3, patient=False) == "diverged", "it knew something and lost it"


def test_staying_at_the_guess_is_noticed_when_patience_ends() -> None:
    watch = DivergenceMonitor()
    assert watch.judge(2.3, 2.3, patient=True) is None
    assert watch.judge(2.29, 2.3, patient=False) == "never left chance"
    watch.judge(2.0, 2.3, patient=False)
    assert watch.judge(2.2, 2.3, patient=False) is None


def test_a_fall_towards_the_guess_is_waited_for_until_it_rests() -> None:
    """From even odds to the guess of a rare class is a long way."""
    watch = DivergenceMonitor()
    assert watch.judge(0.7, 0.056, patient=True) is None
    assert watch.judge(0.68, 0.056, patient=False) is None
    assert [watch.judge(0.68, 0.056, patient=False) for _ in range(10)] == [None] * 9 + ["never left chance"]
    assert watch.judge(0.3, 0.056, patient=False) is None
    assert {watch.judge(0.3, 0.056, patient=False) for _ in range(20)} == {None}, "it has learnt how rare the class is"


def judged(losses: list[float], p: float = 0.01, size: int = 320) -> list[Any]:
    """What the watch says of networks that lose so many times as much as the guess on windows with a rare class."""
    watch, rng = DivergenceMonitor(), np.random.default_rng(0)
    objective = create_objective("binary", np.arange(1000) < 1000 * p)
    found = []
    for loss in losses:
        chance = float(objective.chance(torch.from_numpy(rng.random(size) < p).float(), size))
        found.append(watch.judge(loss * chance, objective.guess, False, chance, size / objective.spread))
    return found


def test_a_constant_answer_to_a_rare_class_has_not_diverged() -> None:
    """Windows without the class are easier than the guess, others harder: they are compared on the same examples."""
    assert "diverged" not in judged([1.0] * 2000)
    luck = np.random.default_rng(1).uniform(0.2, 1.4, 2000)
    assert "diverged" not in judged(list(luck)), "no single window may decide"


def test_a_rare_class_that_is_forgotten_is_noticed() -> None:
    assert "diverged" in judged([1.0] * 50 + [0.3] * 50 + [1.01] * 50)[100:]


def test_a_rare_class_is_learnt_without_a_roll_back(tmp_path: Path) -> None:
    """The loss is still far above the guess when patience ends, and windows without the class are below half of it."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(3000, 4))
    lines = ["a,b,c,d,label", *(",".join(f"{x:.3f}" for x in row) + f",{'ny'[int(row[0] > 2.2)]}" for row in rows)]
    (tmp_path / "rows.csv").write_text("\n".join(lines))
    config = configure(steps=600, network={"hidden": [16]}, checkpoint_every=100, log_every=10, eval_every=200)
    record = train(lifecycle.replace(config, source=str(tmp_path / "rows.csv")), tmp_path / "run")
    assert record["rollbacks"] == []


def test_the_layer_concerned_is_named_by_the_norms() -> None:
    norms = {
        "gradient_norm": {"a": 1.0, "b": math.inf, "c": 1e-6},
        "weight_norm": {"a": 1.0, "b": 1.0, "c": 1.0},
        "update_norm": {"a": 0.5, "b": 0.1, "c": 0.1},
    }
    assert concerned("not a number", norms) == "b"
    assert concerned("diverged", norms) == "a"
    assert concerned("never left chance", norms) == "c"


def test_a_network_that_never_leaves_chance_starts_over_and_then_says_so(tmp_path: Path) -> None:
    """A rate so small that nothing is learnt: three fresh starts, then the run goes on to its end."""
    config = configure("mlp", steps=230, lr=1e-12, checkpoint_every=50, log_every=20, eval_every=400)
    record = train(config, tmp_path / "run")
    assert [event["to"] for event in record["rollbacks"]] == [0, 0, 0]
    assert all("that of a guess" in event["why"] for event in record["rollbacks"])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_saves_at_the_next_step(number: int, tmp_path: Path) -> None:
    outcome = lifecycle.start(configure(steps=30, log_every=5), tmp_path / "run", Stop(5, number))
    assert (outcome.record, outcome.signal) == (None, number)
    assert last_checkpoint(tmp_path / "run").step == 5
    assert lifecycle.run_folder.open_run(tmp_path / "run").status() == "stopped"


def test_a_roll_back_after_an_interruption_goes_where_it_would_have_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A checkpoint made by an interruption is no place to go back to: the course must not depend on it."""
    config = configure(
        "mlp", steps=60, opt="sgd", lr=1e4, clip_grad=0.0, log_every=5, checkpoint_every=20, warmup_epochs=2.0
    )

    def result(folder: Path) -> None:
        with pytest.raises(TrainingFailed):
            lifecycle.resume(folder, Silent()) if folder.exists() else lifecycle.start(config, folder, Silent())

    result(tmp_path / "whole")
    assert lifecycle.start(config, tmp_path / "cut", Stop(5)).record is None
    result(tmp_path / "cut")
    assert curve(tmp_path / "whole") == curve(tmp_path / "cut")
    records = [lifecycle.run_folder.open_run(tmp_path / name).record() for name in ("whole", "cut")]
    assert records[0]["rollbacks"] == records[1]["rollbacks"]  # type: ignore[index]


def test_resuming_after_a_roll_back_does_not_return_to_the_course_that_was_given_up(tmp_path: Path) -> None:
    config = configure("mlp", steps=230, lr=1e-12, checkpoint_every=50, log_every=20, eval_every=400)
    assert lifecycle.start(config, tmp_path / "run", Stop(60, rollbacks=1)).record is None
    assert CheckpointStore(tmp_path / "run" / "checkpoints").steps() == [0, 50, 60]
    assert last_checkpoint(tmp_path / "run").numbers["rate_scale"] == 0.25


def test_a_checkpoint_from_before_the_guess_was_added_up_is_resumed(tmp_path: Path) -> None:
    config = configure(steps=30, log_every=5)
    train(config, tmp_path / "whole")
    assert lifecycle.start(config, tmp_path / "cut", Stop(15)).record is None
    older = last_checkpoint(tmp_path / "cut")
    del older.numbers["guess_sum"]
    older.numbers["watch"] = {
        name: older.numbers["watch"][name] for name in ("first", "lowest", "beats_constant_guess")
    }
    CheckpointStore(tmp_path / "cut" / "checkpoints").save(older)
    lifecycle.resume(tmp_path / "cut", Silent())
    one, other = (last_checkpoint(tmp_path / name).tensors for name in ("whole", "cut"))
    assert all(torch.equal(value, other[name]) for name, value in one.items())
    assert curve(tmp_path / "whole") == curve(tmp_path / "cut")


def test_a_time_budget_is_resumed_with_what_is_left_of_it(tmp_path: Path) -> None:
    config = lifecycle.replace(configure("mlp", log_every=5), duration=DurationConfig(time="10m"))
    outcome = lifecycle.start(config, tmp_path / "run", Stop(10))
    folder = lifecycle.run_folder.open_run(tmp_path / "run")
    planned = folder.plan()
    assert outcome.record is None and planned is not None and planned.steps > 1000
    folder.write_asked(folder.config(), lifecycle.replace(planned, steps=80, limit=0.01))  # next to nothing is left
    record, revised = lifecycle.resume(tmp_path / "run", Silent()).record, folder.plan()
    assert record is not None and revised is not None and 10 < record["steps"] == revised.steps < 80


def test_two_runs_of_one_seed_are_the_same_and_of_two_seeds_are_not(tmp_path: Path) -> None:
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        train(configure(steps=15, seed=seed), tmp_path / name)
    assert_same_bits(last_checkpoint(tmp_path / "a"), last_checkpoint(tmp_path / "b"))
    with pytest.raises(AssertionError):
        assert_same_bits(last_checkpoint(tmp_path / "a"), last_checkpoint(tmp_path / "c"))


def test_a_changed_source_is_refused_at_resume(tmp_path: Path) -> None:
    source = tmp_path / "rows.csv"
    lines = ["a,b,label", *(f"{n},{n % 7},{'xy'[n % 2]}" for n in range(200))]
    source.write_text("\n".join(lines))
    config = lifecycle.replace(configure(steps=30, log_every=5), source=str(source))
    assert lifecycle.start(config, tmp_path / "run", Stop(5)).record is None
    source.write_text("\n".join([*lines, "1,1,x"]))
    with pytest.raises(WeftError, match="has changed since the run began"):
        lifecycle.resume(tmp_path / "run", Silent())


def test_the_probe_leaves_no_trace(tmp_path: Path) -> None:
    """Batch norm's running statistics included: step 0 is the network as it was made."""
    from weft.training.run.inputs import open_inputs

    config = configure("resnet", steps=4, checkpoint_every=4)
    train(config, tmp_path / "run")
    fresh = build(open_inputs(config).network, config.seed).state_dict()
    stored = CheckpointStore(tmp_path / "run" / "checkpoints").load(0).tensors
    assert all(torch.equal(stored[f"model.{name}"], value) for name, value in fresh.items())
