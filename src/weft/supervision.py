"""A process that outlives the one that computes, to tell how that ended when a signal takes it without a word.

`supervise` forks before torch is loaded. The child goes on as the command; the parent passes signals on to it, waits,
and ends with its exit code, or tells in a sentence which signal it died by and what was under way. A parent that is
killed takes its child with it at once. Only where the system has all that is needed (Linux); elsewhere it does nothing.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from weft import machine
from weft.terminal import complain

PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP) if hasattr(signal, "SIGHUP") else ()
FROM_KERNEL = 0x80  # si_code of a signal that the terminal sent, to the child as well

_concern: mmap.mmap | None = None  # shared with the parent: the folder that the child works in


def concerns(folder: Path) -> None:
    """Tell the supervisor, if there is one, which folder is being worked in."""
    if _concern is not None:
        _concern.seek(0)
        _concern.write(os.fsencode(folder.resolve())[: len(_concern) - 1] + b"\0")


def supervise(explain: Callable[[int, Path | None], str]) -> None:
    """Return in a child process; the parent stays behind and ends with the child, saying `explain(code, folder)` if
    a signal ended it."""
    global _concern
    if not hasattr(signal, "sigwaitinfo") or sys.platform != "linux" or threading.active_count() > 1:
        return
    for stream in filter(None, (sys.stdout, sys.stderr)):  # a closed one is None
        stream.flush()
    parent = os.getpid()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {*PASSED_ON, signal.SIGCHLD})
    try:
        _concern = mmap.mmap(-1, 4096)
        child = os.fork()
    except OSError:  # no more processes, or no memory: then without
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return
    if child:
        watch(child, explain)
    machine.ends_with_parent(machine.KILL, parent)
    signal.pthread_sigmask(signal.SIG_SETMASK, before)


def watch(child: int, explain: Callable[[int, Path | None], str]) -> NoReturn:
    """Pass signals on until the child has ended; then end as it did."""
    while True:
        received = signal.sigwaitinfo({*PASSED_ON, signal.SIGCHLD})
        if received.si_signo != signal.SIGCHLD:
            if received.si_code != FROM_KERNEL:
                os.kill(child, received.si_signo)
            continue
        ended, status = os.waitpid(child, os.WNOHANG | os.WUNTRACED)
        if ended and not os.WIFSTOPPED(status):
            finish(os.waitstatus_to_exitcode(status), explain)


def finish(code: int, explain: Callable[[int, Path | None], str]) -> NoReturn:
    if code < 0:
        assert _concern is not None
        name = _concern[:].partition(b"\0")[0]
        sentence = explain(code, Path(os.fsdecode(name)) if name else None)
        with contextlib.suppress(OSError, ValueError, AttributeError):  # standard error may be closed
            complain(sentence)
    os._exit(1 if code < 0 else code)
