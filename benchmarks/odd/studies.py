"""Comparisons, signals, and a machine whose narrow formats crash."""

from __future__ import annotations

import importlib.util
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from odd.case import Case, Content, Ended, Ends
from odd.making import COMMANDS, cut, deleted, instead_a_folder, made, photos, table
from odd.place import Place

COMPARE = f"weft {COMMANDS['comparison']}"
SHORT = "--steps 2 --seeds 1 --trials 0 --batch-size 8 --match none --no-controls --no-baseline"
LONG = "weft train digits --model mlp --steps 1000000 --checkpoint-every 50 --output RUN"
SPOIL = "for file in C/runs/*/inference.json; do echo '{}' > $file; done; weft leaderboard C"
DONE = {0: "report:"}
Steps = Iterator[tuple[Ended, Ends]]


def compared(name: str, changed: dict[str, Content], command: str, ends: Ends, **more: Any) -> Case:
    """A command on a finished comparison in which some files are changed; it may draw the report again."""
    files = {"C": made("comparison"), **{f"C/{file}": content for file, content in changed.items()}}
    return Case(name, files, command, ends, **{"writes": ("C/*",), "changes": ("C/*",), "seconds": 300, **more})


def several_commands(name: str, files: dict[str, Content], story: Any, writes: tuple[str, ...], **more: Any) -> Case:
    """Several commands."""
    return Case(name, files, story, writes=writes, **{"seconds": 300, **more})


def at_once(place: Place) -> Steps:
    """Two comparisons of one folder: one waits for the other or is refused; neither calls the other's work failed."""
    first, second = place.start(f"{COMPARE} --output C"), place.start(f"{COMPARE} --output C")
    ends = [first.end(), second.end()]
    yield sorted(ends, key=lambda ended: ended.code or 0)[0], DONE
    yield sorted(ends, key=lambda ended: ended.code or 0)[1], {0: "report:", 2: "C"}


def same_name(place: Place) -> Steps:
    """Two sources of one name: the second comparison leaves the first alone."""
    line = f"weft compare {{}}/photos --models mlp,resnet8_cifar {SHORT}"
    yield place.run(line.format("a")), DONE
    before = place.state()
    yield place.run(line.format("b")), DONE
    if any(place.state().get(path) != what for path, what in before.items()):
        yield Ended(0, "", "weft: the first comparison was changed by the second\nuse another folder"), {2: ""}


def where_one_stands(place: Place) -> Steps:
    """In the folder of pictures itself, twice: what the first wrote is no class for the second."""
    line = f"cd p && weft compare . --models mlp,resnet8_cifar {SHORT}"
    yield place.run(line), DONE
    yield place.run(line), DONE


def ended_by(number: int) -> Any:
    """A comparison is ended by a signal, and the same line goes on."""

    def story(place: Place) -> Steps:
        running = place.start(f"{COMPARE.replace('--steps 4', '--steps 1500')} --output C")
        place.wait_for("C/runs/*/metrics.jsonl")
        running.signal(number)
        yield running.end(), {130: ""} if number != signal.SIGKILL else {-9: ""}
        yield place.run(f"{COMPARE.replace('--steps 4', '--steps 1500')} --output C"), DONE

    return story


def source_changed(place: Place) -> Steps:
    """Between two comparisons, rows of the source are changed: their runs are not mistaken for each other."""
    line = f"weft compare a.csv --models conv_text,lstm_text {SHORT} --output C"
    yield place.run(line), DONE
    (place.work / "a.csv").write_text(table().replace("film", "play"))
    yield place.run(line), {0: "report:", 2: "C"}


def interrupted(number: int) -> Any:
    """Training is stopped by a signal, goes on, and is stopped again."""

    def story(place: Place) -> Steps:
        for line in (LONG, "weft train --resume RUN"):
            known = set(place.work.glob("RUN/checkpoints/*"))
            running = place.start(line)
            place.wait_for("RUN/checkpoints/*", known)  # one of its own: by then it has long begun
            running.signal(number)
            yield running.end(), {130: "--resume RUN"}

    return story


def before_it_began(place: Place) -> Steps:
    """Ctrl-C while Python still imports."""
    running = place.start(LONG)
    time.sleep(1.0)
    running.signal(signal.SIGINT)
    yield running.end(), {130: ""}


def two_in_a_folder(place: Place) -> Steps:
    """A second process in the folder of a run is refused, and the run goes on."""
    running = place.start(LONG)
    place.wait_for("RUN/checkpoints/*")
    yield place.run("weft train --resume RUN"), {2: "RUN"}
    yield place.run("weft train digits --model mlp --steps 2 --output RUN"), {2: "RUN"}
    yield place.run("weft runs prune . --apply"), {0: ""}
    running.signal(signal.SIGINT)
    yield running.end(), {130: "--resume RUN"}


def parent_killed(place: Place) -> Steps:
    """A comparison is killed without a chance to tidy up: its workers end by themselves."""
    running = place.start(f"{COMPARE.replace('--steps 4', '--steps 100000')} --output C")
    place.wait_for("C/runs/*/metrics.jsonl")
    running.signal(signal.SIGKILL)
    yield running.end(), {-9: ""}


def crashing(name: str, how: str, command: str, ends: Ends, **more: Any) -> Case:
    """The same command on a machine whose narrow formats cannot be used."""
    path = Path(__file__).parents[2] / "tests" / "crashing_machine.py"
    spec = importlib.util.spec_from_file_location("crashing_machine", path)
    assert spec is not None and spec.loader is not None
    machine = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(machine)

    def story(place: Place) -> Steps:
        folder = place.root / "tmp"
        path = machine.environment(folder, how)["PYTHONPATH"]
        yield place.run(f"export PYTHONPATH={path}:$PYTHONPATH; {command}"), ends

    return Case(name, {}, story, writes=("RUN/*", "C/*"), **{"seconds": 300, **more})


TRAIN = "weft train digits --model mlp --steps 30 --output RUN"
CASES = (
    several_commands("two comparisons of one folder at once", {}, at_once, ("C/*",)),
    several_commands(
        "two sources of one name", {**photos("a/photos", 20), **photos("b/photos", 21)}, same_name, ("comparisons/*",)
    ),
    several_commands("compared where one stands, twice", photos("p", 20), where_one_stands, ("p/comparisons/*",)),
    several_commands("a comparison ended by Ctrl-C", {}, ended_by(signal.SIGINT), ("C/*",)),
    several_commands("a comparison ended by SIGTERM", {}, ended_by(signal.SIGTERM), ("C/*",)),
    several_commands("a comparison killed", {}, ended_by(signal.SIGKILL), ("C/*",)),
    several_commands("a comparison killed, its workers", {}, parent_killed, ("C/*",)),
    several_commands("a source that is changed", {"a.csv": table()}, source_changed, ("C/*",), changes=("a.csv",)),
    compared("study.json cut", {"study.json": cut(0.5)}, "weft leaderboard C", {2: "study.json"}),
    compared(
        "study.json cut, compared again",
        {"study.json": cut(0.5)},
        f"{COMPARE} --output C",
        {0: "report:", 2: "study.json"},
    ),
    compared("study.json a list", {"study.json": "[]"}, "weft leaderboard C", {2: "study.json"}),
    compared(
        "study.json of a wrong kind",
        {"study.json": '{"format": "x", "candidates": 5}'},
        "weft leaderboard C",
        {2: "study.json"},
    ),
    compared("study.json deleted", {"study.json": deleted}, "weft leaderboard C", {0: "", 2: "C"}),
    compared("study.json a folder", {"study.json": instead_a_folder}, "weft leaderboard C", {0: "", 2: "study.json"}),
    compared("inference.json cut", {}, SPOIL.format("{"), {0: "", 2: "inference.json"}),
    compared("inference.json of a wrong kind", {}, SPOIL.format('{"latency": [5]}'), {0: "", 2: "inference.json"}),
    compared("a comparison again", {}, f"{COMPARE} --output C", DONE),
    compared(
        "a comparison at another precision",
        {},
        f"{COMPARE} --output C --precision bf16 --no-compile",
        {0: "report:", 1: "bf16", 2: "C"},
    ),
    compared(
        "a comparison of another source in its folder",
        {},
        f"{COMPARE.replace('digits', 'breast_cancer').replace(',resnet8_cifar', '')} --output C",
        {2: "C"},
    ),
    compared(
        "networks of pictures for a table",
        {},
        f"{COMPARE.replace('digits', 'breast_cancer')} --output D",
        {2: ("resnet8_cifar takes image", "vector")},
    ),
    several_commands("training stopped by Ctrl-C", {}, interrupted(signal.SIGINT), ("RUN/*",)),
    several_commands("training stopped by SIGTERM", {}, interrupted(signal.SIGTERM), ("RUN/*",)),
    several_commands("Ctrl-C at once", {}, before_it_began, ("RUN/*",)),
    several_commands("two processes in one run", {}, two_in_a_folder, ("RUN/*",)),
    crashing("narrow formats that crash, trained", "crash", TRAIN, {0: "finished"}),
    crashing("narrow formats that crash, the doctor", "crash", "weft doctor", {0: "SIGILL"}),
    crashing("narrow formats that hang, trained", "hang", TRAIN, {0: "finished"}),
    crashing("narrow formats that are wrong, trained", "wrong", TRAIN, {0: "finished"}),
    crashing(
        "narrow formats that crash, a long run",
        "crash",
        "weft train digits --model mlp --time 25s --output RUN",
        {0: "finished"},
    ),
    crashing("narrow formats that crash, compared", "crash", f"{COMPARE} --output C", DONE),
    crashing("narrow formats that crash, asked for", "crash", f"{TRAIN} --precision bf16", {1: "bf16", 2: "bf16"}),
    crashing(
        "narrow formats that crash, asked for in a comparison",
        "crash",
        f"{COMPARE} --output C --precision bf16",
        {1: "SIGILL", 2: "bf16"},
    ),
)
