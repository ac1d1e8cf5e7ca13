"""JSONL files."""

from __future__ import annotations

import json

from odd.case import Case, Ends
from odd.making import jsonl, reviews

FINE = {0: "2 classes"}
ROWS = [json.dumps({"text": text, "label": label}) for text, label in reviews()]
NUMBERS = [json.dumps({"x": [n, n * 0.5], "label": n % 2}) for n in range(40)]


def row(name: str, line: str, ends: Ends, flags: str = "") -> Case:
    """Forty good rows, but for the fourth."""
    return whole(name, jsonl([*ROWS[:3], line, *ROWS[4:]]), ends, flags)


def whole(name: str, content: str | bytes, ends: Ends, flags: str = "") -> Case:
    """`weft data show` of one file."""
    return Case(name, {"a.jsonl": content}, f"weft data show a.jsonl {flags}".strip(), ends)


CASES = (
    whole("as it should be", jsonl(ROWS), FINE),
    row("a label that is an object", '{"text": "x", "label": {"a": 1}}', {2: "line 4"}),
    row("a label that is a list", '{"text": "x", "label": ["pos"]}', {2: "line 4"}),
    row("a label that is null", '{"text": "x", "label": null}', {2: "line 4"}),
    row("a text that is an object", '{"text": {"a": "b"}, "label": "pos"}', {2: "line 4"}),
    row("a text that is a list", '{"text": ["a", "b"], "label": "pos"}', {2: "line 4"}),
    row("a text that is null", '{"text": null, "label": "pos"}', {2: "line 4"}),
    row("a hundred thousand brackets", "[" * 100_000, {2: "line 4"}),
    row("brackets in a cell", '{"label": "pos", "text": ' + "[" * 5000 + "]" * 5000 + "}", {2: "line 4"}),
    row("a line that is not JSON", "text: x", {2: "line 4"}),
    row("a line that is not JSON, skipped", "text: x", FINE, "--on-bad skip"),
    row("a line that is a number", "5", {2: "line 4"}),
    row("a row without its label", '{"text": "x"}', {2: ("line 4", "label")}),
    row("a name too many", '{"text": "x", "label": "pos", "more": 1}', FINE),
    row("half of a letter", '{"text": "x \\ud800", "label": "pos"}', {2: "line 4"}),
    row("one name twice", '{"text": "x", "text": "y", "label": "pos"}', {0: "", 2: "line 4"}),
    row("an integer of five thousand digits", '{"label": "pos", "text": ' + "9" * 5000 + "}", {0: "", 2: "line 4"}),
    whole(
        "all labels are objects",
        jsonl([json.dumps({"text": f"x{n}", "label": {"a": 1}}) for n in range(20)]),
        {2: "label"},
    ),
    whole(
        "labels that are true and false",
        jsonl(r.replace('"pos"', "true").replace('"neg"', "false") for r in ROWS),
        FINE,
    ),
    whole("vectors", jsonl(NUMBERS), FINE),
    whole("vectors of unlike lengths", jsonl([*NUMBERS[:3], '{"x": [1], "label": 0}', *NUMBERS[4:]]), {2: "line 4"}),
    whole("a vector with a word", jsonl([*NUMBERS[:3], '{"x": [1, "b"], "label": 0}', *NUMBERS[4:]]), {2: "line 4"}),
    whole("a vector with NaN", jsonl([*NUMBERS[:3], '{"x": [1, NaN], "label": 0}', *NUMBERS[4:]]), {2: "line 4"}),
    whole(
        "a vector with Infinity", jsonl([*NUMBERS[:3], '{"x": [1, Infinity], "label": 0}', *NUMBERS[4:]]), {2: "line 4"}
    ),
    whole("a list of objects, as JSON", json.dumps([json.loads(row) for row in ROWS], indent=1), {2: "a.jsonl"}),
    whole("empty objects", jsonl(["{}"] * 20), {2: "a.jsonl"}),
    whole("no byte at all", b"", {2: "a.jsonl"}),
    whole("a byte-order mark", jsonl(ROWS).encode("utf-8-sig"), FINE),
    whole("UTF-16", jsonl(ROWS).encode("utf-16"), {0: "2 classes", 2: "UTF-16"}),
)
