"""What is wrong with an address or with nodes is one sentence with a remedy; nothing here needs a cluster."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from weft import __version__
from weft.errors import WeftError
from weft.studies.engine.cluster import connection, nodes
from weft.studies.engine.cluster.connection import knock, refusal
from weft.studies.engine.cluster.nodes import (
    Needs,
    Node,
    Report,
    able,
    accelerator_of,
    complaint,
    examined,
    own_code,
    probe,
)
from weft.studies.engine.place import address_of

HERE = Report(__version__, own_code(), "2.13.0", "a processor", 8, True)


def node(name: str = "one", cpus: float = 8, gpus: float = 0) -> Node:
    return Node(name * 8, name, cpus, 2**34, gpus)


def complaint_about(*reports: Report | str, equal_time: bool = False) -> str:
    nodes = [node(f"node{number}") for number in range(len(reports))]
    return complaint(nodes, list(reports), Path("/shared/study"), equal_time)


def other(**changes: object) -> Report:
    return Report(**{**vars(HERE), **changes})  # type: ignore[arg-type]


def test_places_are_ray_and_its_addresses() -> None:
    assert address_of("ray") == "auto" and address_of("ray:head:6379") == "head:6379"
    for wrong in ("slurm", "ray://head:10001", ""):
        with pytest.raises(WeftError, match="write --on ray, or --on ray:HOST:PORT"):
            address_of(wrong)


def test_an_address_at_which_nobody_listens_is_told_at_once() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(WeftError, match=rf"no Ray cluster answers at 127.0.0.1:{port} .*ray start --head"):
        knock(f"127.0.0.1:{port}")
    for wrong in ("head", "head:", "head:port", "127.0.0.1:99999999"):
        with pytest.raises(WeftError, match=r"HOST:PORT|no Ray cluster answers"):
            knock(wrong)


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\0\0"], ids=["none", "http", "half"])
def test_what_listens_and_is_no_cluster_is_told_in_time(answer: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "PATIENCE", 0.5)
    with listening(answer) as address, pytest.raises(WeftError, match=r"within 0.5 s; .*RAY_AUTH_TOKEN"):
        connection.connect(address)


def test_a_name_that_the_system_does_not_resolve_in_time_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """A resolver may take half a minute, which no timeout of a socket covers."""
    given_up = threading.Event()

    def resolve(*_: object, **__: object) -> None:
        given_up.wait(60)
        raise socket.gaierror("no answer of the resolver")

    monkeypatch.setattr(connection, "PATIENCE", 0.1)
    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    with pytest.raises(WeftError, match=r"no Ray cluster answers at head:6379 \(nothing within 0.1 s\)"):
        knock("head:6379")
    given_up.set()


def test_name_connection_and_greeting_share_one_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three seconds for the name and four for the connection leave three for the greeting, which never comes."""
    clock = Clock()
    monkeypatch.setattr(connection, "time", clock)
    monkeypatch.setattr(connection, "resolved", lambda *_: clock.passes(3.0) or [(0, 0, 0, "", "place")])
    monkeypatch.setattr(socket, "socket", lambda *_: Silent(clock))
    with pytest.raises(WeftError, match="within 10 s"):
        knock("head:6379")
    assert clock.now == 10.0


class Clock:
    """Time that passes when it is told to."""

    now = 0.0

    def monotonic(self) -> float:
        return self.now

    def passes(self, seconds: float) -> None:
        self.now += seconds


class Silent:
    """A connection to somebody who says nothing."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock

    def __enter__(self) -> Silent:
        return self

    def __exit__(self, *_: object) -> None: ...

    def settimeout(self, seconds: float) -> None:
        self.patience = seconds

    def connect(self, _: object) -> None:
        self.clock.passes(4.0)

    def sendall(self, _: bytes) -> None: ...

    def recv(self, _: int) -> bytes:
        self.clock.passes(self.patience)
        raise TimeoutError


def test_what_greets_as_rays_servers_do_is_worth_joining() -> None:
    """The frame that HTTP/2 servers begin with; of its nine bytes the fourth is the type."""
    with listening(b"\0\0\6\4\0\0\0\0\0" + bytes(6)) as address:
        assert connection.is_there(address)


@contextmanager
def listening(answer: bytes) -> Iterator[str]:
    """The address of somebody who says so much to all who come, and then nothing."""

    def serve() -> None:
        come.append(server.accept()[0])
        come[0].sendall(answer)

    come: list[socket.socket] = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        thread.join()
        come[0].close()


def test_a_cluster_that_is_written_down_and_gone_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path))
    assert not connection.is_there("auto")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (tmp_path / "ray").mkdir()
    (tmp_path / "ray" / "ray_current_cluster").write_text(f"127.0.0.1:{port}")
    assert not connection.is_there("auto")


@pytest.mark.parametrize(
    ("outcome", "sentence"),
    [
        ("ModuleNotFoundError No module named 'ray'", r"pip install 'weft\[cluster\]'"),
        ("AuthenticationError Token authentication failed", "asks for its token: set RAY_AUTH_MODE=token"),
        ("ConnectionError failed\nGCS: ray.exceptions.AuthenticationError: InvalidAuthToken", "asks for its token"),
        ("RuntimeError Version mismatch: the cluster has Ray 2.9", "another version of Ray or Python"),
        ("", "did not answer as a Ray cluster within 10 s"),
        ("ValueError odd\nlong cause", "cannot be joined: odd; check the address"),
    ],
)
def test_every_refusal_has_its_sentence(outcome: str, sentence: str) -> None:
    with pytest.raises(WeftError, match=sentence):
        raise WeftError(refusal("head:6379", outcome, 10.0))
    assert "\n" not in refusal("head:6379", outcome, 10.0)


def test_without_an_address_and_without_a_cluster_both_ways_out_are_named() -> None:
    for outcome in ("ConnectionError none found", ""):
        assert "`ray start --head`, or name one with --on ray:HOST:PORT" in refusal("auto", outcome, 10.0)
    assert "the Ray cluster of this machine asks for its token" in refusal("auto", "AuthenticationError no token", 10.0)


def test_nodes_without_weft_or_of_another_version_are_named() -> None:
    assert complaint_about(HERE, HERE) == ""
    assert f"no weft on node1 (node1nod); pip install weft=={__version__}" in complaint_about(HERE, other(weft=""))
    assert f"weft 0.0.1 on node0 (node0nod), {__version__} here" in complaint_about(other(weft="0.0.1"), HERE)
    assert "on node0 (node0nod) has other files than here" in complaint_about(other(code="edited"), HERE)
    assert "node node0 (node0nod) does not answer: it was lost" in complaint_about("it was lost", HERE)


def test_a_folder_that_a_node_does_not_share_is_refused() -> None:
    assert "cannot read and write /shared/study; choose an --output" in complaint_about(HERE, other(shared=False))


def test_equal_time_is_refused_among_machines_of_two_kinds_and_nothing_else_is() -> None:
    slower = other(processor="another processor")
    assert "times are compared, which is fair among machines of one kind only" in complaint_about(
        HERE, slower, equal_time=True
    )
    assert complaint_about(HERE, slower) == "" and complaint_about(HERE, HERE, equal_time=True) == ""


def test_the_model_of_a_gpu_belongs_to_a_nodes_kind_where_gpus_do_the_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    assert accelerator_of({"CPU": 8.0, "GPU": 1.0, "accelerator_type:A100": 1.0}) == "A100"
    assert accelerator_of({"CPU": 8.0}) == ""
    monkeypatch.setattr(nodes, "ask_all", lambda these, _: [HERE for _ in these])
    both = [replace(node(name, gpus=1), accelerator=name) for name in ("A100", "T4")]
    assert len(examined(both, Needs(Path("/shared"), equal_time=True))) == 2
    with pytest.raises(WeftError, match=r"one kind only, .* with 8 cores, GPU A100, torch .*, GPU T4, torch"):
        examined(both, Needs(Path("/shared"), gpu=True, equal_time=True))


def test_the_probe_sees_the_folder_and_writes_into_it(tmp_path: Path) -> None:
    look = probe()
    mark = tmp_path / "mark"
    assert not look(str(mark), "0")["shared"]
    mark.write_text("weft")
    found = look(str(mark), "0")
    assert found["shared"] and found["weft"] == __version__ and (tmp_path / "mark-0").is_file()


def test_nodes_too_small_for_a_run_are_left_out_and_none_at_all_is_refused() -> None:
    assert able([node("a", 2), node("b", 8)], 4, False) == [node("b", 8)]
    with pytest.raises(WeftError, match=r"a run asks for 16 cores .* offers more than 8; use fewer --threads"):
        able([node("a", 2), node("b", 8)], 16, False)
    with pytest.raises(WeftError, match="no node of the cluster offers a GPU; leave out --device cuda"):
        able([node()], 1, True)
