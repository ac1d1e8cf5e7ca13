"""T5 and T6: a network learns from a teacher's answers, or from labels that a trained network has given."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from sklearn.datasets import load_digits
from torch.nn import functional as F

from training.runs import Stop, assert_same_bits, configure, last_checkpoint, sentences, train
from weft.commands.main import dispatch
from weft.data.config import AugmentConfig, TransformConfig
from weft.errors import WeftError
from weft.networks.vit import DistilledViT
from weft.training.config import RunConfig, TeachingConfig
from weft.training.finetuning.config import FinetuneConfig
from weft.training.inference.evaluate import evaluate_run
from weft.training.run import lifecycle
from weft.training.run.inputs import open_inputs
from weft.training.teaching import teacher as teachers
from weft.training.teaching.lessons import TaughtObjective

DEIT: dict[str, Any] = {"dim": 16, "depth": 1, "heads": 2, "hidden_dim": 32, "patch_size": 4}
PLAIN = AugmentConfig(crop_padding=0, flip=False)
CHANGED = AugmentConfig(crop_padding=1, flip=True, mixup=0.2)


@pytest.fixture(scope="module")
def teacher(tmp_path_factory: pytest.TempPathFactory) -> str:
    """An mlp on digits, its inputs from 0 to 1."""
    folder = tmp_path_factory.mktemp("teacher") / "run"
    train(configure(steps=150, lr=5e-3, transform=TransformConfig(normalize="unit")), folder)
    return str(folder)


def taught(teacher: str, augment: AugmentConfig = PLAIN, **changes: Any) -> RunConfig:
    asked = {name: changes.pop(name) for name in list(changes) if name in TeachingConfig.__dataclass_fields__}
    return configure(augment=augment, teaching=TeachingConfig(teacher=teacher, **asked), **changes)


def pictures(root: Path, classes: list[int], bare: str = "", rows: int = 12) -> Path:
    """Digits of some classes as a folder of pictures; with `bare`, more of them without labels in a folder so named."""
    digits, places = load_digits(), {number: root / ("train" if bare else "") / f"class {number}" for number in classes}
    for number, folder in places.items():
        images = np.rint(digits.images[digits.target == number] * (255 / 16)).astype(np.uint8)
        for place, image in enumerate(images[: rows * (3 if bare else 1)]):
            name = folder / f"{place}.png" if place < rows else root / bare / f"{number}-{place}.png"
            name.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(image).save(name)
    return root


# ---- The loss


def test_the_loss_is_deit_s() -> None:
    z, t, y = torch.randn(5, 7), torch.randn(5, 7), torch.randint(7, (5,))
    targets = torch.stack([F.one_hot(y, 7).float(), t], 1)
    soft = TaughtObjective("classes", temperature=3.0, weight=0.1).losses(z, targets)
    apart = ((t / 3).softmax(1) * ((t / 3).log_softmax(1) - (z / 3).log_softmax(1))).sum(1)
    own = F.cross_entropy(z, y, reduction="none")
    torch.testing.assert_close(soft, 0.9 * own + 0.1 * 9 * apart)
    hard = TaughtObjective("classes", hard=True, weight=0.5)
    said = F.cross_entropy(z, t.argmax(1), reduction="none")
    torch.testing.assert_close(hard.losses(z, targets), (own + said) / 2)
    two = torch.randn(5, 7)
    by_two = hard.losses(torch.stack([z, two], 1), targets)
    torch.testing.assert_close(by_two, (own + F.cross_entropy(two, t.argmax(1), reduction="none")) / 2)
    torch.testing.assert_close(hard.losses(z, y), own, msg="evaluations know labels alone")


def test_one_logit_is_taught_as_two_classes_are() -> None:
    z, t, y = torch.randn(5, 1), torch.randn(5, 1), torch.tensor([0.0, 1.0, 1.0, 0.0, 1.0])
    pair, other = (torch.cat([torch.zeros(5, 1), logit], 1) for logit in (z, t))
    for hard in (False, True):
        one = TaughtObjective("binary", hard=hard, weight=0.3).losses(z, torch.stack([y[:, None], t], 1))
        wide = torch.stack([F.one_hot(y.long(), 2).float(), other], 1)
        torch.testing.assert_close(one, TaughtObjective("classes", hard=hard, weight=0.3).losses(pair, wide))


def test_the_distillation_head_learns_from_the_teacher_and_the_class_head_from_labels(teacher: str) -> None:
    config = taught(teacher, model="deit_pico_distilled_p4_32", network=DEIT, distill="hard", distill_weight=1.0)
    inputs = open_inputs(config)
    network, batch = inputs.create().train(), inputs.batches("train")[0]
    assert isinstance(network, DistilledViT)
    outputs = network(**batch.inputs)
    assert outputs.shape == (32, 2, 10)
    inputs.objective.share(outputs, batch.targets, 32).backward()
    assert network.head_dist.weight.grad.norm() > 0  # type: ignore[union-attr, operator]
    assert network.head.weight.grad.norm() == 0, "all weight is on the teacher"  # type: ignore[union-attr, operator]
    assert network.eval()(**batch.inputs).shape == (32, 10)


# ---- The teacher's answers


def test_rows_that_stay_as_they_are_are_asked_once(
    teacher: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEFT_CACHE", str(tmp_path))
    first = open_inputs(taught(teacher)).batches("train")[3]
    monkeypatch.setattr(teachers, "outputs_of", None)  # would fail if it were called
    again = open_inputs(taught(teacher)).batches("train")[3]
    assert torch.equal(first.targets, again.targets) and first.targets.shape == (32, 2, 10)


def test_a_teacher_sees_a_batch_as_it_was_taught_to(teacher: str) -> None:
    """Its inputs are from 0 to 1, the student's are z-scores: asked about a batch, it says what it says of the rows."""
    inputs = open_inputs(taught(teacher))
    lessons, batch = inputs.lessons, inputs.batches("train")[0]
    assert lessons is not None and not lessons.live
    torch.testing.assert_close(lessons.answers_to(batch), batch.targets[:, 1], rtol=1e-4, atol=1e-4)
    changed = open_inputs(taught(teacher, CHANGED))
    assert changed.lessons is not None and changed.lessons.live
    assert changed.batches("train")[0].targets.shape == (32, 2, 10)


def test_without_augmentation_a_teacher_may_take_images_of_another_side(teacher: str) -> None:
    inputs = open_inputs(taught(teacher, transform=TransformConfig(img_size=12)))
    assert inputs.batches("train")[0].inputs["x"].shape[-1] == 12


@pytest.mark.parametrize("augment", [PLAIN, CHANGED], ids=["once", "every batch"])
@pytest.mark.parametrize("model", ["mlp", "deit"])
def test_a_taught_run_resumes_bit_for_bit(teacher: str, augment: AugmentConfig, model: str, tmp_path: Path) -> None:
    named = {"model": "deit_pico_distilled_p4_32", "network": DEIT} if model == "deit" else {}
    config = taught(teacher, augment, steps=30, log_every=5, distill="hard" if model == "deit" else "soft", **named)
    record = train(config, tmp_path / "whole")
    assert lifecycle.start(config, tmp_path / "cut", Stop(15)).record is None
    lifecycle.resume(tmp_path / "cut")
    assert_same_bits(last_checkpoint(tmp_path / "whole"), last_checkpoint(tmp_path / "cut"))
    found = record["source"]["teacher"]
    assert found["folder"] == teacher and len(found["digest"]) == 32 and found["live"] is (augment is CHANGED)
    assert evaluate_run(tmp_path / "whole")["accuracy"] == record["metrics"]["accuracy"]


def test_a_student_can_learn_from_its_teacher_alone(teacher: str, tmp_path: Path) -> None:
    record = train(taught(teacher, distill_weight=1.0, steps=100, lr=5e-3), tmp_path / "run")
    assert record["metrics"]["accuracy"] > 0.8 and record["beats_constant_guess"]


def test_text_and_fine_tuning_have_teachers_too(tmp_path: Path) -> None:
    train(configure("text", steps=40, lr=5e-3), tmp_path / "teacher")
    asked = TeachingConfig(teacher=str(tmp_path / "teacher"), distill="hard")
    assert train(configure("text", steps=10, teaching=asked), tmp_path / "student")["source"]["teacher"]
    base = configure("text", steps=10)
    tuned = FinetuneConfig(
        source=str(sentences()), start=str(tmp_path / "teacher"), teaching=asked, duration=base.duration,
        execution=base.execution, model="teacher",
    )  # fmt: skip
    assert train(tuned, tmp_path / "tuned")["source"]["teacher"]["distill"] == "hard"


def refused(config: RunConfig) -> str:
    with pytest.raises(WeftError) as raised:
        open_inputs(config)
    return str(raised.value)


def test_a_teacher_that_does_not_fit_is_refused_with_a_sentence(teacher: str, tmp_path: Path) -> None:
    text = configure("text", steps=2)
    assert "takes image" in refused(replace(text, teaching=TeachingConfig(teacher=teacher)))
    assert "is not a folder" in refused(taught(str(tmp_path / "nothing")))
    assert "other targets" in refused(replace(taught(teacher), source=str(pictures(tmp_path / "two", [3, 8], rows=30))))
    number = replace(taught(teacher), source="diabetes", network={})
    assert "needs classes" in refused(number)
    larger = taught(teacher, CHANGED, transform=TransformConfig(img_size=16))
    said = refused(larger)
    assert "--img-size 8" in said and "--crop-padding 0 --no-flip" in said and "--mixup 0" in said


def test_a_teacher_that_changed_is_noticed(teacher: str, tmp_path: Path) -> None:
    copy = tmp_path / "teacher"
    shutil.copytree(teacher, copy)
    lifecycle.start(taught(str(copy), steps=30, log_every=5), tmp_path / "run", Stop(15))
    weights = copy / "model.safetensors"
    other = weights.read_bytes()[:-4] + b"\0\0\0\0"
    weights.unlink()
    weights.write_bytes(other)
    with pytest.raises(WeftError, match="has changed since the run began"):
        lifecycle.resume(tmp_path / "run")


# ---- Pseudo-labels


def labelled_by(run: str, source: str, **changes: Any) -> RunConfig:
    asked = {name: changes.pop(name) for name in list(changes) if name in TeachingConfig.__dataclass_fields__}
    teaching = TeachingConfig(pseudo_labels=run, **asked)
    return configure(source=source, teaching=teaching, augment=PLAIN, **changes)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """Pictures of two digits, a third of them with labels, and a run on these."""
    root = tmp_path_factory.mktemp("pictures")
    source = pictures(root / "data", [0, 1], "unlabelled", rows=40)
    train(configure(source=str(source), steps=60, lr=5e-3, batch_size=16, augment=PLAIN), root / "run")
    return str(source), str(root / "run")


def test_rows_that_are_answered_surely_join_the_training_rows(folder: tuple[str, str], tmp_path: Path) -> None:
    source, run = folder
    config = labelled_by(run, source, steps=30, log_every=5, batch_size=16)
    inputs = open_inputs(config)
    assert inputs.added is not None
    alone = len(inputs.source.splits["train"])
    rows, facts = inputs.rows.splits["train"], inputs.added.facts
    assert len(rows) == alone + facts["rows"] and facts["of"] == 160 and facts["rows"] > 120
    assert sum(facts["classes"].values()) == facts["rows"]
    assert any("join the training rows (class 0 " in note for note in inputs.notes)
    for example in range(alone, len(rows)):  # 0-12.png is a picture of a zero
        assert rows.targets[example] == int(Path(rows.place(example)).name[0])
    seen = {int(number) for step in range(20) for number in inputs.batches("train")[step].index}
    assert max(seen) == len(rows) - 1, "they are trained on"
    record = train(config, tmp_path / "whole")
    assert record["source"]["pseudo_labels"] == facts
    assert lifecycle.start(config, tmp_path / "cut", Stop(15)).record is None
    lifecycle.resume(tmp_path / "cut")
    assert_same_bits(last_checkpoint(tmp_path / "whole"), last_checkpoint(tmp_path / "cut"))
    assert evaluate_run(tmp_path / "whole")["accuracy"] == record["metrics"]["accuracy"]


def test_another_source_can_be_labelled_and_a_teacher_asked_about_all(folder: tuple[str, str], tmp_path: Path) -> None:
    source, run = folder
    other = str(pictures(tmp_path / "other", [0, 1], rows=20))
    inputs = open_inputs(labelled_by(run, source, unlabelled=other, teacher=run, batch_size=16))
    assert inputs.added is not None and inputs.added.facts["of"] == 40
    assert inputs.batches("train")[0].targets.shape == (16, 2, 1)


def test_columns_and_texts_can_be_labelled(tmp_path: Path) -> None:
    """A table of numbers and one of texts, each with a second file that lacks the labels."""
    rows = [(number % 7, number % 5, number % 7 > 3) for number in range(120)]
    lines = [f"{a},{b},{'yes' if c else 'no'}" for a, b, c in rows]
    for name, head, cut in (("train", "a,b,label", None), ("unlabelled", "a,b", 2)):
        body = [",".join(line.split(",")[:cut]) for line in lines]
        (tmp_path / f"{name}.csv").write_text("\n".join([head, *body]) + "\n")
    source, run = str(tmp_path / "train.csv"), str(tmp_path / "run")
    train(configure(source=source, steps=60, lr=1e-2, batch_size=16), Path(run))
    inputs = open_inputs(labelled_by(run, source, unlabelled=str(tmp_path / "unlabelled.csv"), batch_size=16))
    assert inputs.added is not None
    split = inputs.rows.splits["train"]
    assert len(split) > 100 and isinstance(split.read(np.array([len(split) - 1]))[0], np.ndarray)

    text = tmp_path / "texts"
    train(configure("text", steps=60, lr=5e-3), text)
    lines = [line.rpartition(",")[0] for line in sentences().read_text().splitlines()]
    (tmp_path / "more.csv").write_text("\n".join(lines[:101]) + "\n")
    asked = TeachingConfig(pseudo_labels=str(text), unlabelled=str(tmp_path / "more.csv"), pseudo_threshold=0.4)
    inputs = open_inputs(configure("text", teaching=asked))
    assert inputs.added is not None and inputs.added.facts["of"] == 100
    assert inputs.batches("train")[0].inputs["x"].shape[0] == 32


def test_what_cannot_be_labelled_is_refused_with_a_sentence(
    folder: tuple[str, str], teacher: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, run = folder
    assert "has no split 'nothing'" in refused(labelled_by(run, source, unlabelled="nothing"))
    assert "that the run itself uses" in refused(labelled_by(run, source, unlabelled="test"))
    assert "digits has none; add --unlabelled" in refused(labelled_by(teacher, "digits"))
    assert "other targets" in refused(labelled_by(teacher, source))
    said = refused(labelled_by(run, source, unlabelled=str(sentences())))
    assert "holds text, where image is needed" in said
    unsure = tmp_path / "unsure"
    train(configure(source=source, steps=1, lr=1e-6, batch_size=16), unsure)
    assert "lower --pseudo-threshold" in refused(labelled_by(str(unsure), source, pseudo_threshold=1.0))
    with pytest.raises(WeftError, match="add --pseudo-labels RUN"):
        dispatch(["train", "digits", "--model", "mlp", "--unlabelled", "x"])
    with pytest.raises(WeftError, match="--pseudo-threshold must be above 0 and at most 1"):
        dispatch(["train", "digits", "--model", "mlp", "--pseudo-threshold", "2"])
