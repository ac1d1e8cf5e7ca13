"""Where the runs of a study are computed: on this machine, or on a Ray cluster. The one place that chooses."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from weft.errors import WeftError
from weft.studies.engine.runner import Pool


def open_pool(
    on: str | None,
    folder: Path,
    say: Callable[[str], None],
    size: int | None = None,
    threads: int | None = None,
    gpu: bool = False,
    equal_time: bool = False,
) -> Pool:
    """Workers for the study in `folder`: `size` of them at most, each on so many threads.

    On a cluster everything that it lacks is said here, before the first run; where `equal_time` is promised to all
    runs, machines of more than one kind are refused.
    """
    if on is None:
        return Pool(1 if gpu else size)
    from weft.studies.engine.cluster.connection import connect, leave
    from weft.studies.engine.cluster.nodes import Needs, fitting_nodes
    from weft.studies.engine.cluster.ray_pool import RayPool

    needs = Needs(folder, threads or 1, gpu, equal_time)
    connect(address_of(on))
    try:
        return RayPool(needs, fitting_nodes(needs, say), size, say)
    except BaseException:
        leave()
        raise


def address_of(on: str) -> str:
    """The address of `ray:ADDRESS`; without one, the cluster that this machine belongs to."""
    kind, _, address = on.partition(":")
    if kind != "ray" or address.startswith("//"):
        raise WeftError(f"--on {on} is no place to run; write --on ray, or --on ray:HOST:PORT as `ray start` prints it")
    return address or "auto"
