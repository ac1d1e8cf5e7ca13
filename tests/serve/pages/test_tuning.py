"""Searches on the page, from a journal that Optuna itself has written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from serve.pages.made_up import make_run
from weft.disk import mark
from weft.report.parallel import parallel
from weft.studies.tune.space import open_search

Make = Callable[..., TestClient]


@pytest.fixture
def search(tmp_path: Path) -> Path:
    from optuna.distributions import FloatDistribution, IntDistribution
    from optuna.trial import create_trial

    folder = tmp_path / "digits-mlp"
    mark(folder)
    study = open_search(str(folder / "journal.log"), "digits-mlp-lr-depth")
    ranges = {"lr": FloatDistribution(1e-5, 1, log=True), "depth": IntDistribution(1, 9)}
    for number in range(8):
        settings = {"lr": 10.0 ** -(number % 4 + 1), "depth": number % 3 + 1}
        study.add_trial(create_trial(params=settings, distributions=ranges, value=number / 10))
    return folder


def test_a_search_shows_its_best_trial_and_its_charts(client: Make, search: Path):
    server = client(folders=(search.parent,))
    assert "digits-mlp" in server.get("/tuning").text
    page = server.get("/tuning/digits-mlp").text
    assert "trial 7" in page and "Best: 0.7000" in page and page.count("<svg") == 3


def test_looking_at_a_search_writes_nothing_into_it(client: Make, search: Path):
    before = (search / "journal.log").read_bytes()
    assert client(folders=(search.parent,)).get("/tuning/digits-mlp").status_code == 200
    assert (search / "journal.log").read_bytes() == before


def test_a_damaged_search_is_a_sentence(client: Make, search: Path):
    (search / "journal.log").write_text("nonsense\n")
    answer = client(folders=(search.parent,)).get("/tuning/digits-mlp")
    assert answer.status_code == 422 and "is damaged, or holds no search" in answer.text


def test_parallel_lines_have_an_axis_a_setting_and_the_best_stand_out():
    trials = [{"number": n, "value": n / 10, "settings": {"lr": 10.0**-n, "opt": "ab"[n % 2]}} for n in range(1, 7)]
    drawn = parallel(trials, ["lr", "opt"])
    assert drawn.count("<polyline") == 6 and drawn.count('class="line c1"') == 3
    assert "trial 6: 0.6" in drawn and ">opt</text>" in drawn
    assert parallel(trials[:1], ["lr"]) == "" == parallel(trials, [])


def test_a_trial_leads_back_to_its_search(client: Make, search: Path):
    make_run(search / "trials" / "trial-0007", 0, 0.7)
    server = client(folders=(search.parent,))
    assert 'href="/tuning/digits-mlp"' in server.get("/runs/trial-0007").text
    assert 'href="/runs/trial-0007"' in server.get("/tuning/digits-mlp").text
