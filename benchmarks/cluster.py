"""The same comparison with and without Ray: equal bit for bit, also when a node or the driver is killed in the middle.

    python benchmarks/cluster.py equal [--times 10] [--killed node driver]   # 12 runs, with Ray and without
    python benchmarks/cluster.py overhead [--runs 12]   # runs of about a minute: share of the time that Ray costs
    python benchmarks/cluster.py scheduling [--runs N]  # runs of no length: seconds to schedule them all
    python benchmarks/cluster.py row SOURCE [--study e10] [--candidate resnet]   # a row at cpu scale against its plan

The cluster is two worker nodes on this machine, each a raylet with its own object store, beside a head without cores
(tests/local_cluster.py). Each prints a line for benchmarks/RESULTS.md, with the load of the machine before and after.
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
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from local_cluster import LocalCluster

os.environ.setdefault("OMP_NUM_THREADS", "1")
NETWORKS = "mlp,vit_nano_p4_32,mixer_nano_p4_32,resnet8_cifar"
QUESTION = ["digits", "--no-controls", "--no-baseline", "--trials", "0", "--jobs", "2"]
TWELVE = ["--models", NETWORKS, "--amount", "10k", "--seeds", "3", "--checkpoint-every", "5"]
LONG = ["--models", "vit_nano_p4_32", "--match", "none", "--seeds"]
MINUTE = 60.0
NOTHING = "nothing"
KILLED = [NOTHING, "node", "driver"]


def command(folder: Path, steps: int, flags: list[str], cluster: LocalCluster | None = None) -> list[str]:
    words = [sys.executable, "-m", "weft", "compare", *QUESTION, *flags, "--steps", str(steps), "--output", str(folder)]
    return [*words, *(["--on", f"ray:{cluster.address}"] if cluster else [])]


def content(folder: Path) -> dict[str, str]:
    """Every run's weights, answers and score, as one digest each."""
    found = {}
    for run in sorted((folder / "runs").iterdir()):
        record = json.loads((run / "record.json").read_text())
        parts = [(run / name).read_bytes() for name in ("model.safetensors", "predictions.safetensors")]
        parts.append(json.dumps(record["metrics"], sort_keys=True).encode())
        found[run.name] = hashlib.sha256(b"".join(parts)).hexdigest()
    return found


def is_begun(folder: Path) -> bool:
    """Whether a run has a checkpoint and no end."""
    return any(not (path.parents[1] / "record.json").exists() for path in folder.glob("runs/*/checkpoints/*"))


def run_command(words: list[str], folder: Path, cluster: LocalCluster | None = None, kill: str = NOTHING) -> float:
    """A comparison from beginning to end, with something killed as soon as a run has its first checkpoint."""
    started = time.perf_counter()
    environment = cluster.environment if cluster else dict(os.environ)
    process = begin(words, environment)
    while kill != NOTHING and not is_begun(folder):
        if process.poll() is not None:
            raise SystemExit(f"no run was seen in the middle, so that nothing was killed: {' '.join(words)}")
        time.sleep(0.01)
    if kill == "node":
        assert cluster is not None
        cluster.kill_node()
    if kill == "driver":
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        process = begin(words, environment)
    if process.wait() != 0:
        raise SystemExit(f"the comparison ended with {process.returncode}: {' '.join(words)}")
    took = time.perf_counter() - started
    if kill == "node":
        assert cluster is not None
        cluster.add_node()
    return took


def begin(words: list[str], environment: dict[str, str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(words, stdout=subprocess.DEVNULL, start_new_session=True, env=environment)


def equal(steps: int, times: int, killed: list[str]) -> dict[str, Any]:
    """How often the runs are the same as without Ray."""
    found: dict[str, Any] = {"steps": steps, "times": times}
    with tempfile.TemporaryDirectory() as place, LocalCluster(nodes=2) as cluster:
        here = Path(place) / "here"
        run_command(command(here, steps, TWELVE), here)
        expected = content(here)
        found["runs"] = len(expected)
        for kill in killed:
            same, seconds = 0, []
            for number in range(times):
                folder = Path(place) / f"{kill}-{number}"
                seconds.append(run_command(command(folder, steps, TWELVE, cluster), folder, cluster, kill))
                same += content(folder) == expected
                print(f"{kill} killed: {same} of {number + 1} equal, {seconds[-1]:.0f} s", flush=True)
            found[f"{kill} killed"] = f"{same} of {times} equal, {min(seconds):.0f} to {max(seconds):.0f} s"
    return found


def overhead(steps: int | None, runs: int) -> dict[str, Any]:
    """How much longer runs of about a minute take on Ray than here, two at a time, as a share of their training."""
    found: dict[str, Any] = {"runs": runs}
    flags = [*LONG, str(runs)]
    with tempfile.TemporaryDirectory() as place:
        if steps is None:
            run_command(command(Path(place) / "short", 200, [*LONG, "2"]), Path(place) / "short")
            steps = int(200 * MINUTE / training(Path(place) / "short")[0])
        folder = Path(place) / "here"
        found["here"] = wall_and_training(run_command(command(folder, steps, flags), folder), folder)
        with LocalCluster(nodes=2) as cluster:
            folder = Path(place) / "ray"
            found["ray"] = wall_and_training(
                run_command(command(folder, steps, flags, cluster), folder, cluster), folder
            )
        apart = found["ray"]["wall"] - found["here"]["wall"]
        share = 2 * apart / sum(training(Path(place) / "here"))  # two runs at a time
    return {"steps": steps, **found, "overhead": f"{100 * share:.1f} % of the training time"}


def training(folder: Path) -> list[float]:
    """Seconds of the training loops of all runs."""
    return [json.loads(path.read_text())["wall_seconds"] for path in sorted(folder.glob("runs/*/record.json"))]


def wall_and_training(wall: float, folder: Path) -> dict[str, Any]:
    return {"wall": round(wall, 1), "training of each run": [round(value, 1) for value in training(folder)]}


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
    with tempfile.TemporaryDirectory() as place, LocalCluster(nodes=2) as cluster:
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


def row(source: str, study: str, candidate: str) -> dict[str, Any]:
    """One row of the cpu scale, against what its plan says of it."""
    from weft.studies.compare.comparison import plan_comparison, prepare
    from weft.studies.compare.config import decided
    from weft.studies.compare.dry_run import paces_of, run_seconds
    from weft.studies.engine import tasks
    from weft.studies.engine.runner import Pool
    from weft.studies.experiments.families.e9_cost_front import plan_front
    from weft.studies.experiments.families.scales import SCALES, question
    from weft.studies.experiments.registry import Request

    asked = question(Request(Path("nowhere"), source, 1, None, "", print))
    with Pool(2) as pool, tempfile.TemporaryDirectory() as place:
        if study == "e9":
            _, planned = plan_front(asked, SCALES["cpu"], Path(place), "", pool)
        else:
            prepared = prepare(decided(asked), Path(place), pool, print, False, {})
            planned = plan_comparison(prepared.asked, Path(place), "", prepared.facts, prepared.candidates)
        paces = paces_of(pool, [job.labelled for job in planned.jobs])  # two at a time, as the plan does
        config = next(job.labelled for job in planned.jobs if job.candidate == candidate)
        config = replace(config, execution=replace(config.execution, threads=1))
        predicted = run_seconds(config, paces)
        started = time.perf_counter()
        for number, worker in enumerate(pool.workers):  # both cores busy, as in the study
            worker.ask(tasks.run_one, replace(config, seed=number), Path(place) / str(number), None)
        pool.answers(tasks.run_one, pool.workers)
        took = time.perf_counter() - started
    return {"study": study, "candidate": candidate, "predicted": round(predicted, 1), "took": round(took, 1)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("equal", "overhead", "scheduling", "row"))
    parser.add_argument("source", nargs="?", default="digits")
    parser.add_argument("--times", type=int, default=10)
    parser.add_argument("--killed", nargs="+", choices=KILLED, default=KILLED)
    parser.add_argument("--steps", type=int, default=None)
    parser.add_argument("--runs", type=int, default=None)
    parser.add_argument("--study", choices=("e9", "e10"), default="e9")
    parser.add_argument("--candidate", default="resnet")
    asked = parser.parse_args()
    before = os.getloadavg()[0]
    found = {
        "equal": lambda: equal(asked.steps or 30, asked.times, asked.killed),
        "overhead": lambda: overhead(asked.steps, asked.runs or 12),
        "scheduling": lambda: scheduling(asked.runs or 1000),
        "row": lambda: row(asked.source, asked.study, asked.candidate),
    }[asked.what]()
    print(json.dumps({**found, "load before and after": [round(before, 1), round(os.getloadavg()[0], 1)]}, indent=1))


if __name__ == "__main__":
    main()
