"""`weft serve`: what cannot be served is one sentence and exit code 2."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from weft.commands import serve
from weft.commands.main import dispatch
from weft.errors import WeftError

pytest.importorskip("fastapi", reason="the server is in the extra serve")


def run_folder(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / "run.yaml").write_text("format: 1\nconfig:\n  model: mlp\n")
    return folder


def test_a_port_in_use_is_named(tmp_path: Path) -> None:
    run_folder(tmp_path / "run")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(WeftError, match=rf"127\.0\.0\.1:{port}.*--port"):
            dispatch(["serve", str(tmp_path), "--port", str(port)])


def test_folders_without_runs_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(WeftError, match="no run or comparison"):
        dispatch(["serve", str(tmp_path), "--port", "0"])
    with pytest.raises(WeftError, match="no folder"):
        dispatch(["serve", str(tmp_path / "nowhere"), "--port", "0"])
    monkeypatch.chdir(tmp_path)
    with pytest.raises(WeftError, match="neither a folder runs nor"):
        dispatch(["serve", "--port", "0"])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--host", "0.0.0.0"], "--token"),
        (["--host", "no such host", "--token", "x" * 20], "--host"),
        (["--token", "short"], "too few"),
        (["--port", "70000"], "--port"),
        (["--max-batch", "0"], "--max-batch"),
        (["--max-body", "much"], "16M|bytes"),
        (["--timeout", "0"], "--timeout"),
    ],
)
def test_settings_that_cannot_be_are_refused(tmp_path: Path, words: list[str], said: str) -> None:
    run_folder(tmp_path / "run")
    with pytest.raises(WeftError, match=said):
        dispatch(["serve", str(tmp_path), *words])


def test_the_extra_is_named_where_it_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_folder(tmp_path / "run")
    monkeypatch.setattr(serve, "find_spec", lambda name: None)
    with pytest.raises(WeftError, match=r"weft\[serve\]"):
        dispatch(["serve", str(tmp_path)])
