"""The machine: the cores and the memory that this process may use, locks, the allocator, and which CPU it is.

The one module that knows which system it runs on; it needs the standard library alone. Everything here is tested on
Linux. The paths for macOS and Windows are written after their documentation and have not been run there. Whatever a
system lacks is answered by the next best thing, never by an exception.
"""

from __future__ import annotations

import ctypes
import errno
import gc
import os
import platform
import signal
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import IO, Self

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]
try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

PROC, CGROUP = Path("/proc"), Path("/sys/fs/cgroup")
UNLIMITED = 1 << 60  # bytes; cgroups v1 writes "no limit" as a number near 2^63


# Cores


def all_cores() -> int:
    """Cores of the machine, whoever may use them."""
    return os.cpu_count() or 1


def cores() -> int:
    """Cores that this process may use: those of its affinity, of its container's quota, and of the machine."""
    found = [all_cores()]
    with suppress(AttributeError, OSError):
        found.append(len(os.sched_getaffinity(0)))
    found += [max(1, int(share)) for share in _core_quotas()]
    return max(1, min(found))


def _core_quotas() -> Iterator[float]:
    """Cores that a container's control groups allow, which may be fractions."""
    for folder in _groups("cpu"):
        quota, period = [*_words(folder / "cpu.max"), "", ""][:2]  # version 2
        if not quota:
            quota, period = ("".join(_words(folder / f"cpu.cfs_{name}_us")) for name in ("quota", "period"))
        with suppress(ValueError, ZeroDivisionError):
            if float(quota) > 0:
                yield float(quota) / float(period)


def _groups(controller: str) -> Iterator[Path]:
    """The folders of this process's control group and of those above it, of version 2 and of version 1."""
    for line in _lines(PROC / "self" / "cgroup"):
        _, names, path = [*line.split(":", 2), "", ""][:3]
        if names and controller not in names.split(","):
            continue
        root = CGROUP / controller if names else CGROUP
        inner = root / path.strip("/")
        yield from [inner, *(folder for folder in inner.parents if folder.is_relative_to(root))]


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []


def _words(path: Path) -> list[str]:
    return " ".join(_lines(path)).split()


# Memory


def memory_available() -> int:
    """Bytes that can still be had: free memory of the machine, or of the container where that is less."""
    limits = [room for folder in _groups("memory") if (room := _group_room(folder)) is not None]
    return max(0, min([_system_memory(), *limits]))


def memory_is_short(error: BaseException) -> bool:
    """Whether an error says that there is no more memory; torch has no class for that, only words."""
    refused = isinstance(error, OSError) and error.errno == errno.ENOMEM
    return isinstance(error, MemoryError) or refused or "allocate memory" in str(error)


def _group_room(folder: Path) -> int | None:
    """Bytes left below the limit of a control group; file pages that the kernel would give back count as free."""
    for limit, used, reclaimable in (
        ("memory.max", "memory.current", "inactive_file"),
        ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    ):
        try:
            most, now = (int((folder / name).read_text()) for name in (limit, used))
        except (OSError, ValueError):  # no such file, or "max"
            continue
        if most >= UNLIMITED:
            continue
        stat = dict(line.split(" ", 1) for line in _lines(folder / "memory.stat") if " " in line)
        return most - now + int(stat.get(reclaimable, 0))
    return None


def _system_memory() -> int:
    """Free bytes of the whole machine; where only the total is known, that."""
    for line in _lines(PROC / "meminfo"):
        if line.startswith("MemAvailable"):
            return int(line.split()[1]) * 1024
    if sys.platform == "win32":
        return _windows_memory()
    with suppress(AttributeError, ValueError, OSError):
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return UNLIMITED


def memory_total() -> int:
    """Bytes of the machine, or of the container where that is less."""
    found = [int(line.split()[1]) * 1024 for line in _lines(PROC / "meminfo") if line.startswith("MemTotal")]
    for folder in _groups("memory"):
        for name in ("memory.max", "memory.limit_in_bytes"):
            with suppress(OSError, ValueError):
                found.append(int((folder / name).read_text()))
    return min(found, default=_system_memory())


def memory_resident() -> int:
    """Bytes of memory that this process occupies now."""
    pages = _words(PROC / "self" / "statm")
    if len(pages) > 1 and resource is not None:
        return int(pages[1]) * resource.getpagesize()
    return memory_peak()


def memory_peak() -> int:
    """Largest number of bytes that this process has occupied, since it began or since `forget_peak`; 0 if unknown."""
    for line in _lines(PROC / "self" / "status"):
        if line.startswith("VmHWM"):
            return int(line.split()[1]) * 1024
    if resource is None:
        return 0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def forget_peak() -> None:
    """On Linux, give back what is free and begin anew: a process that does run after run tells each one's peak."""
    gc.collect()
    with suppress(OSError, TypeError, AttributeError):  # another system, or another C library
        ctypes.CDLL(None).malloc_trim(0)
        (PROC / "self" / "clear_refs").write_text("5")


def _windows_memory() -> int:
    class Status(ctypes.Structure):
        _fields_ = (
            ("length", ctypes.c_ulong), ("load", ctypes.c_ulong), ("total", ctypes.c_ulonglong),
            ("available", ctypes.c_ulonglong), ("rest", ctypes.c_ulonglong * 5),
        )  # fmt: skip

    status = Status(length=ctypes.sizeof(Status))
    known = ctypes.windll.kernel32.GlobalMemoryStatusEx(ctypes.byref(status))  # type: ignore[attr-defined]
    return int(status.available) if known else UNLIMITED


@contextmanager
def loading() -> Iterator[None]:
    """Import libraries without looking for garbage in between: there is next to none, and each of the looks passes
    over all that is loaded already. For torch and what weft needs beside it that is a tenth of the time."""
    looked = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if looked:
            gc.enable()


# The allocator

TRIM_THRESHOLD, TOP_PAD, MMAP_MAX, PERTURB = -1, -2, -4, -6  # of glibc's mallopt(3)
PAD = 64 << 20  # bytes by which the heap grows at least: fewer calls of the kernel


def keep_freed_memory() -> bool:
    """Let this process keep what it frees, so that a training step finds the pages of the step before.

    glibc returns large blocks to the kernel as soon as they are freed, and a step of a small network frees and asks
    for a gigabyte: 50,000 page faults, each answered with a page of zeros. Kept, a step of Mixer (1.1 M parameters,
    batch 128) took 20 to 25 % less time on one thread, and the peak of the process rose by 2 %. True where the C
    library is one that can be told so.
    """
    return _mallopt({MMAP_MAX: 0, TRIM_THRESHOLD: -1, TOP_PAD: PAD})  # no blocks of their own, no trimming


def spoil_fresh_memory() -> bool:
    """Let this process find 3.4e38 in all memory that it asks for, be it read as float32 or as bf16.

    Where a routine leaves a part of its result unwritten, this shows at once; otherwise what was there before may even
    be the right numbers. True where the C library is one that can be told so.
    """
    return _mallopt({PERTURB: 0x80})  # freed bytes become 0x80, those given out its complement, 0x7f


def leave_fresh_memory() -> bool:
    """Undo `spoil_fresh_memory`."""
    return _mallopt({PERTURB: 0})


def _mallopt(settings: dict[int, int]) -> bool:
    try:
        library = ctypes.CDLL(None)
        library.gnu_get_libc_version  # noqa: B018 (other libraries have mallopt with other numbers)
        return all(library.mallopt(name, value) == 1 for name, value in settings.items())
    except (OSError, TypeError, AttributeError):
        return False


# Files


def open_own(path: Path) -> IO[str]:
    """A file of weft's own, made if it is not there, for reading and appending.

    A link or a pipe in its place is refused: it may lead to a file of someone else.
    """
    plain = "remove what stands there, which is no plain file"
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0)
    if path.is_symlink():  # Windows knows no O_NOFOLLOW
        raise OSError(errno.ELOOP, plain, str(path))
    number = os.open(path, flags, 0o666)
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise OSError(errno.EINVAL, plain, str(path))
    return os.fdopen(number, "a+", encoding="utf-8", newline="", errors="backslashreplace")


# Locks


class Busy(Exception):
    """Another process holds the lock."""


def held_locks() -> set[int] | None:
    """The numbers (inodes) of all files that a process of this system holds by flock; None where that is not told.

    To ask leaves the locks alone: who takes one to see whether it is free may be in the way of its next holder.
    """
    lines = [line.split() for line in _lines(PROC / "locks")]
    if not lines and not (PROC / "locks").is_file():
        return None
    return {int(words[5].rpartition(":")[2]) for words in lines if words[1:2] == ["FLOCK"] and len(words) > 5}


class Lock:
    """A file that one process holds at a time; the system frees it when its holder ends, however that happens.

    flock(2) where there is one, msvcrt on Windows, else (also on file systems without flock) a file that holds its
    owner's number. Nothing but that is deleted, and what stands in the file is left alone.
    """

    TAKEN = frozenset({errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES})  # flock's words for "another has it"
    WRITTEN = 10.0  # seconds after which an owner that has not written its number has died

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: IO[str] | None = None
        self._owned = False

    def acquire(self, wait: float = 0.0) -> Self:
        """Take the lock, waiting up to `wait` seconds for it; `Busy` when another process still has it."""
        deadline = time.monotonic() + wait
        while not self._try():
            if time.monotonic() >= deadline:
                raise Busy(str(self.path))
            time.sleep(min(0.05, max(0.0, deadline - time.monotonic())))
        return self

    def note(self, text: str) -> None:
        """Write into the file what its holder is doing, for others to read."""
        assert self._file is not None
        with suppress(OSError):  # a full disk must not matter here
            self._file.seek(0)
            self._file.truncate()
            self._file.write(text)
            self._file.flush()

    def release(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
        if self._owned:
            self._owned = False
            self._owner.unlink(missing_ok=True)

    def is_busy(self) -> bool:
        """Whether another process has the lock, whose file is there; to see that, it is taken for a moment."""
        try:
            self.acquire().release()
        except Busy:
            return True
        return False

    @property
    def held(self) -> bool:
        return self._file is not None

    @property
    def _owner(self) -> Path:
        return self.path.with_name(f"{self.path.name}.owner")

    def _try(self) -> bool:
        if self._file is not None:
            raise Busy(str(self.path))
        self._file = open_own(self.path)
        taken = False
        try:
            taken = self._take(self._file) and self._still_there(self._file)
        finally:
            if not taken:
                self.release()
        return taken

    def _still_there(self, file: IO[str]) -> bool:
        """Whether the file that was locked is the one that others find: its last holder may have removed it."""
        try:
            return os.path.samestat(os.fstat(file.fileno()), self.path.lstat())
        except OSError:
            return False

    def _take(self, file: IO[str]) -> bool:
        if fcntl is not None:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                return False if error.errno in self.TAKEN else self._own()
            return True
        if sys.platform == "win32":
            import msvcrt

            file.seek(UNLIMITED)  # locks of Windows are mandatory: one beyond the content leaves that readable
            try:
                msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
            except OSError:
                return False
            return True
        return self._own()

    def _own(self) -> bool:
        """Without a lock of the system: a file created once, which counts for as long as its owner lives."""
        for _ in range(2):
            try:
                with self._owner.open("x") as file:
                    self._owned = True
                    file.write(str(os.getpid()))
                return True
            except FileExistsError:
                if self._owner_lives():
                    return False
                self._owner.unlink(missing_ok=True)
        return False

    def _owner_lives(self) -> bool:
        """Whether the owner's process is there; one that has made its file a moment ago may still write its number."""
        number = "".join(_words(self._owner))
        if number.isdecimal():
            return is_running(int(number))
        with suppress(FileNotFoundError):
            return time.time() - self._owner.lstat().st_mtime < self.WRITTEN
        return False

    def __enter__(self) -> Self:
        return self if self.held else self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


def lock_kind() -> str:
    """How locks are held here."""
    if fcntl is not None:
        return "flock"
    return "msvcrt" if sys.platform == "win32" else "a file with its owner's number"


# Processes


def is_running(process: int) -> bool:
    """Whether there is a process of this number (on Windows: taken for granted, since asking would end it)."""
    if process <= 0:
        return False
    if sys.platform == "win32":
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def born(process: int) -> str:
    """When a process began, in a word that no later process of the same number has; empty where it has ended.

    Where the system does not tell, the word is the same for all.
    """
    words = _words(PROC / str(process) / "stat")
    if not words:
        return "" if (PROC / "self").exists() or not is_running(process) else "unknown"
    words = " ".join(words).rpartition(")")[2].split()  # the name, in brackets, may hold blanks
    return "" if words[0] == "Z" else words[19]


KILL = getattr(signal, "SIGKILL", signal.SIGTERM)  # the signal that none survives; Windows has one for all


def ends_with_parent(number: int = signal.SIGTERM, parent: int | None = None) -> bool:
    """Have the system send this process a signal when its parent dies; False where it cannot.

    Where the `parent`, given by its number, has died before, this process ends at once.
    """
    done = False
    with suppress(OSError, TypeError, AttributeError):
        done = int(ctypes.CDLL(None).prctl(1, int(number))) == 0  # PR_SET_PDEATHSIG, of Linux
    if parent is not None and os.getppid() != parent:
        os._exit(1)
    return done


MEANINGS = {
    "SIGILL": "an instruction that this CPU does not have, or that its virtual machine does not let through",
    "SIGKILL": "killed from outside; often memory was short",
    "SIGSEGV": "a fault in compiled code",
    "SIGBUS": "a fault in memory, or a full disk below a mapped file",
    "SIGFPE": "a fault in compiled arithmetic",
    "SIGABRT": "given up by compiled code",
}
REMEDIES = {
    "SIGILL": "run `weft doctor` and train with --precision float32 --no-compile",
    "SIGKILL": "use a smaller --batch-size or network, or free memory",
}


def death(code: int) -> str:
    """How a process ended, from its exit code (minus the signal's number), with what that means and a remedy."""
    if code >= 0:
        return f"exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    meaning = MEANINGS.get(name)
    remedy = REMEDIES.get(name)
    return name + (f" ({meaning})" if meaning else "") + (f"; {remedy}" if remedy else "")


# The CPU


@lru_cache
def cpu_model() -> str:
    """The processor's name, as the kernel gives it."""
    return next(iter(_cpuinfo("model name")), "") or platform.processor() or platform.machine()


@lru_cache
def cpu_flags() -> tuple[str, ...]:
    """Instruction sets that the processor advertises, sorted; empty where the system does not list them."""
    return tuple(sorted(next(iter(_cpuinfo("flags", "Features")), "").split()))


def _cpuinfo(*names: str) -> Iterator[str]:
    for line in _lines(PROC / "cpuinfo"):
        name, _, value = line.partition(":")
        if name.strip() in names:
            yield value.strip()
