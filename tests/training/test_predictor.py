"""A trained network in use: loading, predicting, saving again, evaluating, verifying."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

import weft
from training.runs import configure, sentences, train
from weft.data.batch.loader import batches
from weft.data.open.source import open_source
from weft.errors import WeftError
from weft.training.inference.evaluate import evaluate_run
from weft.training.inference.network_folder import read_metadata
from weft.training.inference.verify import verify
from weft.training.loop.events import outputs_of
from weft.training.run import lifecycle

FAMILIES = ("mlp", "text")


@pytest.fixture(scope="module", params=FAMILIES)
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / str(request.param)
    train(configure(request.param, steps=40), folder)
    return folder


def record_of(run: Path) -> dict[str, Any]:
    record = lifecycle.run_folder.open_run(run).record()
    assert record is not None
    return record


def report(run: Path):
    config = lifecycle.run_folder.open_run(run).config()
    return open_source(config.source, config.reading)


def test_single_inputs_get_the_outputs_of_evaluation(run: Path) -> None:
    """From raw inputs, one call for all, as from evaluation's batches."""
    predictor, source = weft.load(run), report(run)
    split = source.splits["test"]
    raws, _ = split.read(torch.arange(20).numpy())
    expected, _ = outputs_of(
        predictor.network, batches(source, "test", 20, transform=predictor.transform, train=False).range(0, 1)
    )
    torch.testing.assert_close(predictor.outputs(raws), expected, rtol=1e-5, atol=1e-5)


def test_predictions_are_classes_and_probabilities_sum_to_one(run: Path) -> None:
    predictor, source = weft.load(run), report(run)
    raws, targets = source.splits["test"].read(torch.arange(60).numpy())
    chances = predictor.predict_proba(raws)
    assert isinstance(chances, np.ndarray) and np.allclose(chances.sum(1), 1)
    said = predictor.predict(raws, batch_size=7)
    right = [label == source.classes[int(target)] for label, target in zip(said, targets, strict=True)]
    assert sum(right) / 60 > 1.4 / len(source.classes), "no better than guessing"


def test_a_saved_network_is_the_same_after_loading(run: Path, tmp_path: Path) -> None:
    predictor, source = weft.load(run), report(run)
    predictor.save_pretrained(tmp_path / "copy")
    again = type(predictor).from_pretrained(tmp_path / "copy")
    raws, _ = source.splits["test"].read(torch.arange(5).numpy())
    assert torch.equal(again.outputs(raws), predictor.outputs(raws))
    assert json.loads((tmp_path / "copy" / "config.json").read_text())["id2label"]["0"] == predictor.classes[0]


def test_evaluating_again_gives_the_record(run: Path) -> None:
    record = record_of(run)
    metrics = evaluate_run(run, batch_size=32)
    assert metrics["examples"] == len(report(run).splits["test"])
    assert {name: metrics[name] for name in record["metrics"]} == record["metrics"]


def test_verification_finds_the_same_bits(run: Path) -> None:
    findings = list(verify(run, 10))
    assert all(finding.same for finding in findings), [finding.what for finding in findings]
    assert any("tensors of the checkpoint" in finding.what for finding in findings)


def test_verification_of_a_damaged_checkpoint_is_a_sentence(run: Path, tmp_path: Path) -> None:
    damaged = shutil.copytree(run, tmp_path / "damaged")
    newest = sorted((damaged / "checkpoints").iterdir())[-2] / "state.safetensors"
    newest.write_bytes(newest.read_bytes()[:-1])
    with pytest.raises(WeftError, match="does not match its checksum"):
        list(verify(damaged, 10))


def test_verification_notices_another_course(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from weft.training.inference import verify as verification

    original = verification.advance

    def nudged(*arguments: object) -> object:
        result = original(*arguments)  # type: ignore[arg-type]
        next(arguments[0].core.parameters()).data.view(-1)[0] += 1e-6  # type: ignore[attr-defined]
        return result

    monkeypatch.setattr(verification, "advance", nudged)
    assert not all(finding.same for finding in verify(run, 10))


def test_an_empty_list_is_no_error(run: Path) -> None:
    assert weft.load(run).predict([]) == []


def test_other_classes_and_other_kinds_are_refused(run: Path) -> None:
    with pytest.raises(WeftError, match="holds vector"):
        evaluate_run(run, "diabetes")


def rows_of(columns: str, sign: int = 1) -> str:
    """A CSV file whose last column but one is to be predicted from the first two; the last one must be left out."""
    lines = [f"{n % 7},{sign * (n % 5)},{'yes' if n % 7 > 3 else 'no'},{n}" for n in range(200)]
    return "\n".join([columns, *lines]) + "\n"


def test_another_source_is_read_as_the_run_s_own_was(tmp_path: Path) -> None:
    """With its target and its inputs, whatever else the file holds; other columns would be taken for these."""
    (tmp_path / "own.csv").write_text(rows_of("a,b,grade,label"))
    own = lifecycle.replace(configure("mlp", steps=20), source=str(tmp_path / "own.csv"))
    own = lifecycle.replace(own, reading=lifecycle.replace(own.reading, target="grade", inputs=("a", "b")))
    train(own, tmp_path / "run")
    (tmp_path / "other.csv").write_text(rows_of("a,b,grade,label", -1))
    assert evaluate_run(tmp_path / "run", str(tmp_path / "other.csv"))["examples"] == 200, "all rows"
    assert evaluate_run(tmp_path / "run")["accuracy"] == record_of(tmp_path / "run")["metrics"]["accuracy"]
    (tmp_path / "own.csv").write_text(rows_of("a,b,grade,label", -1))
    with pytest.raises(WeftError, match="has changed since the run began"):
        evaluate_run(tmp_path / "run")


def test_the_columns_of_another_source_are_found_by_name(tmp_path: Path) -> None:
    def file(name: str, columns: str) -> str:
        values = {"a": lambda n: n % 7, "b": lambda n: n % 5, "c": lambda n: n % 3}
        rows = [",".join([*(str(values[at](n)) for at in columns), "ny"[n % 7 > 3]]) for n in range(99)]
        (tmp_path / name).write_text("\n".join([",".join([*columns, "label"]), *rows]) + "\n")
        return str(tmp_path / name)

    train(lifecycle.replace(configure("mlp", steps=40, lr=0.01), source=file("own.csv", "ab")), tmp_path / "run")
    found = [evaluate_run(tmp_path / "run", file(f"{order}.csv", order)) for order in ("abc", "bca")]
    assert found[0]["confusion"] == found[1]["confusion"] and found[0]["accuracy"] > 0.8
    with pytest.raises(WeftError, match=r"ac\.csv has no column 'b'"):
        evaluate_run(tmp_path / "run", file("ac.csv", "ac"))


def test_another_source_is_scored_whole_or_on_its_test_split(tmp_path: Path) -> None:
    """Also one of a single class, or of a single row; its own source is known again under another name."""
    own = sentences()
    train(configure("text", steps=40), tmp_path / "run")

    def file(name: str, wanted: str, count: int) -> str:
        rows = [line for line in own.read_text().splitlines()[1:] if line[-1] in wanted][:count]
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("\n".join(["text,label", *rows]) + "\n")
        return str(tmp_path / name)

    for name, wanted, count in (("three.csv", "rgb", 90), ("one.csv", "g", 30), ("single.csv", "b", 1)):
        found = evaluate_run(tmp_path / "run", file(name, wanted, count))
        assert found["examples"] == count and found["rows"] == f"all {count} rows of {tmp_path / name}"
        assert sum(found["confusion"]["bgr".index(wanted)] if count < 90 else [90]) == count
    file("splits/train.csv", "rgb", 90), file("splits/test.csv", "rg", 20)
    found = evaluate_run(tmp_path / "run", str(tmp_path / "splits"))
    assert found["examples"] == 20 and "the split 'test'" in found["rows"]
    assert evaluate_run(tmp_path / "run", str(tmp_path / "splits"), "train")["examples"] == 90
    with pytest.raises(WeftError, match="no split 'dev' with labels; it has test, train"):
        evaluate_run(tmp_path / "run", str(tmp_path / "splits"), "dev")
    copy = shutil.copytree(own.parent, tmp_path / "copy") / own.name
    same = evaluate_run(tmp_path / "run", str(copy))
    assert same["examples"] == evaluate_run(tmp_path / "run")["examples"] < 600, "not what it has learnt from"
    (tmp_path / "odd.csv").write_text("text,label\nred,r\nblack,k\n")
    with pytest.raises(WeftError, match=r"odd\.csv line 3: the label 'k' is none of the 3 classes \(b, g, r\); repair"):
        evaluate_run(tmp_path / "run", str(tmp_path / "odd.csv"))
    assert evaluate_run(tmp_path / "run", str(tmp_path / "odd.csv"), on_bad="skip")["examples"] == 1
    (tmp_path / "odd.csv").write_text("text,label\nred,R\n")
    with pytest.raises(WeftError, match=r"\(b, g, r\), but differs from 'r' in case or blanks alone; repair"):
        evaluate_run(tmp_path / "run", str(tmp_path / "odd.csv"))


def test_the_rows_of_the_run_s_own_source_are_said_to_be_held_out_or_learnt_from(tmp_path: Path) -> None:
    own = sentences()
    train(configure("text", steps=5), tmp_path / "run")
    for source in (None, str(own)):
        found = evaluate_run(tmp_path / "run", source)
        held = "which were held out when the run learnt from the others"
        assert found["rows"] == f"the {found['examples']} rows of test of {own}, {held}"
        assert evaluate_run(tmp_path / "run", source, "train")["rows"].endswith(", which the run has learnt from")
    lines = own.read_text().splitlines()
    (tmp_path / "splits").mkdir()
    for name, part in (("train", lines[1:301]), ("test", lines[301:401])):
        (tmp_path / "splits" / f"{name}.csv").write_text("\n".join([lines[0], *part]) + "\n")
    config = lifecycle.replace(configure("text", steps=5), source=str(tmp_path / "splits"))
    train(config, tmp_path / "parted")
    found = evaluate_run(tmp_path / "parted", str(tmp_path / "splits"))
    assert found["rows"] == f"the 100 rows of test of {tmp_path / 'splits'}", "a split of its own"


def test_columns_of_another_source_may_be_named(tmp_path: Path) -> None:
    """Those of the run's own may not: other rows would be held out."""
    train(configure("text", steps=5), tmp_path / "run")
    other = tmp_path / "other.csv"
    other.write_text("review,verdict,second\nred,r,b\nblue,b,b\n")
    with pytest.raises(WeftError, match="has no column"):
        evaluate_run(tmp_path / "run", str(other))
    found = [evaluate_run(tmp_path / "run", str(other), target=t, inputs=("review",)) for t in ("verdict", "second")]
    assert [sum(metrics["confusion"][2]) for metrics in found] == [1, 0]
    for source in (None, str(sentences())):
        with pytest.raises(WeftError, match="leave out --target and --inputs"):
            evaluate_run(tmp_path / "run", source, target="label")


def test_classes_of_another_folder_are_told_by_name(tmp_path: Path) -> None:
    """A folder that has only some of the classes counts them otherwise than the network does."""

    def photographs(folder: Path, names: str, count: int) -> str:
        for name in names:
            (folder / name).mkdir(parents=True)
            for number in range(count):
                pixels = np.full((8, 8, 3), 80 * "abc".index(name) + number, np.uint8)
                Image.fromarray(pixels).save(folder / name / f"{number}.png")
        return str(folder)

    config = configure("mlp", steps=60, lr=0.01)
    train(lifecycle.replace(config, source=photographs(tmp_path / "own", "abc", 30)), tmp_path / "run")
    for names in ("c", "bc", "ca"):
        found = evaluate_run(tmp_path / "run", photographs(tmp_path / f"new-{names}", names, 5))
        files = [tmp_path / f"new-{names}" / name / f"{number}.png" for name in names for number in range(5)]
        said = weft.load(tmp_path / "run").predict(files)
        right = [label == file.parent.name for label, file in zip(said, files, strict=True)]
        assert (found["examples"], found["accuracy"]) == (5 * len(names), np.mean(right)) and found["accuracy"] > 0.5


def test_what_is_no_network_is_refused(tmp_path: Path, run: Path) -> None:
    with pytest.raises(WeftError, match="not a folder"):
        weft.load(tmp_path / "nowhere")
    with pytest.raises(WeftError, match=r"no config\.json"):
        weft.load(tmp_path)
    broken = tmp_path / "broken"
    weft.load(run).save_pretrained(broken)
    content = (broken / "model.safetensors").read_bytes()
    (broken / "model.safetensors").write_bytes(content[: len(content) // 2])
    with pytest.raises(WeftError, match="cannot read the weights"):
        weft.load(broken)
    stored = json.loads((broken / "config.json").read_text())
    stored["weft"]["format"] = 99
    (broken / "config.json").write_text(json.dumps(stored))
    with pytest.raises(WeftError, match="upgrade weft"):
        read_metadata(broken)
    for content in ("", "[]", '{"weft": 3}', '{"weft": {"format": 1}}', '{"weft": {"format": 1, "network": 3}}'):
        (broken / "config.json").write_text(content)
        with pytest.raises(WeftError, match=r"config\.json.* is damaged"):
            read_metadata(broken)


def test_regression_answers_in_the_unit_of_its_targets(tmp_path: Path) -> None:
    config = lifecycle.replace(configure("mlp", steps=150, lr=5e-3), source="diabetes")
    record = train(config, tmp_path / "run")
    assert record["metric"] == "r2" and record["metrics"]["r2"] > 0.2
    predictor, source = weft.load(tmp_path / "run"), open_source("diabetes", config.reading)
    raws, targets = source.splits["test"].read(torch.arange(30).numpy())
    said = torch.tensor(predictor.predict(raws))
    assert (said.mean() - float(targets.mean())).abs() < 40, "targets are around 150"
    with pytest.raises(WeftError, match="no classes"):
        predictor.predict_proba(raws)
