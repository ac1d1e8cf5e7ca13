"""Run folders: damaged, hostile, moved, and among files of the user."""

from __future__ import annotations

import json
import pickle
import struct
from pathlib import Path
from typing import Any

from odd.case import Case, Content, Ends
from odd.making import cut, declared, deleted, instead_a_folder, made, photos, picture, replaced, table

PREDICT = "weft predict RUN x.png"
EVAL = "weft eval RUN"
RESUME = "weft train --resume RUN"
ANSWER = {0: "probability_1"}
OURS = ("RUN/*",)
DAMAGES: dict[str, Content] = {
    "cut": cut(0.5),
    "empty": b"",
    "of noise": bytes(range(256)) * 4,
    "a list": "[]",
    "null": "null",
    "too deep": "[" * 100_000,
    "deleted": deleted,
    "a folder": instead_a_folder,
}


def run(name: str, changed: dict[str, Content], command: str, ends: Ends, kind: str = "digits", **more: Any) -> Case:
    """A command on a trained run in which some files are changed."""
    files = {"RUN": made(kind), "x.png": picture(8), **{f"RUN/{file}": what for file, what in changed.items()}}
    return Case(name, files, command, ends, **more)


def damaged(file: str, command: str, ends: Ends, kinds: str, **more: Any) -> list[Case]:
    """The same command for each of some damages to a file."""
    verb = command.split()[1]
    return [run(f"{file} {kind}, {verb}", {file: DAMAGES[kind]}, command, ends, **more) for kind in kinds.split(", ")]


def config(name: str, old: str, new: str, says: str = "config.json") -> Case:
    """Other words in config.json, which then fits neither the weights nor the memory."""
    return run(name, {"config.json": replaced(old, new)}, PREDICT, {2: says}, seconds=40)


def preprocessor(name: str, old: str, new: str) -> Case:
    """Other words in preprocessor_config.json."""
    return run(name, {"preprocessor_config.json": replaced(old, new)}, PREDICT, {2: "preprocessor_config.json"})


def weights(header: dict[str, Any], data: bytes = b"") -> bytes:
    """A safetensors file with any header."""
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


class Bomb:
    """What a pickle that is loaded would do: write a file that the campaign then finds."""

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.write_text, (Path("executed"), "")


HUGE = {"0.weight": {"dtype": "F32", "shape": [10**9, 10**9], "data_offsets": [0, 4 * 10**18]}}
CASES = (
    run("as it should be, predict", {}, PREDICT, ANSWER),
    run("as it should be, eval", {}, EVAL, {0: "accuracy"}),
    run("as it should be, resume", {}, RESUME, {0: "already"}),
    # each file damaged in each way
    *damaged("config.json", PREDICT, {2: "config.json"}, ", ".join(DAMAGES)),
    *damaged("preprocessor_config.json", PREDICT, {2: "preprocessor_config.json"}, "cut, empty, a list, null, deleted"),
    *damaged("model.safetensors", PREDICT, {2: "model.safetensors"}, "cut, empty, of noise, deleted, a folder"),
    *damaged("run.yaml", EVAL, {2: "run.yaml"}, "of noise, a list, null, too deep, deleted, a folder"),
    *damaged("run.yaml", "weft runs .", {0: "RUN"}, "of noise, a list, null"),
    *damaged("record.json", "weft runs .", {0: "RUN"}, "cut, of noise, a list, null, too deep, a folder"),
    *damaged("record.json", "weft leaderboard .", {0: "", 2: "RUN"}, "cut, a list"),
    *damaged("predictions.safetensors", "weft leaderboard .", {0: "", 2: "RUN"}, "cut, deleted"),
    *damaged("metrics.jsonl", "weft leaderboard .", {0: "", 2: "RUN"}, "of noise, deleted"),
    *damaged("record.json", RESUME, {0: "finished", 2: "record.json"}, "cut, deleted", changes=OURS, writes=OURS),
    *damaged("metrics.jsonl", RESUME, {0: "finished", 2: "metrics.jsonl"}, "of noise, deleted", changes=OURS),
    # values of wrong kinds and hostile sizes
    config("a layer of a billion units", "256", "1000000000"),
    config("a layer of no units", "256", "0"),
    config("a layer of words", "256", '"wide"'),
    config("a billion pixels a side", "8,\n        8", "1000000000, 1000000000"),
    config("a million classes", '"num_classes": 10', '"num_classes": 1000000'),
    config("classes that are no list", '"classes": [', '"classes": 5, "x": ['),
    config("a network of no known name", '"family": "mlp"', '"family": "nonsense"', "nonsense"),
    config("a network of an odd name", '"family": "mlp"', '"family": ["mlp"]'),
    config("an activation of no known name", '"relu"', '"os.system"'),
    config("a task of no known name", '"task": "classes"', '"task": "nonsense"'),
    config("a scale that is no number", '"scale": 1.0', '"scale": "x"'),
    config("a field too many", '"family": "mlp"', '"family": "mlp", "more": 1'),
    preprocessor("pictures of a billion pixels a side", '"size": 8', '"size": 1000000000'),
    preprocessor("pictures of no pixels", '"size": 8', '"size": 0'),
    preprocessor("pictures of words", '"size": 8', '"size": "x"'),
    preprocessor("a mean of words", '"mean": [', '"mean": ["x", '),
    preprocessor("a deviation of nothing", '"std": [', '"std": [0.0, '),
    preprocessor("five channels", '"channels": 1', '"channels": 5'),
    preprocessor("a kind of no known name", '"kind": "image"', '"kind": "nonsense"'),
    run("weights for ten million terabytes", {"model.safetensors": weights(HUGE)}, PREDICT, {2: "model.safetensors"}),
    run("weights of another network", {"model.safetensors": weights({})}, PREDICT, {2: "model.safetensors"}),
    run(
        "weights with a head of 2⁶³ bytes",
        {"model.safetensors": b"\xff" * 7 + b"\x7f" + b"{}"},
        PREDICT,
        {2: "model.safetensors"},
    ),
    run(
        "a pickle in place of the weights",
        {"model.safetensors": pickle.dumps(Bomb())},
        PREDICT,
        {2: "model.safetensors"},
    ),
    run("a pickle beside the weights", {"pytorch_model.bin": pickle.dumps(Bomb())}, PREDICT, ANSWER),
    run(
        "Python in run.yaml",
        {"run.yaml": "!!python/object/apply:os.system ['touch executed']\n"},
        EVAL,
        {2: "run.yaml"},
    ),
    run("a plan of a wrong kind", {"run.yaml": replaced("steps: 2", "steps: many")}, RESUME, {2: "run.yaml"}),
    run(
        "a source that is gone",
        {"run.yaml": replaced("source: digits", "source: no/such.csv")},
        EVAL,
        {2: "no/such.csv"},
    ),
    run(
        "a vocabulary that is cut",
        {"tokenizer.json": cut(0.5)},
        "weft predict RUN --text film",
        {2: "tokenizer.json"},
        "text",
    ),
    run(
        "a vocabulary of a wrong kind",
        {"tokenizer.json": "{}"},
        "weft predict RUN --text film",
        {2: "tokenizer.json"},
        "text",
    ),
    # moved, and asked with other things than it learnt
    run(
        "moved, predict",
        {},
        "mkdir a && mv RUN a/b && weft predict a/b x.png",
        ANSWER,
        changes=("RUN*",),
        writes=("a/b/*",),
    ),
    run("from another folder", {}, "mkdir $TMPDIR/q && cd $TMPDIR/q && weft predict $OLDPWD/RUN $OLDPWD/x.png", ANSWER),
    run("a picture that is none", {"../x.png": "hello"}, PREDICT, {2: "x.png"}),
    run(
        "a picture of 81 million pixels",
        {"../big.png": declared(9000, 9000)},
        "weft predict RUN x.png big.png",
        {1: "big.png"},  # the other has its answer
    ),
    run("a text for a network of pictures", {}, "weft predict RUN --text hello", {2: "text"}),
    run("words for a network of tables", {}, "echo a,b | weft predict RUN", {2: "a,b"}, "table"),
    run("too few numbers", {}, "echo 1,2 | weft predict RUN", {2: ("2", "30")}, "table"),
    run(
        "numbers that are not finite",
        {},
        "echo $(printf 'inf,%.0s' {1..29})inf | weft predict RUN",
        {2: "inf"},
        "table",
    ),
    run("a file that is no text", {}, "weft predict RUN x.png", {2: "x.png"}, "text"),
    run(
        "another source of one class",
        {"../p/c/0.png": picture(8), "../p/c/1.png": picture(9)},
        "weft eval RUN p",
        {0: "", 2: "p"},
    ),
    run(
        "another source of other classes",
        {f"../{name}": data for name, data in photos("p").items()},
        "weft eval RUN p",
        {2: "cat"},
    ),
    run("a split that is not there", {}, "weft eval RUN --split nonsense", {2: "nonsense"}),
    run(
        "formulas as answers",
        {},
        "weft predict RUN --text film",
        {0: "probability_1"},
        "formulas",
        never=(",=1+1", ",@SUM"),
    ),
    run(
        "a text that is a formula",
        {},
        "weft predict RUN --text =cmd --text +cmd --text @x",
        {0: "probability_1"},
        "text",
        never=("\n=cmd", "\n+cmd", "\n@x"),
    ),
    run(
        "looked into where a file is", {"insight": "dear"}, "weft inspect RUN activations", {2: "insight"}, seconds=120
    ),
    # pruning among files of the user
    run(
        "pruned among files of the user",
        {"diary.txt": "dear", "checkpoints/diary.txt": "dear"},
        "weft runs prune . --apply",
        {0: "", 2: "diary.txt"},
        changes=("RUN/checkpoints", "RUN/checkpoints/[0-9]*"),
    ),
    run(
        "pruned when it never began",
        {
            "run.yaml": lambda path: path.write_text(path.read_text().split("plan:")[0]),
            "record.json": deleted,
            "diary.txt": "dear",
            "other/diary.txt": "dear",
        },
        "weft runs prune . --apply",
        {0: "", 2: "diary.txt"},
        changes=("RUN/[cmprs]*", "RUN/.lock"),
    ),
    run(
        "pruned with another run in it",
        {
            "run.yaml": lambda path: path.write_text(path.read_text().split("plan:")[0]),
            "record.json": deleted,
            "inner": made("digits"),
        },
        "weft runs prune RUN --apply",
        {0: "", 2: "inner"},
        changes=("RUN/[cmprs]*", "RUN/.lock", "RUN/inner/checkpoints*"),
    ),
    Case(
        "pruned where a folder is only named so",
        {"d/run.yaml": "mine: yes\n", "d/checkpoints/5/diary.txt": "dear", "d/record.json": '{"status": "finished"}'},
        "weft runs prune d --apply",
        {0: "", 2: "d"},
    ),
    run(
        "pruned through a link",
        {
            "../mine/checkpoints/diary.txt": "dear",
            "checkpoints": lambda path: (deleted(path), path.symlink_to("../mine/checkpoints")),
        },
        "weft runs prune . --apply",
        {0: "", 2: "RUN"},
        changes=("RUN/checkpoints",),
    ),
    Case(
        "runs of which the names are odd",
        {"[red]\n\x1b[31m": made("digits"), "a.csv": table()},
        "weft runs .",
        {0: "[red]"},
    ),
    Case(
        "two runs of unlike sources, compared",
        {"A": made("digits"), "B": made("table")},
        "weft compare --runs A B",
        {2: ""},
    ),
)
