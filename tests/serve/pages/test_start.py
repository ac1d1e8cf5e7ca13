"""Starting a comparison: only below the folders of --data, a real process, found again by another server."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from weft import machine
from weft.serve.pages.start import processes as module
from weft.serve.pages.start.look import FILE, SHEET, looked_at
from weft.serve.pages.start.processes import Processes, started_in
from weft.serve.pages.start.sources import Sources

Make = Callable[..., TestClient]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    (folder / "texts").mkdir(parents=True)
    rows = "".join(f"{'good' if n % 2 else 'bad'} film number {n},{n % 2}\n" for n in range(60))
    (folder / "texts" / "reviews.csv").write_text("text,label\n" + rows)
    (folder / ".secret").mkdir()
    (tmp_path / "outside.csv").write_text("text,label\nx,1\n")
    (folder / "link.csv").symlink_to(tmp_path / "outside.csv")
    return folder


@pytest.fixture
def server(client: Make, data: Path, tmp_path: Path) -> TestClient:
    (tmp_path / "comparisons").mkdir()
    return client(folders=(tmp_path / "comparisons",), data=(data,))


def test_without_data_nothing_can_be_started(client: Make):
    server = client()
    assert server.get("/start").status_code == 404 and server.post("/start/compare").status_code in (404, 405)
    assert 'href="/start"' not in server.get("/").text


@pytest.mark.parametrize(
    "key",
    ["0/../outside.csv", "0/link.csv", "0/.secret", "1", "/etc", "hub:imdb", "0/\0", "-1/x", "²", "0000001", "00"],
)
def test_no_source_is_found_outside_of_the_folders(server: TestClient, key: str):
    assert server.get("/start", params={"source": key}).status_code == 404
    assert server.post("/start/look", data={"source": key}).status_code == 404
    assert server.post("/start/compare", data={"source": key, "time": "60s"}).status_code == 404


def test_folders_and_tables_are_listed_and_nothing_hidden(server: TestClient):
    assert ">texts</a>" in server.get("/start?source=0").text
    page = server.get("/start?source=0").text
    assert ".secret" not in page and "link.csv" not in page
    assert "reviews.csv" in server.get("/start?source=0/texts").text


def test_a_source_is_known_again_by_its_path(data: Path):
    sources = Sources([data])
    place = sources.of(str(data / "texts" / "reviews.csv"))
    assert place is not None and place.key == "0/texts/reviews.csv"
    assert sources.of(str(data.parent / "outside.csv")) is None and sources.of("texts/reviews.csv") is None


def test_a_look_finds_classes_rows_and_samples(data: Path, tmp_path: Path):
    found = looked_at(str(data / "texts" / "reviews.csv"), tmp_path)
    assert found["class_count"] == 2 and found["splits"]["train"]["balance"] and "film" in found["samples"][0]["text"]
    assert not (tmp_path / SHEET).exists()
    pictures = looked_at("digits", tmp_path)
    assert pictures["modality"] == "image" and (tmp_path / SHEET).is_file() and not pictures["samples"]


def test_a_look_is_a_process_of_its_own_and_its_trouble_a_sentence(server: TestClient, data: Path):
    (data / "empty").mkdir()
    server.post("/start/look", data={"source": "0/empty"})
    for _ in range(300):
        page = server.get("/start?source=0/empty").text
        if "Looking" not in page:
            break
        time.sleep(0.2)
    assert "is an empty folder" in page and FILE == "look.json"


def test_another_site_cannot_start_anything(server: TestClient):
    for headers in ({"origin": "https://evil.example"}, {"sec-fetch-site": "cross-site"}):
        answer = server.post("/start/compare", data={"source": "digits", "time": "60s"}, headers=headers)
        assert answer.status_code == 403


@pytest.mark.parametrize(
    "form", [{"time": "soon"}, {"time": "60s", "models": "--output=/tmp/x"}, {"time": "9999999d"}, {}]
)
def test_what_makes_no_sense_is_refused_and_leaves_nothing(server: TestClient, form: dict[str, str], tmp_path: Path):
    assert server.post("/start/compare", data={"source": "digits", **form}).status_code == 422
    assert list((tmp_path / "comparisons").iterdir()) == []


@pytest.fixture
def sleeping(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Comparisons are processes that only wait, and end by SIGTERM; returns the commands."""
    asked: list[Any] = []
    real = subprocess.Popen

    def popen(command: list[str], **options: Any) -> Any:
        asked.append(command)
        return real([sys.executable, "-c", "import time; print('begun', flush=True); time.sleep(60)"], **options)

    monkeypatch.setattr(module.subprocess, "Popen", popen)
    return asked


def test_what_was_started_is_the_real_command_and_another_server_can_stop_it(
    data: Path, tmp_path: Path, sleeping: list[Any]
):
    sources, first = Sources([data]), Processes(tmp_path / "out")
    folder = first.start(sources.find("0/texts/reviews.csv"), "5m", "families")
    assert sleeping[0][1:5] == ["-P", "-m", "weft", "compare"] and sleeping[0][5] == str(data / "texts" / "reviews.csv")
    assert sleeping[0][-2:] == ["--output", str(folder)]
    second = Processes(tmp_path / "out")
    (started,) = second.listed().values()
    assert started.running and os.getsid(started.process) == started.process, "a signal to the server misses it"
    with pytest.raises(Exception, match="is under way"):
        second.start(sources.find("digits"), "5m", "families")
    second.stop(folder)
    assert first._own[0].wait(10) == -signal.SIGTERM
    assert not started_in(folder).running  # type: ignore[union-attr]
    with pytest.raises(Exception, match="nothing that the page started"):
        second.stop(folder)
    first.start(sources.find("0/texts/reviews.csv"), "10m", "families")
    first.stop(folder)
    assert first._own[0].wait(10) == -signal.SIGTERM


def test_another_process_of_the_same_number_is_left_alone(tmp_path: Path):
    own = os.getpid()
    assert machine.born(own) and not module.Started(own, "1", "digits", "5m").running
    assert machine.born(2**22 + 1) == ""


def test_what_is_under_way_is_shown_with_its_log_and_can_be_stopped(
    server: TestClient, tmp_path: Path, sleeping: list[Any]
):
    answer = server.post("/start/compare", data={"source": "digits", "time": "2m"}, follow_redirects=False)
    assert answer.status_code == 303 and answer.headers["location"] == "/start#started"
    log = tmp_path / "comparisons" / "digits" / "log.txt"
    for _ in range(100):
        if log.read_text():
            break
        time.sleep(0.1)
    page = server.get("/start").text
    assert "begun" in page and 'action="/start/stop"' in page
    assert server.post("/start/stop", data={"name": "../digits"}).status_code == 404
    assert server.post("/start/stop", data={"name": "digits"}, follow_redirects=False).status_code == 303
