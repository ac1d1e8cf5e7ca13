"""Fixtures shared by all tests: where the real datasets are, a browser, and one thread so that workers do not fight
over cores.
"""

from __future__ import annotations

import getpass
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # where a test has two threads, a waiting one leaves its core alone
# a shell that starts the tests in the background, or nohup, lets them and their processes ignore signals
signal.signal(signal.SIGINT, signal.default_int_handler)
if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
# a checkpoint waits for the disk, which no test is about: files are kept in memory where there is plenty
MEMORY = Path("/dev/shm")
if MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > 4 << 30:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))
# the cache of whoever runs the tests is left alone; one folder for all workers, kept for the next time
os.environ.setdefault("WEFT_CACHE", str(Path(tempfile.gettempdir()) / f"weft-tests-{getpass.getuser()}"))

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-headless-shell")
FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
DATASETS = Path(os.environ.get("WEFT_DATASETS", Path(__file__).parents[2] / "shared" / "data"))


@pytest.fixture(scope="session", autouse=True)
def listed_networks() -> None:
    """The names of networks are in the cache, as they are after the first command that anybody runs."""
    from weft.networks.listing import listing

    listing()


@pytest.fixture(scope="session")
def datasets() -> Path:
    """The folder of real datasets; tests that need it are skipped where it is absent."""
    if not DATASETS.is_dir():
        pytest.skip("no folder of datasets: set WEFT_DATASETS")
    return DATASETS


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A Chromium that playwright drives; tests that need it are skipped where one of the two is missing."""
    playwright = pytest.importorskip("playwright.sync_api")
    if CHROMIUM is None:
        pytest.skip("no Chromium")
    with playwright.sync_playwright() as started:
        found = started.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield found
        found.close()
