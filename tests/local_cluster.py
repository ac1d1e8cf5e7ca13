"""A Ray cluster on this machine for tests and benchmarks: a head without cores and worker nodes of one core each, all
processes of their own with their own object stores.

It is started by a process that does nothing else: Ray forks, takes over signals and ties its processes to the thread
that starts them, none of which a test process with threads of its own should go through. On a machine whose cores are
busy Ray gives itself up: a raylet ends if its agents, Python programs, have not written down their ports after 15 s, or
do not answer after 30 s, and workers are killed and begun anew after 60 s. So patience is long where it can be set, and
a cluster that ends while it starts is started anew; only a node that is gone is noticed at once.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from typing import Any

STORE = 80 << 20  # bytes of an object store
PATIENCE = 600  # seconds
TRIES = 3
SETTINGS = {
    "RAY_worker_niceness": "0",  # else workers give way to all others
    "RAY_agent_register_timeout_ms": str(1000 * PATIENCE),
    "RAY_worker_register_timeout_seconds": str(PATIENCE),
    "RAY_health_check_period_ms": "500",  # a dead node refuses five in a row
    "RAY_health_check_timeout_ms": str(1000 * PATIENCE),  # a busy one answers late
    "RAY_memory_monitor_refresh_ms": "0",  # others may use the machine's memory
    "RAY_DASHBOARD_STARTUP_TIMEOUT_S": str(PATIENCE),
    "RAY_USAGE_STATS_ENABLED": "0",
}
PORTS = ("metrics_agent_port", "metrics_export_port", "dashboard_agent_listen_port", "runtime_env_agent_port")


class LocalCluster:
    """Started by `with`; gone with all of its processes afterwards."""

    def __init__(self, nodes: int = 2, **settings: str) -> None:
        self.nodes, self.settings = nodes, settings

    def __enter__(self) -> LocalCluster:
        self.place = tempfile.mkdtemp(prefix="weft-ray-", dir="/tmp")  # short: it is part of the names of sockets
        clean = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
        self.environment = {**clean, **SETTINGS, "RAY_TMPDIR": self.place, **self.settings}
        for left in reversed(range(TRIES)):
            self.process = subprocess.Popen(
                [sys.executable, __file__, str(self.nodes)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env=self.environment,
                start_new_session=True,
            )
            try:
                self.address = self.heard()
                break
            except RuntimeError:
                if not left:
                    raise
        return self

    def __exit__(self, *_: object) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            self.process.wait(PATIENCE)
        finally:
            self.process.kill()  # which takes Ray's processes with it
            self.process.wait()
            shutil.rmtree(self.place, ignore_errors=True)

    def heard(self) -> str:
        """A line of what the process says; what it has to say of Ray goes to standard error."""
        assert self.process.stdout is not None
        if not (line := self.process.stdout.readline()):
            raise RuntimeError(f"the cluster ended with {self.process.wait()}; its logs were in {self.place}/ray")
        return line.strip()

    def kill_node(self) -> None:
        """A node is gone from one moment to the next."""
        self.ask("kill")

    def add_node(self) -> None:
        self.ask("add")

    def ask(self, word: str) -> None:
        assert self.process.stdin is not None
        print(word, file=self.process.stdin, flush=True)
        assert self.heard() == word


def ports() -> dict[str, int]:
    """Free ports for the agents of a node."""
    sockets = [socket.create_server(("", 0)) for _ in PORTS]
    found = {name: made.getsockname()[1] for name, made in zip(PORTS, sockets, strict=True)}
    for made in sockets:
        made.close()
    return found


def serve(nodes: int) -> None:
    """Start a cluster, say its address, then do what is asked for, line by line."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    say = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    from ray.cluster_utils import Cluster

    head: dict[str, Any] = {"include_dashboard": False, "no_monitor": True, "include_log_monitor": False}
    cluster = Cluster()
    add(cluster, num_cpus=0, **head)
    for _ in range(nodes):
        add(cluster, num_cpus=1)
    print(cluster.address, file=say, flush=True)
    for line in sys.stdin:
        if line.strip() == "kill":
            cluster.remove_node(next(iter(cluster.worker_nodes)), allow_graceful=False)
        else:
            add(cluster, num_cpus=1)
        print(line.strip(), file=say, flush=True)
    cluster.shutdown()


def add(cluster: Any, **settings: Any) -> None:
    """Start a node and wait until all know each other."""
    cluster.add_node(wait=False, object_store_memory=STORE, **settings, **ports())
    cluster.wait_for_nodes(PATIENCE)


if __name__ == "__main__":
    del sys.path[0]  # this folder, whose names would hide others
    serve(int(sys.argv[1]))
