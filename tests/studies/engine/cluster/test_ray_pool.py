"""The pool of a cluster that is none: nodes come and go, answers and losses are made up; nothing here starts Ray."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("ray", reason="the extra `cluster` is not installed")

from ray.exceptions import NodeDiedError, OutOfMemoryError, RayError, WorkerCrashedError

from studies.fabricated import make_study
from weft import __version__
from weft.errors import WorkFailed
from weft.studies.engine import tasks
from weft.studies.engine.cluster import nodes, ray_pool
from weft.studies.engine.cluster.nodes import Needs, Node, Report, own_code
from weft.studies.engine.cluster.ray_pool import RayPool, do, loss
from weft.studies.engine.runner import run_jobs
from weft.studies.results.load import collect
from weft.studies.results.summary import summarise
from weft.training.config import RunConfig

HERE = Report(__version__, own_code(), "2.13.0", "a processor", 8, True)
HOUR = 3600.0


def node(name: str, cpus: float = 2, memory: float = 2**34, gpus: float = 0) -> Node:
    return Node(name * 8, name, cpus, memory, gpus)


class Cluster:
    """Nodes by name with what they say of themselves, the answers to come, and the time."""

    def __init__(self) -> None:
        self.reports: dict[Node, Report | str] = {node("one"): HERE, node("two"): HERE}
        self.answers: dict[int, Any] = {}
        self.submitted: list[tuple[Any, ...]] = []
        self.options: list[dict[str, Any]] = []
        self.now = 0.0
        self.later: Callable[[], None] = lambda: None
        """what happens while somebody waits"""

    def ask_all(self, asked: list[Node], _: Path) -> list[Report | str]:
        return [self.reports[one] for one in asked]

    def wait(self, references: list[int], timeout: float) -> tuple[list[int], list[int]]:
        done = [reference for reference in references if reference in self.answers]
        if not done:
            self.now += timeout
            assert self.now < HOUR, "waited for ever"
            self.later()
        return done, []

    def get(self, reference: int, timeout: float | None = None) -> Any:
        answer = self.answers[reference]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def remote(self, *arguments: Any) -> int:
        self.submitted.append(arguments)
        return len(self.submitted) - 1


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    made = Cluster()
    monkeypatch.setattr(ray_pool, "offered", lambda: list(made.reports))
    monkeypatch.setattr(nodes, "ask_all", made.ask_all)
    monkeypatch.setattr(ray_pool, "time", SimpleNamespace(monotonic=lambda: made.now))
    nothing: dict[str, Any] = {"shutdown": lambda: None, "cancel": lambda *_, **__: None}
    known = {"wait": made.wait, "get": made.get, "available_resources": dict}
    monkeypatch.setattr(ray_pool, "ray", SimpleNamespace(**nothing, **known))
    task = SimpleNamespace(options=lambda **options: made.options.append(options) or made)
    once = SimpleNamespace(options=lambda **options: made.options.append({**options, "once": True}) or made)
    monkeypatch.setattr(ray_pool, "DO", task)
    monkeypatch.setattr(ray_pool, "DO_ONCE", once)
    return made


@pytest.fixture
def said() -> list[str]:
    return []


def pool_of(cluster: Cluster, folder: Path, said: list[str], **needs: Any) -> RayPool:
    """A pool of the nodes that there are."""
    reports = {one: report for one, report in cluster.reports.items() if isinstance(report, Report)}
    return RayPool(Needs(folder, **needs), reports, None, said.append)


def test_a_node_that_joins_is_asked_before_it_is_relied_on(cluster: Cluster, tmp_path: Path, said: list[str]) -> None:
    pool = pool_of(cluster, tmp_path, said)
    cluster.reports[node("three")] = HERE
    pool.look_at_nodes()
    assert said[-1] == "three joined the cluster" and node("three") in pool.nodes
    cluster.reports[node("four")] = Report(**{**vars(HERE), "weft": "0.0.1"})
    with pytest.raises(WorkFailed, match=r"have joined: weft 0.0.1 on four .* \(the same command goes on\)"):
        pool.look_at_nodes()


def test_a_node_of_another_kind_that_joins_ends_what_compares_times(
    cluster: Cluster, tmp_path: Path, said: list[str]
) -> None:
    slower = Report(**{**vars(HERE), "processor": "another processor"})
    timed, counted = (pool_of(cluster, tmp_path, said, equal_time=equal) for equal in (True, False))
    cluster.reports[node("three")] = slower
    counted.look_at_nodes()
    with pytest.raises(WorkFailed, match="another processor with 8 cores"):
        timed.look_at_nodes()


def test_a_node_that_joins_and_is_gone_before_it_answers_is_no_trouble(
    cluster: Cluster, tmp_path: Path, said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = pool_of(cluster, tmp_path, said)
    cluster.reports[node("three")] = "it was lost"

    def goes(asked: list[Node], folder: Path) -> list[Report | str]:
        return [cluster.reports.pop(one) for one in asked]

    monkeypatch.setattr(nodes, "ask_all", goes)
    pool.look_at_nodes()
    assert set(pool.nodes) == {node("one"), node("two")}


def test_a_node_with_other_code_or_without_the_folder_does_no_run(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    mark.write_text("weft")
    asked: tuple[Any, ...] = (str, ("done",), None, str(tmp_path), "")
    assert do(*asked, own_code(), str(mark)) == ("done", "done", "", "")
    kind, sentence, *_ = do(*asked, "edited", str(mark))
    assert kind == ray_pool.UNFIT and "has other files than where the study is driven; install" in sentence
    kind, sentence, *_ = do(*asked, own_code(), str(tmp_path / "elsewhere"))
    assert kind == ray_pool.UNFIT and f"does not see {tmp_path}; choose an --output" in sentence


def test_a_run_on_an_unfit_node_ends_the_study_and_is_no_failure_of_the_run(
    cluster: Cluster, tmp_path: Path, said: list[str]
) -> None:
    with pool_of(cluster, tmp_path, said) as pool:
        pool.workers[0].ask(str, "a")
        *_, code, mark = cluster.submitted[0]
        assert code == own_code() and Path(mark).is_file()
        cluster.answers[0] = (ray_pool.UNFIT, "three does not see /study", "", "")
        with pytest.raises(WorkFailed, match="three does not see /study"):
            pool.workers[0].answer()
    assert not list(tmp_path.iterdir()), "the mark is gone"


def test_nodes_that_are_all_lost_end_a_search_that_asks_for_a_moment_each(
    cluster: Cluster, tmp_path: Path, said: list[str]
) -> None:
    pool = pool_of(cluster, tmp_path, said)
    pool.workers[0].ask(str, "a")
    cluster.reports.clear()
    with pytest.raises(WorkFailed, match=r"all nodes .* are lost: .*; the same command goes on once"):
        while True:
            assert not pool.ready(pool.workers[:1], 0.5)
    assert said[-2:] == [
        f"node {name} is lost; its runs go on elsewhere from their last checkpoints" for name in ("one", "two")
    ]


def test_one_answer_is_not_waited_for_once_all_nodes_are_lost(
    cluster: Cluster, tmp_path: Path, said: list[str]
) -> None:
    pool = pool_of(cluster, tmp_path, said)
    cluster.later = cluster.reports.clear
    for wait in (pool.first, lambda task, *these: pool.each(task, [these])):
        with pytest.raises(WorkFailed, match="are lost"):
            wait(str, "a")


def test_nodes_that_are_left_must_have_the_memory_of_the_runs_under_way(
    cluster: Cluster, tmp_path: Path, said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.reports = {node("large", memory=2**35): HERE, node("small", memory=2**30): HERE}
    pool = pool_of(cluster, tmp_path, said)
    config = RunConfig(source="digits", model="mlp")
    pool.memory[ray_pool.weight(config)] = 2**33
    pool.workers[0].ask(tasks.run_one, config, tmp_path)
    assert cluster.options[-1]["memory"] == 2**33
    pool.look_at_nodes()
    del cluster.reports[node("large", memory=2**35)]
    with pytest.raises(WorkFailed, match=r"a run asks for 8.0 GiB and no node .* offers more than 1.0; use a smaller"):
        pool.look_at_nodes()


def test_a_process_that_has_used_a_gpu_ends_with_its_task_and_others_stay(
    cluster: Cluster, tmp_path: Path, said: list[str]
) -> None:
    assert ray_pool.DO_ONCE is not ray_pool.DO
    pool_of(cluster, tmp_path, said).workers[0].ask(str, "a")
    cluster.reports = {node("accelerated", gpus=1): HERE}
    pool_of(cluster, tmp_path, said, gpu=True).workers[0].ask(str, "a")
    assert [options.get("once", False) for options in cluster.options] == [False, True]
    assert [options["num_gpus"] for options in cluster.options] == [0, 1]


def test_ray_is_told_that_such_a_process_does_one_task() -> None:
    once, more = ray_pool.DO_ONCE._default_options, ray_pool.DO._default_options
    assert once["max_calls"] == 1 and "max_calls" not in more


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (
            OutOfMemoryError("killed by the memory monitor"),
            "ran out of memory in each of 4 tries; use a smaller --batch",
        ),
        (NodeDiedError("gone"), "its node was lost in each of 4 tries; the same command goes on once there are nodes"),
        (WorkerCrashedError(), "its process was lost in each of 4 tries (The worker died"),
    ],
)
def test_every_loss_has_its_sentence(error: RayError, sentence: str) -> None:
    assert sentence in loss(error)


def test_a_run_whose_nodes_run_out_of_memory_says_so_in_its_row_and_the_others_go_on(
    cluster: Cluster, tmp_path: Path, said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    study = make_study(tmp_path, {"mlp": 0.9, "vit_nano_p4_32": 0.8}, seeds=1)
    (study.run_folder(study.jobs[0]).path / "record.json").unlink()
    monkeypatch.setattr(RayPool, "prepare", lambda *_: None)
    with pool_of(cluster, tmp_path, said) as pool:
        cluster.answers[0] = OutOfMemoryError("killed by the memory monitor")
        run_jobs(study, pool, study.jobs, said.append)
    rows = {row["name"]: row for row in summarise(collect(tmp_path))["rows"]}
    assert "its node ran out of memory in each of 4 tries" in rows["mlp"]["failures"][0]["reason"]
    assert "its node ran out of memory" in said[-1] and rows["vit_nano_p4_32"]["seeds"] == 1


def test_memory_is_predicted_by_idle_workers_while_others_train(
    cluster: Cluster, tmp_path: Path, said: list[str]
) -> None:
    pool = pool_of(cluster, tmp_path, said)
    pool.workers[0].ask(str, "a run under way")
    cluster.answers[1] = ("done", 2**30, "", "")
    config = RunConfig(source="digits", model="mlp")
    pool.prepare([config])
    assert cluster.submitted[1][0] is tasks.memory_needed and pool.memory[ray_pool.weight(config)] > 2**30
    assert pool.workers[0].reference == 0  # type: ignore[attr-defined]
