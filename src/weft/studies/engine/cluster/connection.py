"""Joins a Ray cluster, or says in a sentence why that cannot be: nobody answers, no permission, another version.

`ray.init` waits for minutes for an address that is none, and no signal ends it; so a child process tries it first, and
has a watchdog that needs nothing of Python.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import subprocess
import sys
from typing import Any

from weft.errors import WeftError

PATIENCE = 10.0  # seconds for an address to answer
LOADING = 60.0  # seconds for Ray to be imported, on a machine that is busy
RETRIES = 3  # of a run whose process or node is lost: each goes on from the run's last checkpoint

TRIAL = """
import faulthandler, sys
try:
    import ray
    faulthandler.dump_traceback_later(float(sys.argv[2]), exit=True)
    ray.init(address=sys.argv[1], log_to_driver=False, logging_level="CRITICAL")
    print("joined", flush=True)
except BaseException as error:
    print(type(error).__name__, " ".join(str(error).split()), flush=True)
"""


def connect(address: str) -> None:
    """Join the cluster; `WeftError` after ten seconds at most where it does not answer, and where it refuses."""
    if address != "auto":
        knock(address)
    outcome = tried(address)
    if outcome != "joined":
        raise WeftError(refusal(address, outcome))
    os.environ.setdefault("RAY_task_oom_retries", str(RETRIES))  # else Ray tries for ever; read when it is imported
    import ray

    before: dict[int, Any] = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    restore(before)  # Ray would end the process, and leave no time to save


def restore(handlers: dict[int, Any]) -> None:
    """Give signals back to whoever handled them."""
    try:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    except ValueError:  # not the main thread, where Ray leaves them alone as well
        return


def knock(address: str) -> None:
    """Refuse an address at which nobody listens."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit():
        raise WeftError(f"--on ray:{address} names no HOST:PORT; `ray start --head` prints it, often port 6379")
    try:
        socket.create_connection((host.strip("[]"), int(port)), PATIENCE).close()
    except (OSError, OverflowError) as error:
        raise WeftError(
            f"no Ray cluster answers at {address} ({error}); start one with `ray start --head`, or check the address"
        ) from error


def tried(address: str) -> str:
    """What a child process says of joining: `joined`, an error's name and text, or nothing in time."""
    command = [sys.executable, "-c", TRIAL, address, str(PATIENCE)]
    try:
        ended = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LOADING + PATIENCE, check=False
        )
    except subprocess.TimeoutExpired:
        return ""
    return ended.stdout.strip()


def refusal(address: str, outcome: str) -> str:
    """Why a cluster could not be joined, with what to do about it."""
    where = "this machine belongs to no Ray cluster" if address == "auto" else f"the Ray cluster at {address}"
    kind, _, text = outcome.partition(" ")
    if kind in ("ModuleNotFoundError", "ImportError"):
        return "--on ray needs Ray: pip install 'weft[cluster]'"
    if kind == "AuthenticationError":
        return (
            f"{where} asks for its token: set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN (or RAY_AUTH_TOKEN_PATH) to the "
            "one that it was started with"
        )
    if "ersion" in text and "mismatch" in text:
        return f"{where} has another version of Ray or Python than this machine: {text[:300]}; use the same on both"
    if address == "auto" and outcome:
        return f"{where}; start one with `ray start --head`, or name one with --on ray:HOST:PORT"
    if not outcome:
        return (
            f"what listens at {address} did not answer as a Ray cluster within {PATIENCE:g} s; check the address and "
            "the token of the cluster (RAY_AUTH_MODE, RAY_AUTH_TOKEN)"
        )
    return f"{where} cannot be joined: {text[:300]}"
