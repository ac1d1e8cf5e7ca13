"""The documentation stays true: the table of systems points at files that exist and at tests that name it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROWS = [
    [cell.strip() for cell in line.strip("|\n").split("|")]
    for line in (ROOT / "docs" / "systems.md").read_text(encoding="utf-8").splitlines()
    if re.match(r"\| [FCAME]\d", line)
]


@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
def test_every_system_has_code_and_a_test_that_names_it(row: list[str]) -> None:
    identity, _, files, tests = row
    for file in re.findall(r"`([^`]+)`", files):
        assert (ROOT / "src" / "weft" / file).exists() or (ROOT / file).exists(), file
    paths = [ROOT / "tests" / test for test in re.findall(r"`([^`]+)`", tests)]
    assert paths and all(path.exists() for path in paths), tests
    assert any(re.search(rf"\b{identity}\b", path.read_text(encoding="utf-8")) for path in paths), identity


def test_readme_has_exactly_two_commands() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    commands = re.findall(r"```sh\n(.*?)```", text, flags=re.DOTALL)
    assert len(commands) == 2 and all(command.count("\n") == 1 for command in commands)
    assert ".venv/bin/weft" in commands[0] and ".venv/bin/pytest" in commands[1]


def test_pages_link_to_files_that_exist() -> None:
    for page in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name} → {target}"
