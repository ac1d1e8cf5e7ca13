"""Where a case takes place: a folder of its own with the command on its path, watched for what is left behind."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Collection
from hashlib import blake2b
from pathlib import Path
from typing import Self

from odd.case import Case, Content, Ended, judge, touched

SOURCE = Path(__file__).parents[2] / "src"
COMMAND = f'#!/bin/sh\nexec "{sys.executable}" -m weft "$@"\n'
GRACE = 25.0  # seconds in which what the command started has to end: a worker may finish a checkpoint it is writing


class Place:
    """Fresh folders for work, home, cache and temporary files; commands run in the first."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.root = Path(tempfile.mkdtemp(prefix="odd-"))
        self.work = self.root / "work"
        for name in ("work", "home", "cache", "tmp", "bin"):
            (self.root / name).mkdir()
        (self.root / "bin" / "weft").write_text(COMMAND)
        (self.root / "bin" / "weft").chmod(0o755)
        self.mark = f"{case.name}-{uuid.uuid4()}"
        self.started: list[Running] = []

    def __enter__(self) -> Self:
        for name, content in self.case.files.items():
            put(self.work / name, content)
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.left():
            os.kill(process, signal.SIGKILL)
        shutil.rmtree(self.root, ignore_errors=True)

    def start(self, line: str) -> Running:
        """A line of shell, under way."""
        running = Running(self, line)
        self.started.append(running)
        return running

    def run(self, line: str) -> Ended:
        """A line of shell, to its end or its time limit."""
        return self.start(line).end()

    def wait_for(self, pattern: str, known: Collection[Path] = ()) -> None:
        """Until there is a file of this pattern that is not `known`; or the time is up, as the ends will tell."""
        until = time.monotonic() + self.case.seconds
        while set(self.work.glob(pattern)) <= set(known) and time.monotonic() < until:
            if all(running.process.poll() is not None for running in self.started):
                return
            time.sleep(0.05)

    def environment(self) -> dict[str, str]:
        inherited = {name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ}
        own = {
            "PATH": f"{self.root / 'bin'}:{os.environ['PATH']}",
            "HOME": str(self.root / "home"),
            "WEFT_CACHE": str(self.root / "cache"),
            "TMPDIR": str(self.root / "tmp"),
            "PYTHONPATH": str(SOURCE),
            "LANG": "C.UTF-8",
            "ODD_CASE": self.mark,
        }
        asked = {name: value.replace("{root}", str(self.root)) for name, value in self.case.env.items()}
        return own | inherited | asked

    def state(self) -> dict[str, str]:
        """What is in the folder of work, and in the home."""
        home = {f"~/{path}": what for path, what in state(self.root / "home").items()}
        return state(self.work) | home

    def left(self) -> list[int]:
        """Processes that carry this place's mark in their environment."""
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                if f"ODD_CASE={self.mark}".encode() in (folder / "environ").read_bytes().split(b"\0"):
                    found.append(int(folder.name))
            except OSError:  # ended meanwhile, or not ours
                continue
        return found


class Running:
    """A line of shell under way in a place."""

    def __init__(self, place: Place, line: str) -> None:
        self.place = place
        self.out, self.err = tempfile.TemporaryFile(), tempfile.TemporaryFile()  # noqa: SIM115 (closed by end)
        self.process = subprocess.Popen(
            ["bash", "-o", "pipefail", "-c", line],
            cwd=place.work,
            env=place.environment(),
            stdin=subprocess.DEVNULL,
            stdout=self.out,
            stderr=self.err,
            start_new_session=True,
            preexec_fn=as_if_typed,
        )

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def end(self) -> Ended:
        """Wait for its end; at the time limit, kill it."""
        try:
            code: int | None = self.process.wait(self.place.case.seconds)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            code = None
        texts = []
        for file in (self.out, self.err):
            file.seek(0)
            texts.append(file.read().decode("utf-8", "backslashreplace"))
            file.close()
        return Ended(code, *texts)


def as_if_typed() -> None:
    """Ctrl-C is heeded, even if this campaign runs in the background; who is killed writes no dump into the folder."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def put(path: Path, content: Content) -> None:
    """Make what shall be at a path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if callable(content):
        content(path)
    else:
        path.write_bytes(content.encode() if isinstance(content, str) else content)


def state(folder: Path) -> dict[str, str]:
    """Everything below a folder, with a digest of its content; links are not followed."""
    return {str(path.relative_to(folder)): what_is(path) for path in sorted(folder.rglob("*"))}


def what_is(path: Path) -> str:
    try:
        mode = path.lstat().st_mode
        if stat.S_ISLNK(mode):
            return f"link to {path.readlink()}"
        if not stat.S_ISREG(mode):
            return str(stat.S_IFMT(mode))
        with path.open("rb") as file:
            return blake2b(file.read(1 << 26), digest_size=16).hexdigest() + f" {path.stat().st_size}"
    except OSError as error:  # gone while we looked: a process is still at work
        return str(error.strerror)


def trial(case: Case) -> tuple[list[str], list[Ended]]:
    """Run a case; what was wrong, and what its commands printed."""
    with Place(case) as place:
        before = place.state()
        if isinstance(case.command, str):
            outcomes = [(place.run(case.command), case.ends)]
        else:
            outcomes = list(case.command(place))
        faults = [fault for ended, ends in outcomes for fault in judge(case, ended, ends)]
        faults += orphans(place)
        faults += touched(case, before, place.state())
        return faults, [ended for ended, _ in outcomes]


def orphans(place: Place) -> list[str]:
    """What still runs some time after the command's end."""
    until = time.monotonic() + GRACE
    while (left := place.left()) and time.monotonic() < until:
        time.sleep(0.1)
    return [f"{len(left)} processes still run"] if left else []
