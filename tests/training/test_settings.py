"""What follows the data where nothing was said, with its reason; and what stands beside a run."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from weft.commands.running import besides
from weft.data.open.source import open_source
from weft.data.transform.fit import fit
from weft.data.transform.transforms import ImageTransform, TextTransform
from weft.networks.registry import configured
from weft.studies.compare.rate_search import trial
from weft.training.config import DurationConfig, ExecutionConfig, OptimisationConfig, RunConfig
from weft.training.loop.display import Silent
from weft.training.mirroring import Mirroring
from weft.training.run import lifecycle
from weft.training.run.inputs import LabelledInputs, open_inputs
from weft.training.run.settings import EPOCH, LARGEST, SMALLEST, as_stored, batch_for, shorter_epochs, with_length
from weft.training.storage.record import read_predictions
from weft.training.storage.run_folder import RunFolder


def photos(
    folder: Path, names: tuple[str, ...] = ("cat", "dog"), count: int = 20, side: int = 32, odd: int = 0
) -> Path:
    """A folder of coloured squares; the last `odd` pictures of each class are of another size."""
    generator, count, side = np.random.default_rng(0), 20, 32
    for number, name in enumerate(names):
        (folder / name).mkdir(parents=True)
        for picture in range(count):
            size = side + 7 if picture >= count - odd else side
            pixels = generator.integers(0, 100, (size, size, 3)) + number * 100
            Image.fromarray(pixels.astype(np.uint8)).save(folder / name / f"{picture}.png")
    return folder


@pytest.mark.parametrize(("rows", "size"), [(5, 5), (86, 8), (1300, 16), (4000, 64), (60_000, 128)])
def test_a_batch_gives_about_fifty_steps_an_epoch(rows: int, size: int):
    assert batch_for(rows, EPOCH, SMALLEST, LARGEST) == size


def test_a_run_with_no_settings_gets_a_network_a_batch_and_an_augmentation(tmp_path: Path):
    inputs = open_inputs(RunConfig(source=str(photos(tmp_path / "photos"))))
    assert inputs.config.model == "resnet8_cifar" and inputs.config.optimisation.batch_size == 8
    assert inputs.config.augment.flip is True and inputs.config.augment.crop_padding == 4
    told = " ".join(inputs.notes)
    assert all(flag in told for flag in ("--model", "weft compare", "--batch-size", "--flip"))


def test_a_chosen_network_gets_small_images_and_the_rate_of_short_runs(tmp_path: Path):
    for number in range(20):
        (tmp_path / "photos" / "ab"[number % 2]).mkdir(parents=True, exist_ok=True)
        noise = np.random.default_rng(number).integers(0, 256, (100, 100, 3), dtype=np.uint8)
        Image.fromarray(noise).save(tmp_path / "photos" / "ab"[number % 2] / f"{number}.png")
    asked = RunConfig(source=str(tmp_path / "photos"))
    settled = open_inputs(asked).config
    assert settled.transform.img_size == 32 and settled.optimisation.lr == 0.003
    assert as_stored(asked, settled) == settled
    named = open_inputs(dataclasses.replace(asked, model="mlp"))
    assert named.transform.size == 100 and named.config.optimisation.lr is None


def test_what_was_given_stays(tmp_path: Path):
    asked = RunConfig(
        source=str(photos(tmp_path / "photos")), model="mlp", optimisation=OptimisationConfig(batch_size=7)
    )
    asked = dataclasses.replace(asked, augment=dataclasses.replace(asked.augment, flip=False))
    settled = open_inputs(asked).config
    assert (settled.model, settled.optimisation.batch_size, settled.augment.flip) == ("mlp", 7, False)


def test_pictures_of_digits_are_not_mirrored(tmp_path: Path):
    inputs = open_inputs(RunConfig(source=str(photos(tmp_path / "signs", ("0", "1", "2")))))
    assert inputs.config.augment.flip is False and any("not mirrored" in note for note in inputs.notes)


def slanted(folder: Path, names: tuple[str, str], mirror_alike: bool) -> Path:
    """Colour pictures of a bar that leans to the left or to the right; or, `mirror_alike`, stands or lies."""
    generator = np.random.default_rng(1)
    for number, name in enumerate(names):
        (folder / name).mkdir(parents=True)
        for picture in range(40):
            pixels, (top, left) = generator.integers(0, 60, (32, 32, 3)), generator.integers(10, 22, 2)
            for step in range(-9, 10):
                across = (0 if number else step) if mirror_alike else (-step if number else step)
                pixels[top + step, left + across] = 230
            Image.fromarray(pixels.astype(np.uint8)).save(folder / name / f"{picture}.png")
    return folder


def test_mirroring_that_is_seen_to_hurt_is_switched_off_and_said(tmp_path: Path):
    inputs = open_inputs(RunConfig(source=str(slanted(tmp_path / "bars", ("left", "right"), mirror_alike=False))))
    assert inputs.config.augment.flip is False
    assert any("not mirrored: with mirrored copies" in note for note in inputs.notes)


def test_mirroring_that_does_not_hurt_stays(tmp_path: Path):
    inputs = open_inputs(RunConfig(source=str(slanted(tmp_path / "bars", ("slash", "pillar"), mirror_alike=True))))
    assert inputs.config.augment.flip is True


@pytest.mark.parametrize(("more", "fewer", "said"), [(5, 0, False), (6, 0, True), (8, 2, False), (12, 2, True)])
def test_as_many_rows_as_luck_may_give_say_nothing_of_mirroring(more: int, fewer: int, said: bool):
    from scipy.stats import binomtest

    assert Mirroring(more, fewer, 100).hurts is said and Mirroring(fewer, more, 100).helps is said
    assert not Mirroring(fewer, more, 100).hurts
    assert said == (binomtest(fewer, more + fewer, alternative="less").pvalue < 0.025)


@pytest.mark.parametrize(("steps", "epochs", "patience"), [(5, 100, 33), (27, 56, 19), (150, 10, 5), (469, 10, 5)])
def test_a_small_set_is_passed_over_more_often_with_more_patience(steps: int, epochs: int, patience: int):
    config, why = with_length(RunConfig(source="digits", model="mlp"), steps)
    assert (config.duration.epochs, config.patience) == (epochs, patience) and "--patience" in why


def test_patience_is_not_settled_where_a_length_was_given(tmp_path: Path):
    asked = RunConfig(source=str(photos(tmp_path / "photos")), duration=DurationConfig(epochs=3))
    assert open_inputs(asked).config.patience is None


def test_a_run_ends_when_its_patience_does(tmp_path: Path):
    asked = RunConfig(
        source="digits", model="mlp", patience=2,
        optimisation=OptimisationConfig(lr=1e-12), duration=DurationConfig(steps=60),
        execution=ExecutionConfig(threads=1, precision="float32", compile=False, eval_every=5),
    )  # fmt: skip
    outcome = lifecycle.start(asked, tmp_path / "run", Silent())
    assert outcome.record is not None and 10 <= outcome.record["steps"] < 60


def test_the_side_is_that_of_nearly_all_pictures_and_the_others_are_counted(tmp_path: Path):
    inputs = open_inputs(RunConfig(source=str(photos(tmp_path / "photos", odd=2))))
    assert isinstance(inputs.transform, ImageTransform) and inputs.transform.size == 32
    assert any("are of other sizes, 32 to 39 px" in note for note in inputs.notes)


def test_pictures_of_all_sizes_get_one_that_is_not_larger_than_most(tmp_path: Path):
    for number in range(40):
        (tmp_path / "photos" / "ab"[number % 2]).mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (100 + number, 80 + number)).save(tmp_path / "photos" / "ab"[number % 2] / f"{number}.png")
    transform = fit(open_source(tmp_path / "photos"))
    assert isinstance(transform, ImageTransform) and transform.size == 96


def test_texts_get_a_length_that_most_of_them_fit_into(tmp_path: Path):
    lines = [f"{'good film ' * (40 if row == 0 else 5)}word{row},{row % 2}" for row in range(200)]
    (tmp_path / "texts.csv").write_text("text,label\n" + "\n".join(lines))
    inputs = open_inputs(RunConfig(source=str(tmp_path / "texts.csv"), model="conv_text"))
    assert isinstance(inputs.transform, TextTransform) and inputs.transform.max_length == 16
    assert any("--max-length" in note for note in inputs.notes)


def test_classes_of_very_different_sizes_are_pointed_out(tmp_path: Path):
    lines = [f"word{row} {row % 7},{'rare' if row < 8 else 'common'}" for row in range(200)]
    (tmp_path / "texts.csv").write_text("text,label\n" + "\n".join(lines))
    inputs = open_inputs(RunConfig(source=str(tmp_path / "texts.csv"), model="conv_text"))
    assert any("--class-weights balanced" in note and "'rare'" in note for note in inputs.notes)


def test_what_was_settled_is_stored_and_a_second_call_is_the_same_run(tmp_path: Path):
    asked = RunConfig(
        source="digits",
        model="mlp",
        duration=DurationConfig(steps=2),
        execution=ExecutionConfig(threads=1, precision="float32", compile=False),
    )
    lifecycle.start(asked, tmp_path / "run", Silent())
    stored = RunFolder(tmp_path / "run").config()
    assert isinstance(stored, RunConfig) and stored.optimisation.batch_size == 16
    assert as_stored(asked, stored) == stored != asked


def test_a_smaller_network_or_image_is_named_where_an_epoch_does_not_fit():
    told = shorter_epochs(configured("mixer_b16_224", num_classes=5), 0.31)
    assert "--model mixer_s16_224" in told and "--img-size 112" in told


def test_a_run_has_a_classical_baseline_beside_it(tmp_path: Path):
    asked = RunConfig(source="digits", model="mlp", duration=DurationConfig(steps=2))
    outcome = lifecycle.start(asked, tmp_path / "run", Silent(), baseline=True)
    assert outcome.record is not None
    simple = outcome.record["baseline"]
    assert simple["name"] == "HOG and logistic regression" and 0.9 < simple["score"] < 1 and simple["rows"] == 1295
    (told,) = besides(outcome.record)
    assert "always the commonest class: 0.1" in told and "HOG and logistic regression: 0.9" in told


def test_a_trial_leaves_the_test_split_unread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    config = trial(RunConfig(source="digits", model="mlp", duration=DurationConfig(steps=8)), 0.003)
    read, original = [], LabelledInputs.batches
    monkeypatch.setattr(LabelledInputs, "batches", lambda *words: read.append(words[1]) or original(*words))
    outcome = lifecycle.start(config, tmp_path / "run", Silent())
    assert set(read) == {"train", "validation"} and outcome.record is not None
    assert len(read_predictions(tmp_path / "run")["target"]) == 143 and outcome.record["steps"] == 2
