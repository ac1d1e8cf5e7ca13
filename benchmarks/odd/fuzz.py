"""Any bytes at all, for the readers of tables: a source comes of them, or a sentence.

python benchmarks/odd/fuzz.py csv_bytes 2000
"""

from __future__ import annotations

import json
import string
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from weft.data import open_source
from weft.data.config import SourceConfig
from weft.data.show.summary import samples, summarize
from weft.errors import WeftError

EXAMPLES = 1000
LETTERS = st.text(st.characters(codec="utf-8"), max_size=12)
CELLS = st.one_of(
    LETTERS,
    st.sampled_from(["", "nan", "inf", "-1", "1e400", "NA", "null", "0", "1", '"', "'", ";", "\t", "=1+1", "[b]"]),
)
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), LETTERS),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(LETTERS, inner, max_size=3)),
    max_leaves=6,
)
NAMES = st.sampled_from(["text", "label", "x", "y", "title", "", "premise", "hypothesis", "Label"])


@st.composite
def tables(draw: Callable[..., Any]) -> bytes:
    """Nearly a table: a head, rows of about as many cells, some mark between them, some encoding."""
    head = draw(st.lists(NAMES, min_size=1, max_size=4))
    rows = draw(st.lists(st.lists(CELLS, min_size=max(1, len(head) - 1), max_size=len(head) + 1), max_size=12))
    mark, end = draw(st.sampled_from(",,,;\t|")), draw(st.sampled_from(["\n", "\r\n", "\r"]))
    text = end.join(mark.join(row) for row in [head, *rows, *draw(st.sampled_from([[], rows]))])
    return text.encode(draw(st.sampled_from(["utf-8", "utf-8", "utf-8-sig", "utf-16", "latin-1"])), "replace")


@st.composite
def objects(draw: Callable[..., Any]) -> bytes:
    """Nearly JSONL: objects of about the same names, and now and then a line of anything."""
    names = draw(st.lists(NAMES, min_size=1, max_size=3, unique=True))
    whole = st.fixed_dictionaries({name: st.one_of(LETTERS, st.integers(0, 3), VALUES) for name in names}).map(
        json.dumps
    )
    rest = st.one_of(st.dictionaries(NAMES, VALUES, max_size=3).map(json.dumps), LETTERS)
    rows = draw(st.lists(st.one_of(whole, whole, whole, rest), max_size=12))
    return "\n".join(rows).encode("utf-8", "replace")


NOISE = st.one_of(st.binary(max_size=400), st.text(string.printable, max_size=400).map(str.encode))
FORMS: dict[str, tuple[str, st.SearchStrategy[bytes]]] = {
    "csv_tables": (".csv", tables()),
    "csv_bytes": (".csv", NOISE),
    "tsv_tables": (".tsv", tables()),
    "jsonl_objects": (".jsonl", objects()),
    "jsonl_bytes": (".jsonl", NOISE),
    "txt_bytes": (".txt", NOISE),
}


def look(path: Path, config: SourceConfig) -> None:
    """Open a source and look at its rows as `weft data show` does; only a sentence may prevent it."""
    try:
        source = open_source(path, config)
        summarize(source)
        samples(source, "train", 3)
    except WeftError as error:
        assert str(error).strip(), "an empty sentence"


def fuzz(form: str, examples: int) -> None:
    """Look at so many files of a form; what is found is made small and raised."""
    ending, contents = FORMS[form]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"a{ending}"

        @seed(0)
        @settings(max_examples=examples, deadline=None, database=None, suppress_health_check=list(HealthCheck))
        @given(
            contents, st.sampled_from([None, None, "none", "classes", "regression"]), st.sampled_from(["fail", "skip"])
        )
        def every(content: bytes, task: Any, on_bad: Any) -> None:
            path.write_bytes(content)
            look(path, SourceConfig(task=task, on_bad=on_bad))

        every()


if __name__ == "__main__":
    warnings.simplefilter("error")  # a user would see it
    fuzz(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else EXAMPLES)
