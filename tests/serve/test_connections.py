"""Clients that are slow, rude or many, seen from a socket; and how the server ends."""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from weft.serve import app as app_module
from weft.serve import body, connections
from weft.serve import models as models_module
from weft.serve.body import Bodies
from weft.serve.config import ServeConfig
from weft.serve.protocols import asking

Serve = Callable[[ServeConfig], Any]


def connect(address: str) -> socket.socket:
    host, port = address.split(":")
    return socket.create_connection((host, int(port)), timeout=30)


def rest(line: socket.socket) -> bytes:
    """All that still comes until the other side closes."""
    found = b""
    try:
        while part := line.recv(65536):
            found += part
    except ConnectionResetError:
        pass
    return found


def request(path: str, body: bytes = b"", *headers: str) -> bytes:
    method = "POST" if body else "GET"
    lines = [f"{method} {path} HTTP/1.1", "host: localhost", f"content-length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


@pytest.mark.parametrize("sent", [b"", b"GET /livez HT", b"GET /livez HTTP/1.1\r\nhost: localhost\r\nx-slow: "])
def test_who_does_not_say_what_he_wants_is_cut_off(
    runs: Path, serve: Serve, monkeypatch: pytest.MonkeyPatch, sent: bytes
) -> None:
    monkeypatch.setattr(connections, "ASKING", 0.2)
    with serve(ServeConfig(folders=(runs,))) as address, connect(address) as line:
        line.sendall(sent)
        assert rest(line) == b""


def test_who_asks_a_second_time_slowly_is_cut_off_too(
    runs: Path, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serve(ServeConfig(folders=(runs,))) as address, connect(address) as line:
        line.sendall(request("/livez"))
        while not line.recv(65536).endswith(b"ok\n"):
            pass
        monkeypatch.setattr(connections, "ASKING", 0.2)
        line.sendall(b"GET /live")
        assert rest(line) == b""


def test_a_body_that_never_ends_is_given_up(runs: Path, serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app_module, "Bodies", lambda limit, seconds: Bodies(limit, 0.2))
    with serve(ServeConfig(folders=(runs,))) as address, connect(address) as line:
        line.sendall(request("/models/words", b"x" * 50).replace(b"length: 50", b"length: 99"))
        assert b" 408 " in line.recv(65536)


def test_long_headers_and_nonsense_are_refused(address: str) -> None:
    for sent, status in (
        (request("/livez", b"", "connection: close", "x-long: " + "y" * 40_000), b"431"),
        (request("/livez?" + "y" * 40_000, b"", "connection: close"), b"431"),
        (request("/livez", b"", "connection: close", *("x: y" for _ in range(200))), b"431"),
        (request("/livez", b"", "x-long: " + "y" * 400_000), b"400"),
        (b"\0\1\2\3\r\n\r\n", b"400"),
        (b"GET http://[ HTTP/9\r\n\r\n", b"400"),
    ):
        with connect(address) as line:
            line.sendall(sent)
            assert rest(line).startswith(b"HTTP/1.1 " + status)


def test_targets_that_are_no_paths_are_answered_without_a_traceback(
    address: str, capfd: pytest.CaptureFixture[str]
) -> None:
    for target in ("*", "foo", "//", "http://elsewhere/livez"):
        with connect(address) as line:
            line.sendall(f"OPTIONS {target} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n".encode())
            assert rest(line).startswith(b"HTTP/1.1 4")
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.skipif(shutil.which("curl") is None, reason="no curl here")
@pytest.mark.parametrize("name", ["digits", "words", "cells"])
def test_the_commands_of_the_page_work_as_they_stand(name: str, address: str, picture: bytes, tmp_path: Path) -> None:
    (tmp_path / "picture.png").write_bytes(picture)
    with urllib.request.urlopen(f"http://{address}/predict?model={name}", timeout=30) as answer:
        page = html.unescape(answer.read().decode())
    command = re.search(r"^.*?(curl .*?/predict'?)", page, re.MULTILINE)
    assert command
    said = subprocess.run(["bash", "-c", command[1]], cwd=tmp_path, capture_output=True, check=True).stdout
    assert json.loads(said)["predictions"], said


def test_a_refused_upload_is_read_to_its_end_so_that_the_client_sees_why(runs: Path, serve: Serve) -> None:
    with serve(ServeConfig(folders=(runs,), max_body=1000)) as address:
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(f"http://{address}/models/digits", b"x" * 20_000_000, timeout=30)
        assert refused.value.code == 413 and b"1,000 bytes" in refused.value.read()


def held_up(monkeypatch: pytest.MonkeyPatch) -> tuple[threading.Event, list[int]]:
    """Networks that answer only when they are let; the sizes of the batches they were asked."""
    free, sizes = threading.Event(), []

    class Slow(models_module.Computing):
        def __call__(self, raws: list[Any]) -> Any:
            sizes.append(len(raws))
            free.wait(30)
            return super().__call__(raws)

    monkeypatch.setattr(models_module, "Computing", Slow)
    return free, sizes


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < end, "nothing happened for two minutes"
        time.sleep(0.01)


def in_progress(address: str, token: str = "") -> float:
    asked = urllib.request.Request(f"http://{address}/metrics", headers={"authorization": f"Bearer {token}"})
    with urllib.request.urlopen(asked, timeout=30) as answer:
        found = re.search(rb"^weft_requests_in_progress (\S+)", answer.read(), re.MULTILINE)
    assert found
    return float(found[1]) - 1  # this request is one of them


def test_nothing_is_computed_for_a_client_that_went_away(
    runs: Path, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    free, sizes = held_up(monkeypatch)
    heard, lost = [], connections.Connection.connection_lost

    def connection_lost(self: connections.Connection, error: Exception | None) -> None:
        heard.append(self.scope and self.scope["path"])
        lost(self, error)

    monkeypatch.setattr(connections.Connection, "connection_lost", connection_lost)
    with serve(ServeConfig(folders=(runs,))) as address:
        first = connect(address)
        first.sendall(request("/models/words", b"red", "content-type: text/plain"))
        until(lambda: len(sizes) == 1)
        with connect(address) as line:
            line.sendall(request("/models/words", b"green", "content-type: text/plain"))
            until(lambda: in_progress(address) == 2)
        until(lambda: "/models/words" in heard)
        free.set()
        assert first.recv(65536).startswith(b"HTTP/1.1 200")
        first.close()
        until(lambda: in_progress(address) == 0)
    assert sizes == [1]


def test_overload_is_refused_at_once_and_the_accepted_are_answered(
    runs: Path, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    free, sizes = held_up(monkeypatch)

    def ask(address: str) -> tuple[int, str | None]:
        try:
            with urllib.request.urlopen(f"http://{address}/models/words", b'{"inputs": "red"}', timeout=30) as answer:
                return answer.status, None
        except urllib.error.HTTPError as refused:
            return refused.code, refused.headers["retry-after"]

    with serve(ServeConfig(folders=(runs,), max_queue=6, max_batch=4)) as address, ThreadPoolExecutor(20) as pool:
        asked = [pool.submit(ask, address) for _ in range(20)]
        until(lambda: sum(one.done() for one in asked) == 14)  # refused while the network has not answered anyone
        free.set()
        answers = [one.result() for one in asked]
    assert answers.count((200, None)) == 6 and sum(status == 503 for status, _ in answers) == 14
    assert all(again and int(again) >= 1 for status, again in answers if status == 503)
    assert max(sizes) <= 4


def begun(address: str, length: int, sent: bytes = b"") -> socket.socket:
    """A client that has announced so many bytes of a text, and has sent some of them."""
    line = connect(address)
    head = request("/models/words", b"x", "content-type: text/plain")[:-1]
    line.sendall(head.replace(b"length: 1", f"length: {length}".encode()) + sent)
    return line


def test_who_sends_slowly_keeps_no_place_from_others(runs: Path, serve: Serve) -> None:
    with serve(ServeConfig(folders=(runs,), max_queue=2, max_body=1000)) as address:
        slow = [begun(address, 1000, b"re") for _ in range(20)]  # more than the queue holds, and than may be kept
        until(lambda: in_progress(address) == 20)
        with urllib.request.urlopen(f"http://{address}/models/words", b'{"inputs": "red"}', timeout=30) as answer:
            assert answer.status == 200
        slow[0].sendall(b"d" * 998)
        assert slow[0].recv(65536).startswith(b"HTTP/1.1 200")
        for line in slow:
            line.close()


def test_bytes_that_have_come_are_limited_over_all_clients(
    runs: Path, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(body, "TOGETHER", 1)
    with serve(ServeConfig(folders=(runs,), max_body=1000)) as address:
        first = begun(address, 900, b"x" * 899)
        until(lambda: in_progress(address) == 1)
        with begun(address, 500, b"x" * 500) as second:
            assert b" 503 " in second.recv(65536)
        first.sendall(b"x")
        assert first.recv(65536).startswith(b"HTTP/1.1 200")
        first.close()
        with begun(address, 500, b"x" * 500) as again:
            assert again.recv(65536).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("route", ["/models/words", "/predict/saliency?model=words"])
def test_others_are_answered_while_a_large_body_is_parsed(
    runs: Path, serve: Serve, monkeypatch: pytest.MonkeyPatch, route: str
) -> None:
    parsed, begun_to_parse, free = asking.parsed, threading.Event(), threading.Event()

    def slow(body: bytes) -> dict[str, Any]:
        begun_to_parse.set()
        assert free.wait(60), "nobody else was answered meanwhile"
        return parsed(body)

    monkeypatch.setattr(asking, "parsed", slow)
    large = b'{"inputs": 5, "parameters": {"top_k": "' + b"x" * 100_000 + b'"}}'
    with serve(ServeConfig(folders=(runs,))) as address, connect(address) as line:
        line.sendall(request(route, large, "content-type: application/json"))
        assert begun_to_parse.wait(60)
        with urllib.request.urlopen(f"http://{address}/livez", timeout=30) as answer:
            assert answer.status == 200
        free.set()
        assert line.recv(65536).startswith(b"HTTP/1.1 422")


def test_a_network_too_slow_is_given_up(runs: Path, serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    free, _ = held_up(monkeypatch)
    with serve(ServeConfig(folders=(runs,), timeout=0.3)) as address:
        with pytest.raises(urllib.error.HTTPError) as late:
            urllib.request.urlopen(f"http://{address}/models/words", b'{"inputs": "red"}', timeout=30)
        free.set()
        assert late.value.code == 503 and b"in time" in late.value.read() and late.value.headers["retry-after"]


def test_the_command_serves_and_ends_when_told_to_with_everything_answered(runs: Path) -> None:
    token = "a-token-for-this-test"
    command = [sys.executable, "-m", "weft", "serve", str(runs), "--port", "0"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env={**os.environ, "WEFT_TOKEN": token}
    )
    assert process.stdout is not None
    try:
        found = re.search(r"http://([\d.:]+)/", process.stdout.readline())
        assert found
        address = found[1]
        with connect(address) as line:
            head = request("/models/words", b"red", "content-type: text/plain", f"authorization: Bearer {token}")
            line.sendall(head[:-1])  # the last letter comes after the signal
            until(lambda: in_progress(address, token) == 1)
            process.send_signal(signal.SIGTERM)
            time.sleep(0.3)
            line.sendall(head[-1:])
            assert line.recv(65536).startswith(b"HTTP/1.1 200")
        said = process.communicate(timeout=60)[0]
        assert process.returncode == 0 and "Traceback" not in said and token not in said, said
    finally:
        process.kill()
        process.wait()


def test_a_server_that_is_about_to_end_says_that_it_is_not_ready(client: Callable[..., TestClient]) -> None:
    asked = client()
    for path in ("/readyz", "/v2/health/ready"):
        assert asked.get(path).status_code == 200
    asked.app.state.ending = True  # type: ignore[attr-defined]
    for path in ("/readyz", "/v2/health/ready"):
        answer = asked.get(path)
        assert answer.status_code == 503 and answer.headers["retry-after"] == "5"
    assert asked.get("/livez").status_code == 200


def test_a_full_queue_is_told_before_the_body_is_looked_at(
    runs: Path, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By every protocol's address, and not to who only reads."""
    free, _ = held_up(monkeypatch)
    monkeypatch.setattr(asking.Asking, "answer", counted := Counted(asking.Asking.answer))
    with serve(ServeConfig(folders=(runs,), max_queue=1)) as address, ThreadPoolExecutor(1) as other:
        row = json.dumps({"inputs": [0.0] * 30}).encode()
        first = other.submit(status_of, f"http://{address}/models/cells", row)
        until(lambda: in_progress(address) >= 1 and counted.calls == 1)
        until(lambda: status_of(f"http://{address}/models/cells", b"no JSON") == 503)
        known = counted.calls
        for path in ("/models/cells", "/api/v1/models/cells/predict", "/v2/models/cells/infer"):
            assert status_of(f"http://{address}{path}", b"no JSON") == 503
        assert counted.calls == known and status_of(f"http://{address}/api/v1/models/cells", None) == 200
        free.set()
        assert first.result() == 200


class Counted:
    """A method that counts its calls."""

    def __init__(self, method: Any) -> None:
        self.method, self.calls = method, 0

    def __get__(self, owner: Any, kind: Any = None) -> Any:
        self.calls += 1
        return self.method.__get__(owner, kind)


def status_of(url: str, body: bytes | None) -> int:
    headers = {"content-type": "application/json"}
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body, headers), timeout=60) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as refused:
        return refused.code


def ask(line: socket.socket) -> bytes:
    """Whether the server lives, on a connection that stays open."""
    line.sendall(request("/livez"))
    found = b""
    while not found.endswith(b"ok\n"):
        part = line.recv(65536)
        if not part:
            break
        found += part
    return found


def test_idle_connections_make_way_for_others_and_busy_ones_do_not(
    runs: Path, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "MOST", 2)
    with serve(ServeConfig(folders=(runs,))) as address, connect(address) as first, connect(address) as second:
        assert b" 200 " in ask(first) and b" 200 " in ask(second)
        with connect(address) as third:
            assert b" 200 " in ask(third)
            third.sendall(b"GET /live")  # asks again, slowly
            left = [line for line in (first, second) if is_open(line)]
            assert len(left) == 1
            left[0].sendall(b"GET /live")
            time.sleep(0.2)
            with connect(address) as fourth:
                assert rest(fourth) == b""


def is_open(line: socket.socket) -> bool:
    """Whether the server has not closed a connection on which nothing is to come."""
    line.settimeout(0.5)
    try:
        return line.recv(1) != b""
    except TimeoutError:
        return True
