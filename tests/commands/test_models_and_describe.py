"""The commands that need no training: lists, descriptions, help, bad input."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from weft.commands.main import main


def weft_command(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "weft", *words], capture_output=True, text=True, timeout=120)


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """The sentence that bad input gets: one line, exit code 2."""
    with pytest.raises(SystemExit) as stop:
        main(list(words))
    sentence = capsys.readouterr().err.strip()
    assert stop.value.code == 2 and "\n" not in sentence and sentence.startswith("weft: ")
    return sentence


def shown(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    with pytest.raises(SystemExit) as stop:
        main(list(words))
    assert stop.value.code == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("words", [("--help",), ("models",), ("models", "--help"), ("describe", "--help")])
def test_help_and_lists_do_not_load_torch(words: tuple[str, ...]) -> None:
    code = (
        "import sys; from weft.commands.main import main\n"
        f"try: main({list(words)!r})\n"
        "except SystemExit as stop: assert not stop.code\n"
        "sys.exit(3 if 'torch' in sys.modules else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_models_lists_by_pattern(capsys: pytest.CaptureFixture[str]) -> None:
    """E1: specifications and counts."""
    out = shown(capsys, "models", "mixer_b*")
    assert "59,880,472" in out and "60,293,428" in out and "gmlp" not in out
    rows = [json.loads(line) for line in shown(capsys, "models", "gmlp_*_224", "--json").splitlines()]
    assert [row["parameters"] for row in rows] == [5_867_328, 19_422_656, 73_075_392]


def test_describe_prints_both_counts(capsys: pytest.CaptureFixture[str]) -> None:
    out = shown(capsys, "describe", "mixer_b16_224")
    assert out.count("12,601,767,936") == 2 and "59,880,472" in out and "the whole input" in out


def test_describe_takes_sizes_and_settings(capsys: pytest.CaptureFixture[str]) -> None:
    changes = ("--network", "patch_size=2", "depth=2")
    words = ("describe", "mixer_nano_p4_32", "--img-size", "8", "--channels", "1", *changes)
    described = json.loads(shown(capsys, *words, "--json"))
    assert described["input_shape"] == [1, 8, 8] and described["config"]["depth"] == 2
    assert described["macs"] == described["counted_macs"]


def test_largest_networks_are_described_without_their_weights() -> None:
    code = (
        "from weft import machine\nfrom weft.networks.measure.description import describe\n"
        "from weft.networks.registry import REGISTRY\n"
        "before = machine.memory_peak()\n"  # not ru_maxrss, which begins with that of the process that started this
        "assert describe(REGISTRY['vit_huge_patch14_224']).parameters == 632_045_800\n"
        "assert describe(REGISTRY['mixer_h14_224']).parameters == 432_350_952\n"
        "assert machine.memory_peak() - before < 500_000_000"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_bad_input_gets_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert "describe" in refused(capsys, "descibe")
    assert "mixer_s16_224" in refused(capsys, "describe", "mixer_s61_224")
    assert "use 96 or 112" in refused(capsys, "describe", "mixer_b16_224", "--img-size", "100")
    assert "depth" in refused(capsys, "describe", "mixer_b16_224", "--network", "dept=3")
    assert "KEY=VALUE" in refused(capsys, "describe", "mixer_b16_224", "--network", "depth")
    assert "depth" in refused(capsys, "describe", "mixer_b16_224", "--network", "depth=zero")
    assert "cannot read 'hidden=['" in refused(capsys, "describe", "mlp", "--network", "hidden=[")
    assert "no model matches" in refused(capsys, "models", "zzz")


def test_debug_shows_the_traceback() -> None:
    done = weft_command("describe", "nothing", "--debug")
    assert done.returncode == 1 and "Traceback" in done.stderr
    done = weft_command("describe", "nothing")
    assert done.returncode == 2 and "Traceback" not in done.stderr
