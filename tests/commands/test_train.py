"""`weft train`, `eval`, `predict`, `runs`, `verify` and `recipes` as a user meets them."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from PIL import Image

from training.runs import sentences
from weft.api import run_name
from weft.commands import main as command
from weft.commands import running, train
from weft.commands.main import death_sentence, dispatch, main, parse
from weft.data.read.cache import FILLING
from weft.errors import Interrupted, WeftError
from weft.training.config import to_dict
from weft.training.run import launch, probe
from weft.training.storage.metrics_log import read_events
from weft.training.storage.run_folder import RunFolder, create, open_run

QUICK = ["--model", "mlp", "--network", "hidden=[16]", "--threads", "1"]
ENDLESS = [*QUICK, "--steps", "200000", "--log-every", "10", "--no-compile", "--precision", "float32"]


def refusal(*words: str) -> str:
    """The sentence that a command answers bad input with."""
    with pytest.raises(WeftError) as raised:
        dispatch(list(words))
    return " ".join(str(raised.value).split())


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "digits"
    assert dispatch(["train", "digits", *QUICK, "--epochs", "5", "--seed", "0", "--output", str(folder)]) == 0
    return folder


def test_a_run_is_the_folder_that_was_designed(run: Path) -> None:
    files = {str(path.relative_to(run)) for path in run.rglob("*") if path.is_file()}
    expected = {"run.yaml", "config.json", "model.safetensors", "preprocessor_config.json", "metrics.jsonl"}
    assert expected | {"summary.csv", "record.json"} <= files
    assert not [name for name in files if name.endswith((".pt", ".pth", ".pkl", ".bin"))], "no pickles are written"
    rows = list(csv.DictReader((run / "summary.csv").open()))
    assert [float(row["epoch"]) for row in rows] == [1, 2, 3, 4, 5]
    assert all(float(row["train_loss"]) > 0 and float(row["lr"]) > 0 for row in rows)


def test_the_record_says_how_it_was_made(run: Path) -> None:
    record = json.loads((run / "record.json").read_text())
    keys = {"config", "plan", "environment", "source", "curve", "metrics", "parameters", "multiply_adds", "throughput"}
    assert keys | {"wall_seconds", "cpu_seconds", "peak_memory", "cost", "rollbacks"} <= record.keys()
    assert record["status"] == "finished"
    assert record["environment"]["threads"] == 1 and record["environment"]["torch"]
    assert record["source"]["fingerprint"] == record["plan"]["fingerprint"]
    assert record["parameters"] == 64 * 16 + 16 + 16 * 10 + 10
    low, high = record["metrics"]["accuracy_interval"]
    assert low < record["metrics"]["accuracy"] < high


def test_resuming_a_finished_run_says_so(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert dispatch(["train", "--resume", str(run)]) == 0
    assert "already finished" in capsys.readouterr().out


def test_what_cannot_be_trained_is_answered_in_a_sentence(run: Path, tmp_path: Path) -> None:
    output = ["--output", str(tmp_path / "out")]
    assert "say what to train on" in refusal("train")
    assert "did you mean mlp" in refusal("train", "digits", "--model", "mlpp", *output)
    texts = str(sentences())
    assert f"takes images, but {texts} holds text" in refusal("train", texts, "--model", "mixer_nano_p4_32", *output)
    assert "takes text, but digits holds images" in refusal("train", "digits", "--model", "bert_tiny", *output)
    assert "takes images, but diabetes holds vectors" in refusal("train", "diabetes", "--model", "lenet5", *output)
    side = refusal("train", "digits", "--model", "mixer_b16_224", *output)
    assert "not a multiple of the patch side 16; use 16" in side and "--img-size" in side
    assert "--lr must be a number above 0, not 0.0" in refusal("train", "digits", *QUICK, "--lr", "0")
    assert "not nan" in refusal("train", "digits", *QUICK, "--lr", "nan")
    assert "larger than the training split" in refusal("train", "digits", *QUICK, "--batch-size", "5000", *output)
    assert "contradict each other" in refusal("train", "digits", *QUICK, "--epochs", "1", "--steps", "2")
    assert "not a duration" in refusal("train", "digits", *QUICK, "--time", "soon")
    assert "has no setting 'depht'" in refusal("train", "digits", "--model", "mlp", "--network", "depht=3", *output)
    assert "KEY=VALUE" in refusal("train", "digits", "--model", "mlp", "--network", "depth")
    assert "needs several processes" in refusal("train", "digits", *QUICK, "--strategy", "ddp", *output)
    assert "there is no recipe 'digits/mixr'; did you mean digits/mixer" in refusal("train", "--recipe", "digits/mixr")
    assert not (tmp_path / "out").exists(), "a refused run leaves no folder"


def test_several_processes_are_not_started_for_what_they_would_refuse(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "execve", lambda *_: pytest.fail("this process would have become torchrun"))
    several = ["--processes", "2", "--output", str(tmp_path / "out")]
    assert "did you mean mlp" in refusal("train", "digits", "--model", "mpl", *several)
    assert "takes text, but digits holds images" in refusal("train", "digits", "--model", "bert_tiny", *several)
    assert "does not work with --strategy fsdp" in refusal(
        "train", "digits", *QUICK, "--opt", "lamb", "--strategy", "fsdp", *several
    )
    assert not (tmp_path / "out").exists(), "the corrected command would find the folder in use"


def test_several_processes_are_told_what_may_change(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The words that torchrun is given, parsed again, ask for the same."""
    started: list[list[str]] = []

    def become(program: str, words: list[str], environment: dict[str, str]) -> None:
        started.append(words)
        raise SystemExit

    monkeypatch.setattr(os, "execve", become)
    changes = ["--device", "cpu", "--workers", "0", "--price-per-hour", "2.5", "--tensorboard", "--strategy", "ddp"]
    for words in (["--resume", str(run), *changes], ["digits", *QUICK, *changes, "--output", str(tmp_path / "new")]):
        with pytest.raises(SystemExit):
            dispatch(["train", *words, "--processes", "2"])
        given = started[-1][started[-1].index("--resume") :]
        asked = parse(train.Arguments, "train", given, train.defaults(given)).config.execution
        found = (asked.device, asked.workers, asked.price_per_hour, asked.tensorboard, asked.strategy)
        assert found == ("cpu", 0, 2.5, True, "ddp")


def test_several_processes_are_told_when_the_command_began(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Seven seconds ago, four of which went into what is made once for all runs."""
    told: list[str] = []

    def become(program: str, words: list[str], environment: dict[str, str]) -> None:
        told.append(environment[launch.BEGAN])
        raise SystemExit

    monkeypatch.setattr(os, "execve", become)
    monkeypatch.setattr(time, "time", lambda: 5000.0)
    monkeypatch.setattr(time, "perf_counter", lambda: 100.0)
    monkeypatch.setattr(command, "began", 93.0)
    monkeypatch.setattr(FILLING, "seconds", 4.0)
    with pytest.raises(SystemExit):
        dispatch(["train", "digits", *QUICK, "--output", str(tmp_path / "run"), "--processes", "2"])
    assert told == ["4997.0"]


def ended(config: Any) -> dict[str, Any]:
    """The least that a record of a run holds."""
    source = {"name": "digits", "fingerprint": "f", "notes": []}
    numbers = {"parameters": 1, "steps": 1, "wall_seconds": 1.0, "cost": 0.0}
    told = {"status": "finished", "metric": "accuracy", "metrics": {"accuracy": 1.0}, "curve": []}
    return {**told, **numbers, "source": source, "config": to_dict(config)}


def test_a_restarted_process_goes_on_with_its_own_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not with one of seed 10, of another rate, or that has ended; brackets of a source are no pattern."""
    monkeypatch.chdir(tmp_path)
    asked = parse(train.Arguments, "train", ["a[b].csv", *QUICK, "--seed", "1"])

    def leave(name: str, **changes: Any) -> RunFolder:
        create(Path("runs") / name, replace(asked.config, **changes)).release()
        return RunFolder(Path("runs") / name)

    name = run_name(asked.config)
    assert name.startswith("a-b-.csv-") and name.endswith("-mlp-seed1")
    leave(name).write_record(ended(asked.config))
    assert running.left_behind(asked) is None, "not restarted"
    monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", "1")
    assert running.left_behind(asked) is None, "nothing to go on from"
    own = leave(f"{name}-2")
    leave(f"{name}-3", optimisation=replace(asked.config.optimisation, lr=0.5))
    leave(f"{name}0", seed=10)
    assert running.left_behind(asked) == own.path


def test_folders_that_cannot_be_used_are_named(run: Path, tmp_path: Path) -> None:
    assert "already holds a run" in refusal("train", "digits", *QUICK, "--output", str(run))
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").write_text("precious")
    assert "not empty" in refusal("train", "digits", *QUICK, "--output", str(tmp_path / "full"))
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["thesis.txt"]
    assert (tmp_path / "full" / "thesis.txt").read_text() == "precious"
    assert "cannot write to" in refusal("train", "digits", *QUICK, "--output", "/proc/nowhere")
    assert "not a run folder" in refusal("train", "--resume", str(tmp_path))
    assert "seed: 0 -> 9" in refusal("train", "--resume", str(run), "--seed", "9")


def test_a_run_of_a_newer_version_is_left_alone(run: Path, tmp_path: Path) -> None:
    newer = tmp_path / "newer"
    newer.mkdir()
    content = yaml.safe_load((run / "run.yaml").read_text())
    (newer / "run.yaml").write_text(yaml.safe_dump({**content, "format": 99}))
    assert "newer weft (format 99" in refusal("train", "--resume", str(newer))


def test_exit_code_and_one_line_for_bad_input(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["train", "digits", "--model", "mlp", "--lr", "0"])
    assert ended.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_interrupted_command_prints_how_to_go_on(number: int, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    words = ["train", "digits", *ENDLESS, "--output", str(folder)]
    process = subprocess.Popen([sys.executable, "-m", "weft", *words], stdout=subprocess.PIPE, text=True)
    while process.poll() is None and not (folder / "metrics.jsonl").exists():
        time.sleep(0.05)
    time.sleep(0.3)
    os.kill(process.pid, number)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert f"weft train --resume {folder}" in output


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("verb", ["compare", "train"])
def test_a_command_that_is_ended_while_it_imports_is_interrupted(verb: str, number: int) -> None:
    script = (
        "import os, time; from weft.commands import main\n"
        f"main.import_module = lambda name: (os.kill(os.getpid(), {int(number)}), time.sleep(60))\n"
        "main.main()"
    )
    ended = subprocess.run([sys.executable, "-c", script, verb], capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stderr) == (130, "weft: interrupted\n")


def test_a_command_that_is_interrupted_before_its_first_step_says_how_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(probe, "measure", interrupted)
    words = ["train", "digits", "--model", "mlp", "--steps", "2"]
    with pytest.raises(Interrupted) as told:
        dispatch([*words, "--output", str(tmp_path / "my run")])
    monkeypatch.undo()
    remedy = str(told.value).partition("continue with: weft ")[2]
    assert dispatch(shlex.split(remedy)) == 0, "the folder's name has a blank"


def test_after_an_illegal_instruction_the_remedy_can_be_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def die(*_: object) -> None:
        raise KeyboardInterrupt

    folder = tmp_path / "my run"
    monkeypatch.setattr(probe, "measure", die)
    with pytest.raises(Interrupted):
        dispatch(["train", "digits", "--model", "mlp", "--steps", "2", "--output", str(folder)])
    monkeypatch.undo()
    told = death_sentence(-signal.SIGILL, folder)
    assert "measuring before the first step" in told and "checkpoint" not in told
    remedy = re.search("`weft (train --resume .*)` begins it again", told)
    assert remedy is not None and dispatch(shlex.split(remedy[1])) == 0
    plan = RunFolder(folder).plan()
    assert plan is not None and plan.precision == "float32" and not plan.compile
    with pytest.raises(WeftError, match="precision"):
        dispatch(["train", "--resume", str(folder), "--precision", "bf16"])


@pytest.mark.parametrize(
    ("code", "precision", "remedy"),
    [
        (-signal.SIGILL, "bf16", "start a new run with these flags"),
        (-signal.SIGILL, "float32", "`weft train --resume {}` goes on from its last checkpoint"),
        (-signal.SIGKILL, "bf16", "`weft train --resume {}` goes on from its last checkpoint"),
    ],
)
def test_a_death_after_the_plan_names_the_folder_or_a_new_run(
    code: int, precision: str, remedy: str, run: Path, tmp_path: Path
) -> None:
    shutil.copytree(run, tmp_path / "run")
    folder = RunFolder(tmp_path / "run")
    plan = folder.plan()
    assert plan is not None
    folder.write_asked(folder.config(), replace(plan, precision=precision))
    assert death_sentence(code, folder.path).endswith(remedy.format(folder.path))
    shutil.rmtree(folder.checkpoints)
    assert "checkpoint" not in death_sentence(code, folder.path)


@pytest.mark.parametrize("error", [MemoryError(), ImportError("failed to map segment from shared object")])
def test_too_little_memory_is_a_sentence(
    error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def import_module(name: str) -> None:
        raise error

    monkeypatch.setattr(command, "import_module", import_module)
    with pytest.raises(SystemExit) as ended:
        main(["data"])
    told = capsys.readouterr().err
    assert ended.value.code == 1 and told.startswith("weft: memory is short") and told.count("\n") == 1


def test_a_network_too_large_for_the_machine_is_a_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def import_module(name: str) -> None:
        torch.empty(10**15)

    monkeypatch.setattr(command, "import_module", import_module)
    with pytest.raises(SystemExit) as ended:
        main(["data"])
    told = capsys.readouterr().err
    assert ended.value.code == 1 and "not enough memory" in told and told.count("\n") == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is full")
def test_errors_that_cannot_be_written_leave_the_exit_code_alone() -> None:
    with Path("/dev/full").open("w") as full:
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
        words = [sys.executable, "-m", "weft", "data", "show", "nothing"]
        assert subprocess.run(words, stderr=full, env=environment).returncode == 2


@pytest.mark.skipif(sys.platform != "linux", reason="needs a supervisor")
def test_a_command_whose_process_dies_by_a_signal_says_which_and_what_was_under_way(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    words = ["train", "digits", *ENDLESS, "--output", str(folder)]
    process = subprocess.Popen([sys.executable, "-m", "weft", *words], stderr=subprocess.PIPE, text=True)
    while process.poll() is None and not read_events(folder / "metrics.jsonl"):
        time.sleep(0.05)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    os.kill(int(children[0]), signal.SIGILL)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    assert errors.count("\n") == 1
    assert all(word in errors for word in ("SIGILL", "training after step", str(folder), "weft doctor", "--resume"))


@pytest.mark.skipif(sys.platform != "linux", reason="needs a supervisor")
def test_a_killed_command_leaves_no_process(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    words = ["train", "digits", *ENDLESS, "--output", str(folder)]
    process = subprocess.Popen([sys.executable, "-m", "weft", *words], stdout=subprocess.DEVNULL)
    while process.poll() is None and not (folder / "metrics.jsonl").exists():
        time.sleep(0.05)
    process.kill()
    process.wait()
    open_run(folder).lock(wait=1.0).release()


def test_eval_prints_what_the_record_holds(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert dispatch(["eval", str(run), "--json"]) == 0
    metrics = json.loads(capsys.readouterr().out)
    assert metrics["accuracy"] == pytest.approx(json.loads((run / "record.json").read_text())["metrics"]["accuracy"])
    assert dispatch(["eval", str(run)]) == 0
    assert "down: the true class" in capsys.readouterr().out


def test_predict_reads_files_and_standard_input(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = []
    for number in range(3):
        path = tmp_path / f"{number}.png"
        Image.fromarray(np.full((8, 8), 60 * number, dtype=np.uint8)).save(path)
        paths.append(str(path))
    assert dispatch(["predict", str(run), *paths, "--top", "2"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [row["input"] for row in rows] == paths
    assert all(float(row["probability_1"]) >= float(row["probability_2"]) for row in rows)
    monkeypatch.setattr(sys, "stdin", io.StringIO("\n".join(paths) + "\n"))
    assert dispatch(["predict", str(run), "--json"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["predictions"][0]["class"] for line in lines] == [row["class_1"] for row in rows]
    assert "takes images, not text" in refusal("predict", str(run), "--text", "hello")
    assert "there is no file" in refusal("predict", str(run), "nowhere.png")
    monkeypatch.setattr(sys, "stdin", io.StringIO("nowhere.png\n"))
    assert dispatch(["predict", str(run)]) == 2
    assert "cannot read the image nowhere.png: No such file" in capsys.readouterr().err
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"caf\xe9.png\n"), encoding="utf-8"))
    assert "standard input is not UTF-8 text" in refusal("predict", str(run))
    monkeypatch.setattr(sys, "stdin", None)
    assert "standard input is closed" in refusal("predict", str(run))
    assert capsys.readouterr().out == ""  # not even the first line of a table


def test_predict_takes_texts_and_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = ["--model", "conv_text", "--max-length", "32", "--vocab-size", "512", "--network", "channels=32", "dim=32"]
    text += ["--threads", "1", "--steps", "120", "--lr", "0.01"]
    assert dispatch(["train", str(sentences()), *text, "--output", str(tmp_path / "t")]) == 0
    capsys.readouterr()
    assert dispatch(["predict", str(tmp_path / "t"), "--text", "abba red cab", "--text", "blue", "--top", "1"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [(row["input"], row["class_1"]) for row in rows] == [("abba red cab", "r"), ("blue", "b")]
    assert dispatch(["train", "diabetes", *QUICK, "--steps", "5", "--output", str(tmp_path / "v")]) == 0
    (tmp_path / "rows.csv").write_text(",".join(["0.1"] * 10) + "\n")
    capsys.readouterr()
    assert dispatch(["predict", str(tmp_path / "v"), str(tmp_path / "rows.csv")]) == 0
    (row,) = csv.DictReader(io.StringIO(capsys.readouterr().out))
    assert 0 < float(row["value"]) < 400
    (tmp_path / "rows.csv").write_text("a,b\n")
    assert "lacks the columns age, sex, bmi" in refusal("predict", str(tmp_path / "v"), str(tmp_path / "rows.csv"))


def test_runs_lists_and_prunes(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(run, tmp_path / "all" / "copy")
    (tmp_path / "all" / "odd").mkdir()
    (tmp_path / "all" / "odd" / "run.yaml").write_text("format: [")
    assert dispatch(["runs", str(tmp_path / "all"), "--json"]) == 0
    rows: list[dict[str, Any]] = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["status"] for row in rows] == ["finished", "unreadable"]
    assert rows[0]["value"] > 0.2 and rows[0]["cost"] > 0
    assert dispatch(["runs", str(tmp_path / "all")]) == 0
    assert "accuracy" in capsys.readouterr().out
    assert dispatch(["runs", "prune", str(tmp_path / "all")]) == 0
    assert "would delete" in capsys.readouterr().out
    assert (tmp_path / "all" / "copy" / "checkpoints").is_dir()
    assert dispatch(["runs", "prune", str(tmp_path / "all"), "--apply"]) == 0
    assert not (tmp_path / "all" / "copy" / "checkpoints").exists()
    assert (tmp_path / "all" / "copy" / "model.safetensors").is_file()
    assert "there is no folder" in refusal("runs", str(tmp_path / "nowhere"))


def test_one_odd_folder_does_not_hide_the_others(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A record without a key, and a folder whose lock cannot be opened, as someone else's cannot."""
    for name in ("lacking", "locked"):
        (tmp_path / name).mkdir()
        shutil.copy(run / "run.yaml", tmp_path / name)
    (tmp_path / "lacking" / "record.json").write_text('{"status": "finished"}')
    (tmp_path / "locked" / ".lock").mkdir()
    shutil.copytree(run, tmp_path / "sound")
    assert dispatch(["runs", str(tmp_path), "--json"]) == 0
    rows: list[dict[str, Any]] = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["status"] for row in rows] == ["unreadable", "unreadable", "finished"]
    assert "record.json: metric" in rows[0]["metric"] and ".lock" in rows[1]["metric"]
    assert dispatch(["runs", str(tmp_path)]) == dispatch(["runs", "prune", str(tmp_path)]) == 0


def test_a_damaged_record_is_written_anew_by_resuming(run: Path, tmp_path: Path) -> None:
    again = tmp_path / "again"
    shutil.copytree(run, again)
    (again / "record.json").write_text('{"status": "fini')
    with pytest.warns(UserWarning, match=r"record\.json is damaged.*--resume .*writes it anew"):
        assert dispatch(["train", "--resume", str(again)]) == 0
    before, after = (json.loads((folder / "record.json").read_text()) for folder in (run, again))
    assert after["status"] == "finished" and after["metrics"] == before["metrics"]


def test_verify_says_same(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert dispatch(["verify", str(run)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) >= 4 and all(line.startswith("same") for line in lines)


def test_recipes_state_what_to_expect(capsys: pytest.CaptureFixture[str]) -> None:
    """Every recipe is a valid configuration whose docstring gives command, expectation and cost, or owns up."""
    from weft.training.recipes import find

    for name, function in find().items():
        function()
        text = function.__doc__ or ""
        assert f"--recipe {name}" in text, name
        measured = "%" in text and "parameters" in text and "seconds" in text
        assert measured or "Not measured yet." in text, name
    assert dispatch(["recipes"]) == 0
    assert "digits/mixer" in capsys.readouterr().out
    assert dispatch(["recipes", "show", "digits/mixer"]) == 0
    assert "model: mixer_nano_p4_32" in capsys.readouterr().out


@pytest.mark.parametrize("flag", ["--steps", "--epochs", "--time"])
def test_a_length_replaces_that_of_a_recipe(flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    """One of the three was given, so that one of them holds."""
    value = "90s" if flag == "--time" else "5"
    assert dispatch(["train", "--recipe", "digits/mixer", flag, value, "--print-config"]) == 0
    duration = yaml.safe_load(capsys.readouterr().out)["duration"]
    given = {name: found for name, found in duration.items() if found is not None}
    assert given == {flag.removeprefix("--"): value if flag == "--time" else 5}


def test_names_of_runs_are_whole_on_a_narrow_terminal(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And those behind links are listed too."""
    name = "fzaemmel-photographs-resnet18-seed0"
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / name).symlink_to(run)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    assert dispatch(["runs"]) == 0
    printed = capsys.readouterr().out
    assert f"runs/{name}" in printed and "…" not in printed and "accuracy 0." in printed
    assert max(map(len, printed.splitlines())) <= 80


def test_before_the_first_step_nothing_is_imported_that_it_does_not_need(tmp_path: Path) -> None:
    """scikit-learn alone takes as long as torch; its classical baseline is made after the last step."""
    code = (
        "import os, sys\n"
        "from weft.commands.main import main\n"
        "from weft.training.run import lifecycle\n"
        "def first_step(*_):\n"
        "    found = {'sklearn', 'scipy', 'pandas', 'optuna', 'lightning', 'torchvision', 'onnx'} & set(sys.modules)\n"
        "    print('loaded:', sorted(found), flush=True)\n"
        "    os._exit(0)\n"
        "lifecycle.train = first_step\n"
        "main(['train', 'digits', '--model', 'mlp', '--steps', '1'])\n"
    )
    environment = {**os.environ, "WEFT_CACHE": str(tmp_path / "cache")}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.stdout.splitlines()[-1] == "loaded: []", done.stdout + done.stderr
