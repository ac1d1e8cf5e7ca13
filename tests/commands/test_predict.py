"""`weft predict` and `weft eval` on what people have: tables with more columns, folders, broken files among others."""

from __future__ import annotations

import csv
import io
import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from training.runs import configure, sentences, train
from weft.commands.eval import shown
from weft.commands.main import dispatch
from weft.data.sources.rows import Wanted, ending_of
from weft.errors import WeftError
from weft.training.run import lifecycle

QUESTIONS = ["a red thing", "some blue one", "green, and more", "red red red"]


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "text"
    train(configure("text", steps=60, lr=0.01), folder)
    return folder


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "digits"
    train(configure("mlp", steps=40), folder)
    return folder


def answers(capsys: pytest.CaptureFixture[str], *words: Any, code: int = 0) -> list[dict[str, Any]]:
    """The rows that a prediction prints."""
    assert dispatch(["predict", *map(str, words)]) == code
    out = capsys.readouterr().out
    if "--json" in words:
        return [json.loads(line) for line in out.splitlines()]
    return list(csv.DictReader(io.StringIO(out)))


def written(folder: Path, ending: str) -> Path:
    """The questions with an identifier and a label, as a file of this kind."""
    rows = [{"id": f"q{n}", "text": said, "stars": n} for n, said in enumerate(QUESTIONS)]
    path = folder / f"new{ending}"
    if ending == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    elif ending == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]), delimiter="\t" if ending == ".tsv" else ",")
            writer.writeheader()
            writer.writerows(rows)
    return path


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".jsonl", ".parquet"])
def test_a_table_is_read_by_the_columns_of_training(
    ending: str, text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = answers(capsys, text, written(tmp_path, ending), "--top", 1)
    alone = answers(capsys, text, *(word for said in QUESTIONS for word in ("--text", said)), "--top", 1)
    assert [row["class_1"] for row in rows] == [row["class_1"] for row in alone]
    assert [row["probability_1"] for row in rows] == [row["probability_1"] for row in alone]
    assert [row["id"] for row in rows] == ["q0", "q1", "q2", "q3"] and [row["stars"] for row in rows] == list("0123")


def test_a_table_through_a_pipe_is_a_table(
    text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for ending in (".csv", ".tsv", ".jsonl"):
        monkeypatch.setattr(sys, "stdin", io.StringIO(written(tmp_path, ending).read_text()))
        assert [row["id"] for row in answers(capsys, text)] == ["q0", "q1", "q2", "q3"]
    monkeypatch.setattr(sys, "stdin", io.StringIO("red\nblue\n"))
    assert [row["input"] for row in answers(capsys, text)] == ["red", "blue"]


@pytest.mark.parametrize(
    "piped",
    ["review,stars\nred and blue,2\n", "review;stars\nred, blue;2\n", "id\treview\nq1\tred\n", '{"review": "red"}\n'],
)
def test_a_table_through_a_pipe_without_the_column_is_refused(
    text: Path, piped: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(piped))
    with pytest.raises(WeftError, match=r"standard input.* lacks the column text, .*review.*: add it, or rename"):
        dispatch(["predict", str(text), "-"])


@pytest.mark.parametrize("said", ["red, blue\ngreen, red\n", "red,blue\n", "red,blue\ngreen\n", "red,red\nred,blue\n"])
def test_lines_with_commas_are_texts(
    text: Path, said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(said))
    assert [row["input"] for row in answers(capsys, text)] == said.splitlines()


def test_what_makes_a_table_of_standard_input() -> None:
    numbers, pairs = Wanted("vector", ("width", "height")), Wanted("pair", ("premise", "hypothesis"))
    assert ending_of(["0.5,2", "1,2"], numbers) is None and ending_of(["depth,size", "1,2"], numbers) == ".csv"
    assert ending_of(["cat\tanimal", "dog\tanimal"], pairs) is None, "pairs are written so"
    assert ending_of(["one,two", "cat,animal"], pairs) == ".csv" and ending_of(["a,b", "1,2"], Wanted("vector")) is None


def test_a_dash_is_standard_input_among_files(
    text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "more.txt").write_text("green\n")
    monkeypatch.setattr(sys, "stdin", io.StringIO("red\nblue\n"))
    found = answers(capsys, text, "-", tmp_path / "more.txt")
    assert [row["input"] for row in found] == ["red", "blue", "green"]
    with pytest.raises(WeftError, match="give - once"):
        dispatch(["predict", str(text), "-", "-"])


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "BMP", "GIF", "WEBP", "TIFF"])
def test_a_picture_through_a_pipe_is_a_picture(
    digits: Path, tmp_path: Path, kind: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / f"picture.{kind.lower()}"
    Image.fromarray(np.random.default_rng(0).integers(0, 255, (8, 8), np.uint8)).save(path, kind)
    piped = io.TextIOWrapper(io.BufferedReader(io.BytesIO(path.read_bytes())))
    monkeypatch.setattr(sys, "stdin", piped)
    (found,) = answers(capsys, digits, "-")
    (same,) = answers(capsys, digits, path)
    assert found.pop("input") == "standard input" and same.pop("input") == str(path) and found == same


def test_a_missing_column_is_named(text: Path, tmp_path: Path) -> None:
    (tmp_path / "new.csv").write_text("id,sentence,title\n1,red,a\n2,blue,b\n")
    with pytest.raises(WeftError, match=r"new\.csv lacks the column text, .* it has id, sentence, title") as raised:
        dispatch(["predict", str(text), str(tmp_path / "new.csv")])
    assert raised.value.code == 2


def test_a_bad_row_costs_that_row(text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "new.csv").write_text("id,text\n1,red\n2,\n3,too,many\n4,blue\n")
    assert dispatch(["predict", str(text), str(tmp_path / "new.csv"), "--json"]) == 1
    out, told = capsys.readouterr()
    rows = [json.loads(line) for line in out.splitlines()]
    assert [row.get("error") is not None for row in rows] == [False, True, True, False]
    assert "new.csv line 3: the text is empty (column text)" in told and "new.csv line 4: the row has 3" in told
    assert "2 of 4 inputs have no answer" in told
    rows = answers(capsys, text, tmp_path / "new.csv", code=1)
    assert [row["class_1"] == "" for row in rows] == [False, True, True, False]


def test_a_folder_of_texts_and_tables_is_read_whole(
    text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written(tmp_path, ".csv")
    (tmp_path / "note.txt").write_text("a blue one\n")
    (tmp_path / "settings.json").write_text('{"a": 1}')
    (tmp_path / "paper.pdf").write_bytes(b"%PDF")
    assert dispatch(["predict", str(text), str(tmp_path)]) == 0
    out, told = capsys.readouterr()
    assert [row["input"] for row in csv.DictReader(io.StringIO(out))] == [
        *(f"new.csv line {line}" for line in range(2, 6)),
        "a blue one",
    ]
    assert f"{tmp_path}: left out paper.pdf, settings.json" in told


def test_tables_beside_pictures_are_said_to_be_left_out(
    digits: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (pictures(tmp_path) / "list.csv").write_text("path\nsub/0.png\n")
    assert dispatch(["predict", str(digits), str(tmp_path)]) == 0
    out, told = capsys.readouterr()
    assert len(out.splitlines()) == 4 and "left out list.csv" in told


@pytest.mark.parametrize("folder", [True, False])
def test_a_bad_file_among_others_costs_its_own_answers(
    folder: bool, text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.txt").write_bytes(b"red \xc3\xa9\n\xff\x81\n")
    (tmp_path / "b.csv").write_text("id,review\n1,red\n")
    (tmp_path / "c.parquet").write_bytes(b"PAR1 and no more")
    (tmp_path / "d.txt").write_text("blue\n")
    names = ["a.txt", "b.csv", "c.parquet", "d.txt"]
    given = [tmp_path] if folder else [*(tmp_path / name for name in names), tmp_path / "none.txt"]
    assert dispatch(["predict", str(text), *map(str, given), "--json"]) == 1
    out, told = capsys.readouterr()
    rows = [json.loads(line) for line in out.splitlines()]
    bad = [*names[:3], *([] if folder else ["none.txt"])]
    assert [row["input"] for row in rows if "error" in row] == [str(tmp_path / name) for name in bad]
    assert [row["input"] for row in rows if "error" not in row] == ["blue"]
    assert "lacks the column text" in told and all(str(tmp_path / name) in told for name in bad)


def test_a_table_that_breaks_off_costs_no_other_its_answers(
    text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, ".parquet")
    data = bytearray(path.read_bytes())
    data[4:40] = bytes(36)  # its end, where the columns are named, is whole
    path.write_bytes(data)
    rows = answers(capsys, text, path, "--text", "red", code=1)
    assert [row["input"] for row in rows] == ["red", str(path)] and rows[1]["class_1"] == ""


@pytest.mark.parametrize("name", ["bad.txt", "bad.csv", "none.txt"])
def test_a_bad_file_alone_is_refused(name: str, text: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.txt").write_bytes(b"red \xc3\xa9\n\xff\x81\n")
    (tmp_path / "bad.csv").write_text("id,review\n1,red\n")
    with pytest.raises(WeftError, match=name) as raised:
        dispatch(["predict", str(text), str(tmp_path / name)])
    assert raised.value.code == 2


@pytest.mark.parametrize("piped", [True, False])
def test_blank_lines_keep_their_place(
    piped: bool, text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    said = "\nred\n  \nblue\n"
    (tmp_path / "new.txt").write_text(said)
    monkeypatch.setattr(sys, "stdin", io.StringIO(said))
    rows = answers(capsys, text, *([] if piped else [tmp_path / "new.txt"]), code=1)
    place = "standard input" if piped else "new.txt"
    assert [row["input"] for row in rows] == [f"{place} line 1", "red", f"{place} line 3", "blue"]
    assert [row["class_1"] == "" for row in rows] == [True, False, True, False]


def test_blank_lines_of_a_table_through_a_pipe_are_counted(
    text: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO('\nid,text\n\n1,"red\n\nred"\n2,blue\n'))
    assert [row["input"] for row in answers(capsys, text)] == [f"standard input.csv line {line}" for line in (4, 7)]


def test_parquet_through_a_pipe_is_a_table(
    text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    data = written(tmp_path, ".parquet").read_bytes()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(data))))
    assert [row["id"] for row in answers(capsys, text)] == ["q0", "q1", "q2", "q3"]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(data[:50]))))
    with pytest.raises(WeftError, match=r"standard input.* is not a readable Parquet file"):
        dispatch(["predict", str(text)])


def test_a_list_in_json_is_rows(text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"id": f"q{n}", "text": said} for n, said in enumerate(QUESTIONS)]
    (tmp_path / "rows.json").write_text(json.dumps(rows, indent=2))
    (tmp_path / "texts.json").write_text(json.dumps([*QUESTIONS, ""]))
    found = answers(capsys, text, tmp_path / "rows.json")
    assert [row["id"] for row in found] == ["q0", "q1", "q2", "q3"] and found[0]["input"] == "rows.json item 1"
    same = answers(capsys, text, tmp_path / "texts.json", code=1)
    assert [row["input"] for row in same] == [*QUESTIONS, "texts.json item 5"]
    assert [row["probability_1"] for row in same[:4]] == [row["probability_1"] for row in found]


@pytest.mark.parametrize("content", ['{"text": "red"}', "[]", '["red", 1]', "7", "[[1]]", '{"text": "red"}\n{}', "["])
def test_json_that_is_no_list_of_rows_is_refused(content: str, text: Path, tmp_path: Path) -> None:
    (tmp_path / "new.json").write_text(content)
    with pytest.raises(WeftError, match=r"new\.json (holds no list|is not readable as JSON).*\.jsonl"):
        dispatch(["predict", str(text), str(tmp_path / "new.json")])


def test_nested_cells_are_passed_on_as_json(text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"text": "red", "more": {"é": None, "b": [True]}}, {"text": {"a": "red"}, "more": 2}]
    (tmp_path / "new.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    first, second = answers(capsys, text, tmp_path / "new.jsonl", code=1)
    assert first["more"] == '{"é": null, "b": [true]}' and second["more"] == "2"
    assert first["class_1"] and not second["class_1"], "an object is no text"


def pictures(folder: Path, count: int = 3) -> Path:
    for number in range(count):
        (folder / "sub").mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.full((8, 8), 60 * number, np.uint8)).save(folder / "sub" / f"{number}.png")
    return folder


def test_a_folder_of_pictures_with_a_broken_one(
    digits: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = answers(capsys, digits, pictures(tmp_path / "photos"))
    assert [Path(row["input"]).name for row in whole] == ["0.png", "1.png", "2.png"]
    broken = tmp_path / "photos" / "sub" / "1.png"
    broken.write_bytes(broken.read_bytes()[:40])
    assert dispatch(["predict", str(digits), str(tmp_path / "photos")]) == 1
    out, told = capsys.readouterr()
    rows = list(csv.DictReader(io.StringIO(out)))
    assert [row["class_1"] for row in rows] == [whole[0]["class_1"], "", whole[2]["class_1"]] and "1.png" in told
    (tmp_path / "list.csv").write_text("who,path\nann,photos/sub/0.png\nbob,photos/sub/2.png\n")
    rows = answers(capsys, digits, tmp_path / "list.csv")
    assert [(row["who"], row["class_1"]) for row in rows] == [
        ("ann", whole[0]["class_1"]),
        ("bob", whole[2]["class_1"]),
    ]
    (tmp_path / "empty").mkdir()
    with pytest.raises(WeftError, match="holds no file that this network takes"):
        dispatch(["predict", str(digits), str(tmp_path / "empty")])


def test_all_probabilities_on_request(digits: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = answers(capsys, digits, pictures(tmp_path), "--probs")
    assert list(rows[0]) == ["input", "class", *(f"probability_{n}" for n in range(10))]
    assert all(sum(float(row[f"probability_{n}"]) for n in range(10)) == pytest.approx(1, abs=1e-4) for row in rows)
    (told, *_) = answers(capsys, digits, tmp_path, "--probs", "--json")
    assert max(told["probabilities"], key=told["probabilities"].get) == told["class"] == rows[0]["class"]


def test_rows_of_numbers_by_name_or_by_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [f"{n % 7},{n % 5},{'yes' if n % 7 > 3 else 'no'}" for n in range(100)]
    (tmp_path / "own.csv").write_text("\n".join(["a,b,label", *lines]) + "\n")
    train(lifecycle.replace(configure("mlp", steps=30), source=str(tmp_path / "own.csv")), tmp_path / "run")
    (tmp_path / "named.csv").write_text("name;b;a\nann;1;6\nbob;4;0\nmax;x;0\n")
    (tmp_path / "plain.csv").write_text("6,1\n0,4\n")
    named = answers(capsys, tmp_path / "run", tmp_path / "named.csv", "--probs", code=1)
    plain = answers(capsys, tmp_path / "run", tmp_path / "plain.csv", "--probs")
    assert [row["name"] for row in named] == ["ann", "bob", "max"] and named[2]["class"] == ""
    assert [row["probability_yes"] for row in named[:2]] == [row["probability_yes"] for row in plain]


def test_eval_says_which_rows_and_names_the_classes(text: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert dispatch(["eval", str(text)]) == 0
    out = capsys.readouterr().out
    assert f"rows of test of {sentences()}" in out and "matthews" in out and "balanced_accuracy" in out
    table = out[out.index("confusion") :].splitlines()
    assert table[1].split() == ["b", "g", "r"] and [line.split()[0] for line in table[2:]] == ["b", "g", "r"]


def test_eval_shortens_the_list_of_classes_never_answered() -> None:
    assert shown([0.25, 1.0]) == "0.2500 – 1.0000" and shown([]) == "none"
    assert shown([f"c{n}" for n in range(34)]) == "c0, c1, c2, c3, c4, c5, c6, c7 and 26 more"


def test_eval_takes_the_columns_that_it_asks_for(
    text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "new.csv").write_text("review,verdict\nred,r\nblue,b\n")
    words = ["eval", str(text), str(tmp_path / "new.csv"), "--target", "verdict", "--inputs", "review"]
    assert dispatch(words) == 0 and "all 2 rows" in capsys.readouterr().out


def test_a_terminal_s_end_of_file_is_given_once(digits: Path) -> None:
    """Standard input of a network for pictures is looked at for one, but not where that would take its end away."""
    ours, theirs = pty.openpty()
    words = [sys.executable, "-P", "-m", "weft", "predict", str(digits)]
    process = subprocess.Popen(words, stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    os.write(ours, b"\x04")
    process.communicate(timeout=120)
    os.close(ours)
    os.close(theirs)
    assert process.returncode == 0


def test_one_input_without_an_answer_is_one_line(digits: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "bad.png").write_bytes(b"no picture")
    assert dispatch(["predict", str(digits), str(tmp_path / "bad.png")]) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1 and told.startswith("weft: ") and "bad.png" in told
