"""What follows the data where nothing was said, with its reason; and what stands beside a run."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from weft.commands.running import besides, tell
from weft.data.open.source import open_source
from weft.data.transform.fit import fit
from weft.data.transform.transforms import ImageTransform, TextTransform
from weft.networks.config import MLPConfig
from weft.networks.registry import configured
from weft.studies.compare.rate_search import trial
from weft.training import mirroring
from weft.training.config import (
    DurationConfig,
    ExecutionConfig,
    ObjectiveConfig,
    OptimisationConfig,
    RunConfig,
    from_dict,
    muon_rate,
    to_dict,
)
from weft.training.finetuning.config import FinetuneConfig
from weft.training.loop.display import Silent
from weft.training.mirroring import Mirroring
from weft.training.run import lifecycle, probe
from weft.training.run.inputs import LabelledInputs, open_inputs
from weft.training.run.settings import (
    DROPPED,
    EPOCH,
    LARGEST,
    SMALLEST,
    SMOOTHING,
    as_stored,
    batch_for,
    shorter_epochs,
    with_length,
)
from weft.training.storage.record import read_predictions
from weft.training.storage.run_folder import RunFolder


def photos(
    folder: Path, names: tuple[str, ...] = ("cat", "dog"), count: int = 20, side: int = 32, odd: int = 0
) -> Path:
    """A folder of coloured squares; the last `odd` pictures of each class are of another size."""
    generator = np.random.default_rng(0)
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
    assert settled.transform.img_size == 32
    assert (settled.optimisation.opt, settled.optimisation.lr) == ("muon", 0.01)
    assert as_stored(asked, settled) == settled
    adam = dataclasses.replace(asked, optimisation=OptimisationConfig(opt="adamw"))
    assert open_inputs(adam).config.optimisation.lr == 0.003
    assert open_inputs(dataclasses.replace(asked, model="mlp")).transform.size == 100


@pytest.mark.parametrize(
    ("source", "model", "given", "expected"),
    [
        ("digits", "mlp", {}, ("muon", 0.003)),
        ("digits", "mixer_pico_p4_32", {}, ("muon", 0.01)),
        ("pydocs", "", {}, ("muon", 0.01)),
        ("digits", "mlp", {"lr": 0.5}, ("adamw", 0.5)),
        ("digits", "mlp", {"opt": "adamw"}, ("adamw", None)),
        ("digits", "mlp", {"opt": "sgd", "lr": 0.1}, ("sgd", 0.1)),
        ("breast_cancer", "mlp", {}, ("adamw", None)),
        ("pydocs", "bert_base", {}, ("muon", 0.0015)),
    ],
)
def test_the_optimiser_is_muon_where_nothing_was_said(
    source: str, model: str, given: dict[str, Any], expected: tuple[str, float | None]
):
    start = RunConfig(source=source, model=model)
    asked = dataclasses.replace(start, optimisation=dataclasses.replace(start.optimisation, **given))
    inputs = open_inputs(asked)
    settled = inputs.config.optimisation
    assert (settled.opt, settled.lr) == expected
    assert any("optimiser muon" in note for note in inputs.notes) == (expected[0] == "muon")
    assert as_stored(asked, inputs.config).optimisation == settled
    other = dataclasses.replace(inputs.config, optimisation=dataclasses.replace(settled, lr=0.7))
    assert as_stored(asked, other) != other, "a run of another rate is another run"


@pytest.mark.parametrize(("parameters", "rate"), [(1_130_000, 0.01), (8_000_000, 0.005), (10**9, 0.001)])
def test_larger_networks_get_smaller_rates(parameters: int, rate: float):
    assert muon_rate("mixer_nano_p4_32", parameters) == pytest.approx(rate)


def test_shards_are_moved_by_adamw(tmp_path: Path):
    asked = RunConfig(source="digits", model="mlp", execution=ExecutionConfig(strategy="fsdp"))
    assert open_inputs(asked).config.optimisation.opt == "adamw"
    chosen = dataclasses.replace(asked, source=str(photos(tmp_path / "photos")), model="")
    moved = open_inputs(chosen).config.optimisation
    assert (moved.opt, moved.lr) == ("adamw", 0.003), "the network that is chosen has its rate of short runs"


def test_a_setting_in_a_section_leaves_the_others_as_flags_do():
    """In Python and in files sections are mappings: a batch alone is not AdamW."""
    given = {"optimisation": {"batch_size": 64}}
    assert from_dict(RunConfig, given).optimisation == OptimisationConfig(opt=None, batch_size=64)
    usual = FinetuneConfig().optimisation
    assert from_dict(FinetuneConfig, given).optimisation == dataclasses.replace(usual, batch_size=64)
    assert from_dict(RunConfig, to_dict(RunConfig())) == RunConfig()


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


def test_the_command_that_tells_which_network_is_best_can_be_copied(tmp_path: Path):
    told = open_inputs(RunConfig(source=str(photos(tmp_path / "my photos")))).notes
    assert any(f"`weft compare '{tmp_path / 'my photos'}'` tells" in note for note in told)


def test_large_photographs_of_one_size_are_made_as_small_as_those_of_all_sizes(tmp_path: Path):
    """A side of 150 px would neither end soon nor fit the patches of this network."""
    large = str(photos(tmp_path / "photos", side=150))
    inputs = open_inputs(RunConfig(source=large, model="mixer_s16_224"))
    assert isinstance(inputs.transform, ImageTransform) and inputs.transform.size == 128
    assert any(note.startswith("images of 128 px, from 150: ") for note in inputs.notes)
    assert any(note.startswith("images of 32 px, from 150: ") for note in open_inputs(RunConfig(source=large)).notes)


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


def films(folder: Path, rows: int = 120) -> str:
    """A table of texts of two classes."""
    lines = [f"{'good' if row % 2 else 'poor'} film number {row},{'fine' if row % 2 else 'bad'}" for row in range(rows)]
    (folder / "films.csv").write_text("text,label\n" + "\n".join(lines))
    return str(folder / "films.csv")


def regularisation(config: RunConfig) -> tuple[float | None, float | None, list[str]]:
    inputs = open_inputs(config)
    found = inputs.config
    assert inputs.objective.smoothing == (found.objective.smoothing or 0.0)
    assert inputs.network.drop_rate == found.network.get("drop_rate", 0.0)
    told = [note for note in inputs.notes if "--smoothing" in note or "drop_rate" in note]
    return found.objective.smoothing, found.network.get("drop_rate"), told


@pytest.mark.parametrize("duration", [DurationConfig(), DurationConfig(time="5m")])
def test_a_small_set_that_is_passed_over_often_gets_smoothing_and_drop_out(tmp_path: Path, duration: DurationConfig):
    asked = RunConfig(source=films(tmp_path), duration=duration)
    smoothing, dropped, told = regularisation(asked)
    assert (smoothing, dropped) == (SMOOTHING, DROPPED["textconv"]) and len(told) == 2
    assert all("known by heart" in note for note in told)
    without = dataclasses.replace(asked, objective=ObjectiveConfig(smoothing=0.0), network={"drop_rate": 0.0})
    assert regularisation(without) == (0.0, 0.0, [])
    assert regularisation(dataclasses.replace(asked, patience=0))[0] == SMOOTHING, "patience is another question"


def test_an_image_network_gets_smoothing_alone(tmp_path: Path):
    smoothing, dropped, told = regularisation(RunConfig(source=str(photos(tmp_path / "photos"))))
    assert (smoothing, dropped) == (SMOOTHING, None) and len(told) == 1


def test_who_counts_epochs_or_steps_or_has_numbers_or_many_rows_gets_none(tmp_path, monkeypatch: pytest.MonkeyPatch):
    source = films(tmp_path)
    for duration in (DurationConfig(epochs=3), DurationConfig(steps=5)):
        given = RunConfig(source=source, duration=duration, patience=2)
        assert regularisation(given) == (None, None, [])
    assert regularisation(RunConfig(source="diabetes")) == (None, None, [])
    monkeypatch.setattr("weft.training.run.settings.MANY", 20)
    assert regularisation(RunConfig(source=source)) == (None, None, [])


def test_regularisation_that_was_settled_is_found_again_and_other_is_not(tmp_path: Path):
    asked = RunConfig(source=films(tmp_path))
    settled = open_inputs(asked).config
    assert as_stored(asked, settled) == settled
    counted = dataclasses.replace(asked, duration=DurationConfig(epochs=3))
    assert as_stored(counted, settled).objective.smoothing is None, "0.1 was not asked for with these epochs"
    older = dataclasses.replace(counted, objective=ObjectiveConfig(smoothing=0.0))
    assert as_stored(counted, older).objective.smoothing == 0.0


def test_a_run_that_was_planned_without_regularisation_goes_on_without(tmp_path: Path):
    """A run of an earlier version holds `smoothing: 0.0` and no drop-out, and a time."""
    stored = RunConfig(
        source=films(tmp_path), model="conv_text", duration=DurationConfig(steps=2),
        execution=ExecutionConfig(threads=1, precision="float32", compile=False),
    )  # fmt: skip
    lifecycle.start(stored, tmp_path / "run", Silent())
    text = (tmp_path / "run" / "run.yaml").read_text()
    text = text.replace("smoothing: null", "smoothing: 0.0").replace("time: null", "time: 5m", 1)
    (tmp_path / "run" / "run.yaml").write_text(text.replace("steps: 2", "steps: null", 1))
    config = RunFolder(tmp_path / "run").config()
    assert isinstance(config, RunConfig) and config.objective.smoothing == 0.0 and config.duration.time == "5m"
    again = open_inputs(config, tmp_path / "run")
    assert again.config.objective.smoothing == 0.0 and again.config.network == {} and again.network.drop_rate == 0


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


def test_the_classical_baseline_comes_after_the_last_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    happened: list[str] = []

    def noted(name: str) -> None:
        original = getattr(lifecycle, name)
        monkeypatch.setattr(lifecycle, name, lambda *words: (original(*words), happened.append(name))[0])

    noted("train")
    noted("classical")
    asked = RunConfig(source="digits", model="mlp", duration=DurationConfig(steps=2))
    stopped = lifecycle.start(asked, tmp_path / "run", Silent(), baseline=True, until=1)
    assert stopped.record is None and happened == ["train"], "a run that is to go on needs none yet"
    outcome = lifecycle.resume(tmp_path / "run", Silent(), baseline=True)
    assert happened == ["train", "train", "classical"]
    assert outcome.record is not None and outcome.record["baseline"]["rows"] == 1295


def test_a_trial_leaves_the_test_split_unread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    config = trial(RunConfig(source="digits", model="mlp", duration=DurationConfig(steps=8)), 0.003)
    read, original = [], LabelledInputs.batches
    monkeypatch.setattr(LabelledInputs, "batches", lambda *words: read.append(words[1]) or original(*words))
    outcome = lifecycle.start(config, tmp_path / "run", Silent())
    assert set(read) == {"train", "validation"} and outcome.record is not None
    assert len(read_predictions(tmp_path / "run")["target"]) == 143 and outcome.record["steps"] == 2


def test_mirroring_is_tried_anew_for_another_crop_or_other_targets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("WEFT_CACHE", str(tmp_path / "cache"))
    source = open_source(slanted(tmp_path / "bars", ("left", "right"), mirror_alike=False))
    transform, built = fit(source), []
    assert isinstance(transform, ImageTransform)
    monkeypatch.setattr(mirroring, "tried", lambda *_: built.append(1) or (1, 2, 3))
    other = {
        role: dataclasses.replace(split, targets=1 - split.targets)  # type: ignore[type-var]
        for role, split in source.splits.items()
    }
    cases = [
        (source, transform),
        (source, dataclasses.replace(transform, crop=0.5)),
        (dataclasses.replace(source, splits=other), transform),
        (dataclasses.replace(source, classes=["up", "down"]), transform),
        (dataclasses.replace(source, target="lean"), transform),
    ]
    for _ in range(2):
        assert all(mirroring.try_mirroring(*case) == Mirroring(1, 2, 3) for case in cases)
    assert len(built) == len(cases), "each is tried once"


def test_a_trial_of_mirroring_that_takes_long_is_announced(tmp_path, monkeypatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setenv("WEFT_CACHE", str(tmp_path / "cache"))
    source = open_source(photos(tmp_path / "photos", count=60, side=16))
    transform = fit(source)
    assert isinstance(transform, ImageTransform) and transform.size == 16
    mirroring.try_mirroring(source, transform)
    assert "mirrored copies" not in capsys.readouterr().err, "it takes no time worth a word"
    monkeypatch.setattr(mirroring, "WORTH_SAYING", 0.0)
    monkeypatch.setenv("WEFT_CACHE", str(tmp_path / "another"))
    mirroring.try_mirroring(source, transform)
    assert re.search(r"mirrored copies of \d+ images help, once: about \d+ s", capsys.readouterr().err)


def told_of_images(folder: Path, names: tuple[str, ...] = ("cat", "dog"), **augment: Any) -> str:
    asked = RunConfig(source=str(folder if folder.exists() else photos(folder, names)))
    inputs = open_inputs(dataclasses.replace(asked, augment=dataclasses.replace(asked.augment, **augment)))
    return " | ".join(note for note in inputs.notes if "--flip" in note or "--crop-padding" in note)


def test_words_about_augmentation_are_those_of_the_values_that_were_given(tmp_path: Path):
    folder, signs = tmp_path / "photos", tmp_path / "signs"
    assert told_of_images(folder) == "images mirrored and shifted by up to 4 px (--flip, --crop-padding)"
    assert told_of_images(folder, crop_padding=0) == "images mirrored (--flip)"
    assert told_of_images(folder, crop_padding=2) == "images mirrored and shifted by up to 2 px (--flip)"
    assert told_of_images(folder, flip=False) == "images shifted by up to 4 px (--crop-padding)"
    assert told_of_images(folder, flip=True, crop_padding=3) == ""
    assert told_of_images(signs, ("0", "1"), crop_padding=0) == (
        "images not mirrored: digits or letters may not be (--flip)"
    )
    assert told_of_images(signs).startswith("images shifted by up to 4 px, not mirrored: digits or letters")


def test_small_images_are_not_augmented_but_for_what_was_given(tmp_path: Path):
    small = photos(tmp_path / "small", side=16)
    assert told_of_images(small) == "no augmentation: images of 16 px have no room for it (--flip, --crop-padding)"
    assert told_of_images(small, flip=True) == (
        "images mirrored, not shifted: images of 16 px have no room for it (--crop-padding)"
    )


def test_images_of_other_sizes_are_counted_where_all_are_made_smaller(tmp_path: Path):
    inputs = open_inputs(RunConfig(source=str(photos(tmp_path / "photos", side=48, odd=2))))
    assert any("32 px, from 48 (" in note and "of other sizes, 48 to 55 px)" in note for note in inputs.notes)


def test_the_length_of_texts_is_told_with_its_reason(tmp_path: Path):
    config = RunConfig(source=films(tmp_path), model="conv_text")
    assert any("tokens: 95 % of the training texts fit (--max-length)" in note for note in open_inputs(config).notes)
    lines = [f"{' '.join(f'w{word}' for word in range(row % 7, 400))},{row % 2}" for row in range(60)]
    (tmp_path / "long.csv").write_text("text,label\n" + "\n".join(lines))
    notes = open_inputs(RunConfig(source=str(tmp_path / "long.csv"), model="conv_text")).notes
    assert any("256 tokens: the most that is taken unasked (--max-length)" in note for note in notes)


def test_a_trained_network_is_not_exchanged_by_name_and_a_larger_batch_is_named():
    told = shorter_epochs(configured("mixer_b16_224", num_classes=5), 0.31, batch=8, trained=True)
    assert "--model" not in told and "--img-size 112" in told and "a smaller network to start from" in told
    assert told.endswith("; --batch-size 32 takes less time a row")
    assert "--batch-size" not in shorter_epochs(configured("mixer_b16_224", num_classes=5), 0.31, batch=LARGEST)
    assert "--max-length 64" in shorter_epochs(configured("conv_text", max_length=128), 0.5)


def test_the_constant_guess_stands_beside_any_metric_and_many_classes():
    many = {"accuracy": 0.3, "chance": 0.0125, "macro_f1": 0.2}  # no confusion: there are more than a hundred classes
    assert besides({"metric": "accuracy", "metrics": many}) == ["beside it: always the commonest class: 0.0125"]
    (told,) = besides({"metric": "macro_f1", "metrics": many})
    assert told == "beside it: accuracy 0.3000, where always the commonest class has 0.0125"
    (told,) = besides({"metric": "negative_mae", "metrics": {"r2": 0.5, "negative_mae": -2.0}})
    assert told == "beside it: r2 0.5000, where always the mean has 0"
    words = {"perplexity": 20.0, "frequency_perplexity": 312.5}
    assert besides({"metric": "perplexity", "metrics": words}) == [
        "beside it: guessing words by their frequency: 312.5000"
    ]
    assert besides({"metric": "own:metric", "metrics": {"own:metric": 1.0}}) == []


@pytest.mark.parametrize(
    ("config", "split"),
    [
        ({"objective": {"judged_on": "test"}}, "test"),
        ({"objective": {"judged_on": "validation"}}, "validation"),
        ({"objective": {"judged_on": "test"}, "test_split": "dev"}, "dev"),
        ({}, "test"),
    ],
)
def test_the_end_of_a_run_names_the_split_that_was_judged(
    config: dict[str, Any], split: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
):
    metrics = {"accuracy": 0.5, "chance": 0.4, "never_answered": ["rare"]}
    record = {"status": "finished", "metric": "accuracy", "metrics": metrics, "config": config, "learnt": {}}
    assert tell(lifecycle.Outcome(tmp_path, record)) == 0
    printed = capsys.readouterr().out
    assert f"0.5000 on the {split} split" in printed and f"they occur in the {split} split: rare" in printed


@pytest.mark.parametrize(
    ("network", "shape", "said"),
    [
        ({"img_size": (64, 64)}, (4, 3, 64, 64), "of 64 px fit into --time 3s; give at least 6s, --img-size 40"),
        ({"in_features": 30}, (4, 30), "a batch of 4 fit into --time 3s; give at least 6s, or count"),
    ],
)  # fmt: skip
def test_a_time_too_short_names_what_would_do(network: dict[str, Any], shape: tuple[int, ...], said: str):
    config = RunConfig(source="x", model="mlp", optimisation=OptimisationConfig(batch_size=4))
    core = SimpleNamespace(config=MLPConfig(num_classes=2, **network))
    run: Any = SimpleNamespace(config=config, core=core, train=[SimpleNamespace(inputs={"x": torch.zeros(shape)})])
    assert said in str(probe.too_short(run, "3s", 0.5, 0.55))
