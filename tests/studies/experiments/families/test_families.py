"""E9 and E10 at their smallest scale: sizes as asked for, runs shared between them, plans, records and pages."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from studies.fabricated import facts
from weft.commands.main import dispatch, parse
from weft.commands.study import USUAL, Arguments, requested
from weft.errors import WeftError
from weft.networks.registry import configured
from weft.studies.compare import comparison, dry_run
from weft.studies.compare.candidates import Facts, make_candidates
from weft.studies.compare.comparison import plan_comparison, trial_jobs
from weft.studies.compare.progress import unwatched
from weft.studies.engine.place import open_pool
from weft.studies.engine.runner import Pool
from weft.studies.experiments.families.e9_cost_front import carried_rates, front_candidates
from weft.studies.experiments.families.scales import PUBLISHED, SCALES, question
from weft.studies.experiments.registry import Request, find, find_scale
from weft.studies.experiments.text_tables import run_experiment
from weft.studies.experiments.transfer_tables import run_transfer
from weft.training.storage.run_folder import RunFolder

CIFAR = Facts("cifar10", "image", "classes", 10, "f", 45_000, {"img_size": (32, 32), "in_chans": 3})
AMOUNTS = {"smoke": None, "cpu": 5e6, "paper": 4e9}  # multiply-adds of the smallest networks


@pytest.mark.parametrize(("scale", "data"), [("smoke", facts()), ("cpu", CIFAR), ("paper", PUBLISHED)])
def test_e9_has_every_family_at_every_size_within_three_percent(scale: str, data: Facts) -> None:
    found = {one.name: one for one in front_candidates(data, SCALES[scale], AMOUNTS[scale])}
    assert len(found) == 5 * len(SCALES[scale].sizes)
    least = min(one.count["macs"] for one in found.values())
    for mark, share in SCALES[scale].sizes.items():
        counts = [found[f"{name}{mark}"].count["macs"] for name in ("resnet", "vit", "mixer", "gmlp", "hybrid")]
        assert max(counts) <= 1.07 * min(counts) and min(counts) > 0.9 * share * least
    assert configured(found["hybrid"].model).hybrid


def test_the_first_size_of_e9_is_that_of_e10() -> None:
    """So a candidate of both is one run."""
    amount = 5e6
    ten = {one.name: (one.model, one.network) for one in make_candidates(CIFAR, "families", "macs", amount)}
    nine = {one.name: (one.model, one.network) for one in front_candidates(CIFAR, SCALES["cpu"], amount)}
    assert all(nine[name] == ten[name] for name in ("resnet", "vit", "mixer", "gmlp"))
    assert len([name for name in ten if "+" not in name]) == 8


def test_a_family_that_cannot_be_had_is_told_of_and_the_others_stay() -> None:
    """The hybrid's stem alone has more multiply-adds than this."""
    notes: list[str] = []
    found = {one.name for one in front_candidates(CIFAR, SCALES["cpu"], 1e6, notes)}
    assert {"vit", "vit×2", "vit×4", "hybrid×4"} <= found and "hybrid" not in found
    assert any(note.startswith("left out: hybrid ") for note in notes)
    with pytest.raises(WeftError):
        front_candidates(CIFAR, SCALES["cpu"], 1.0)


def test_rates_are_tried_at_the_smallest_size_and_the_trials_are_those_of_e10(tmp_path: Path) -> None:
    request = Request(tmp_path, "cifar10", None, None, "", print)
    asked = question(request)
    nine, ten = (
        plan_comparison(asked, tmp_path, "", CIFAR, made)
        for made in (front_candidates(CIFAR, SCALES["cpu"], 5e6), make_candidates(CIFAR, "families", "macs", 5e6))
    )
    carried = carried_rates(nine.candidates)
    assert carried["vit×2"] == carried["vit×4"] == "vit" and "vit" not in carried and len(carried) == 10
    tried = trial_jobs(asked, nine, carried)
    assert {job.candidate for job in tried} == {"resnet", "vit", "mixer", "gmlp", "hybrid"} and len(tried) == 5 * 3
    assert {job.name for job in tried if job.candidate != "hybrid"} <= {job.name for job in trial_jobs(asked, ten)}
    assert "500 steps each (0.71 epochs)" in ten.budget


def test_larger_sizes_have_the_best_rate_of_the_smallest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = question(Request(tmp_path, "cifar10", 1, None, "", print))
    study = plan_comparison(asked, tmp_path, "", CIFAR, front_candidates(CIFAR, SCALES["cpu"], 5e6))
    monkeypatch.setattr(comparison, "run_jobs", lambda *_: [])
    monkeypatch.setattr(comparison, "best_rates", lambda *_: {"vit": 0.5, "mixer": 0.25})
    carried = carried_rates(study.candidates)
    found = comparison.tuned(asked, study, Pool.__new__(Pool), lambda _: None, unwatched, carried)
    rates = {job.candidate: job.config.optimisation.lr for job in found.jobs}
    assert rates["vit"] == rates["vit×2"] == rates["vit×4"] == 0.5 and rates["mixer×4"] == 0.25
    assert "the smallest size of every family" in found.notes[0]


def test_with_an_output_runs_beside_it_are_found_unless_folders_are_named(tmp_path: Path) -> None:
    def reused(*words: str) -> tuple[str, ...]:
        arguments = parse(Arguments, "study", ["run", "e9", *words])
        return requested(arguments, find("e9")).reuse

    assert reused() == USUAL
    assert reused("--output", str(tmp_path / "e9")) == (str(tmp_path),)
    assert reused("--output", str(tmp_path / "e9"), "--reuse", "elsewhere") == ("elsewhere",)


def test_a_scale_that_is_none_is_refused() -> None:
    with pytest.raises(WeftError, match="there is no scale 'smok'; did you mean smoke"):
        find_scale(SCALES, "smok")


@pytest.mark.parametrize("name", ["e3", "e4", "e8", "e9", "e10"])
def test_the_paper_scale_is_planned_without_data_or_a_gpu(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["study", "run", name, "--scale", "paper", "--plan", "--machines", "64", "--price-per-hour", "3"]
    assert dispatch(words) == 0
    printed = capsys.readouterr().out
    assert "machine-hours" in printed and "at 3 an hour" in printed and "a simulation" in printed
    assert "64 machines: ends after" in printed


class Stop(Exception):
    """Enough is seen."""


@pytest.mark.parametrize("name", ["e3", "e4", "e8", "e9", "e10"])
def test_the_paper_scale_on_a_cluster_asks_for_its_gpus_and_needs_none_here(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def opened(*asked: object, **named: object) -> None:
        found = inspect.signature(open_pool).bind(*asked, **named).arguments
        assert found["on"] == "ray" and found["gpu"]
        raise Stop

    for module in (comparison, run_transfer, run_experiment):
        monkeypatch.setattr(module, "open_pool", opened)
    monkeypatch.setattr(run_transfer, "package_of", lambda _: SimpleNamespace(path=lambda: None))
    words = ["study", "run", name, "--scale", "paper", "--on", "ray", "--output", str(tmp_path / name)]
    with pytest.raises(Stop):
        dispatch(words)


@pytest.mark.parametrize(("name", "one_kind"), [("e9", True), ("e10", False)])
def test_e9_compares_costs_and_so_asks_for_nodes_of_one_kind(
    name: str, one_kind: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def opened(*asked: object, **named: object) -> None:
        assert inspect.signature(open_pool).bind(*asked, **named).arguments["equal_time"] == one_kind
        raise Stop

    monkeypatch.setattr(comparison, "open_pool", opened)
    with pytest.raises(Stop):
        dispatch(["study", "run", name, "--scale", "smoke", "--on", "ray", "--output", str(tmp_path / name)])


@pytest.mark.slow
@pytest.mark.parametrize(("words", "runs"), [(["e3", "--scale", "smoke"], 6 + 10), (["e11"], 18 * 5)])
def test_a_study_on_this_machine_is_planned_run_by_run(
    words: list[str],
    runs: int,
    quick_workers: None,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(dry_run, "PROBE", 0.01)
    assert dispatch(["study", "run", *words, "--plan", "--machines", "3"]) == 0
    printed = capsys.readouterr().out
    assert f"{runs} runs, " in printed and "schedule for 3 machines" in printed
    assert not list(tmp_path.iterdir()), "a plan leaves nothing behind"


@pytest.mark.slow
def test_e9_and_e10_at_smoke_scale_share_their_runs(
    tmp_path: Path, quick_workers: None, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run = ["study", "run"]
    flags = ["digits", "--scale", "smoke"]
    assert dispatch([*run, "e10", *flags]) == 0
    before = {path.parent.name for path in Path("studies/e10-digits-smoke").glob("runs/*/record.json")}
    assert len(before) == 2 * 8 + 1  # eight candidates and the classical baseline
    assert dispatch([*run, "e9", *flags]) == 0
    printed = capsys.readouterr().out
    assert "8 runs are taken over" in printed
    folder = Path("studies/e9-digits-smoke")
    names = {path.parent.name for path in folder.glob("runs/*/record.json")}
    assert len(names) == 2 * 10 and len(names & before) == 2 * 4
    for name in names & before:
        old, new = (RunFolder(Path("studies") / f"{study}-digits-smoke" / "runs" / name) for study in ("e10", "e9"))
        assert old.record() == new.record()
    report = (folder / "report.html").read_text(encoding="utf-8")
    assert 'class="front"' in report and "hybrid" in report
    draws_pages(capsys)


def draws_pages(capsys: pytest.CaptureFixture[str]) -> None:
    """Records are small, and pages hold their numbers."""
    for name in ("e9", "e10"):
        assert dispatch(["study", "record", name, "digits", "--scale", "smoke", "--results", "results"]) == 0
    assert dispatch(["study", "draw", "--results", "results"]) == 0
    drawn = capsys.readouterr().out.split()
    assert {Path(line).name for line in drawn} >= {"e9-digits-smoke.md", "e9-digits-smoke.svg", "e10-digits-smoke.md"}
    record = json.loads(Path("results/e9-digits-smoke.json").read_text(encoding="utf-8"))
    page = Path("results/e9-digits-smoke.md").read_text(encoding="utf-8")
    assert Path("results/e9-digits-smoke.json").stat().st_size < 20_000
    for row in record["rows"]:
        assert f"| {row['name']} |" in page and f"{100 * row['score']:.1f} %" in page


def test_a_folder_without_records_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(WeftError, match="holds no records of studies; `weft study record NAME` writes one"):
        dispatch(["study", "draw", "--results", str(tmp_path)])
