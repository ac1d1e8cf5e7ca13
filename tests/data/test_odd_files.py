"""Odd but ordinary files work, or end in one sentence that names them; none ends in a traceback or waits forever."""

from __future__ import annotations

import gzip
import json
import os
import struct
import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from data.made import encoded, sentence, write_tar
from weft.data import SourceConfig, batches, open_source
from weft.data.read.cache import Cache
from weft.errors import WeftError

ROWS = "text,label\n" + "".join(f"{sentence(n)},{'café' if n % 2 else 'thé'}\n" for n in range(30))
ENCODINGS = {
    "utf-8": ROWS.encode(),
    "utf-8 marked": ROWS.encode("utf-8-sig"),
    "utf-16 little": b"\xff\xfe" + ROWS.encode("utf-16-le"),
    "utf-16 big": b"\xfe\xff" + ROWS.encode("utf-16-be"),
    "utf-16 unmarked": ROWS.encode("utf-16-le"),
    "latin-1": ROWS.encode("latin-1"),
    "windows": ROWS.replace("red", "“red”").encode("cp1252"),
}


@pytest.mark.parametrize("kind", ENCODINGS)
def test_encodings_are_recognised(tmp_path: Path, kind: str):
    (tmp_path / "rows.csv").write_bytes(ENCODINGS[kind])
    source = open_source(tmp_path / "rows.csv")
    assert source.classes == ["café", "thé"]
    assert any("Latin-1" in note for note in source.notes) == (kind in {"latin-1", "windows"})


@pytest.mark.parametrize(("delimiter", "name"), [(",", "a.tsv"), (";", "a.csv"), ("\t", "a.csv"), ("|", "a.csv")])
def test_delimiters_are_recognised(tmp_path: Path, delimiter: str, name: str):
    rows = [f"{sentence(n)}{delimiter}{n % 2}" for n in range(30)]
    (tmp_path / name).write_text("\n".join([f"text{delimiter}label", *rows]))
    source = open_source(tmp_path / name)
    assert source.modality == "text" and source.classes == ["0", "1"]


def test_numbers_with_a_comma_are_numbers_beside_semicolons(csv_file):
    source = open_source(csv_file("a;b;label\n" + "".join(f"{n},5;-{n},25;{n % 2}\n" for n in range(30))))
    assert source.modality == "vector" and source.columns == ["a", "b"]
    assert source.splits["train"].read(np.array([0]))[0][0].sum() == pytest.approx(0.25)


@pytest.mark.parametrize("mark", ["sep=;\r\n", "\ufeffSEP=;\n", '"sep=;"\n'])
def test_the_line_that_tells_excel_the_separator_is_understood(csv_file, mark: str):
    rows = "".join(f"a, b, {n};{n % 2}\n" for n in range(30))
    assert open_source(csv_file(f"{mark}text;label\n{rows}")).columns == ["text"]
    with pytest.raises(WeftError, match="line 33"):
        open_source(csv_file(f"{mark}text;label\n{rows}one cell\n"))


def test_cells_of_several_lines_are_cells(csv_file):
    rows = "".join(f'"a ""b""\n{n}","{n % 2}"\n' for n in range(30))
    assert sum(map(len, open_source(csv_file("text,label\n" + rows[:-1])).splits.values())) == 30


SENTENCES = {
    "two names": ("text,text,label\na,b,0\n", r"2 columns called 'text'"),
    "header only": ("text,label\n", r"0 usable rows"),
    "empty": ("", r"rows\.csv is empty"),
    "workbook": ("PK\x03\x04 and so on", r"ZIP file or an Excel workbook"),
    "open quote": ('text,label\n"a,0\nb,1\nc,0\n', r"line 2: .*quotation mark"),
    "open quote at the end of a row": ('text,label\na,0\nb,"1\nc,0\nd,1\n', r"line 3: a quotation mark .* not closed"),
    "open quote in the last row": ('text,label\na,0\nb,0\nc,1\nd,"1', r"line 5: a quotation mark .* not closed"),
    "open quote in the header": ('text,"label\na,0\nb,1\n', r"line 1: a quotation mark .* not closed"),
    "a word among numbers": (
        "a,label\n" + "".join(f"{'x' if n == 3 else n},{n % 2}\n" for n in range(30)),
        r"line 5: a is 'x'",
    ),
    "infinite": ("a,label\n" + "".join(f"{'inf' if n == 3 else n},{n % 2}\n" for n in range(30)), r"line 5: .*inf"),
    "infinite class": ("a,label\n" + "".join(f"{n},{'inf' if n == 3 else n % 2}\n" for n in range(30)), r"line 5: "),
    "same text, other labels": ("text,label\n" + "".join(f"same,{n % 2}\n" for n in range(30)), r"no class has two"),
}


@pytest.mark.parametrize("kind", SENTENCES)
def test_odd_tables_end_in_a_sentence(csv_file, kind: str):
    content, match = SENTENCES[kind]
    with pytest.raises(WeftError, match=match):
        open_source(csv_file(content))


def test_spreadsheets_columns_and_rows_without_content_are_left_out(csv_file):
    source = open_source(
        csv_file("text,label,,\n" + "".join(f"{sentence(n)},{n % 2},,\n" for n in range(30)) + ",,,\n")
    )
    assert source.modality == "text" and sum(len(split) for split in source.splits.values()) == 30


def lines(odd: object) -> str:
    """Thirty good lines of JSON, but for the label of the fifth."""
    rows = [{"text": sentence(n), "meta": {"n": n}, "label": odd if n == 4 else n % 2} for n in range(30)]
    return "".join(json.dumps(row) + "\n" for row in rows)


@pytest.mark.parametrize("label", [{"a": 1}, [1, 2], ["a"], None, 10**400, float("inf")])
def test_an_odd_value_in_jsonl_is_a_bad_row(csv_file, label: object):
    path = csv_file(lines(label), "rows.jsonl")
    with pytest.raises(WeftError, match=r"rows\.jsonl line 5: "):
        open_source(path)
    assert open_source(path, on_bad="skip").classes == ["0", "1"]


@pytest.mark.parametrize(
    "line", ["[" * 100_000, '{"a":' * 100_000, '{"label": ' + "9" * 5000 + "}", "[1]", "null", "{"]
)
def test_a_line_that_is_no_object_is_a_bad_row(csv_file, line: str):
    path = csv_file(lines(1) + line + "\n", "rows.jsonl")
    with pytest.raises(WeftError, match=r"rows\.jsonl line 31: the line is"):
        open_source(path)
    with pytest.raises(WeftError, match=r"rows\.jsonl line 1: the line is"):
        open_source(csv_file(line + "\n", "rows.jsonl"))


def test_whole_numbers_in_lists_may_have_more_digits_than_float32(csv_file):
    rows = [{"x": [16777217 + n, n], "label": "ab"[n % 2]} for n in range(30)]
    source = open_source(csv_file("".join(json.dumps(row) + "\n" for row in rows), "rows.jsonl"))
    assert source.modality == "vector" and source.classes == ["a", "b"]


def test_columns_of_objects_cannot_be_targets(csv_file):
    path = csv_file("".join(json.dumps({"text": sentence(n), "label": {"a": n}}) + "\n" for n in range(9)), "a.jsonl")
    with pytest.raises(WeftError, match=r"'label' holds .*--target"):
        open_source(path)


TEXTS = [sentence(n) for n in range(40)]
KINDS = {
    "record": pa.array([{"a": n % 2} for n in range(40)]),
    "list": pa.array([[n % 2] for n in range(40)]),
    "bytes": pa.array([b"a"] * 40),
    "nothing": pa.nulls(40),
    "date": pa.array(list(range(40)), pa.date32()),
}


@pytest.mark.parametrize("kind", KINDS)
def test_parquet_columns_that_cannot_be_targets(tmp_path: Path, kind: str):
    pq.write_table(pa.table({"text": TEXTS, "label": KINDS[kind]}), tmp_path / "train.parquet")
    with pytest.raises(WeftError, match=r"'label' holds .*--target"):
        open_source(tmp_path)


@pytest.mark.parametrize(
    "metadata", ["{nope", "[1]", '{"info": 3}', '{"info": {"features": {"label": {"names": {"a": "x"}}}}}']
)
def test_damaged_metadata_is_noted(tmp_path: Path, metadata: str):
    table = pa.table({"text": TEXTS, "label": [n % 2 for n in range(40)]})
    pq.write_table(table.replace_schema_metadata({"huggingface": metadata}), tmp_path / "train.parquet")
    source = open_source(tmp_path)
    assert source.classes == ["0", "1"] and any("metadata" in note for note in source.notes)


def test_categories_decimals_and_missing_truth_values_of_parquet(tmp_path: Path):
    columns = {
        "a": pa.array(range(40), pa.decimal128(10, 2)),
        "b": pa.array([None if n == 3 else n % 3 == 0 for n in range(40)]),
        "label": pa.array(["yes" if n % 2 else "no" for n in range(40)]).dictionary_encode(),
    }
    pq.write_table(pa.table(columns), tmp_path / "train.parquet")
    with pytest.raises(WeftError, match=r"row 3: feature 1"):
        open_source(tmp_path)
    assert open_source(tmp_path, on_bad="skip").classes == ["no", "yes"]
    pq.write_table(pa.table({"txt": TEXTS, "label": columns["label"]}), tmp_path / "train-2.parquet")
    with pytest.raises(WeftError, match=r"lacks the columns"):
        open_source(tmp_path)


@pytest.mark.parametrize("cut", [3, 10, 30, 100, 200, 400])
def test_a_jpeg_cut_anywhere_is_named_when_it_is_trained_on(image_folder: Path, cut: int):
    (image_folder / "cat" / "cut.jpg").write_bytes(encoded(1, (60, 60), "JPEG")[:cut])
    with pytest.raises(WeftError, match=r"cat/cut\.jpg: the image"):
        batches(open_source(image_folder), "train")


def test_labels_of_a_tar_file_that_are_almost_numbers(tmp_path: Path):
    members: dict[str, bytes] = {}
    for n in range(60):
        members |= {f"{n:03}.png": encoded(n, (8, 8)), f"{n:03}.cls": b"--5" if n == 3 else str(n % 2).encode()}
    source = open_source(write_tar(tmp_path / "all.tar", members))
    assert source.classes == ["--5", "0", "1"] and any("one row only" in note for note in source.notes)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
def test_a_pipe_is_refused_rather_than_waited_for(image_folder: Path, tmp_path: Path):
    os.mkfifo(image_folder / "cat" / "pipe.png")
    (image_folder / "dog" / "loop.png").symlink_to("loop.png")
    with pytest.raises(WeftError, match=r"cat/pipe\.png: the file is"):
        open_source(image_folder)
    source = open_source(image_folder, on_bad="skip")
    assert sum(len(split) for split in source.splits.values()) == 24
    (tmp_path / "tables").mkdir()
    for name in ("rows.csv", "tables/rows.csv"):
        os.mkfifo(tmp_path / name)
    for path in (tmp_path / "rows.csv", tmp_path / "tables"):
        with pytest.raises(WeftError, match="regular file"):
            open_source(path)


def test_an_empty_folder_is_called_empty(tmp_path: Path):
    (tmp_path / "photos" / "cat").mkdir(parents=True)
    with pytest.raises(WeftError, match="photos is an empty folder"):
        open_source(tmp_path / "photos")
    with pytest.raises(WeftError, match="there is no source"):
        open_source("a" * 5000)


def test_file_names_that_are_not_utf_8(image_folder: Path):
    folder = Path(os.fsdecode(os.fsencode(image_folder) + b"/b\xffrd"))
    folder.mkdir()
    for number in range(6):
        (folder / f"{number}.png").write_bytes(encoded(number))
    source = open_source(image_folder)
    assert "b\\udcffrd" in source.classes
    places = [split.place(row) for split in source.splits.values() for row in range(len(split))]
    for words in (*source.classes, *source.files, *source.notes, *places):
        words.encode()


def idx(folder: Path, images: bytes) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "train-images-idx3-ubyte.gz").write_bytes(gzip.compress(images))
    labels = struct.pack(">HBBI", 0, 8, 1, 20) + bytes(n % 2 for n in range(20))
    (folder / "train-labels-idx1-ubyte.gz").write_bytes(gzip.compress(labels))
    return folder


def test_a_compressed_idx_file_is_inflated_no_further_than_its_header_says(tmp_path: Path):
    header = struct.pack(">HBB3I", 0, 8, 3, 20, 8, 8)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        batches(open_source(idx(tmp_path / "mnist", header + bytes(20 * 64))), "train", 4)[0]
    for images, match in (
        (header + bytes(20 * 64 + 1), "holds more than 1,280 bytes"),
        (header + bytes(20 * 64 - 1), "holds 1,279 bytes"),
        (struct.pack(">HBB3I", 0, 8, 3, 1 << 31, 1 << 31, 8), "more than --memory"),
        (struct.pack(">HBB", 0, 8, 3), "not a readable IDX file"),
    ):
        with pytest.raises(WeftError, match=match):
            open_source(idx(tmp_path / "mnist", images))


@pytest.mark.parametrize(
    ("text", "size"), [("2G", 2 << 30), ("500 MB", 500 << 20), ("1.5k", 1536), ("7", 7), ("", 10 << 30)]
)
def test_the_size_of_the_cache_is_read(monkeypatch: pytest.MonkeyPatch, text: str, size: int):
    monkeypatch.setenv("WEFT_CACHE_LIMIT", text)
    assert Cache().limit == size
    monkeypatch.setenv("WEFT_CACHE_LIMIT", "abc")
    with pytest.raises(WeftError, match="WEFT_CACHE_LIMIT is 'abc'"):
        Cache()


BYTES = st.binary(max_size=200) | st.text(alphabet='a0é,;\t|"\n\r\ufeff\0 -1.5enaN[]{}:', max_size=200).map(str.encode)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=BYTES, ending=st.sampled_from(["csv", "tsv", "jsonl", "txt"]), task=st.sampled_from([None, "none"]))
def test_any_bytes_are_a_source_or_a_sentence(tmp_path: Path, content: bytes, ending: str, task: str | None):
    path = tmp_path / f"rows.{ending}"
    path.write_bytes(content)
    try:
        source = open_source(path, on_bad="skip", task=task)
    except WeftError as error:
        assert str(error)
    else:
        assert all(len(split) for split in source.splits.values())


def test_a_group_may_hold_values_of_any_kind(tmp_path: Path):
    rows = [{"title": title, "text": f"text {title}"} for title in ("a", [], [1, 2], 3, "b", None) * 4]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, rows)))
    source = open_source(tmp_path / "a.jsonl", SourceConfig(task="none", group="title"))
    assert sum(len(source.splits[role]) for role in ("train", "validation", "test")) == len(rows)
