"""Texts of many scripts, and targets that are numbers."""

from __future__ import annotations

from typing import Any

from odd.case import Case, Ends
from odd.making import reviews, table

FINE = {0: "2 classes"}
TRAIN = "--steps 2 --batch-size 8 --output RUN"
CHINESE = [("这部电影很好看" + chr(0x4E00 + n), label) for n, (_, label) in enumerate(reviews())]
SCRIPTS = {
    "Chinese": CHINESE,
    "Arabic": [(f"هذا الفيلم رقم {n}", label) for n, (_, label) in enumerate(reviews())],
    "Thai": [("หนังเรื่องนี้ดี" + chr(0x0E01 + n), label) for n, (_, label) in enumerate(reviews())],
    "emoji": [("👩‍👩‍👧‍👦🏳️‍🌈" + chr(0x1F600 + n), label) for n, (_, label) in enumerate(reviews())],
    "stacked accents": [("a" + "\u0301\u0323" * 50 + str(n), label) for n, (_, label) in enumerate(reviews())],
    "words of one letter": [
        (chr(97 + n % 26) + " " + chr(97 + n // 26), label) for n, (_, label) in enumerate(reviews())
    ],
    "letters nobody has assigned": [("\ufdd0\U0010fffe" + str(n), label) for n, (_, label) in enumerate(reviews())],
}


def numbers(name: str, targets: list[Any], ends: Ends, command: str = "weft data show a.csv", **more: Any) -> Case:
    """A table of one number a row and its target."""
    rows = [(n / 7, target) for n, target in enumerate(targets)]
    return Case(name, {"a.csv": table(rows, "x,target")}, command, ends, **more)


def train(name: str, targets: list[Any], ends: Ends) -> Case:
    """A perceptron on such a table, for two steps."""
    writes = ("RUN/*",) if 0 in ends else ()
    return numbers(name, targets, ends, f"weft train a.csv --model mlp {TRAIN}", writes=writes)


CASES = (
    *(Case(name, {"a.csv": table(rows)}, "weft data show a.csv", FINE) for name, rows in SCRIPTS.items()),
    Case(
        "Chinese, trained on",
        {"a.csv": table(CHINESE)},
        f"weft train a.csv --model conv_text {TRAIN}",
        {0: "finished"},
        writes=("RUN/*",),
    ),
    Case(
        "one text again and again",
        {"a.csv": table([("the same", "ab"[n % 2]) for n in range(40)])},
        "weft data show a.csv",
        {0: "", 2: "a.csv"},
    ),
    Case("plain text", {"a.txt": "".join(f"line {n}\n\n" for n in range(30))}, "weft data show a.txt", {0: "a.txt"}),
    Case("plain text without a byte", {"a.txt": ""}, "weft data show a.txt --task none", {2: "a.txt"}),
    Case(
        "a text of two million letters",
        {"a.txt": "x" * 2_000_000 + "\nb\nc\n"},
        "weft data show a.txt --task none",
        {2: "line 1"},
    ),
    numbers("over a hundred integers", list(range(150)) * 4, {0: ("regression", "--task classes")}),
    numbers(
        "over a hundred integers, as classes",
        list(range(150)) * 4,
        {0: "150 classes"},
        "weft data show a.csv --task classes",
    ),
    numbers("fractions, as classes", [n / 3 for n in range(60)], {2: "a.csv"}, "weft data show a.csv --task classes"),
    numbers("words, as numbers", ["a", "b"] * 30, {2: "line 2"}, "weft data show a.csv --task regression"),
    numbers("a target that is nan", [0.5, "nan", *(n / 3 for n in range(58))], {2: "line 3"}),
    numbers("a target that is inf", [0.5, "inf", *(n / 3 for n in range(58))], {2: "line 3"}),
    numbers("a target that is missing", [0.5, "", *(n / 3 for n in range(58))], {2: "line 3"}),
    numbers("three classes, as two", ["a", "b", "c"] * 20, {2: "3"}, "weft data show a.csv --task binary"),
    train("targets of a billion", [10**9 + n / 8 for n in range(60)], {0: "finished"}),
    train("targets of either sign of a billion", [(-1) ** n * (10**9 + n / 8) for n in range(60)], {0: "finished"}),
    train("targets beyond float32", [1e300 * (n + 0.5) for n in range(60)], {0: "finished", 2: "line"}),
    train("targets that are all the same", [2.5] * 60, {0: "finished", 2: "2.5"}),
)
