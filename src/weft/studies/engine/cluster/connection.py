"""Joins a Ray cluster, or says in a sentence why that cannot be: nobody answers, no permission, another version.

`ray.init` waits for minutes for an address that is none, and no signal ends it. So whoever listens there is asked first
for the greeting of HTTP/2, which Ray's servers speak; then a child process joins, with a watchdog that needs nothing of
Python, and a longer patience: the machine may be busy, and joining takes seconds of work.
"""

from __future__ import annotations

import logging
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from weft.errors import WeftError

PATIENCE = 10.0  # seconds for an address to answer, from its name to its greeting
JOINING = 60.0  # seconds to join a cluster that answers
LOADING = 60.0  # seconds for Ray to be imported, on a machine that is busy
RETRIES = 3  # of a run whose process or node is lost: each goes on from the run's last checkpoint

GREETING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0"  # RFC 9113, 3.4: preface, empty SETTINGS
UNREACHABLE = (OSError, OverflowError, UnicodeError)  # no such host, port or name
SETTINGS = 4  # the type of the frame that every answer begins with; fourth byte of nine

TRIAL = """
import faulthandler, sys
try:
    import ray
    faulthandler.dump_traceback_later(float(sys.argv[2]), exit=True)
    ray.init(address=sys.argv[1], log_to_driver=False, logging_level="CRITICAL")
    print("joined", flush=True)
except BaseException as error:
    print(type(error).__name__, *str(error).split(), flush=True)
    print(*str(error.__cause__).split(), flush=True)
"""


def connect(address: str) -> None:
    """Join the cluster; `WeftError` after ten seconds at most where it does not answer, and where it refuses."""
    began = time.monotonic()
    patience = JOINING if is_there(address) else max(1.0, began + PATIENCE - time.monotonic())
    outcome = tried(address, patience)
    if outcome != "joined":
        raise WeftError(refusal(address, outcome, time.monotonic() - began))
    os.environ.setdefault("RAY_task_oom_retries", str(RETRIES))  # else Ray tries for ever; read when it is imported
    import ray

    before: dict[int, Any] = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    restore(before)  # Ray would end the process, and leave no time to save


def leave() -> None:
    """Leave the cluster, so that whoever started it may end it, and another may be joined."""
    import ray

    ray.shutdown()


def is_there(address: str) -> bool:
    """Whether somebody answers; without an address Ray has several ways to find a cluster, which are left to it."""
    if address != "auto":
        knock(address)
        return True
    try:
        knock(os.environ.get("RAY_ADDRESS") or (temporary() / "ray_current_cluster").read_text())
    except (WeftError, OSError):
        return False
    return True


def temporary() -> Path:
    """Where Ray writes down the cluster that this machine belongs to."""
    return Path(os.environ.get("RAY_TMPDIR", "/tmp")) / "ray"


def restore(handlers: dict[int, Any]) -> None:
    """Give signals back to whoever handled them."""
    try:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    except ValueError:  # not the main thread, where Ray leaves them alone as well
        return


def knock(address: str) -> None:
    """Refuse an address at which nobody listens, or somebody who does not greet as Ray's servers do."""
    host, _, port = address.strip().rpartition(":")
    if not host or not port.isdigit():
        raise WeftError(f"--on ray:{address} names no HOST:PORT; `ray start --head` prints it, often port 6379")
    until = time.monotonic() + PATIENCE
    try:
        found = reached(resolved(host.strip("[]"), int(port), until), until)
    except UNREACHABLE as error:
        why = f"nothing within {PATIENCE:g} s" if isinstance(error, TimeoutError) else error
        raise WeftError(
            f"no Ray cluster answers at {address} ({why}); start one with `ray start --head`, or check the address"
        ) from error
    with found:
        if os.environ.get("RAY_USE_TLS", "0") in ("", "0") and not is_greeted(found, until):
            raise WeftError(refusal(address, "", PATIENCE))


def resolved(host: str, port: int, until: float) -> list[Any]:
    """The addresses of a host. The system's resolver knows no deadline, so a thread waits for it."""
    answers: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def ask() -> None:
        try:
            answers.put(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        except UNREACHABLE as error:
            answers.put(error)

    threading.Thread(target=ask, daemon=True).start()
    try:
        found = answers.get(timeout=max(0.0, until - time.monotonic()))
    except queue.Empty:
        raise TimeoutError("its name is not resolved") from None
    if isinstance(found, Exception):
        raise found
    return list(found)


def reached(places: list[Any], until: float) -> socket.socket:
    """A connection to the first place that takes one; those still to be tried share the time that is left."""
    for number, (family, kind, protocol, _, place) in enumerate(places, start=1):
        found = socket.socket(family, kind, protocol)
        found.settimeout(max(0.001, (until - time.monotonic()) / (len(places) - number + 1)))
        try:
            found.connect(place)
            return found
        except UNREACHABLE:
            found.close()
            if number == len(places):
                raise
    raise OSError("it has no address")


def is_greeted(connection: socket.socket, until: float) -> bool:
    """Whether the other end answers a greeting of HTTP/2 with its own, in time."""
    answer = b""
    try:
        connection.sendall(GREETING)
        while len(answer) < 9 and (rest := until - time.monotonic()) > 0:
            connection.settimeout(rest)
            if not (more := connection.recv(9 - len(answer))):
                break
            answer += more
    except OSError:  # too late, or hung up
        return False
    return len(answer) == 9 and answer[3] == SETTINGS


def tried(address: str, patience: float) -> str:
    """What a child process says of joining: `joined`, or an error's name and text, and in a second line its cause;
    nothing where it was not done in time."""
    command = [sys.executable, "-P", "-c", TRIAL, address, str(patience)]
    try:
        ended = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LOADING + patience, check=False
        )
    except subprocess.TimeoutExpired:
        return ""
    return ended.stdout.strip()


def refusal(address: str, outcome: str, waited: float) -> str:
    """Why a cluster could not be joined after so many seconds, with what to do about it."""
    where = "the Ray cluster of this machine" if address == "auto" else f"the Ray cluster at {address}"
    kind, _, text = outcome.partition("\n")[0].partition(" ")
    if kind in ("ModuleNotFoundError", "ImportError"):
        return "--on ray needs Ray: pip install 'weft[cluster]'"
    if "AuthenticationError" in outcome:
        return (
            f"{where} asks for its token: set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN (or RAY_AUTH_TOKEN_PATH) to the "
            "one that it was started with"
        )
    if "ersion" in text and "mismatch" in text:
        return f"{where} has another version of Ray or Python than this machine: {text[:300]}; use the same on both"
    if address == "auto" and kind in ("", "ConnectionError"):
        return (
            "this machine belongs to no Ray cluster that answers; start one with `ray start --head`, or name one with "
            "--on ray:HOST:PORT"
        )
    if not outcome:
        return (
            f"what listens at {address} did not answer as a Ray cluster within {waited:.3g} s; check the address and "
            "the token of the cluster (RAY_AUTH_MODE, RAY_AUTH_TOKEN)"
        )
    return f"{where} cannot be joined: {text[:300]}; check the address, and that all machines have the same Ray"
