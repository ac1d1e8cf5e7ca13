"""The quick part of the campaign of odd inputs: what readers and arguments make of them, in this process.

`benchmarks/odd_inputs.py` runs these and the others with the real command.
"""

from __future__ import annotations

import importlib.util
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

from weft.commands.main import main

FOLDER = Path(__file__).parents[1] / "benchmarks" / "odd"
QUICK = ("delimited", "jsonl", "parquet", "pictures", "archives", "targets", "arguments")


def load() -> None:
    """Make `odd` importable: benchmarks are no package, and their other files would hide those of the tests."""
    place = [str(FOLDER)]
    spec = importlib.util.spec_from_file_location("odd", FOLDER / "__init__.py", submodule_search_locations=place)
    assert spec is not None and spec.loader is not None
    sys.modules["odd"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules["odd"])


load()
from odd.case import Case, Ended, judge, touched  # noqa: E402
from odd.groups import GROUPS  # noqa: E402
from odd.place import put, state  # noqa: E402


def is_quick(case: Case) -> bool:
    """Whether a case is weft alone with arguments, trains nothing, starts nothing, and cannot hang."""
    words = case.words
    if words is None or words[:1] == ["compare"] or (words[:1] == ["train"] and 0 in case.ends):
        return False
    return case.seconds == Case("", {}, "").seconds


CASES = [pytest.param(case, id=f"{group}: {case.name}") for group in QUICK for case in GROUPS[group] if is_quick(case)]


def test_there_are_cases_enough() -> None:
    assert sum(map(len, GROUPS.values())) >= 150
    for group, cases in GROUPS.items():
        assert len({case.name for case in cases}) == len(cases), f"two cases of {group} have one name"


@pytest.mark.parametrize("case", CASES)
def test_an_odd_input_ends_in_a_documented_way(case: Case, tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    work = tmp_path / "work"
    work.mkdir()
    for name, content in case.files.items():
        put(work / name, content)
    before = state(work)
    monkeypatch.chdir(work)
    monkeypatch.setenv("WEFT_CACHE", str(tmp_path / "cache"))
    with warnings.catch_warnings(record=True) as warned, pytest.raises(SystemExit) as left:
        main(case.words)
    out, err = capsys.readouterr()
    code = left.value.code if isinstance(left.value.code, int) else 0
    ended = Ended(code, out, err + "".join(f"{type(w.message).__name__}: {w.message}\n" for w in warned))
    assert [*judge(case, ended, case.ends), *touched(case, before, state(work))] == [], out + ended.err
