"""Runs as tasks of a real Ray cluster of two nodes on this machine: the same bits, a lost node, a killed driver.

Drivers are the real command, in processes of their own; nothing here waits for a time that a busy machine may exceed.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from local_cluster import LocalCluster
from weft.commands.compare import Arguments
from weft.commands.main import parse
from weft.studies.compare.comparison import compare

pytest.importorskip("ray", reason="the extra `cluster` is not installed")
pytestmark = pytest.mark.slow

FILES = ("model.safetensors", "predictions.safetensors")
ASKED = ["digits", "--amount", "10k", "--steps", "30", "--checkpoint-every", "5"]
ASKED += ["--no-controls", "--no-baseline", "--trials", "0", "--jobs", "2"]
TWELVE = ["--models", "mlp,vit_nano_p4_32,mixer_nano_p4_32,resnet8_cifar", "--seeds", "3"]
FOUR = ["--models", "vit_nano_p4_32,mixer_nano_p4_32", "--seeds", "2"]


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(nodes=2) as made:
        yield made


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory, quick_workers: None) -> dict[str, bytes]:
    """What the same runs come to without Ray."""
    folder = tmp_path_factory.mktemp("here")
    compare(parse(Arguments, "compare", [*ASKED, *TWELVE]).config, folder, "", lambda _: None)
    return content(folder)


def content(folder: Path) -> dict[str, bytes]:
    """Weights, answers and scores of every run."""
    found = {}
    for run in sorted((folder / "runs").iterdir()):
        scores = json.loads((run / "record.json").read_text())["metrics"]
        found[run.name] = b"".join((run / name).read_bytes() for name in FILES) + json.dumps(scores).encode()
    return found


def driver(cluster: LocalCluster, folder: Path, which: list[str]) -> subprocess.Popen[str]:
    """The command, on the cluster."""
    words = [*ASKED, *which, "--output", str(folder), "--on", f"ray:{cluster.address}"]
    return started(cluster, "-m", "weft", "compare", *words)


def started(cluster: LocalCluster, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=cluster.environment,
        start_new_session=True,
    )


def ended(process: subprocess.Popen[str]) -> str:
    """What it printed; it must have ended well."""
    printed, _ = process.communicate()
    assert process.returncode == 0, printed
    return printed


def in_the_middle(process: subprocess.Popen[str], folder: Path) -> None:
    """Wait until a run has a checkpoint and has not finished."""
    while process.poll() is None:
        runs = {path.parents[1] for path in folder.glob("runs/*/checkpoints/*")}
        if any(not (run / "record.json").exists() for run in runs):
            return
        time.sleep(0.01)
    raise AssertionError(f"no run was seen in the middle: {process.communicate()[0]}")


def test_twelve_runs_on_two_nodes_are_bit_for_bit_those_of_one_machine(
    cluster: LocalCluster, here: dict[str, bytes], tmp_path: Path
) -> None:
    printed = ended(driver(cluster, tmp_path, TWELVE))
    assert "on Ray: 2 nodes, 2 runs at a time on 1 core each" in printed
    assert len(here) == 12 and content(tmp_path) == here


SCRIPT = """
import sys
from pathlib import Path
from weft.errors import WeftError
from weft.studies.engine.place import open_pool
from weft.studies.engine.worker import WorkerDied

def dies():
    import os, signal
    os.kill(os.getpid(), signal.SIGKILL)

where, folder = sys.argv[1], Path(sys.argv[2])
try:
    open_pool(where, folder, print, threads=64)
except WeftError as error:
    print(error, list(folder.iterdir()))
with open_pool(where, folder, print) as pool:
    pool.workers[0].ask(dies)
    try:
        pool.workers[0].answer()
    except WorkerDied as death:
        print(death)
"""


def test_a_cluster_says_what_it_cannot_offer_and_gives_up_a_task_that_always_dies(
    cluster: LocalCluster, tmp_path: Path
) -> None:
    """In one process: after a refusal the cluster is left, and can be joined again."""
    printed = ended(started(cluster, "-c", SCRIPT, f"ray:{cluster.address}", str(tmp_path)))
    assert "a run asks for 64 cores and no node of the cluster offers more than 1; use fewer --threads" in printed
    assert "--num-cpus []" in printed
    assert "its process was lost in each of 4 tries" in printed


def test_a_driver_and_a_node_that_are_killed_in_the_middle_change_nothing(
    cluster: LocalCluster, here: dict[str, bytes], tmp_path: Path
) -> None:
    """First the driver, which is started again; then a node, which is not: this is the last test on the cluster."""
    first = driver(cluster, tmp_path, FOUR)
    in_the_middle(first, tmp_path)
    os.killpg(first.pid, signal.SIGKILL)
    first.communicate()
    done = len(finished(tmp_path))
    second = driver(cluster, tmp_path, FOUR)
    while len(finished(tmp_path)) <= done:  # so that the runs in the middle are its own
        assert second.poll() is None, second.communicate()[0]
        time.sleep(0.01)
    in_the_middle(second, tmp_path)
    cluster.kill_node()
    ended(second)
    assert content(tmp_path) == part(here, tmp_path)


def finished(folder: Path) -> list[Path]:
    return list(folder.glob("runs/*/record.json"))


def part(here: dict[str, bytes], folder: Path) -> dict[str, bytes]:
    """The runs that a folder has."""
    names = {path.name for path in (folder / "runs").iterdir()}
    assert len(names) == 4
    return {name: here[name] for name in names}
