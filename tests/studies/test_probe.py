"""Probes of trained networks: classifiers equal to scikit-learn's, k-shot draws, the command, and bad input."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.linear_model import RidgeClassifier, RidgeClassifierCV
from sklearn.neighbors import KNeighborsClassifier

from training.encoders import make_encoder
from training.runs import sentences
from weft import api
from weft.commands.main import main
from weft.errors import WeftError
from weft.networks.registry import create_model
from weft.networks.weights import save_weights
from weft.report.probe import probe_table, render_probe, shot_curves
from weft.studies.probe import probing
from weft.studies.probe.classifiers import ALPHAS, Decomposed, Ridge, nearest_targets, signs, votes
from weft.studies.probe.shots import drawn, fitting_shots, shot_scores


def blobs(rows: int, classes: int, channels: int = 12, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Classes around centres of their own, which overlap."""
    chance = np.random.default_rng(seed)
    targets = np.arange(rows) % classes
    centres = np.random.default_rng(99).normal(size=(classes, channels))
    x = centres[targets] + 1.5 * chance.normal(size=(rows, channels)) + 3
    return torch.from_numpy(x).float(), torch.from_numpy(targets)


@pytest.mark.parametrize("classes", [2, 5])
@pytest.mark.parametrize("shape", [(200, 12), (30, 60)])
def test_ridge_is_scikit_learns(classes: int, shape: tuple[int, int]) -> None:
    x, targets = blobs(*shape[:1], classes, shape[1])
    other, _ = blobs(100, classes, shape[1], seed=1)
    outside = RidgeClassifierCV(alphas=ALPHAS).fit(x.double().numpy(), targets.numpy())
    own = Ridge.fit(x, targets, classes)
    assert own.alpha == outside.alpha_
    np.testing.assert_allclose(own.weight.numpy(), np.atleast_2d(outside.coef_), rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(own.intercept.numpy(), outside.intercept_, rtol=1e-6, atol=1e-8)
    assert own.predict(other).tolist() == outside.predict(other.double().numpy()).tolist()


def test_leaving_out_needs_no_refitting() -> None:
    x, targets = blobs(25, 3, 4)
    y, alpha = signs(targets, 3), 2.0
    errors = []
    for row in range(len(x)):
        rest = torch.arange(len(x)) != row
        weight, intercept = Decomposed.of(x[rest]).weights(y[rest], alpha)
        errors.append((x[row].double() @ weight.T + intercept - y[row]).square().mean())
    assert Decomposed.of(x).left_out_error(y, alpha) == pytest.approx(float(torch.stack(errors).mean()), rel=1e-9)


@pytest.mark.parametrize("count", [1, 5, 20])
def test_neighbours_are_scikit_learns(count: int) -> None:
    (x, targets), (other, _) = blobs(150, 4), blobs(70, 4, seed=1)
    outside = KNeighborsClassifier(count, metric="cosine").fit(x.numpy(), targets.numpy())
    own = votes(nearest_targets(x, targets, other, count), 4)
    assert own.tolist() == outside.predict(other.numpy()).tolist()


def test_a_draw_has_as_many_rows_of_every_class_and_larger_ones_hold_the_smaller() -> None:
    targets = np.repeat([0, 1, 2], [5, 9, 30])
    few, many = drawn(targets, 2, 0, 0), drawn(targets, 5, 0, 0)
    assert np.bincount(targets[few]).tolist() == [2, 2, 2] and set(few) <= set(many)
    assert drawn(targets, 2, 1, 0).tolist() != few.tolist()


def test_shots_are_ridge_regressions_of_their_draws() -> None:
    data = {
        role: blobs(rows, 3, seed=number)
        for number, (role, rows) in enumerate([("train", 90), ("validation", 40), ("test", 50)])
    }
    x, targets = ({role: pair[part] for role, pair in data.items()} for part in (0, 1))
    found = shot_scores(x, targets, 3, 5, draws=3)
    assert found.shape == (3, 50)
    possible = []
    for alpha in ALPHAS:
        rows = drawn(targets["train"].numpy(), 5, 1, 0)
        outside = RidgeClassifier(alpha=alpha).fit(x["train"][rows].double().numpy(), targets["train"][rows].numpy())
        possible.append((outside.predict(x["test"].double().numpy()) == targets["test"].numpy()).tolist())
    assert found[1].astype(bool).tolist() in possible


def test_a_class_with_too_few_rows_is_named() -> None:
    targets = np.repeat([0, 1], [3, 20])
    assert fitting_shots(targets, ["cat", "dog"], ()) == ((1,), "no 5-shot figure: 'cat' has 3 training rows")
    with pytest.raises(WeftError, match=r"class 'cat' has 3 training rows, fewer than the 10 of --shots; use"):
        fitting_shots(targets, ["cat", "dog"], (1, 10))
    with pytest.raises(WeftError, match=r"the training rows are all of class 'dog', .*--train-fraction"):
        fitting_shots(np.ones(2, np.int64), ["cat", "dog"], ())


@pytest.fixture(scope="module")
def starts(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Two networks for digits, of chance."""
    found = []
    for number, widths in enumerate([(8, 16), (4, 8)]):
        path = tmp_path_factory.mktemp("start") / f"net{number}.safetensors"
        torch.manual_seed(number)
        shape: dict[str, Any] = {"layers": (1, 1), "widths": widths, "img_size": 8, "in_chans": 1}
        save_weights(create_model("resnet20_cifar", **shape), path)
        found.append(str(path))
    return found


def weft(*words: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(list(words))
    return int(ended.value.code or 0)


def test_the_command_from_networks_to_page(
    starts: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("WEFT_CACHE", str(tmp_path / "cache"))
    asked = ["probe", *starts, "digits", "--output", str(tmp_path / "out"), "--shots", "1", "10", "--draws", "2"]
    assert weft(*asked, "--json") == 0
    first = json.loads(capsys.readouterr().out)
    assert {row["name"] for row in first["rows"]} == {"net0.safetensors", "net1.safetensors"}
    best = first["rows"][0]
    assert best["classifiers"][best["best"]]["mean"] > 0.5 and best["shots"]["10"]["mean"] > best["shots"]["1"]["mean"]
    assert best["name"] in first["recommendation"]
    monkeypatch.setattr(probing, "measured", lambda *given: pytest.fail("scores are kept"))
    assert weft(*asked) == 0
    said = capsys.readouterr().out
    assert "10-shot" in said and "probe.html" in said
    page = (tmp_path / "out" / "probe.html").read_text()
    assert "<svg" in page and "net1.safetensors" in page and (tmp_path / "out" / "shots.svg").is_file()
    again = json.loads((tmp_path / "out" / "probe.json").read_text())
    assert [row["shots"] for row in again["rows"]] == [row["shots"] for row in first["rows"]]
    assert shot_curves({**first, "shots": [1]}) == "" and "10-shot" in render_probe(first)
    assert probe_table(first, 200).columns[-1].header == "seconds"


def test_a_start_that_cannot_be_is_found_before_features_are_computed(
    starts: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEFT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(probing, "features_of", lambda *given: pytest.fail("nothing is computed"))
    with pytest.raises(WeftError, match="holds a network for text, but digits holds images"):
        api.probe([starts[0], str(make_encoder(tmp_path / "encoder"))], "digits")


def test_networks_that_are_called_alike_are_told_apart(
    starts: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEFT_CACHE", str(tmp_path / "cache"))
    other = tmp_path / "net0.safetensors"
    shutil.copy(starts[1], other)
    found = api.probe([starts[0], str(other), starts[0], starts[1]], "digits", shots=(1, 2), draws=2)
    assert sorted(row["name"] for row in found.rows) == sorted([starts[0], str(other), "net1.safetensors"])
    assert "k-shot accuracy of 3 networks" in shot_curves(found.summary)


def test_networks_are_probed_from_python_on_data_in_memory(
    starts: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEFT_CACHE", str(tmp_path))
    images = np.random.default_rng(0).integers(0, 60, (60, 8, 8), dtype=np.uint8)
    images[::2, :4] += 180
    found = api.probe(starts, api.open_source(images, ["top", "plain"] * 30), shots=(5,))
    assert len(found.rows) == 2 and found.rows[0]["classifiers"]["ridge"]["mean"] == 1.0
    with pytest.raises(WeftError, match="there is nothing to probe"):
        api.probe([], "digits")
    with pytest.raises(WeftError, match="there is no setting 'draw'"):
        api.probe(starts, "digits", draw=3)


def test_text_is_probed_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_CACHE", str(tmp_path / "cache"))  # what is there already is not announced
    encoder = make_encoder(tmp_path / "encoder")
    said: list[str] = []
    found = api.probe(encoder, sentences(), say=said.append, shots=(5,), draws=2)
    row = found.rows[0]
    assert found.best == "encoder" and found.recommendation in repr(found) and said
    assert row["features"] == 32 and row["classifiers"]["ridge"]["mean"] > 0.4 and row["name"] == "encoder"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["probe", "digits"], "say what to probe"),
        (["probe", "START", "diabetes"], "has no classes"),
        (["probe", "START", "breast_cancer"], "holds a network for images, but breast_cancer holds vectors"),
        (["probe", "nowhere", "digits"], "there is no file or folder nowhere"),
        (["probe", "START", "digits", "--shots", "5000"], "fewer than the 5000 of --shots"),
    ],
)
def test_bad_input_is_one_sentence(
    words: list[str], sentence: str, starts: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    assert weft(*(starts[0] if word == "START" else word for word in words)) == 2
    said = capsys.readouterr().err
    assert sentence in said and said.count("\n") == 1
    assert not list(tmp_path.iterdir()), "nothing is left behind"


def probed(name: str, best: float, others: float, held: list[int]) -> dict[str, Any]:
    """A row of the summary before it is told."""
    score = {"setting": 1.0, "mean": 0.5, "low": 0.4, "high": 0.6}
    found = {word: {**score, "validation": others} for word in probing.WORDS}
    found["logistic"]["validation"] = best
    return {"name": name, "best": "logistic", "classifiers": found, "held": held}


def test_networks_that_the_validation_rows_cannot_tell_apart_are_named() -> None:
    """Of equals the one whose other classifiers do better comes first, however they were given."""
    weak, strong = probed("weak", 1.0, 0.6, [1] * 6), probed("strong", 1.0, 0.9, [1] * 6)
    for rows in ([weak, strong], [strong, weak]):
        ordered = sorted(rows, key=probing.standing, reverse=True)
        assert [row["name"] for row in ordered] == ["strong", "weak"]
        assert probing.recommendation(ordered).endswith("on 6 validation rows it cannot be told apart from weak")
    clear = [probed("good", 0.95, 0.9, [1] * 190 + [0] * 10), probed("bad", 0.3, 0.2, [1] * 60 + [0] * 140)]
    assert "told apart" not in probing.recommendation(clear)


def test_a_network_is_never_probed_on_rows_that_it_has_learnt_from(tmp_path: Path) -> None:
    """Another cut of its own source is refused, for what was fine-tuned from it as well; the same one is told."""
    from training.image_starts import configure
    from training.runs import train
    from weft.training.config import DurationConfig, OptimisationConfig, RunConfig

    asked = RunConfig(
        source="digits",
        model="lenet5",
        network={"img_size": 8, "channels": (4,), "kernel": 3, "fc": (8,)},
        optimisation=OptimisationConfig(batch_size=64, lr=1e-3),
        duration=DurationConfig(steps=2),
    )
    first, second = tmp_path / "first", tmp_path / "second"
    train(asked, first)
    other = photographs(tmp_path / "other")
    train(configure(first, steps=2, source=str(other)), second)
    for start in (first, first / "model.safetensors", second):
        with pytest.raises(
            WeftError, match=r"has learnt from rows that would be tested here, as its --split-seed was 0"
        ):
            api.probe([str(start)], "digits", split_seed=1)
        found = api.probe([str(start)], "digits", train_fraction=0.2, test_rows=50)
        assert any("has learnt from the training rows" in note for note in found.summary["notes"])
    with pytest.raises(SystemExit, match="2"):
        main(["finetune", str(first), "digits", "--split-seed", "1", "--steps", "2", "--output", str(tmp_path / "run")])


def photographs(folder: Path) -> Path:
    """Sixty grey images of two classes."""
    from PIL import Image

    chance = np.random.default_rng(0)
    for number in range(60):
        path = folder / ("light" if number % 2 else "dark") / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray((chance.integers(0, 100, (8, 8)) + 100 * (number % 2)).astype(np.uint8)).save(path)
    return folder


def test_a_class_without_rows_leaves_no_number_of_shots() -> None:
    with pytest.raises(WeftError, match="'b' has 0 training rows, fewer than the 1 of --shots; leave out --shots, or"):
        fitting_shots(np.array([0, 0, 2, 2]), ["a", "b", "c"], (1,))


def test_a_picture_of_before_does_not_stay_beside_other_figures(tmp_path: Path) -> None:
    from weft.commands.probe import write

    summary = probing.probe(probing.ProbeConfig(starts=(str(start_of(tmp_path)),), source="digits"), lambda _: None)
    write(tmp_path / "page", summary)
    assert (tmp_path / "page" / "shots.svg").exists()
    write(tmp_path / "page", {**summary, "shots": [1]})
    assert not (tmp_path / "page" / "shots.svg").exists()
    (tmp_path / "page" / "shots.svg").write_text("my own")
    write(tmp_path / "page", {**summary, "shots": [1]})
    assert (tmp_path / "page" / "shots.svg").read_text() == "my own"


def start_of(folder: Path) -> Path:
    torch.manual_seed(0)
    save_weights(create_model("resnet20_cifar", layers=(1, 1), widths=(8, 16), img_size=8, in_chans=1), folder / "net")
    return folder / "net"


def test_a_network_no_better_than_a_guess_is_said_to_be_so(tmp_path: Path) -> None:
    chance = np.random.default_rng(0)
    from PIL import Image

    for number in range(120):  # noise, whose class nobody can tell
        path = tmp_path / "noise" / ("rare" if number % 3 else "usual") / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(chance.integers(0, 255, (8, 8), dtype=np.uint8)).save(path)
    said = api.probe(str(start_of(tmp_path)), str(tmp_path / "noise")).recommendation
    assert said.endswith("where always answering 'rare' has 66.7 %: not shown to be better than that")
    assert "not shown" not in api.probe(str(start_of(tmp_path)), str(photographs(tmp_path / "clear"))).recommendation
