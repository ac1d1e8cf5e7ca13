"""What weft knows of the machine, on this one, on made-up ones, and on systems that lack something."""

from __future__ import annotations

import ctypes
import errno
import gc
import os
import re
import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from threading import Timer

import pytest

from training.runs import configure, train
from weft import machine
from weft.studies.engine.folder_lock import held
from weft.training.config import ExecutionConfig
from weft.training.storage.run_folder import RunFolder

FAULTS = """
import resource, torch
from weft.machine import keep_freed_memory

def faults(first):
    for number in range(first + 2):
        if number == first:
            before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        blocks = [torch.ones(2**20 * megabytes // 4) for megabytes in (48, 40, 64)]
        del blocks
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

torch.set_num_threads(1)
print(faults(1))
assert keep_freed_memory()
print(faults(10))  # by then the heap has found its size
"""

glibc = pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "gnu_get_libc_version"), reason="the C library is not glibc")


SPOILT = """
import torch
from weft.machine import leave_fresh_memory, spoil_fresh_memory

assert spoil_fresh_memory()
assert torch.empty(5000).min() > 1e38 and torch.empty(5000, dtype=torch.bfloat16).min() > 1e38
assert torch.zeros(5000).max() == 0
assert leave_fresh_memory()
"""


@glibc
def test_fresh_memory_can_be_spoilt() -> None:
    """So that what a routine leaves unwritten is seen every time."""
    subprocess.run([sys.executable, "-c", SPOILT], check=True)


@glibc
def test_freed_memory_is_used_again_without_new_pages() -> None:
    """Counted over two rounds that take and free 152 MB each, in a process of its own, before and after."""
    done = subprocess.run([sys.executable, "-c", FAULTS], check=True, capture_output=True, text=True)
    free, kept = map(int, done.stdout.split())
    pages = 2 * (152 << 20) // resource.getpagesize()
    assert free > 0.5 * pages, "glibc gives large blocks back unless told otherwise"
    assert kept < 0.05 * pages


def test_other_c_libraries_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    class Musl:
        """A C library without glibc's functions."""

    monkeypatch.setattr(machine.ctypes, "CDLL", lambda name: Musl())
    assert not machine.keep_freed_memory()


# Cores and memory


def group(folder: Path, **files: str) -> Path:
    """A control group with these files; a double underscore stands for a point."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name.replace("__", ".")).write_text(content)
    return folder


@pytest.fixture
def container(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine of eight cores and 8 GiB, 6 of them free, whose control groups are still to be made."""
    monkeypatch.setattr(machine, "PROC", tmp_path / "proc")
    monkeypatch.setattr(machine, "CGROUP", tmp_path / "cgroup")
    monkeypatch.setattr(machine.os, "cpu_count", lambda: 8)
    monkeypatch.setattr(machine.os, "sched_getaffinity", lambda _: set(range(6)), raising=False)
    group(tmp_path / "proc", meminfo="MemTotal: 8388608 kB\nMemAvailable: 6291456 kB\n")
    return tmp_path


def enter(container: Path, line: str) -> None:
    group(container / "proc" / "self", cgroup=line + "\n")


def test_cores_are_those_of_the_affinity_where_no_quota_is_smaller(container: Path) -> None:
    assert machine.cores() == 6


@pytest.mark.parametrize(("quota", "cores"), [("max 100000", 6), ("250000 100000", 2), ("50000 100000", 1), ("", 6)])
def test_quotas_of_version_2_hold_wherever_in_the_tree_they_stand(container: Path, quota: str, cores: int) -> None:
    enter(container, "0::/slice/inner")
    group(container / "cgroup" / "slice", cpu__max=quota)
    group(container / "cgroup" / "slice" / "inner", cpu__max="max 100000")
    assert machine.cores() == cores


@pytest.mark.parametrize(("quota", "cores"), [("-1", 6), ("300000", 3)])
def test_quotas_of_version_1(container: Path, quota: str, cores: int) -> None:
    enter(container, "4:cpu,cpuacct:/box")
    group(container / "cgroup" / "cpu" / "box", cpu__cfs_quota_us=quota, cpu__cfs_period_us="100000")
    assert machine.cores() == cores


def test_memory_is_that_of_the_machine_without_a_limit(container: Path) -> None:
    enter(container, "0::/")
    group(container / "cgroup", memory__max="max", memory__current="5")
    assert (machine.memory_available(), machine.memory_total()) == (6 << 30, 8 << 30)


def test_memory_of_version_2_counts_file_pages_as_free(container: Path) -> None:
    enter(container, "0::/box")
    group(
        container / "cgroup" / "box",
        memory__max=str(2 << 30),
        memory__current=str(1 << 30),
        memory__stat=f"anon 5\ninactive_file {1 << 29}\n",
    )
    assert (machine.memory_available(), machine.memory_total()) == ((1 << 30) + (1 << 29), 2 << 30)


@pytest.mark.parametrize(
    ("error", "short"),
    [
        (MemoryError(), True),
        (OSError(errno.ENOMEM, ""), True),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory"), True),
        (OSError(errno.ENOSPC, ""), False),
        (RuntimeError("shapes do not fit"), False),
    ],
)
def test_memory_that_is_short_is_known_by_class_number_or_words(error: Exception, short: bool) -> None:
    assert machine.memory_is_short(error) is short


def test_memory_of_version_1(container: Path) -> None:
    enter(container, "9:memory:/box")
    group(container / "cgroup" / "memory", memory__limit_in_bytes=str(2**63 - 4096), memory__usage_in_bytes="7")
    group(
        container / "cgroup" / "memory" / "box",
        memory__limit_in_bytes=str(3 << 30),
        memory__usage_in_bytes=str(1 << 30),
    )
    assert machine.memory_available() == 2 << 30


# What a system may lack


def without_affinity(patch: pytest.MonkeyPatch) -> None:
    patch.delattr(machine.os, "sched_getaffinity")


def without_fcntl(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(machine, "fcntl", None)


def without_proc(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(machine, "PROC", Path("/nowhere"))


def without_mallopt(patch: pytest.MonkeyPatch) -> None:
    class Library:
        """A C library that is not glibc."""

    patch.setattr(machine.ctypes, "CDLL", lambda _: Library())


def without_resource(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(machine, "resource", None)


LACKS = [without_affinity, without_fcntl, without_proc, without_mallopt, without_resource]


@pytest.mark.parametrize("lack", LACKS, ids=lambda lack: lack.__name__)
def test_a_run_works_on_a_system_that_lacks_something(
    lack: Callable[[pytest.MonkeyPatch], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lack(monkeypatch)
    monkeypatch.setenv("WEFT_CACHE", str(tmp_path / "cache"))
    config = replace(configure(steps=3), execution=ExecutionConfig(compile=False))
    record = train(config, tmp_path / "run")
    assert record["status"] == "finished" and record["environment"]["cores"] >= 1
    assert RunFolder(tmp_path / "run").status() == "finished"


# Locks


@pytest.mark.parametrize("kind", [lambda _: None, without_fcntl], ids=["flock", "owner's number"])
def test_a_lock_is_held_by_one_and_freed(
    kind: Callable[[pytest.MonkeyPatch], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind(monkeypatch)
    path = tmp_path / "lock"
    with machine.Lock(path).acquire() as held:
        held.note("busy")
        assert path.read_text() == "busy"
        with pytest.raises(machine.Busy):
            machine.Lock(path).acquire()
        assert path.read_text() == "busy", "who asks leaves no trace"
    machine.Lock(path).acquire().release()


@pytest.mark.parametrize("kind", [lambda _: None, without_fcntl], ids=["flock", "owner's number"])
def test_a_lock_is_waited_for(
    kind: Callable[[pytest.MonkeyPatch], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind(monkeypatch)
    held = machine.Lock(tmp_path / "lock").acquire()
    Timer(0.2, held.release).start()
    machine.Lock(tmp_path / "lock").acquire(wait=10).release()


def refusing(code: int) -> Callable[[pytest.MonkeyPatch], None]:
    """A file system whose flock answers every time with an error."""

    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        def flock(*_: object) -> None:
            raise OSError(code, errno.errorcode[code])

        monkeypatch.setattr(machine.fcntl, "flock", flock)

    return patch


@pytest.mark.parametrize("code", [errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP])
def test_a_file_system_without_flock_has_locks_all_the_same(
    code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusing(code)(monkeypatch)
    test_a_lock_is_held_by_one_and_freed(refusing(code), tmp_path, monkeypatch)
    with held(tmp_path / "study"):
        assert machine.Lock(tmp_path / "study" / ".lock").is_busy()
    assert [path.name for path in tmp_path.iterdir()] == ["lock"], "nothing came of the study"


def test_an_owner_that_has_not_written_its_number_yet_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_fcntl(monkeypatch)
    owner = tmp_path / "lock.owner"
    owner.touch()
    assert machine.Lock(tmp_path / "lock").is_busy() and owner.exists()
    os.utime(owner, (0, 0))
    machine.Lock(tmp_path / "lock").acquire().release()


def test_a_lock_whose_owner_died_is_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without_fcntl(monkeypatch)
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    (tmp_path / "lock.owner").write_text(str(dead.pid))
    machine.Lock(tmp_path / "lock").acquire().release()


# Deaths


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (-signal.SIGILL, ("SIGILL", "--precision float32")),
        (-signal.SIGKILL, ("SIGKILL", "memory", "--batch-size")),
        (-signal.SIGSEGV, ("SIGSEGV",)),
        (-200, ("signal 200",)),
        (3, ("exit code 3",)),
    ],
)
def test_a_death_is_told_with_its_meaning_and_a_remedy(code: int, words: tuple[str, ...]) -> None:
    assert all(word in machine.death(code) for word in words)


def test_a_system_without_sigkill_can_tell_deaths_all_the_same() -> None:
    """Windows: there a process that is killed ends by an exit code."""
    code = (
        "import signal; del signal.SIGKILL;"
        "from weft.studies.engine.worker import WorkerDied; from weft.training.run import rehearsal;"
        "import weft.serve.pages.start.look;"
        "print(WorkerDied(-11).cause, rehearsal.reply(-11, '', '').lasting)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "SIGSEGV" in done.stdout and "True" in done.stdout, done.stderr


# One module


def test_no_other_module_asks_the_system() -> None:
    """Cores, locks, memory and the C library have one door."""
    asks = re.compile(r"sched_getaffinity|os\.cpu_count|\bfcntl\b|\bmsvcrt\b|\bresource\.|/proc\b|mallopt|prctl|CDLL")
    package = Path(machine.__file__).parent
    others = [path for path in package.rglob("*.py") if path.name != "machine.py"]
    found = [(str(path), line) for path in others for line in path.read_text().splitlines() if asks.search(line)]
    assert not found and len(others) > 100


def test_modules_of_unix_may_be_missing() -> None:
    code = (
        "import sys; sys.modules |= dict.fromkeys(('fcntl', 'resource', 'pwd', 'termios'));"
        "import weft.machine, weft.supervision, weft.training.storage.run_folder; print(weft.machine.lock_kind())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.startswith("a file"), done.stderr


def test_libraries_are_loaded_without_looks_for_garbage() -> None:
    with machine.loading():
        assert not gc.isenabled()
        with machine.loading():
            pass
        assert not gc.isenabled(), "the outer one ends it"
    assert gc.isenabled()
    with pytest.raises(ImportError), machine.loading():
        raise ImportError
    assert gc.isenabled()
