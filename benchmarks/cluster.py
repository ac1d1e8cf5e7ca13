"""The same comparison with and without Ray: equal bit for bit, also when a node or the driver is killed in the middle.

    python benchmarks/cluster.py equal [--times 10]     # 12 runs: without Ray, on two nodes, node or driver killed
    python benchmarks/cluster.py overhead [--steps N]   # runs of about a minute: share of the time that is not training
    python benchmarks/cluster.py scheduling [--runs N]  # runs of no length: seconds to schedule them all
    python benchmarks/cluster.py row SOURCE [--candidate resnet]   # one run of e9's cpu scale against its plan

The cluster is two worker nodes on this machine, each a raylet with its own object store, beside a head without cores.
Records go to docs/results/cluster.json.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

os.environ.setdefault("RAY_worker_niceness", "0")  # else Ray's processes give way to all others
os.environ.setdefault("OMP_NUM_THREADS", "1")
RESULTS = Path(__file__).parent.parent / "docs" / "results" / "cluster.json"
QUESTION = ["digits", "--models", "mlp,vit_nano_p4_32,mixer_nano_p4_32,resnet8_cifar", "--seeds", "3", "--no-controls",
            "--no-baseline", "--trials", "0", "--jobs", "2", "--checkpoint-every", "20"]  # fmt: skip
STORE = 80 << 20  # bytes of an object store


@contextmanager
def local_cluster(nodes: int = 2) -> Iterator[Any]:
    """A head and worker nodes of one core each; the nodes are processes of their own."""
    from ray.cluster_utils import Cluster

    cluster = Cluster(
        initialize_head=True,
        head_node_args={"num_cpus": 0, "object_store_memory": STORE, "include_dashboard": False},
    )
    try:
        for _ in range(nodes):
            cluster.add_node(num_cpus=1, object_store_memory=STORE)
        cluster.wait_for_nodes()
        yield cluster
    finally:
        cluster.shutdown()


def command(folder: Path, steps: int, address: str | None = None) -> list[str]:
    words = [sys.executable, "-m", "weft", "compare", *QUESTION, "--steps", str(steps), "--output", str(folder)]
    return [*words, *(["--on", f"ray:{address}"] if address else [])]


def content(folder: Path) -> dict[str, str]:
    """Every run's weights, answers and score, as one digest each."""
    found = {}
    for run in sorted((folder / "runs").iterdir()):
        record = json.loads((run / "record.json").read_text())
        parts = [(run / name).read_bytes() for name in ("model.safetensors", "predictions.safetensors")]
        parts.append(json.dumps(record["metrics"], sort_keys=True).encode())
        found[run.name] = hashlib.sha256(b"".join(parts)).hexdigest()
    return found


def begun(folder: Path) -> int:
    """Runs that have begun and not ended."""
    return sum(1 for path in folder.glob("runs/*/checkpoints/*") if not (path.parents[1] / "record.json").exists())


def carried_out(folder: Path, steps: int, cluster: Any = None, kill: str = "") -> float:
    """A comparison from beginning to end, with something killed as soon as a run has its first checkpoint."""
    started = time.perf_counter()
    words = command(folder, steps, cluster.address if cluster else None)
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, start_new_session=True)
    while kill and process.poll() is None and not begun(folder):
        time.sleep(0.05)
    if kill == "node":
        cluster.remove_node(next(iter(cluster.worker_nodes)), allow_graceful=False)
        cluster.add_node(num_cpus=1, object_store_memory=STORE)
    if kill == "driver":
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        process = subprocess.Popen(words, stdout=subprocess.DEVNULL, start_new_session=True)
    if process.wait() != 0:
        raise SystemExit(f"the comparison ended with {process.returncode}: {' '.join(words)}")
    return time.perf_counter() - started


def equal(steps: int, times: int) -> dict[str, Any]:
    """How often the runs are the same as without Ray."""
    found: dict[str, Any] = {"steps": steps, "times": times, "runs": 12}
    with tempfile.TemporaryDirectory() as place:
        carried_out(Path(place) / "here", steps)
        expected = content(Path(place) / "here")
        for kill in ("", "node", "driver"):
            same = 0
            for number in range(times):
                folder = Path(place) / f"{kill or 'ray'}-{number}"
                with local_cluster() as cluster:
                    took = carried_out(folder, steps, cluster, kill)
                same += content(folder) == expected
                print(f"{kill or 'nothing'} killed: {same} of {number + 1} equal, {took:.0f} s", flush=True)
            found[f"{kill or 'nothing'} killed"] = same
    return found


def overhead(steps: int) -> dict[str, Any]:
    """Seconds of all runs from asking to answer, beyond their training loops, as a share of these."""
    with tempfile.TemporaryDirectory() as place, local_cluster() as cluster:
        found = {}
        for name, where in (("here", None), ("ray", cluster)):
            folder = Path(place) / name
            took = carried_out(folder, steps, where)
            records = [json.loads(path.read_text()) for path in folder.glob("runs/*/record.json")]
            training = sum(record["wall_seconds"] for record in records)
            found[name] = {"wall": round(took, 1), "training": round(training, 1), "runs": len(records)}
    apart = found["ray"]["wall"] - found["here"]["wall"]
    return {**found, "overhead": round(2 * apart / found["here"]["training"], 4)}  # two runs at a time


def nothing(config: Any, path: Path, known: Any = None) -> str:
    """A run of no length: what the study needs of its record."""
    path.mkdir(parents=True, exist_ok=True)
    record = {"status": "finished", "metric": "accuracy", "metrics": {"accuracy": 1.0}, "config": {}, "curve": []}
    (path / "record.json").write_text(json.dumps(record))
    return "finished"


def scheduling(runs: int) -> dict[str, Any]:
    """Seconds to hand out so many runs that do nothing, by the very loop that real ones go through."""
    from weft.studies.compare.candidates import Candidate, Facts
    from weft.studies.engine import runner, tasks
    from weft.studies.engine.place import open_pool
    from weft.studies.engine.study import Job, Study
    from weft.training.config import RunConfig

    facts = Facts("nothing", "vector", "classes", 2, "none", 1, {"in_features": 1})
    config = RunConfig(source="nothing", model="logistic")
    jobs = [Job(f"logistic {n // 20}", replace(config, seed=n % 20), f"{n // 20}") for n in range(runs)]
    with tempfile.TemporaryDirectory() as place, local_cluster() as cluster:
        folder = Path(place)
        study = Study(folder, "nothing", facts, [Candidate("logistic", "logistic", "classical")], jobs)
        with open_pool(f"ray:{cluster.address}", folder, print) as pool:
            before, tasks.run_one = tasks.run_one, nothing
            runner.end_of = lambda study, pool, worker, job: runner.End(str(worker.answer()))
            started = time.perf_counter()
            runner.run_jobs(study, pool, jobs, lambda _: None)
            took = time.perf_counter() - started
            tasks.run_one = before
        done = sum(1 for _ in folder.glob("runs/*/record.json"))
    return {"runs": done, "seconds": round(took, 2)}


def row(source: str, candidate: str) -> dict[str, Any]:
    """One run of the cpu scale, against what its plan says of it."""
    from weft.studies.compare.dry_run import paces_of, run_seconds
    from weft.studies.engine import tasks
    from weft.studies.engine.runner import Pool
    from weft.studies.experiments.families.e9_cost_front import plan_front
    from weft.studies.experiments.families.scales import SCALES, question
    from weft.studies.experiments.registry import Request

    asked = question(Request(Path("nowhere"), source, 1, None, "", print))
    with Pool(2) as pool, tempfile.TemporaryDirectory() as place:
        _, planned = plan_front(asked, SCALES["cpu"], Path(place), "", pool)
        config = next(job.labelled for job in planned.jobs if job.candidate == candidate)
        config = replace(config, execution=replace(config.execution, threads=1))
        predicted = run_seconds(config, paces_of(pool, [config, config]))
        started = time.perf_counter()
        for number, worker in enumerate(pool.workers):  # both cores busy, as in the study
            worker.ask(tasks.run_one, replace(config, seed=number), Path(place) / str(number), None)
        pool.answers(tasks.run_one, pool.workers)
        took = time.perf_counter() - started
    return {"candidate": candidate, "predicted": round(predicted, 1), "took": round(took, 1)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("equal", "overhead", "scheduling", "row"))
    parser.add_argument("source", nargs="?", default="digits")
    parser.add_argument("--times", type=int, default=10)
    parser.add_argument("--steps", type=int, default=None)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--candidate", default="resnet")
    parser.add_argument("--keep", action="store_true", help="write what was found into docs/results/cluster.json")
    asked = parser.parse_args()
    found = {
        "equal": lambda: equal(asked.steps or 120, asked.times),
        "overhead": lambda: overhead(asked.steps or 4000),
        "scheduling": lambda: scheduling(asked.runs),
        "row": lambda: row(asked.source, asked.candidate),
    }[asked.what]()
    print(json.dumps(found, indent=1))
    if asked.keep:
        RESULTS.parent.mkdir(parents=True, exist_ok=True)
        records = json.loads(RESULTS.read_text()) if RESULTS.is_file() else {}
        RESULTS.write_text(json.dumps({**records, asked.what: found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
