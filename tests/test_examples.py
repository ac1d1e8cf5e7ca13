"""The examples run, on a small scale, and the notebook was executed as it is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from forking import SERVER, as_script

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
