"""Processes forked from a server that has torch loaded: starting one costs a fraction of a second in place of six."""

from __future__ import annotations

import multiprocessing
import os
import runpy
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from subprocess import CompletedProcess
from types import SimpleNamespace
from typing import Any

import pytest

from weft.studies.engine import worker

SERVER = multiprocessing.get_context("forkserver")
SERVER.set_forkserver_preload(
    [
        *(
            "training.runs",
            "weft.studies.engine.run_one",
            "weft.networks.base.backbone",
            "weft.networks.vit",
            "weft.networks.mlp",
        ),
        *("torch._dynamo", "sklearn.datasets", "sklearn.metrics", "sklearn.linear_model"),
        *("sklearn.feature_extraction.text", "sklearn.pipeline"),
        *("lightning_fabric", "lightning_fabric.strategies.model_parallel", "torch.distributed.fsdp"),
    ]
)


@contextmanager
def quick_workers() -> Iterator[None]:
    """Studies begun in this block fork their workers; how they start them otherwise is tested with the workers."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(worker, "multiprocessing", SimpleNamespace(get_context=lambda _: SERVER))
        yield


def command(*words: str, environment: dict[str, str] | None = None) -> CompletedProcess[str]:
    """`weft …` in a process of its own, which has imported nothing of the user's; how a shell starts it, and that it
    ends with its shell, is tested with the commands.
    """
    with tempfile.TemporaryDirectory() as place:
        files = [Path(place) / name for name in ("out", "err")]
        process = begun(*words, environment=environment, files=files)
        process.join()
        return CompletedProcess(words, process.exitcode or 0, *(file.read_text() for file in files))


def begun(*words: str, environment: dict[str, str] | None = None, files: list[Path] | None = None) -> ForkServerProcess:
    """`weft …`, started; it writes to these files, or says nothing."""
    asked = dict(os.environ) if environment is None else environment
    process = SERVER.Process(target=as_command, args=(words, Path.cwd(), asked, files or [Path(os.devnull)] * 2))
    process.start()
    return process


def as_command(words: tuple[str, ...], folder: Path, environment: dict[str, str], files: list[Path]) -> None:
    """What a shell gives a process, and then the command."""
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    for number, file in zip((1, 2), files, strict=True):
        os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT), number)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    sys.path[:0] = filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))
    from weft.commands.main import main

    with quick_workers():
        main(list(words))


def as_script(path: Path, folder: Path) -> None:
    """What `python EXAMPLE.py` does, without importing torch for it and for each command of weft that it gives."""
    os.chdir(folder)
    for number in (1, 2):
        os.dup2(os.open("said", os.O_WRONLY | os.O_CREAT | os.O_APPEND), number)
    sys.argv = [str(path), "--quick", "--output", "found"]
    sys.path[:0] = [str(path.parent)]
    run = subprocess.run

    def given(words: list[str], **others: Any) -> Any:
        if words[:3] != [sys.executable, "-m", "weft"]:
            return run(words, **others)
        return CompletedProcess(words, dispatch(words[3:])).check_returncode()

    from weft.commands.main import dispatch

    subprocess.run = given  # type: ignore[assignment]
    with quick_workers():
        runpy.run_path(str(path), run_name="__main__")
