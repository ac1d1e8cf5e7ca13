"""A run that was asked for the same on the same data is taken over; nothing else is."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from studies.fabricated import make_study
from weft.studies.engine.shared_runs import take_over
from weft.studies.engine.study import Job, Study
from weft.training.config import ExecutionConfig

NETWORK = {"network": {"hidden": (8, 4)}}  # a list once it is written


def empty_like(study: Study, folder: Path, reuse: Path) -> Study:
    """A study of the same runs in another folder, where none has been made."""
    return replace(study, folder=folder, reuse=(str(reuse),), jobs=[changed(job, **NETWORK) for job in study.jobs])


def stored(folder: Path) -> Study:
    study = make_study(folder, {"mlp": 0.9, "vit_nano_p4_32": 0.8}, seeds=2)
    for job in study.jobs:
        study.run_folder(job).write_asked(changed(job, **NETWORK).config)
        (study.run_folder(job).path / "checkpoints").mkdir()
    return study


def changed(job: Job, **changes: object) -> Job:
    return replace(job, config=replace(job.config, **changes))  # type: ignore[arg-type]


def test_finished_runs_are_taken_over_without_their_checkpoints(tmp_path: Path) -> None:
    before = stored(tmp_path / "all" / "e10")
    after, said = empty_like(before, tmp_path / "e9", tmp_path / "all"), []
    take_over(after, after.jobs, said.append)
    assert all(after.finished(job) for job in after.jobs) and said[0].startswith("4 runs are taken over")
    for job, same in zip(before.jobs, after.jobs, strict=True):
        old, new = before.run_folder(job).path, after.run_folder(same).path
        assert (old / "record.json").read_bytes() == (new / "record.json").read_bytes()
        assert not (new / "checkpoints").exists() and (old / "checkpoints").exists()


def test_where_the_data_lie_and_threads_do_not_matter_and_all_else_does(tmp_path: Path) -> None:
    before = stored(tmp_path / "all" / "e10")
    first = changed(before.jobs[0], **NETWORK)
    same = changed(first, source="elsewhere/digits", execution=ExecutionConfig(threads=7))
    others = [
        changed(first, seed=5),
        changed(first, network={"hidden": [3]}),
        changed(first, optimisation=replace(first.config.optimisation, lr=0.5)),
        replace(first, fingerprint="other data"),
    ]
    after = replace(empty_like(before, tmp_path / "e9", tmp_path / "all"), jobs=[same, *others])
    take_over(after, after.jobs, lambda _: None)
    assert after.finished(same) and not any(after.finished(job) for job in others)


def test_runs_on_trained_networks_are_taken_over_where_their_weights_are_the_same(tmp_path: Path) -> None:
    before = stored(tmp_path / "all" / "e10")
    for job in before.jobs:
        file = before.run_folder(job).path / "record.json"
        content = json.loads(file.read_text())
        content["source"]["start"] = {"digest": "w" if job.seed else "other"}
        file.write_text(json.dumps(content))
    after = empty_like(before, tmp_path / "e9", tmp_path / "all")
    after = replace(after, jobs=[replace(job, fingerprint=f"{job.fingerprint}+w+words") for job in after.jobs])
    take_over(after, after.jobs, lambda _: None)
    assert [after.finished(job) for job in after.jobs] == [bool(job.seed) for job in after.jobs]


def test_without_a_folder_to_look_in_nothing_is_taken_over(tmp_path: Path) -> None:
    before = stored(tmp_path / "all" / "e10")
    after = replace(empty_like(before, tmp_path / "all" / "e9", tmp_path), reuse=())
    take_over(after, after.jobs, lambda _: None)
    assert not any(after.done(job) for job in after.jobs)


def test_where_costs_are_compared_only_runs_of_the_same_processor_are_taken_over(tmp_path: Path) -> None:
    before = stored(tmp_path / "all" / "e10")  # whose records say CPU
    for processor, taken in (("another", False), ("CPU", True)):
        after = replace(empty_like(before, tmp_path / processor, tmp_path / "all"), processor=processor)
        take_over(after, after.jobs, lambda _: None)
        assert all(after.finished(job) == taken for job in after.jobs)
