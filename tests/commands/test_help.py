"""The help of every verb: short, readable at 80 columns, without torch; --help-all has every flag."""

from __future__ import annotations

import resource
import subprocess
import sys
from importlib import import_module

import pytest

from weft.commands import help
from weft.commands.main import VERBS, dispatch
from weft.data.config import SourceConfig, byte_text

MANY = ("train", "compare", "finetune", "pretrain", "tune")


def said(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert dispatch(list(words)) == 0
    return capsys.readouterr().out


def test_only_the_verb_that_stops_early_promises_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert "early" not in said(capsys, "train", "--help-all")
    assert "--patience" in said(capsys, "finetune", "--help-all")


@pytest.mark.parametrize("verb", VERBS)
def test_help_fits_eighty_columns_and_help_all_has_every_flag(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    short, full = said(capsys, verb, "--help"), said(capsys, verb, "--help-all")
    for line in (short + full).splitlines():
        assert len(line) <= 80, line
    module = import_module(f"weft.commands.{verb}")
    for option in help.options(module.Arguments):
        assert option.word in full
        assert option.text, f"{verb} {option.word} is not explained"
    assert "{None}" not in full and "None" not in full


@pytest.mark.parametrize("verb", MANY)
def test_help_shows_the_dozen_that_people_use(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    common = import_module(f"weft.commands.{verb}").COMMON
    assert sum(map(len, common.values())) <= 15
    short = said(capsys, verb, "--help")
    assert short.count("\n") < 60 and f"weft {verb} --help-all" in short


def test_help_shows_where_the_flags_start_from(capsys: pytest.CaptureFixture[str]) -> None:
    assert "(default: 64)" in said(capsys, "train", "--recipe", "digits/mixer", "--help")


@pytest.mark.parametrize("lens", ["gates", "shift"])
def test_a_lens_explains_its_own_options(lens: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert "--with RUN" in said(capsys, "inspect", "RUN", lens, "--help")


def test_no_verb_needs_torch_to_explain_itself() -> None:
    check = (
        "import sys; from weft.commands.main import VERBS, dispatch\n"
        "for verb in VERBS: dispatch([verb, '--help'])\n"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", check], check=True, capture_output=True)


def test_the_list_of_verbs_is_there_at_once() -> None:
    """In seconds of the processor, so that others on the machine do not count."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    for _ in range(3):
        subprocess.run([sys.executable, "-m", "weft", "--help"], check=True, capture_output=True)
    assert (resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before) / 3 < 0.5


def test_switches_with_a_third_state_are_switches() -> None:
    arguments = import_module("weft.commands.data").Arguments
    assert help.spelled_out(["show", "x", "--no-stream"], arguments) == ["show", "x", "--stream=False"]
    assert help.spelled_out(["--stream", "show"], arguments) == ["--stream=True", "show"]


@pytest.mark.parametrize(("given", "bytes_"), [(2**20, 2**20), ("512M", 2**29), ("1.5G", 3 * 2**29), ("2GiB", 2**31)])
def test_bytes_are_given_as_people_write_them(given: int | str, bytes_: int) -> None:
    assert SourceConfig(memory=given).memory == bytes_  # type: ignore[arg-type]
    assert SourceConfig(memory=byte_text(bytes_)).memory == bytes_  # type: ignore[arg-type]


def test_words_are_read_without_the_texts_of_the_help(monkeypatch: pytest.MonkeyPatch) -> None:
    """To find them in the source takes longer than all else that is done to the words."""
    monkeypatch.setattr(help, "docstrings", lambda kind: pytest.fail(f"the source of {kind} was read"))
    assert help.spelled_out(["--no-stream"], import_module("weft.commands.train").Arguments) == ["--stream=False"]
