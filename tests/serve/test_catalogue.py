"""Which folders are served, under which names, and that nothing outside of them is."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from weft.serve import catalogue as module
from weft.serve.catalogue import Catalogue, NotServed


@pytest.fixture(autouse=True)
def always_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "AGE", 0.0)


def run(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / "run.yaml").write_text("format: 1\nconfig:\n  model: mlp\n")
    return folder


def study(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / "study.json").write_text(json.dumps({"format": 1, "runs": [], "candidates": []}))
    return folder


def names(catalogue: Catalogue) -> set[str]:
    return {entry.name for entry in catalogue.entries()}


def test_runs_and_comparisons_have_their_folders_names_where_these_are_unique(tmp_path: Path) -> None:
    study(tmp_path / "here" / "cats")
    for parts in ("cats/runs/vit", "cats/runs/mlp", "dogs/runs/mlp"):
        run(tmp_path / "here" / parts)
    catalogue = Catalogue([tmp_path / "here"])
    assert names(catalogue) == {"cats", "vit", "here--cats--runs--mlp", "here--dogs--runs--mlp"}
    assert catalogue.comparison("cats").kind == "comparison"
    assert catalogue.run("here--cats--runs--vit") == catalogue.run("vit")  # the long name stays when others come


def test_names_fit_into_addresses_and_no_two_are_alike(tmp_path: Path) -> None:
    odd = ["a b", "a-b", "a/b", "ä", "x..", "x?y", "x#y", "<b>", "per%20cent", "a--b"]
    for name in odd:
        run(tmp_path / name)
    found = Catalogue([tmp_path]).entries()
    assert len({entry.name for entry in found}) == len(found) == len(odd)
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+", entry.name) and entry.name.strip(".") for entry in found)


def test_the_same_name_below_two_folders_is_told_apart(tmp_path: Path) -> None:
    places = [run(tmp_path / where / "runs" / "mlp") for where in ("one", "two")]
    catalogue = Catalogue([place.parent for place in places])
    assert {catalogue.run(entry.name).path for entry in catalogue.entries()} == set(places)


def test_a_run_that_is_served_itself_has_its_name(tmp_path: Path) -> None:
    assert names(Catalogue([run(tmp_path / "mine")])) == {"mine"}


def test_files_of_other_programs_are_no_entries(tmp_path: Path) -> None:
    for name, content in (("run.yaml", "command: make\n"), ("study.json", '{"title": "bees"}')):
        folder = tmp_path / name.partition(".")[0]
        folder.mkdir()
        (folder / name).write_text(content)
    assert names(Catalogue([tmp_path])) == set()


def test_links_lead_nowhere(tmp_path: Path) -> None:
    secret = run(tmp_path / "elsewhere" / "secret")
    (secret / "key.pem").write_text("private")
    served = run(tmp_path / "served" / "own")
    (tmp_path / "served" / "link").symlink_to(secret)
    (served / "key.pem").symlink_to(secret / "key.pem")
    (served / "notes.txt").write_text("mine")
    catalogue = Catalogue([tmp_path / "served"])
    assert names(catalogue) == {"own"}
    entry = catalogue.run("own")
    assert entry.file("notes.txt").read_text() == "mine"
    for parts in (
        ("key.pem",),
        ("..", "own", "..", "..", "elsewhere", "secret", "key.pem"),
        ("/etc/passwd",),
        ("a\0b",),
    ):
        with pytest.raises(NotServed):
            entry.file(*parts)


def test_what_is_made_later_is_found(tmp_path: Path) -> None:
    catalogue = Catalogue([tmp_path])
    with pytest.raises(NotServed, match="no run 'late'"):
        catalogue.run("late")
    run(tmp_path / "late")
    assert catalogue.run("late").path == tmp_path / "late"
    with pytest.raises(NotServed):
        catalogue.comparison("late")


def test_what_was_deleted_is_there_no_more_though_nobody_has_looked_since(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "AGE", 60.0)
    gone = run(tmp_path / "gone")
    catalogue = Catalogue([tmp_path])
    assert catalogue.run("gone").path == gone
    (gone / "run.yaml").unlink()
    gone.rmdir()
    with pytest.raises(NotServed, match="no run 'gone'"):
        catalogue.run("gone")
