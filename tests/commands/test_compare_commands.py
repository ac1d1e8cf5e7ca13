"""`weft compare`, `leaderboard`, `tune` and `study`: bad input is a sentence, listings load no torch."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from studies.fabricated import make_study
from weft.commands.main import main

CANDIDATES = {"mlp": 0.95, "vit_nano_p4_32": 0.9, "hog+logistic": 0.85}


def weft(*words: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(list(words))
    return int(ended.value.code or 0)


@pytest.mark.parametrize(
    "words, said",
    [
        ("compare --match time --amount 5", "not a duration"),
        ("compare --match time --amount 5s --epochs 3", "leave out --epochs"),
        ("compare --match time --time 5m --amount 5s", "--time decides"),
        ("compare --match none --amount 1M", "what shall be equal"),
        ("compare --amount lots", "not a number of parameters"),
        ("compare --amount 0", "not a number of parameters"),
        ("compare --epochs 3 --steps 4", "contradict each other"),
        ("compare --seeds 0", "--seeds must be"),
        ("compare --runs nowhere neither", "is not a run folder"),
        ("leaderboard nowhere", "there is no folder nowhere"),
        ("leaderboard . --csv --json", "one of --csv and --json"),
        ("tune", "say what to tune"),
        ("tune digits --model mlp --space lr,speed", "there is no setting 'speed'"),
        ("tune digits --model mpl", "did you mean mlp"),
        ("tune digits --model mlp --trials 0", "at least 1"),
        ("study run", "say which study"),
        ("study run e99", "there is no study 'e99'"),
        ("study show e11", "does not exist"),
        ("study run e11 --seeds 0", "at least 1"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(words: str, said: str, capsys, monkeypatch, tmp_path: Path):
    monkeypatch.chdir(tmp_path)
    assert weft(*words.split()) == 2
    error = capsys.readouterr().err
    assert error.startswith("weft: ") and error.count("\n") == 1 and said in error
    assert list(tmp_path.iterdir()) == []


def test_a_folder_with_something_else_is_not_written_to(tmp_path: Path, capsys):
    (tmp_path / "thesis.txt").write_text("mine")
    assert weft("compare", "--output", str(tmp_path)) == 2
    assert "thesis.txt" in capsys.readouterr().err


def test_a_comparison_that_lacks_a_run_is_shown_and_ends_with_exit_code_1(tmp_path: Path, capsys, monkeypatch):
    study = make_study(tmp_path, CANDIDATES)
    (study.run_folder(study.jobs[0]).path / "record.json").unlink()
    monkeypatch.setattr("weft.studies.compare.comparison.compare", lambda *_: study)
    assert weft("compare", "--output", str(tmp_path)) == 1
    printed = capsys.readouterr()
    assert "vit_nano_p4_32" in printed.out and (tmp_path / "report.html").is_file()
    assert printed.err.count("\n") == 1 and "1 of 7 runs" in printed.err and "mlp, seed 0: not run yet" in printed.err


def test_a_leaderboard_is_drawn_again_from_records(tmp_path: Path, capsys):
    make_study(tmp_path, CANDIDATES)
    assert weft("leaderboard", str(tmp_path), "--html") == 0
    assert "mlp" in capsys.readouterr().out and (tmp_path / "report.html").is_file()
    assert weft("leaderboard", str(tmp_path), "--csv") == 0
    assert capsys.readouterr().out.startswith("name,model,group,seeds,score")
    assert weft("leaderboard", str(tmp_path), "--json") == 0
    assert len(json.loads(capsys.readouterr().out)["rows"]) == 3


def test_studies_are_listed_and_e1_prints_counts(capsys):
    assert weft("study", "list") == 0
    listed = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert listed == [f"e{number}" for number in range(1, 12)]
    assert weft("study", "run", "e1") == 0
    assert "59,880,472" in capsys.readouterr().out


@pytest.mark.parametrize("words", ["compare --help", "tune --help", "study list", "leaderboard --help"])
def test_help_and_listings_load_no_torch(words: str):
    runs_without_torch(words)


def runs_without_torch(words: str) -> None:
    code = (
        f"import sys; from weft.commands.main import main\ntry: main({words.split()!r})\nexcept SystemExit: pass\n"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_the_process_that_drives_a_comparison_loads_no_torch(tmp_path: Path):
    """It would take a second of the time, and as much memory as a worker."""
    options = "--models mlp,mixer --no-controls --no-baseline --seeds 1 --steps 2"
    runs_without_torch(f"compare digits {options} --output {tmp_path / 'out'}")
    assert (tmp_path / "out" / "report.html").is_file()


def test_a_worker_begins_without_the_compiler_of_torch():
    code = "import sys, weft.studies.engine.run_one\nassert 'torch._dynamo' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
