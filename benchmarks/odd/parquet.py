"""Parquet files."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from odd.case import Case, Content, Ends
from odd.making import parquet, picture, reviews

FINE = {0: "2 classes"}
TEXTS, LABELS = ([row[at] for row in reviews()] for at in (0, 1))
CODES = [n % 2 for n in range(40)]
PICTURES = [picture(shade=n) for n in range(40)]


def show(name: str, content: Content, ends: Ends, flags: str = "", **more: Any) -> Case:
    """`weft data show` of one file."""
    return Case(name, {"a.parquet": content}, f"weft data show a.parquet {flags}".strip(), ends, **more)


def texts(label: Any, metadata: str | None = None, **more: Any) -> Content:
    """Forty texts with these labels."""
    return parquet({"text": TEXTS, "label": label, **more}, {"huggingface": metadata} if metadata else None)


def names(*classes: str) -> str:
    """The metadata that `datasets` writes."""
    return json.dumps({"info": {"features": {"label": {"names": classes, "_type": "ClassLabel"}}}})


CASES = (
    show("as it should be", texts(LABELS), FINE),
    show("class names in the metadata", texts(CODES, names("bad", "good")), {0: ("2 classes", "good")}),
    show("metadata that is not JSON", texts(CODES, "{"), {0: "2 classes", 2: "a.parquet"}),
    show("metadata of another shape", texts(CODES, "[1, 2]"), {0: "2 classes", 2: "a.parquet"}),
    show("features of another shape", texts(CODES, '{"info": {"features": [1]}}'), {0: "2 classes", 2: "a.parquet"}),
    show(
        "names of another shape",
        texts(CODES, '{"info": {"features": {"label": {"names": {"x": 1}}}}}'),
        {0: "2 classes", 2: "a.parquet"},
    ),
    show("fewer names than labels", texts([n % 3 for n in range(40)], names("bad", "good")), {2: ("row", "2")}),
    show("labels that are objects", texts([{"a": code} for code in CODES]), {2: "label"}),
    show("labels that are lists", texts([[code] for code in CODES]), {2: "label"}),
    show("labels that are times", texts(pa.array(CODES, pa.timestamp("s"))), {0: "", 2: "label"}),
    show("labels that are decimals", texts(pa.array(CODES).cast(pa.decimal128(30, 2))), {0: "", 2: "label"}),
    show("labels that are a dictionary", texts(pa.array(LABELS).dictionary_encode()), FINE),
    show("labels that are missing", texts([None, *LABELS[1:]]), {2: "row"}),
    show("labels that are all missing", texts(pa.nulls(40, pa.string())), {0: "label", 2: "label"}),
    show("an empty label", texts(["", *LABELS[1:]]), {2: "row"}),
    show("no rows", parquet({"text": pa.array([], pa.string()), "label": pa.array([], pa.int64())}), {2: "a.parquet"}),
    show("no columns", parquet({}), {2: "a.parquet"}),
    show("columns of one name", lambda path: write_columns(path, ["text", "text", "label"]), {2: "text"}),
    show("inf", parquet({"x": [float("inf"), *map(float, range(39))], "label": LABELS}), {2: ("row", "inf")}),
    show("a missing number", parquet({"x": [None, *map(float, range(39))], "label": LABELS}), {2: "row"}),
    show("bytes that are no pictures", parquet({"image": [b"x"] * 40, "label": CODES}), {2: "row 0"}),
    show("a picture that is cut", parquet({"image": [PICTURES[0][:60], *PICTURES[1:]], "label": CODES}), {2: "row 0"}),
    show(
        "a picture that is cut, skipped",
        parquet({"image": [PICTURES[0][:60], *PICTURES[1:]], "label": CODES}),
        FINE,
        "--on-bad skip",
        writes=("*.png",),
    ),
    show("a picture that is missing", parquet({"image": [None, *PICTURES[1:]], "label": CODES}), {2: "row 0"}),
    show("a file of another kind", "text,label\na,b\n", {2: ("a.parquet", "Parquet")}),
    show("no byte at all", b"", {2: "a.parquet"}),
    show(
        "a file that is cut",
        lambda path: (texts(LABELS)(path), path.write_bytes(path.read_bytes()[:-200])),
        {2: "a.parquet"},
    ),
    show("pages of noise", lambda path: (texts(LABELS)(path), noise(path)), {0: "", 2: "a.parquet"}),
    Case(
        "shards of unlike columns",
        {"d/train-0.parquet": texts(LABELS), "d/train-1.parquet": parquet({"words": TEXTS, "label": LABELS})},
        "weft data show d",
        {2: "train-1.parquet"},
    ),
    Case(
        "shards of unlike types",
        {"d/train-0.parquet": texts(LABELS), "d/train-1.parquet": texts(CODES)},
        "weft data show d",
        {0: "", 2: "train-1.parquet"},
    ),
    show("streamed labels that are missing", texts([None, *LABELS[1:]]), {2: "row"}, "--stream"),
)


def write_columns(path: Any, head: list[str]) -> None:
    """A file whose columns have these names, which a dictionary could not hold."""
    pq.write_table(pa.table([TEXTS, TEXTS, LABELS], names=head), path)


def noise(path: Any) -> None:
    """Bytes of the first column's page changed."""
    content = bytearray(path.read_bytes())
    content[40:400] = bytes((n * 37) % 256 for n in range(360))
    path.write_bytes(bytes(content))
