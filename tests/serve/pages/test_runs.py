"""The list of runs and one run: what is shown, sorted, filtered and cut, and that strangers' words stay words."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from serve.pages.made_up import make_run
from weft.serve.catalogue import Catalogue
from weft.serve.pages.runs.listing import SIZE, Wish, listing
from weft.serve.pages.runs.patterns import BadPattern, matcher
from weft.serve.pages.runs.run_index import RunIndex, RunRow, without_curve

Make = Callable[..., TestClient]


def names(page: str) -> list[str]:
    return re.findall(r'<th scope="row"><a href="/runs/([^"]+)"', page)


def test_all_runs_are_listed_with_their_states(client: Make):
    page = client().get("/", params={"sort": "name"}).text
    assert names(page)[:6] == sorted(names(page)[:6])
    for state in ("finished", "failed", "stopped", "unreadable"):
        assert f">{state}</span>" in page
    assert "study" in page, "runs of a comparison say so"


def test_the_list_is_sorted_both_ways_by_what_the_address_says(client: Make):
    server = client()
    up = names(server.get("/?q=mlp-[0-9]&sort=value&order=up").text)
    assert up == ["mlp-0", "mlp-1", "mlp-2"]
    assert names(server.get("/?q=mlp-[0-9]&sort=value&order=down").text) == up[::-1]


def test_a_filter_is_a_regular_expression_or_else_plain_letters(client: Make):
    server = client()
    assert set(names(server.get("/", params={"q": "mlp-(0|2)"}).text)) == {"mlp-0", "mlp-2"}
    answer = server.get("/", params={"q": "mlp-["})
    assert answer.status_code == 200 and "is no regular expression" in answer.text
    assert "<b>" not in server.get("/", params={"q": "<b>[", "state": "<i>"}).text


@pytest.mark.parametrize(
    "pattern", ["(a+)+$", "(a|a)*b", "(a|a){30}", r"(a)\1", "(?=a)b", ".*.*.*b", "a?" * 20 + "a" * 20]
)
def test_patterns_that_may_take_for_ever_are_refused(pattern: str):
    with pytest.raises(BadPattern):
        matcher(pattern)


def test_pages_hold_so_many_runs_and_the_last_is_shown_where_too_many_are_asked_for():
    rows = [RunRow(f"run{number:04d}", Path(), "finished", value=number / 1000) for number in range(1000)]
    first = listing(rows, Wish.read({"sort": "value"}))
    assert [row.value for row in first.rows] == [0.999 - number / 1000 for number in range(SIZE)]
    last = listing(rows, Wish.read({"sort": "value", "page": "99999"}))
    assert last.wish.page == last.pages == 1000 // SIZE and last.rows[-1].name == "run0000"
    assert listing(rows, Wish.read({"page": "x", "sort": "nothing", "order": "round"})).wish.sort == "changed"


def test_runs_without_a_value_come_last_either_way():
    rows = [RunRow("a", Path()), RunRow("b", Path(), value=0.5), RunRow("c", Path(), value=0.7)]
    for order, expected in (("up", "bca"), ("down", "cba")):
        found = listing(rows, Wish.read({"sort": "value", "order": order}))
        assert "".join(row.name for row in found.rows) == expected


def test_a_run_is_read_again_only_when_its_folder_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    run = make_run(tmp_path / "one", 0, 0.5)
    os.utime(run, (1e9, 1e9))  # long ago, so that the next change is told from this one
    catalogue = Catalogue([tmp_path])
    index, reads = RunIndex(catalogue), []
    monkeypatch.setattr(
        "weft.serve.pages.runs.run_index.without_curve", lambda path: reads.append(path) or without_curve(path)
    )
    for _ in range(3):
        assert index.rows()[0].value == 0.5
        catalogue.forget()
    assert len(reads) == 1
    record = run / "record.json"
    text = record.read_text().replace('"accuracy": 0.5', '"accuracy": 0.75')
    (run / "new").write_text(text)
    (run / "new").replace(record)
    assert index.rows()[0].value == 0.75


def test_a_new_run_appears_and_a_deleted_one_goes(tmp_path: Path):
    catalogue = Catalogue([tmp_path])
    index = RunIndex(catalogue)
    assert index.rows() == []
    run = make_run(tmp_path / "deep" / "er" / "one")
    catalogue.forget()
    assert [row.name for row in index.rows()] == ["one"]
    run.rename(tmp_path / "two")
    catalogue.forget()
    assert [row.name for row in index.rows()] == ["two"]


def test_the_curve_is_cut_off_before_a_record_is_parsed_and_nothing_else(shown: Path):
    from weft.disk import read_object

    path = shown / "runs" / "mlp-0" / "record.json"
    whole = read_object(path)
    whole.pop("curve")
    assert without_curve(path) == whole


def test_a_run_shows_its_curves_settings_and_commands(client: Make):
    page = client().get("/runs/mlp-1").text
    assert page.count("<svg") == 3 and "training loss" in page
    assert "weft train digits --model mlp --seed 1" in page
    assert "reading.split_seed" not in page, "only settings that were changed are shown"
    more = client().get("/runs/mlp-1?more=1&x=seconds&log=1&smooth=0.5").text
    assert more.count("<svg") == 5 and "gradient norm" in more


def test_what_a_run_says_is_never_markup(client: Make):
    page = client().get("/runs/lost").text
    assert "&lt;b&gt;NaN&lt;/b&gt;" in page and "<b>NaN" not in page


def test_a_stopped_run_says_how_to_go_on(client: Make):
    assert "weft train --resume" in client().get("/runs/halted").text


def test_curves_of_several_runs_stand_in_one_chart(client: Make):
    page = client().get("/curves?run=mlp-0&run=mlp-1&run=mlp-2").text
    assert page.count("<svg") == 3 and page.count("<title>mlp-1</title>") == 3
    assert client().get("/curves").status_code == 422


def test_files_are_sent_and_none_from_elsewhere(client: Make, shown: Path):
    server = client()
    answer = server.get("/runs/mlp-0/files/record.json")
    assert answer.status_code == 200 and answer.json()["metric"] == "accuracy"
    for path in ("../mlp-1/record.json", "..%2f..%2fruns%2fmlp-1%2frecord.json", "/etc/passwd", "%00", "checkpoints"):
        assert server.get(f"/runs/mlp-0/files/{path}").status_code == 404


def test_a_page_that_lies_in_a_run_cannot_run_anything(client: Make, shown: Path):
    (shown / "runs" / "mlp-0" / "evil.html").write_text("<script>alert(1)</script>")
    policy = client().get("/runs/mlp-0/files/evil.html").headers["content-security-policy"]
    assert "sandbox" in policy and "default-src 'none'" in policy and "allow-scripts" not in policy


def test_what_is_not_there_is_told_on_a_page_or_in_json(client: Make):
    server = client()
    answer = server.get("/runs/mlp-9")
    assert answer.status_code == 404 and "<h1>" in answer.text and "mlp-0" in answer.text
    assert "error" in server.get("/runs/mlp-9", headers={"accept": "application/json"}).json()


def test_an_unchanged_view_is_not_sent_again(client: Make):
    server = client()
    first = server.get("/runs/mlp-0/curves")
    again = server.get("/runs/mlp-0/curves", headers={"if-none-match": first.headers["etag"]})
    assert again.status_code == 304 and not again.content


@pytest.mark.parametrize("address", ["/", "/runs/mlp-0", "/comparisons", "/comparisons/study", "/tuning", "/predict"])
def test_views_need_no_styles_or_scripts_of_their_own(client: Make, address: str):
    page = client().get(address).text
    assert "<style" not in page and " style=" not in page and "onclick" not in page
    assert re.findall(r"<script(?! src=\"/| type=\"module\" src=\"/)", page) == []
    assert not re.search(r'(?:src|href)="(?:https?:)?//', page)
