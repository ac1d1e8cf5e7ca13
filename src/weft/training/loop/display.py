"""The run on the terminal: a live line with progress where there is one, plain lines where there is not."""

from __future__ import annotations

import sys
import time
from typing import Any

from weft import terminal
from weft.training.loop.progress import Progress
from weft.training.run.plan import Plan


class Silent:
    """Shows nothing: for ranks other than the first, and for estimators."""

    def point(self, progress: Progress, event: dict[str, Any]) -> None:
        pass

    def say(self, sentence: str) -> None:
        pass

    def begin(self, plan: Plan, examples: int, metric: str) -> None:
        pass

    def replan(self, plan: Plan) -> None:
        """The number of steps has changed."""

    def end(self) -> None:
        pass


class Plain(Silent):
    """A line at each evaluation and at most one every `seconds`."""

    def __init__(self, seconds: float = 10.0) -> None:
        self._pause, self._last = seconds, time.monotonic()

    def begin(self, plan: Plan, examples: int, metric: str) -> None:
        self._plan, self._examples, self._metric = plan, examples, metric

    def replan(self, plan: Plan) -> None:
        self._plan = plan

    def say(self, sentence: str) -> None:
        print(sentence, flush=True)

    def point(self, progress: Progress, event: dict[str, Any]) -> None:
        if event["kind"] == "evaluation":
            self._line(
                progress,
                f"validation loss {event['validation_loss']:.4f}  {self._metric} {event['validation_metric']:.4f}",
            )
        elif event["kind"] == "train" and time.monotonic() - self._last > self._pause:
            self._line(progress, f"loss {event['loss']:.4f}")

    def _line(self, progress: Progress, what: str) -> None:
        self._last = time.monotonic()
        speed, left = pace(progress, self._plan, self._examples)
        epoch = progress.step / self._plan.steps_per_epoch
        self.say(
            f"step {progress.step}/{self._plan.steps}  epoch {epoch:.2f}  {what}  {speed:,.0f}/s  {duration(left)} left"
        )


class Live(Silent):
    """rich's progress bar with throughput, loss, metric and time left."""

    def begin(self, plan: Plan, examples: int, metric: str) -> None:
        from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bar

        self._plan, self._examples, self._metric = plan, examples, metric
        columns = (TextColumn("{task.completed}/{task.total}"), BarColumn(), TextColumn("{task.description}"))
        self._bar = Bar(*columns, TimeRemainingColumn(), transient=False, console=terminal.console())
        self._task = self._bar.add_task("", total=plan.steps)
        self._text = {"loss": "", "metric": ""}
        self._bar.start()

    def replan(self, plan: Plan) -> None:
        self._plan = plan
        self._bar.update(self._task, total=plan.steps)

    def say(self, sentence: str) -> None:
        (self._bar.console.print if hasattr(self, "_bar") else print)(sentence)

    def point(self, progress: Progress, event: dict[str, Any]) -> None:
        if event["kind"] == "train":
            self._text["loss"] = f"loss {event['loss']:.4f}"
        elif event["kind"] == "evaluation":
            self._text["metric"] = f"{self._metric} {event['validation_metric']:.4f}"
        speed, _ = pace(progress, self._plan, self._examples)
        words = "  ".join([*filter(None, self._text.values()), f"{speed:,.0f}/s"])
        self._bar.update(self._task, completed=progress.step, description=words)

    def end(self) -> None:
        self._bar.stop()


def pace(progress: Progress, plan: Plan, examples: int) -> tuple[float, float]:
    """Examples per second so far, and seconds left at that pace."""
    per_step = progress.seconds / max(progress.step, 1)
    return (examples / per_step if per_step else 0.0), per_step * (plan.steps - progress.step)


def duration(seconds: float) -> str:
    """Seconds as people write them: 42 s, 3 min 20 s, 2 h 5 min."""
    whole = round(seconds)
    if whole < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{whole} s"
    return f"{whole // 60} min {whole % 60} s" if whole < 3600 else f"{whole // 3600} h {whole % 3600 // 60} min"


def choose_display(rank: int) -> Silent:
    """What fits where standard output goes."""
    if rank:
        return Silent()
    return Live() if sys.stdout.isatty() else Plain()
