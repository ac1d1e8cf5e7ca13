"""Text from outside is shown as text: on terminals, on pages, in spreadsheets."""

from __future__ import annotations

import csv
import io
import json
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft import supervision, terminal
from weft.commands.main import main
from weft.terminal import CsvWriter, complain, for_page, for_spreadsheet, for_terminal, how_many

HOSTILE = "[/b][red]\x1b[31m\x9b1m\u202egnp.\ud800\x07 :smile: <b>"
SHOWN = "[/b][red]\\u001b[31m\\u009b1m\\u202egnp.\\ud800\\u0007 :smile: <b>"


class Tty(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_the_folder_of_a_process_that_died_is_shown_as_text(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    class Ended(Exception):
        """Instead of the end of this process."""

    def end(code: int) -> None:
        raise Ended

    monkeypatch.setattr(supervision.os, "_exit", end)
    monkeypatch.setattr(supervision, "_concern", b"/runs/\x1b[2Jmine\xff\0")
    with pytest.raises(Ended):
        supervision.finish(-11, lambda code, folder: f"it died in {folder}")
    assert capsys.readouterr().err == "weft: it died in /runs/\\u001b[2Jmine\\udcff\n"


def test_what_would_act_on_a_terminal_is_written_out():
    assert for_terminal(HOSTILE) == SHOWN
    assert for_terminal("naïve שלום 日本 😀\tand\r\nmore\n") == "naïve שלום 日本 😀\tand\r\nmore\n"
    assert for_page('\x1b"<') == "\\u001b&quot;&lt;"


HEBREW, ARABIC = "\u05e9\u05dc\u05d5\u05dd 3 \u05e2\u05d5\u05dc\u05dd", "\u0645\u0631\u062d\u0628\u0627"


def test_marks_of_direction_are_written_out_and_words_from_right_to_left_stay_in_their_places():
    assert for_terminal("a\u200eb\u200fc\u061cd") == "a\\u200eb\\u200fc\\u061cd"
    told = f"the classes {HEBREW}, {ARABIC}: 0.93"
    apart = f"the classes \u2068{HEBREW}\u2069, \u2068{ARABIC}\u2069: 0.93"
    assert terminal.isolated(told) == apart
    assert for_page(told) == terminal.shown(told) == apart
    assert terminal.isolated("naïve 日本 😀 12 - 'a'") == "naïve 日本 😀 12 - 'a'"


def test_words_are_isolated_on_terminals_and_left_alone_for_programs(monkeypatch: pytest.MonkeyPatch):
    from rich.table import Table

    table = Table("class", "rows", box=None)
    table.add_row(HEBREW, "12")
    for stream, expected in ((Tty(), f"\u2068{HEBREW}\u2069"), (io.StringIO(), HEBREW)):
        monkeypatch.setattr(sys, "stdout", stream)
        monkeypatch.setattr(sys, "stderr", stream)
        with terminal.text_is_text():
            print(HEBREW)
            terminal.console(width=40).print(table)
            terminal.console(width=40).print(HEBREW)
        complain(HEBREW)
        printed = stream.getvalue()
        assert printed.count(expected) == 4 and printed.count("\u2068") == (4 if stream.isatty() else 0)


@given(st.text(alphabet=st.characters(exclude_characters="\r")))
def test_escaping_keeps_json_what_it_was(text: str):
    assert json.loads(for_terminal(json.dumps(text, ensure_ascii=False))) == text
    assert not set(for_terminal(text)) & {"\x1b", "\x9b", "\u202e"}


def test_a_console_shows_text_as_text(monkeypatch: pytest.MonkeyPatch):
    from rich.table import Table

    monkeypatch.setattr(sys, "stdout", Tty())
    table = Table(HOSTILE, box=None)
    table.add_row(HOSTILE)
    console = terminal.console(width=200, color_system="standard", force_terminal=True)
    console.print(HOSTILE, style="bold")
    console.print(table)
    printed = sys.stdout.getvalue()  # type: ignore[attr-defined]
    assert printed.count(SHOWN) == 3 and "\x1b[1m" in printed and "\x1b[31m" not in printed


def test_print_is_escaped_while_rich_and_data_are_not(monkeypatch: pytest.MonkeyPatch):
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stdout", stream)
    with terminal.text_is_text():
        print(HOSTILE)
        print("\x1b", end="", file=terminal.for_data())
    assert stream.getvalue() == f"{SHOWN}\n\x1b" and sys.stdout is stream


def test_a_terminal_of_ascii_ends_no_verb(monkeypatch: pytest.MonkeyPatch):
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
    with pytest.raises(SystemExit) as ended:
        main(["data", "list"])
    sys.stdout.flush()
    assert not ended.value.code and b"8 x 8" in raw.getvalue()


def test_a_closed_standard_output_ends_no_verb(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "stdout", None)
    with pytest.raises(SystemExit) as ended:
        main(["data", "list"])
    assert not ended.value.code


@pytest.mark.parametrize("cell", ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "  =1", "＝1"])
def test_a_spreadsheet_computes_no_cell(cell: str):
    assert for_spreadsheet(cell) == "'" + cell


@pytest.mark.parametrize("cell", ["-1", "+2.5", "-1e-9", "-.5", -3, 0.1, None, "a=b", "", "5 %"])
def test_a_spreadsheet_keeps_numbers_and_words(cell: object):
    assert for_spreadsheet(cell) == cell


@given(st.lists(st.floats(allow_nan=False) | st.integers(), min_size=1))
def test_numbers_survive_the_way_through_csv(numbers: list[float]):
    file = io.StringIO()
    CsvWriter(file).row(numbers)
    (row,) = csv.reader(io.StringIO(file.getvalue()))
    assert [float(cell) for cell in row] == [float(number) for number in numbers]


def test_show_prints_hostile_labels_names_and_texts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)  # where its page goes
    path = tmp_path / "[red]\x1b[1m.csv"
    labels = ["[/b]", "[red]x", "\x1b[31mred\x1b[0m", "\u202eabc"]
    path.write_text("text,label\n" + "".join(f"\x1b]0;owned\x07 [bold]{n},{labels[n % 4]}\n" for n in range(40)))
    with pytest.raises(SystemExit) as ended:
        main(["data", "show", str(path)])
    printed = capsys.readouterr().out
    assert not ended.value.code and not set(printed) & {"\x1b", "\u202e", "\x07"}
    assert all(word in printed for word in ("[/b]", "[red]x", "\\u001b[31mred", "\\u202eabc", "]0;owned", "[bold]"))
    with pytest.raises(SystemExit):
        main(["data", "show", str(tmp_path / "\x1b[2Jnowhere")])
    assert "\x1b" not in capsys.readouterr().err


def test_one_is_not_said_in_the_plural() -> None:
    assert [how_many(number, "run") for number in (0, 1, 2, 1200)] == ["0 runs", "1 run", "2 runs", "1,200 runs"]
    assert [how_many(number, "epoch") for number in (1.0, 2.5)] == ["1 epoch", "2.5 epochs"]
    assert how_many(2, "class", "classes") == "2 classes"
