"""Runs as tasks of a real Ray cluster of two nodes on this machine: the same bits, a lost node, a killed driver."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from studies.fabricated import asked
from weft.errors import WeftError
from weft.studies.compare.comparison import compare
from weft.studies.engine.cluster.connection import restore
from weft.studies.engine.place import open_pool
from weft.studies.engine.study import Study
from weft.studies.engine.worker import WorkerDied

pytest.importorskip("ray", reason="the extra `cluster` is not installed")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        "WEFT_TEST_CLUSTER" not in os.environ,
        reason="starts a Ray cluster of its own, which takes minutes on a busy machine: set WEFT_TEST_CLUSTER=1",
    ),
]

STORE = 80 << 20  # bytes of an object store


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A head without cores and two worker nodes of one, each a process with an object store of its own."""
    handlers: dict[int, Any] = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_worker_niceness", "0")
        patch.setenv("RAY_health_check_period_ms", "1000")
        from ray.cluster_utils import Cluster

        made = Cluster(
            initialize_head=True,
            head_node_args={"num_cpus": 0, "object_store_memory": STORE, "include_dashboard": False},
        )
        try:
            for _ in range(2):
                made.add_node(num_cpus=1, object_store_memory=STORE)
            yield made
        finally:
            made.shutdown()
            restore(handlers)  # which a cluster takes over for the whole process


def bits(study: Study) -> dict[str, bytes]:
    """Weights and answers of every run."""
    files = ("model.safetensors", "predictions.safetensors")
    return {
        job.name: b"".join((study.run_folder(job).path / name).read_bytes() for name in files) for job in study.jobs
    }


QUESTION = {"baseline": False, "trials": 0, "jobs": 2}


def test_a_cluster_refuses_gives_up_and_computes_the_same_bits(
    cluster: Any, tmp_path: Path, quick_workers: None
) -> None:
    """One test, since a cluster takes longer to start than all of this."""
    what_it_cannot_offer_is_said_before_anything_starts(cluster.address, tmp_path)
    a_task_that_always_dies_is_given_up_after_some_tries(cluster.address, tmp_path)
    runs_survive_the_driver_and_a_node(cluster, tmp_path)


def what_it_cannot_offer_is_said_before_anything_starts(address: str, folder: Path) -> None:
    import ray

    with pytest.raises(WeftError, match="a run asks for 64 cores and no node of the cluster offers more than 1"):
        open_pool(f"ray:{address}", folder, lambda _: None, threads=64)
    ray.shutdown()
    with pytest.raises(WeftError, match="no node of the cluster offers a GPU"):
        open_pool(f"ray:{address}", folder, lambda _: None, gpu=True)
    ray.shutdown()
    assert not list(folder.iterdir())


def a_task_that_always_dies_is_given_up_after_some_tries(address: str, folder: Path) -> None:
    with open_pool(f"ray:{address}", folder, lambda _: None) as pool:
        worker = pool.workers[0]
        worker.ask(dying())
        with pytest.raises(WorkerDied, match="in each of 4 tries"):
            worker.answer()


def dying() -> Callable[[], None]:
    """A task whose process is killed; it travels whole, since nodes know nothing of the tests."""

    def dies() -> None:
        import os
        import signal

        os.kill(os.getpid(), signal.SIGKILL)

    return dies


def runs_survive_the_driver_and_a_node(cluster: Any, place: Path) -> None:
    """The driver is killed in the middle, a node is taken away; weights and answers are those of one machine."""
    here = compare(asked(**QUESTION), place / "here", "", lambda _: None)
    folder, said = place / "there", []
    words = ["compare", "digits", "--models", "mlp,vit_nano_p4_32", "--amount", "10k", "--seeds", "2", "--steps", "12"]
    words += ["--no-controls", "--no-baseline", "--trials", "0", "--jobs", "2", "--output", str(folder)]
    driver = subprocess.Popen(
        [sys.executable, "-m", "weft", *words, "--on", f"ray:{cluster.address}"],
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )
    while driver.poll() is None and not any(folder.glob("runs/*/run.yaml")):
        time.sleep(0.02)
    os.killpg(driver.pid, signal.SIGKILL)
    driver.wait()
    cluster.remove_node(next(iter(cluster.worker_nodes)), allow_graceful=False)
    there = compare(asked(**QUESTION, on=f"ray:{cluster.address}"), folder, "", said.append)
    assert any("on Ray: 1 nodes, 1 runs at a time" in sentence for sentence in said)
    assert bits(there) == bits(here)
