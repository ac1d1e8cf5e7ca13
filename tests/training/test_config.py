"""Configurations: read, written, compared, and refused in a sentence."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from weft.errors import WeftError
from weft.training.config import (
    DurationConfig,
    ObjectiveConfig,
    OptimisationConfig,
    RunConfig,
    difference,
    from_dict,
    seconds,
)
from weft.training.run.plan import steps_asked, warmup_steps
from weft.training.storage.run_folder import as_yaml, read_mapping


def stored(path: Path) -> RunConfig:
    return from_dict(RunConfig, read_mapping(path), f"{path}: ")


def test_yaml_gives_back_the_configuration_it_was_written_from(tmp_path: Path) -> None:
    config = RunConfig(
        source="digits",
        model="mlp",
        network={"hidden": [3, 4]},
        optimisation=OptimisationConfig(lr="auto"),
        objective=ObjectiveConfig(class_weights=(1.0, 2.0)),
        duration=DurationConfig(time="1h30m"),
    )
    (tmp_path / "run.yaml").write_text(as_yaml(config))
    assert stored(tmp_path / "run.yaml") == config


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("sorce: digits", "did you mean source"),
        ("optimisation: {learning_rat: 1}", "optimisation: unknown key 'learning_rat'"),
        ("optimisation: {weight_deca: 1}", "did you mean weight_decay"),
        ("optimisation: 3", "expected a mapping"),
        ("optimisation: {lr: fast}", "lr"),
        ("duration: {epochs: 3, steps: 5}", "--epochs and --steps contradict each other"),
        ("- 1", "no mapping"),
        ("a: [", "not valid YAML"),
    ],
)
def test_a_bad_file_is_answered_with_what_and_where(text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text(text)
    with pytest.raises(WeftError, match=words) as raised:
        stored(tmp_path / "bad.yaml")
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(("field", "value"), [("lr", 0.0), ("lr", float("nan")), ("lr", -1.0), ("clip_grad", -1.0)])
def test_impossible_numbers_are_refused(field: str, value: float) -> None:
    with pytest.raises(WeftError, match=f"--{field.replace('_', '-')} must be"):
        OptimisationConfig(**{field: value})


@pytest.mark.parametrize(("text", "expected"), [("90s", 90), ("30m", 1800), ("1h30m", 5400), ("0.5h", 1800)])
def test_durations(text: str, expected: float) -> None:
    assert seconds(text) == expected


@pytest.mark.parametrize("text", ["", "30", "m", "1x", "0s", "3 m", "-5m"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(WeftError, match="not a duration"):
        seconds(text)


def test_differences_are_named_by_field() -> None:
    one = RunConfig(source="digits", model="mlp")
    other = replace(one, seed=3, optimisation=replace(one.optimisation, lr=0.1))
    assert difference(one, other) == ["seed: 0 -> 3", "lr: None -> 0.1"]


def test_a_budget_in_epochs_may_be_a_fraction() -> None:
    config = RunConfig(duration=DurationConfig(epochs=1.5))
    assert steps_asked(config, 10) == 15
    assert warmup_steps(config, 100, 10) == 5
    assert warmup_steps(replace(config, optimisation=OptimisationConfig(warmup_epochs=99)), 100, 10) == 50


def test_help_and_print_config_load_no_torch() -> None:
    """The answers that need no computing come at once."""
    code = (
        "import sys\n"
        "from weft.commands.main import main\n"
        "try:\n    main(sys.argv[1:])\nexcept SystemExit as end:\n    code = end.code\n"
        "sys.exit(99 if 'torch' in sys.modules else code)"
    )
    for words in (["train", "--help"], ["train", "digits", "--recipe", "digits/mlp", "--print-config"], ["recipes"]):
        done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True)
        assert done.returncode == 0, (words, done.returncode, done.stderr)


def test_print_config_can_be_read_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from weft.commands.main import dispatch

    asked = ["digits", "--model", "mlp", "--lr", "0.02", "--network", "hidden=[8]", "--mixup", "0.2", "--epochs", "3"]
    assert dispatch(["train", *asked, "--print-config"]) == 0
    written = capsys.readouterr().out
    (tmp_path / "c.yaml").write_text(written)
    assert dispatch(["train", "--config", str(tmp_path / "c.yaml"), "--print-config"]) == 0
    assert capsys.readouterr().out == written
    config = stored(tmp_path / "c.yaml")
    assert (config.optimisation.lr, config.network, config.augment.mixup) == (0.02, {"hidden": [8]}, 0.2)
