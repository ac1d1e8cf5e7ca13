"""The examples run, on a small scale, and the notebook was executed as it is."""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from forking import SERVER, quick_workers
from weft.commands.main import dispatch

EXAMPLES = Path(__file__).parents[1] / "examples"
NOTEBOOK = EXAMPLES / "compare.ipynb"
WRITTEN = {
    "compare_own_folder": "found/report.html",
    "own_mixer": "found/neighbours/record.json",
    "pretrain_and_finetune_text": "found/finetuned/record.json",
}


def test_every_example_is_run() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.py")} == set(WRITTEN)


@pytest.mark.parametrize("name", WRITTEN)
@pytest.mark.slow
def test_examples_run(name: str, tmp_path: Path) -> None:
    process = SERVER.Process(target=as_script, args=(EXAMPLES / f"{name}.py", tmp_path))
    process.start()
    process.join()
    assert process.exitcode == 0, (tmp_path / "said").read_text()
    assert (tmp_path / WRITTEN[name]).is_file()


def as_script(path: Path, folder: Path) -> None:
    """What `python EXAMPLE.py` does, without importing torch for it and for each command of weft that it gives."""
    os.chdir(folder)
    for number in (1, 2):
        os.dup2(os.open("said", os.O_WRONLY | os.O_CREAT | os.O_APPEND), number)
    sys.argv = [str(path), "--quick", "--output", "found"]
    sys.path[:0] = [str(path.parent)]
    run = subprocess.run

    def given(words: list[str], **others: Any) -> Any:
        if words[:3] != [sys.executable, "-m", "weft"]:
            return run(words, **others)
        return CompletedProcess(words, dispatch(words[3:])).check_returncode()

    subprocess.run = given  # type: ignore[assignment]
    with quick_workers():
        runpy.run_path(str(path), run_name="__main__")


def test_the_notebook_was_executed_without_an_error() -> None:
    assert NOTEBOOK.stat().st_size < 300_000
    cells = [cell for cell in json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))  # in order, once
    for cell in cells:
        compile("".join(cell["source"]), NOTEBOOK.name, "exec")
        assert cell["outputs"], cell["source"]
        assert all(output["output_type"] != "error" for output in cell["outputs"])


def test_the_notebook_names_no_machine() -> None:
    text = NOTEBOOK.read_text(encoding="utf-8")
    assert not any(place in text for place in ("/home/", "/root/", "/tmp/", "site-packages"))
