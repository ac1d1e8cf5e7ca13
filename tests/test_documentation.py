"""The documentation stays true: the table of systems points at files that exist and at tests that name it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from weft.commands import usage
from weft.commands.main import VERBS

ROOT = Path(__file__).parents[1]
ROWS = [
    [cell.strip() for cell in line.strip("|\n").split("|")]
    for line in (ROOT / "docs" / "systems.md").read_text(encoding="utf-8").splitlines()
    if re.match(r"\| [FCAMTE]\d", line)
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


FOREIGN = {"--no-deps", "--debug", "--help", "--help-all", "--version"}  # of pip, and of the command before its verb
FOREIGN |= {"--address", "--head"}  # of ray
FOREIGN |= {"--data-binary"}  # of curl
FOREIGN |= {f"--{name}" for name in ("max-restarts", "nnodes", "nproc-per-node")}  # of torchrun
FOREIGN |= {f"--rdzv-{name}" for name in ("backend", "endpoint", "id")}
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def known_flags(verb: str) -> set[str]:
    """Every flag of a verb, switches both ways."""
    found = usage.flags(import_module(f"weft.commands.{verb}").Arguments)
    return {*found, *("--no-" + flag[2:] for flag in found)} | FOREIGN


def flags_in(text: str) -> set[str]:
    return set(re.findall(r"(?<![\w-])--[a-z][a-z-]*[a-z](?![\w-])", text))


def commands_in(text: str) -> Iterator[tuple[str, str]]:
    """The verb and the rest of every `weft VERB …`, in lines of code and between backticks."""
    blocks = re.findall(r"```\w*\n(.*?)```", text, flags=re.DOTALL)
    lines = [line.partition("  #")[0] for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    spans = re.findall(r"`([^`]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL))
    for code in (*lines, *spans):
        for verb, rest in re.findall(r"\bweft (\w+)\b([^&|;]*)", code):
            if verb in VERBS:
                yield verb, rest


@pytest.mark.parametrize("page", [*PAGES, ROOT / "benchmarks" / "RESULTS.md"], ids=lambda page: page.name)
def test_every_flag_of_a_command_in_the_pages_exists(page: Path) -> None:
    for verb, rest in commands_in(page.read_text(encoding="utf-8")):
        assert flags_in(rest) <= known_flags(verb), f"weft {verb}{rest}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_flag_that_a_page_mentions_exists(page: Path) -> None:
    known = set().union(*map(known_flags, VERBS))
    assert flags_in(page.read_text(encoding="utf-8")) <= known


def test_every_flag_that_a_recipe_or_a_docstring_of_a_verb_mentions_exists() -> None:
    known = set().union(*map(known_flags, VERBS))
    for file in [*(ROOT / "src/weft/commands").glob("*.py"), *(ROOT / "src/weft/training/recipes").glob("*.py")]:
        if file.name != "usage.py":  # it knows the flags of other programs
            assert flags_in(file.read_text(encoding="utf-8")) <= known, file.name
