"""Freed memory stays in the process: later steps need no new pages from the kernel."""

from __future__ import annotations

import ctypes
import resource
import subprocess
import sys

import pytest

from weft import machine

FAULTS = """
import resource, sys, torch
from weft.machine import keep_freed_memory

if sys.argv[1] == "kept":
    assert keep_freed_memory()
torch.set_num_threads(1)
for number in range(30):
    if number == 20:  # the heap has found its size
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    blocks = [torch.ones(2**20 * megabytes // 4) for megabytes in (48, 40, 64)]
    del blocks
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""

glibc = pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "gnu_get_libc_version"), reason="the C library is not glibc")


def faults(how: str) -> int:
    """Page faults of the last ten rounds that take and free 152 MB each, in a process of its own."""
    return int(subprocess.run([sys.executable, "-c", FAULTS, how], check=True, capture_output=True, text=True).stdout)


@glibc
def test_freed_memory_is_used_again_without_new_pages() -> None:
    pages = 10 * (152 << 20) // resource.getpagesize()
    assert faults("free") > 0.5 * pages, "glibc gives large blocks back unless told otherwise"
    assert faults("kept") < 0.05 * pages


def test_other_c_libraries_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    class Musl:
        """A C library without glibc's functions."""

    monkeypatch.setattr(machine.ctypes, "CDLL", lambda name: Musl())
    assert not machine.keep_freed_memory()
