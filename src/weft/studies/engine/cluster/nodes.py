"""The nodes of a cluster: what each offers, whether it has this weft and sees the study's folder, of which kind it is.

Asked of every node before the first run, by a task that needs nothing of weft: a node may have none.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from weft import __version__
from weft.errors import WeftError
from weft.terminal import brief_list

ANSWERING = 180.0  # seconds for a node to start a process and answer, on a machine that is busy
MARK = ".probe-"
MODEL = "accelerator_type:"


@dataclass(frozen=True)
class Needs:
    """What the runs of a study need of every node."""

    folder: Path
    threads: int = 1
    gpu: bool = False
    equal_time: bool = False
    """whether times are compared: then all nodes must be of one kind"""


@dataclass(frozen=True)
class Node:
    """What a node of the cluster offers, in Ray's words."""

    identity: str
    name: str
    cpus: float
    memory: float
    """bytes"""
    gpus: float
    accelerator: str = ""
    """the model of its GPUs, where Ray recognises them"""


@dataclass(frozen=True)
class Report:
    """What a node says of itself; `weft` is empty where it has none."""

    weft: str
    code: str
    """digest of its files: two checkouts of one version may differ"""
    torch: str
    processor: str
    cores: int
    shared: bool
    """whether it sees the study's folder and can write to it"""
    gpu: str = ""
    """the model of the GPU that runs are computed on, if they are"""

    @property
    def kind(self) -> str:
        """Nodes of one kind take equally long for the same steps."""
        gpu = f", {self.gpu}" if self.gpu else ""
        return f"{self.processor or 'unknown processor'} with {self.cores} cores{gpu}, torch {self.torch or 'unknown'}"


def fitting_nodes(needs: Needs, say: Callable[[str], None]) -> dict[Node, Report]:
    """The nodes that can do a run, with what they say; what is wrong with them is said before anything starts."""
    found = examined(able(offered(), needs.threads, needs.gpu), needs)
    kinds = {report.kind for report in found.values()}
    if len(kinds) > 1:
        say(f"nodes of {len(kinds)} kinds, on which the last digits may differ: {'; '.join(sorted(kinds))}")
    return found


def examined(nodes: list[Node], needs: Needs, known: Iterable[Report] = ()) -> dict[Node, Report]:
    """What nodes say of themselves; refused where one is unfit, by itself or beside those that are `known`."""
    reports = ask_all(nodes, needs.folder.resolve())
    if needs.gpu:
        reports = [accelerated(report, node) for report, node in zip(reports, nodes, strict=True)]
    if trouble := complaint(nodes, reports, needs.folder, needs.equal_time, known):
        raise WeftError(trouble)
    return {node: report for node, report in zip(nodes, reports, strict=True) if isinstance(report, Report)}


def accelerated(report: Report | str, node: Node) -> Report | str:
    """The report of a node whose GPUs do the runs."""
    return report if isinstance(report, str) else replace(report, gpu=f"GPU {node.accelerator or 'of unknown model'}")


def offered() -> list[Node]:
    """The nodes that are alive."""
    import ray

    return [
        Node(
            node["NodeID"],
            node.get("NodeManagerHostname") or node["NodeManagerAddress"],
            node["Resources"].get("CPU", 0.0),
            node["Resources"].get("memory", 0.0),
            node["Resources"].get("GPU", 0.0),
            accelerator_of(node["Resources"]),
        )
        for node in ray.nodes()
        if node["Alive"]
    ]


def accelerator_of(resources: Mapping[str, float]) -> str:
    """The model of a node's GPUs: Ray has a resource of the name accelerator_type:MODEL."""
    return ", ".join(sorted(name[len(MODEL) :] for name in resources if name.startswith(MODEL)))


def able(nodes: list[Node], threads: int, gpu: bool, memory: int = 0) -> list[Node]:
    """Those with the cores, the accelerator and the memory (bytes) of a run; refused where there is none: the run would
    wait for ever."""
    found = [node for node in nodes if node.cpus >= threads and (node.gpus >= 1 or not gpu)]
    if found and memory > (largest := max(node.memory for node in found)):
        raise WeftError(
            f"a run asks for {memory / 2**30:.1f} GiB and no node of the cluster that has its cores offers more than "
            f"{largest / 2**30:.1f}; use a smaller --batch-size, or nodes with more memory"
        )
    if found:
        return [node for node in found if node.memory >= memory]
    most = max((node.cpus for node in nodes), default=0)
    if gpu and not any(node.gpus >= 1 for node in nodes):
        raise WeftError("no node of the cluster offers a GPU; leave out --device cuda, or add such a node")
    raise WeftError(
        f"a run asks for {threads} cores and no node of the cluster offers more than {most:g}; use fewer --threads, or "
        "start nodes with more --num-cpus"
    )


def ask_all(nodes: list[Node], folder: Path) -> list[Report | str]:
    """What every node says of itself, or why it does not answer."""
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    mark = folder / f"{MARK}{uuid.uuid4().hex}"
    task = ray.remote(probe())
    try:
        mark.write_text("weft")
        pending = [
            task.options(
                num_cpus=0, max_retries=0, scheduling_strategy=NodeAffinitySchedulingStrategy(node.identity, soft=False)
            ).remote(str(mark), str(number))
            for number, node in enumerate(nodes)
        ]
        return [answer_of(reference, Path(f"{mark}-{number}")) for number, reference in enumerate(pending)]
    finally:
        for path in folder.glob(f"{mark.name}*"):
            with suppress(OSError):
                path.unlink()


def answer_of(reference: Any, written: Path) -> Report | str:
    """The report of a node; its file must be there for us, too."""
    import ray

    try:
        found = ray.get(reference, timeout=ANSWERING)
    except ray.exceptions.RayError as error:
        return " ".join(str(error).split())[:200] or type(error).__name__
    return Report(**{**found, "shared": found["shared"] and written.is_file()})


def probe() -> Callable[[str, str], dict[str, Any]]:
    """The question, as a function that travels whole: one of a module would be looked up there, in a weft that may not
    be."""

    def look(mark: str, name: str) -> dict[str, Any]:
        import hashlib
        import importlib.metadata
        import pathlib
        import platform

        digest = hashlib.blake2b(digest_size=8)
        try:
            import weft
            from weft import machine

            version, processor, cores = weft.__version__, machine.cpu_model(), machine.cores()
            for file in sorted(pathlib.Path(str(weft.__file__)).parent.rglob("*.py")):
                digest.update(file.read_bytes())
        except ImportError:
            version, processor, cores = "", platform.processor(), 1
        try:
            torch = importlib.metadata.version("torch")
        except importlib.metadata.PackageNotFoundError:
            torch = ""
        shared = pathlib.Path(mark).is_file()
        if shared:
            try:
                pathlib.Path(f"{mark}-{name}").write_text("seen")
            except OSError:
                shared = False
        found = {"weft": version, "code": digest.hexdigest(), "torch": torch, "processor": processor}
        return {**found, "cores": cores, "shared": shared}

    return look


@lru_cache
def own_code() -> str:
    """The digest of the files of weft here."""
    return str(probe()("", "")["code"])


def complaint(
    nodes: list[Node], reports: list[Report | str], folder: Path, equal_time: bool, known: Iterable[Report] = ()
) -> str:
    """What makes these nodes unfit for a study, beside those that are `known`, in a sentence; empty where nothing
    does."""
    told = dict(zip([f"{node.name} ({node.identity[:8]})" for node in nodes], reports, strict=True))
    if silent := [name for name, report in told.items() if isinstance(report, str)]:
        return f"node {silent[0]} does not answer: {told[silent[0]]}; mend or remove it"
    found = {name: report for name, report in told.items() if isinstance(report, Report)}
    if without := [name for name, report in found.items() if not report.weft]:
        return f"no weft on {brief_list(without)}; pip install weft=={__version__} there, for the Python that Ray uses"
    if other := [name for name, report in found.items() if report.weft != __version__]:
        return f"weft {found[other[0]].weft} on {brief_list(other)}, {__version__} here; install the same on all nodes"
    if other := [name for name, report in found.items() if report.code != own_code()]:
        return f"weft {__version__} on {brief_list(other)} has other files than here; install the same on all nodes"
    if apart := [name for name, report in found.items() if not report.shared]:
        return (
            f"{brief_list(apart)} cannot read and write {folder.resolve()}; choose an --output on a file system that "
            "all nodes share"
        )
    kinds = sorted({report.kind for report in (*known, *found.values())})
    if equal_time and len(kinds) > 1:
        return (
            f"times are compared, which is fair among machines of one kind only, and the cluster has "
            f"{'; '.join(kinds)}; use nodes of one kind, or compare with --match params or macs"
        )
    return ""
