"""What a project has around its source: hosted checks, templates, one version, a site without foreign hosts."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml

import weft

ROOT = Path(__file__).parents[1]
SITE = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
LOADED = re.compile(
    r"""<(?:script|img|iframe)[^>]+src="(?:https?:)?//|<link[^>]+href="(?:https?:)?//|@import|url\(["']?(?:https?:)?//"""
)


def test_hosted_checks_run_what_everyone_runs() -> None:
    content = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8"))
    steps = [step for job in content["jobs"].values() for step in job["steps"]]
    assert "bash .ci/run" in [step.get("run") for step in steps]
    pythons = [step["with"]["python-version"] for step in steps if "setup-python" in step.get("uses", "")]
    assert pythons == ["3.11"]  # a text: 3.10 as a number would be 3.1


def test_templates_are_forms_and_a_bug_asks_for_the_doctor() -> None:
    forms = {
        path.stem: yaml.safe_load(path.read_text("utf-8")) for path in (ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml")
    }
    assert {"bug", "feature"} <= set(forms)
    for name in ("bug", "feature"):
        assert {"name", "description", "body"} <= set(forms[name])
    assert "weft doctor --json" in str(forms["bug"])


def test_the_citation_parses() -> None:
    content = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert {"cff-version", "message", "title", "authors"} <= set(content)
    assert "version" not in content  # it has one place


def test_the_version_has_one_place() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert "version" not in project["project"] and project["project"]["dynamic"] == ["version"]
    assert (ROOT / project["tool"]["hatch"]["version"]["path"]).samefile(weft.__file__)
    assert version("weft") == weft.__version__


def test_what_the_source_distribution_names_exists() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    for name in project["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]:
        assert (ROOT / name.lstrip("/")).exists(), name


def test_every_page_is_in_the_navigation() -> None:
    named = set(re.findall(r"[\w/-]+\.md", str(SITE["nav"])))
    docs = ROOT / "docs"
    assert named == {path.relative_to(docs).as_posix() for path in docs.rglob("*.md")}


def test_the_architecture_names_files_that_exist() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    paths = set(re.findall(r"`([\w./]+(?:/|\.py|\.j2))`", text)) - {"__init__.py"}
    assert len(paths) > 50
    for path in paths:
        assert (ROOT / "src" / "weft" / path).exists(), path


@pytest.mark.skipif(find_spec("mkdocstrings") is None, reason="mkdocs is in the extra docs")
@pytest.mark.slow
def test_the_site_builds_without_a_warning_and_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    proxies = {f"{kind}_proxy": "http://127.0.0.1:9" for kind in ("http", "https")}  # nobody answers there
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, **proxies}, capture_output=True, text=True)
    assert done.returncode == 0 and "WARNING" not in done.stderr, done.stderr
    pages = [path for path in tmp_path.rglob("*") if path.suffix in (".html", ".css")]
    assert len(pages) > 10
    for page in pages:
        assert not LOADED.search(page.read_text(encoding="utf-8")), page
    reference = (tmp_path / "reference.html").read_text(encoding="utf-8")
    for name in set(weft.__all__) - {"__version__"}:
        assert f"weft.{name}" in reference, name


def test_a_walk_names_the_files_in_which_functions_run() -> None:
    command = [sys.executable, str(ROOT / "benchmarks" / "walk.py"), "recipes"]
    text = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    files, rest = text.split("crossings between folders:")
    crossings, modules = rest.split("calls from and to single modules:")
    assert "  commands/main.py\n" in files and "  commands/recipes.py\n" in files
    assert "nn/" not in files  # listing recipes builds no network
    assert re.search(r"commands/recipes\.py → training/recipes/", crossings)
    assert "commands/main.py → terminal.py" in modules and "terminal.py" not in crossings
