"""The tour stays true: its commands run in order, write the files that it shows, and the code lies where it says.

At a small scale: trainings take two steps, lenses see few examples (`small`); all else is as a reader types it.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import NamedTuple

import pytest

from weft.commands.main import dispatch

ROOT = Path(__file__).parents[1]
PAGES = sorted((ROOT / "docs").glob("*.md"))
PAGE = ROOT / "docs" / "tour.md"
TITLES = [
    "Perceptron", "Bias and activations", "Back-propagation by hand", "Why an MLP minds a shift",
    "Convolution and its filters", "Pooling and LeNet", "Batch norm", "Receptive fields", "The recurrent ConvNet",
    "Attention in five steps", "Positions", "ViT", "BERT's two tasks", "Mixer", "gMLP and its gates", "tMLP", "aMLP",
    "The tables",
]  # fmt: skip
LARGEST = 1_500_000  # bytes of all pictures together
EXAMPLES = {"activations", "backprop", "field", "shift", "attention", "gates"}  # the lenses that have the option


class Section(NamedTuple):
    title: str
    text: str

    @property
    def commands(self) -> list[str]:
        blocks = re.findall(r"```sh\n(.*?)```", self.text, flags=re.DOTALL)
        return [line for block in blocks for line in block.splitlines() if line.strip()]

    def named(self, label: str) -> list[str]:
        """The `quoted` paths on the line that starts with the label."""
        line = re.search(rf"^{label}: (.*)$", self.text, flags=re.MULTILINE)
        return re.findall(r"`([^`]+)`", line[1]) if line else []


def sections() -> list[Section]:
    parts = re.split(r"^## ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    return [Section(*part.split("\n", 1)) for part in parts]


SETUP, *STATIONS = sections()


def small(command: str) -> list[str]:
    """The words of a command after `weft`, at the scale of a test: --epochs 20 and --steps 100 become --steps 2."""
    words = shlex.split(re.sub(r"--(epochs|steps) \d+", "--steps 2", command))[1:]
    if words[0] == "pretrain":
        words += ["--batch-size", "4"]
    if words[0] == "inspect" and words[2] in EXAMPLES:
        words += ["--examples", "8"]
    if words[0] == "inspect" and words[2] == "backprop":
        words += ["--depth", "4"]
    return words


def test_the_tour_stops_at_every_station() -> None:
    assert [station.title for station in STATIONS] == TITLES


@pytest.mark.parametrize("station", STATIONS, ids=[station.title for station in STATIONS])
def test_a_station_has_an_equation_a_command_a_picture_and_a_place(station: Section) -> None:
    assert len(station.commands) == 1
    assert re.search(r"```text\n.*?```", station.text, flags=re.DOTALL), "an equation"
    assert len(re.findall(r"!\[[^]]+\]\(pictures/tour/", station.text)) == 1
    assert "What to see: " in station.text
    places = station.named("Lives in")
    assert places and all((ROOT / "src" / "weft" / place).exists() for place in places), places


@pytest.mark.parametrize("name", [page.name for page in PAGES if page.name != "systems.md"])
def test_pages_speak_of_ideas_and_not_of_requirements(name: str) -> None:
    """`systems.md` alone says which requirement is met where."""
    page = (ROOT / "docs" / name).read_text(encoding="utf-8")
    prose = re.sub(r"```.*?```|`[^`]+`|macro-F1", "", page, flags=re.DOTALL)
    assert not re.findall(r"\b[FCAMET]\d{1,2}\b", prose)


def test_pictures_are_small_and_all_are_shown() -> None:
    pictures = list((ROOT / "docs" / "pictures" / "tour").iterdir())
    assert sum(picture.stat().st_size for picture in pictures) < LARGEST
    shown = set(re.findall(r"\]\(pictures/tour/([^)]+)\)", PAGE.read_text(encoding="utf-8")))
    assert shown == {picture.name for picture in pictures}


@pytest.mark.slow
def test_every_command_runs_and_writes_what_the_tour_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for command in SETUP.commands:
        assert dispatch(small(command)) == 0, command
    for station in STATIONS:
        assert dispatch(small(station.commands[0])) == 0, station.commands[0]
        written = station.named("Writes")
        assert written and all(Path(file).is_file() for file in written), f"{station.title}: {written}"
