"""The recipes of CONTRIBUTING.md work: each is followed to the letter, in a copy of the source or beside it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"^```(?P<kind>python|diff) (?P<file>\S+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
SECTIONS = dict(
    re.findall(r"^## (Add .+?)\n(.*?)(?=^## |\Z)", (ROOT / "CONTRIBUTING.md").read_text("utf-8"), re.M | re.S)
)


def follow(title: str, root: Path) -> None:
    """Write and change the files that a recipe names below `root`; those of weft are a copy of the source."""
    blocks = list(BLOCK.finditer(SECTIONS[title]))
    if any(block["file"].startswith("src/") for block in blocks):
        shutil.copytree(ROOT / "src", root / "src", ignore=shutil.ignore_patterns("__pycache__"))
    for block in blocks:
        file = root / block["file"]
        if block["kind"] == "python":
            assert not file.exists(), f"{file} exists already: the recipe needs another name"
            file.write_text(block["text"], encoding="utf-8")
        else:
            file.write_text(changed(file.read_text("utf-8"), block["text"], block["file"]), encoding="utf-8")


def changed(text: str, patch: str, name: str) -> str:
    """A file after a diff of lines that stay and lines with `+`."""
    lines = patch.splitlines(keepends=True)
    before = "".join(line[1:] for line in lines if not line.startswith("+"))
    assert text.count(before) == 1, f"{name} no longer has these lines once:\n{before}"
    return text.replace(before, "".join(line[1:] for line in lines))


def python(root: Path, *words: str) -> str:
    """What Python prints, in `root`, with the copy of the source if there is one."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, [root / "src", root]))}
    done = subprocess.run([sys.executable, *words], cwd=root, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr or done.stdout
    return done.stdout


def test_there_are_four_recipes_of_ten_lines_or_so() -> None:
    assert list(SECTIONS) == ["Add a mixer", "Add a network", "Add a source", "Add a lens"]
    for title, section in SECTIONS.items():
        code = [
            line for block in BLOCK.finditer(section) if block["kind"] == "python" for line in block["text"].split("\n")
        ]
        assert 0 < sum(bool(line.strip()) for line in code) <= 14, title


@pytest.mark.parametrize("title", SECTIONS)
def test_recipes_are_clean(title: str, tmp_path: Path) -> None:
    follow(title, tmp_path)
    files = {block["file"] for block in BLOCK.finditer(SECTIONS[title])}
    settings = [
        "--config",
        str(ROOT / "pyproject.toml"),
        "--ignore",
        "I001",
    ]  # which imports are one's own is not known here
    python(tmp_path, "-m", "ruff", "check", "--quiet", *settings, *files)
    python(tmp_path, "-m", "ruff", "format", "--check", "--quiet", "--config", str(ROOT / "pyproject.toml"), *files)


def test_recipe_of_a_mixer(tmp_path: Path) -> None:
    follow("Add a mixer", tmp_path)
    (tmp_path / "steps.py").write_text(
        """
import own_mixer, torch, weft
sizes = dict(img_size=8, patch_size=2, in_chans=1, num_classes=10, depth=2, dim=24)
net = weft.create_model("vit_nano_p4_32", mixer="neighbours", **sizes)
assert any(isinstance(module, own_mixer.Neighbours) for module in net.modules())
optimiser = torch.optim.SGD(net.parameters(), 0.1)
x, y = torch.randn(16, 1, 8, 8), torch.arange(16) % 10
losses = []
for _ in range(3):
    loss = torch.nn.functional.cross_entropy(net(x), y)
    optimiser.zero_grad(); loss.backward(); optimiser.step()
    losses.append(loss.item())
assert losses[2] < losses[0], losses
"""
    )
    python(tmp_path, "steps.py")


def test_recipe_of_a_network(tmp_path: Path) -> None:
    follow("Add a network", tmp_path)
    python(
        tmp_path, "-m", "weft", "train", "digits", "--model", "own_networks:Small", "--steps", "2", "--output", "run"
    )
    record = json.loads((tmp_path / "run" / "record.json").read_text())
    assert record["status"] != "failed" and 0 <= record["metrics"]["accuracy"] <= 1


@pytest.mark.slow
def test_recipe_of_a_source(tmp_path: Path) -> None:
    follow("Add a source", tmp_path)
    y = np.arange(300) % 3
    x = np.random.default_rng(0).integers(0, 80, (300, 1, 8, 8)) + 80 * y[:, None, None, None]
    np.savez(tmp_path / "blocks.npz", x=x.astype(np.uint8), y=y)
    python(tmp_path, "-m", "weft", "train", "blocks.npz", "--model", "mlp", "--steps", "2", "--output", "run")
    assert json.loads((tmp_path / "run" / "record.json").read_text())["status"] != "failed"
    assert len(json.loads((tmp_path / "run" / "config.json").read_text())["id2label"]) == 3


@pytest.mark.slow
def test_recipe_of_a_lens(tmp_path: Path) -> None:
    follow("Add a lens", tmp_path)
    python(tmp_path, "-m", "weft", "inspect", "mlp", "norms", "--tensors", "3", "--output", "found")
    finding = json.loads((tmp_path / "found" / "norms.json").read_text())
    assert finding["lens"] == "norms" and "largest" in finding["sentence"]
    assert len((tmp_path / "found" / "norms.csv").read_text().splitlines()) == 1 + 3
