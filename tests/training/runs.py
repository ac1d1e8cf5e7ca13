"""Small runs for the tests: configurations of every family, and processes that train them and can be killed."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import tempfile
import time
from dataclasses import replace
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

import pytest
import torch

from forking import SERVER
from weft.data.config import TransformConfig
from weft.training.config import DurationConfig, ExecutionConfig, OptimisationConfig, RunConfig
from weft.training.loop.display import Silent
from weft.training.loop.progress import Progress
from weft.training.run import lifecycle
from weft.training.storage.checkpoints import Checkpoint, CheckpointStore
from weft.training.storage.metrics_log import read_events
from weft.training.storage.run_folder import create

TEXT = {"max_length": 32, "vocab_size": 512}

FAMILIES: dict[str, dict[str, Any]] = {
    "mlp": {"model": "mlp", "network": {"hidden": [32], "drop_rate": 0.1}},
    "resnet": {"model": "resnet20_cifar", "network": {"layers": [1, 1], "widths": [8, 16]}},
    "vit": {
        "model": "vit_nano_p4_32",
        "network": {"dim": 16, "depth": 2, "heads": 2, "hidden_dim": 32, "patch_size": 2},
    },
    "gmlp": {"model": "gmlp_nano_p4_32", "network": {"dim": 16, "depth": 2, "hidden_dim": 32, "patch_size": 2}},
    "text": {"model": "gmlp_text_tiny", "network": {"dim": 16, "depth": 2, "hidden_dim": 32}},
}


def sentences() -> Path:
    """A file of sentences in three classes, told apart by one word each; made once a session of tests."""
    path = Path(tempfile.gettempdir()) / f"weft-sentences-{os.getuid()}" / "sentences.csv"
    if not path.exists():
        chance = random.Random(0)
        words = ["".join(chance.choices("abcdefgh", k=chance.randint(2, 6))) for _ in range(200)]
        lines = ["text,label"]
        for number in range(600):
            said = chance.choices(words, k=chance.randint(3, 20))
            said.insert(chance.randrange(len(said)), ["red", "green", "blue"][number % 3])
            lines.append(f"{' '.join(said)},{'rgb'[number % 3]}")
        path.parent.mkdir(exist_ok=True)
        path.write_text("\n".join(lines) + "\n")
    return path


def configure(family: str = "mlp", steps: int = 60, **changes: Any) -> RunConfig:
    """A run of seconds; `changes` go to the section that knows them, or to the run itself."""
    entry = FAMILIES[family]
    config = RunConfig(
        source=str(sentences()) if family == "text" else "digits",
        model=entry["model"],
        network=entry["network"],
        duration=DurationConfig(steps=steps),
        optimisation=OptimisationConfig(batch_size=32),
        execution=ExecutionConfig(threads=1, compile=False, precision="float32", checkpoint_every=7, eval_every=20),
        transform=TransformConfig(**(TEXT if family == "text" else {})),
    )
    for name, value in changes.items():
        section = next(
            (s for s in ("optimisation", "execution", "duration", "objective") if hasattr(getattr(config, s), name)),
            None,
        )
        change = {name: value} if section is None else {section: replace(getattr(config, section), **{name: value})}
        config = replace(config, **change)
    return config


def train(config: RunConfig, folder: Path) -> dict[str, Any]:
    """A whole run in this process; returns its record."""
    record = lifecycle.start(config, folder, Silent()).record
    assert record is not None
    return record


class Stop(Silent):
    """Sends this process a signal when the run reaches a step, after so many roll-backs at least."""

    def __init__(self, step: int, number: int = signal.SIGTERM, rollbacks: int = 0) -> None:
        self.step, self.number, self.rollbacks = step, number, rollbacks

    def point(self, progress: Progress, event: dict[str, Any]) -> None:
        if event["kind"] == "train" and progress.step == self.step and len(progress.rollbacks) >= self.rollbacks:
            os.kill(os.getpid(), self.number)


def begin_or_resume(config: RunConfig, folder: Path) -> None:
    """What a process does: start the run, or go on where it stands. Exits with 128 + signal when interrupted."""
    signal.pthread_sigmask(signal.SIG_SETMASK, ())  # the server may have been started where signals were held back
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    if (folder / "run.yaml").exists():
        outcome = lifecycle.resume(folder, Silent())
    else:
        outcome = lifecycle.start(config, folder, Silent())
    os._exit(128 + outcome.signal if outcome.signal else 0)


def spawn(config: RunConfig, folder: Path) -> ForkServerProcess:
    process = SERVER.Process(target=begin_or_resume, args=(config, folder))
    process.start()
    return process


def train_together(config: Any, folder: Path, strategy: str = "ddp") -> None:
    """Start a run, or go on with it, in two processes that find each other as those of torchrun do."""
    if not (folder / "run.yaml").exists():
        create(folder, replace(config, execution=replace(config.execution, strategy=strategy))).release()
    processes = ranks(config, folder)
    for process in processes:
        process.join(300)
    assert [process.exitcode for process in processes] == [0, 0]


def ranks(config: Any, folder: Path) -> list[ForkServerProcess]:
    """Two processes of one run, started."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    processes = [SERVER.Process(target=as_rank, args=(rank, port, config, folder)) for rank in (0, 1)]
    for process in processes:
        process.start()
    return processes


def as_rank(rank: int, port: int, config: Any, folder: Path) -> None:
    """What torchrun tells a process of two, and then the run."""
    world = {"WORLD_SIZE": 2, "LOCAL_WORLD_SIZE": 2, "GROUP_RANK": 0, "MASTER_PORT": port}
    os.environ |= {name: str(number) for name, number in {"RANK": rank, "LOCAL_RANK": rank, **world}.items()}
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "TORCHELASTIC_RUN_ID": "tests"}
    begin_or_resume(config, folder)


def lines(folder: Path) -> int:
    """Lines of a run's curve; counted rather than read, so that a quick run cannot end meanwhile."""
    path = folder / "metrics.jsonl"
    return path.read_bytes().count(b"\n") if path.is_file() else 0


def interrupt(process: ForkServerProcess, folder: Path, how: int, chance: random.Random, within: float = 0.05) -> bool:
    """Signal a process at a random moment of its training, within seconds of a line of its curve; False when it had
    ended by then.
    """
    before = lines(folder)
    while process.is_alive() and lines(folder) <= before:
        time.sleep(0.002)
    time.sleep(chance.uniform(0, within))
    if not process.is_alive() or process.pid is None:
        return False
    os.kill(process.pid, how)
    process.join()
    return process.exitcode != 0


def last_checkpoint(folder: Path) -> Checkpoint:
    return CheckpointStore(folder / "checkpoints").require()


def assert_same_bits(one: Checkpoint, other: Checkpoint) -> None:
    """All tensors equal in every bit, and all numbers but the times."""
    assert one.step == other.step
    assert one.tensors.keys() == other.tensors.keys()
    for name, value in one.tensors.items():
        assert torch.equal(value, other.tensors[name]), f"{name} differs"
    times = {"seconds", "cpu_seconds", "waited", "saving", "evaluating", "undone"}
    timeless = [{k: v for k, v in c.numbers.items() if k not in times} for c in (one, other)]
    for numbers in timeless:
        for event in numbers["rollbacks"]:
            event.pop("seconds", None)
    assert json.dumps(timeless[0], sort_keys=True) == json.dumps(timeless[1], sort_keys=True)


def assert_close(one: Path, other: Path, tolerance: float = 1e-4) -> None:
    """Weights of two runs equal within float rounding (differences of 2e-7 were seen)."""
    first, second = last_checkpoint(one), last_checkpoint(other)
    assert first.step == second.step
    for name, value in first.tensors.items():
        if name.startswith("model."):
            # a key's bias has no gradient but rounding (softmax ignores it), which Adam makes as large as any other
            slack = 1e-4 if name.endswith("qkv.bias") else 1e-6
            torch.testing.assert_close(second.tensors[name], value, rtol=tolerance, atol=slack, msg=f"{name} differs")
    pair = [[event for event in curve(path) if event["kind"] == "evaluation"] for path in (one, other)]
    for mine, theirs in zip(*pair, strict=True):
        assert mine["validation_loss"] == pytest.approx(theirs["validation_loss"], rel=tolerance)


def curve(folder: Path) -> list[dict[str, Any]]:
    """The events of a run without their times."""
    return [{k: v for k, v in event.items() if k != "seconds"} for event in read_events(folder / "metrics.jsonl")]
