"""Features of a frozen network: which rows are read, what their names in the cache are made of, and heads on them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

import weft
from training.image_starts import configure
from training.runs import train
from weft.data.config import TransformConfig
from weft.data.open.source import Source, open_source
from weft.data.open.splits import MemorySplit
from weft.data.read.cache import Cache
from weft.data.transform.fit import fit
from weft.data.transform.transforms import ImageTransform
from weft.errors import WeftError
from weft.networks.registry import create_model
from weft.training.config import DurationConfig, OptimisationConfig, ReadingConfig
from weft.training.features import baseline, linear, store
from weft.training.features.linear import solved_rows
from weft.training.features.store import FrozenNetwork, features_of
from weft.training.finetuning import prepare
from weft.training.finetuning.config import FinetuneConfig
from weft.training.finetuning.prepare import open_finetuning
from weft.training.run.inputs import read_source

TRANSFORM = ImageTransform(8, 1, (0.3,), (0.4,))


pytestmark = pytest.mark.usefixtures("own_cache")


def lenet(**changes: Any) -> torch.nn.Module:
    torch.manual_seed(0)
    return create_model("lenet5", img_size=8, in_chans=1, channels=(4,), kernel=3, fc=(8,), **changes)


def test_networks_of_one_file_have_features_of_their_own() -> None:
    source = open_source("digits")
    largest, mean = (FrozenNetwork(lenet(pool=pool), TRANSFORM, "weights") for pool in ("max", "mean"))
    found = [features_of(source, "validation", frozen).x for frozen in (largest, mean)]
    assert not torch.allclose(*found), "in one process"
    again = features_of(open_source("digits"), "validation", mean).x
    assert torch.equal(again, found[1]) and len(Cache().entries()) == 2, "in the cache"
    assert FrozenNetwork(lenet(num_classes=3, drop_rate=0.5), TRANSFORM, "weights").recipe == largest.recipe


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows are computed of each block of 300 at a time."""
    counts: list[int] = []
    compute = store.computed

    def counted(*given: Any) -> Any:
        found = compute(*given)
        counts.append(len(given[-1]))
        return found

    monkeypatch.setattr(store, "PART", 300)
    monkeypatch.setattr(store, "computed", counted)
    return counts


def thin(**reading: Any) -> Source:
    return read_source(FinetuneConfig(source="digits", reading=ReadingConfig(**reading)))


def test_rows_that_no_split_has_are_not_read(reads: list[int]) -> None:
    source, frozen = thin(train_fraction=0.6, test_rows=50), FrozenNetwork(lenet(), TRANSFORM, "a")
    wanted = sum(source.count(role) for role in ("train", "validation", "test"))
    assert 900 < wanted < 1200 < len(source.splits["train"].table)
    found = [features_of(source, role, frozen) for role in ("train", "validation", "test")]
    assert sum(reads) == wanted, "splits of one table share them"
    for features, split in zip(found, source.splits.values(), strict=False):
        raws, _ = split.read(np.arange(5))
        with torch.no_grad():
            plain = store.pooled(frozen.network, torch.cat([TRANSFORM(raw)["x"] for raw in raws]))
        torch.testing.assert_close(features.x[:5], plain, rtol=1e-4, atol=1e-5)


def test_a_kill_costs_one_part_of_a_thinned_split(reads: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []

    def read(*given: Any) -> Any:
        if len(reads) == 2:
            raise KeyboardInterrupt
        return images(*given)

    images, frozen = store.of_images, FrozenNetwork(lenet(), TRANSFORM, "a")
    with monkeypatch.context() as killed, pytest.raises(KeyboardInterrupt):
        killed.setattr(store, "of_images", read)
        features_of(thin(train_fraction=0.6, test_rows=50), "train", frozen, said.append)
    assert len(reads) == 2 and "reading digits" in said[0]
    source = thin(train_fraction=0.6, test_rows=50)
    features_of(source, "train", frozen, said.append)
    assert sum(reads) == sum(source.count(role) for role in ("train", "validation", "test"))


def test_another_cut_of_all_rows_reads_none_again(reads: list[int]) -> None:
    frozen = FrozenNetwork(lenet(), TRANSFORM, "a")
    features_of(thin(), "train", frozen)
    features_of(thin(split_seed=1), "train", frozen)
    assert sum(reads) == 1797


def test_parts_of_the_rows_find_the_features_of_more_and_more_rows_cost_the_new_ones(reads: list[int]) -> None:
    frozen, sources = FrozenNetwork(lenet(), TRANSFORM, "a"), [thin(train_fraction=share) for share in (0.3, 0.1, 0.6)]
    for source in sources:
        found = features_of(source, "train", frozen).x
        raws, _ = source.splits["train"].read(np.arange(source.count("train")))
        with torch.no_grad():
            plain = store.pooled(frozen.network, torch.cat([TRANSFORM(raw)["x"] for raw in raws]))
        torch.testing.assert_close(found, plain, rtol=1e-4, atol=1e-5)
    assert sum(reads) == sum(sources[-1].count(role) for role in ("train", "validation", "test")), "each row once"
    assert len(reads) == 2 * 6, "none of the smallest part"


def test_rows_that_tell_how_long_features_take_are_of_all_the_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which may be sorted by length."""
    source, read = open_source("digits"), list[int]()
    monkeypatch.setattr(baseline, "frozen_of", lambda *_: (SimpleNamespace(network=lenet(), transform=TRANSFORM), []))
    monkeypatch.setattr(baseline, "of_raws", lambda frozen, raws: read.append(len(raws)))
    reader, asked = MemorySplit.read, list[np.ndarray]()
    monkeypatch.setattr(MemorySplit, "read", lambda split, index: asked.append(index) or reader(split, index))
    each, fitting = baseline.probe_seconds(FinetuneConfig(source="digits"), "start", source, rows=10)
    assert each > 0 and fitting > 0 and read == [2, 10] and asked[0][-1] == source.count("train") - 1


def test_texts_are_timed_as_many_of_one_length(monkeypatch: pytest.MonkeyPatch) -> None:
    source, read = open_source("pydocs"), list[list[str]]()
    frozen = SimpleNamespace(network=lenet(), transform=fit(source, TransformConfig()))
    monkeypatch.setattr(baseline, "frozen_of", lambda *_: (frozen, []))
    monkeypatch.setattr(baseline, "of_raws", lambda frozen, raws: read.append(list(raws)))
    baseline.probe_seconds(FinetuneConfig(source="pydocs"), "start", source, 0.1, rows=10)
    assert [len(raws) for raws in read] == [2, 10, 40] and len(set(read[2])) == len(set(read[1]))
    read.clear()
    baseline.probe_seconds(FinetuneConfig(source="pydocs"), "start", source, 0.1, again=0.0, rows=10)
    assert [len(raws) for raws in read] == [2, 10], "not where that takes longer than it is worth"


def test_features_that_are_no_numbers_are_refused_and_not_kept() -> None:
    network = lenet()
    torch.nn.init.constant_(next(network.parameters()), float("nan"))
    with pytest.raises(WeftError, match=r"the features of .* are not finite numbers; the weights may be damaged"):
        features_of(open_source("digits"), "train", FrozenNetwork(network, TRANSFORM, "a"))
    assert Cache().entries() == []


def test_two_classes_have_two_outputs_where_that_is_asked(start: Path) -> None:
    """Their difference is the output of a head with one."""
    chance = np.random.default_rng(0)
    images = list(chance.integers(0, 200, (80, 8, 8), dtype=np.uint8))
    for image in images[::2]:
        image[:4] += 30
    source = weft.open_source(images, ["top", "plain"] * 40)
    small = OptimisationConfig(batch_size=8, lr=1e-3)
    asked = replace(configure(start, frozen=True, source=source.name), optimisation=small)
    one, two = (
        open_finetuning(replace(asked, reading=reading)) for reading in (ReadingConfig(), ReadingConfig(task="classes"))
    )
    assert (one.network.num_classes, two.network.num_classes) == (1, 2)
    heads = [inputs.create().eval() for inputs in (one, two)]
    with torch.no_grad():
        single, both = (
            head(**inputs.batches("validation")[0].inputs) for head, inputs in zip(heads, (one, two), strict=True)
        )
    torch.testing.assert_close(both[:, 1] - both[:, 0], single[:, 0], rtol=1e-3, atol=1e-4)
    thawed = open_finetuning(replace(two.config, thawing=configure(start).thawing)).create()
    assert not torch.equal(thawed.head.weight[0], thawed.head.weight[1])


def test_a_head_is_solved_on_some_of_many_rows(
    start: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With --frozen their features are computed anyway; else a large set is not looked at first."""
    monkeypatch.setattr(linear, "SOLVED_ROWS", 300)
    monkeypatch.setattr(prepare, "PROBED_ROWS", 300)
    free = replace(configure(start, frozen=True), optimisation=OptimisationConfig(batch_size=32))
    probe = open_finetuning(replace(free, duration=DurationConfig()))
    assert sum(note.count("the head starts from logistic regression") for note in probe.notes) == 2
    probe.create()
    assert "solving logistic regression on the features of 30" in capsys.readouterr().err
    open_finetuning(configure(start)).create()
    assert "solving" not in capsys.readouterr().err


def test_rows_that_a_head_is_solved_on_lack_no_class() -> None:
    targets = np.zeros(100_000, dtype=np.int64)
    targets[777] = 1
    chosen = solved_rows("classes", targets)
    assert len(chosen) <= linear.SOLVED_ROWS + 1 and 777 in chosen
    assert len(solved_rows("regression", np.arange(100_000.0))) == linear.SOLVED_ROWS


def test_a_head_that_cannot_be_solved_is_said_to_be_drawn(start: Path) -> None:
    few = replace(configure(start, frozen=True), reading=ReadingConfig(train_fraction=0.005))
    few = replace(few, optimisation=OptimisationConfig(batch_size=2), duration=DurationConfig())
    inputs = open_finetuning(few)
    assert not inputs.probed and inputs.config.optimisation.lr == 1e-3
    assert not any("starts from" in note for note in inputs.notes)
    assert sum("the head is drawn, as the training rows lack a class" in note for note in inputs.notes) == 2


def test_threads_asked_for_hold_while_features_are_computed(
    start: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compute, seen, before = store.computed, [], torch.get_num_threads()

    def watched(*given: Any) -> Any:
        seen.append(torch.get_num_threads())
        return compute(*given)

    monkeypatch.setattr(store, "computed", watched)
    torch.set_num_threads(2)
    try:
        train(configure(start, steps=1, frozen=True), tmp_path / "run")
    finally:
        torch.set_num_threads(before)
    assert set(seen) == {1}


def test_a_run_of_no_given_length_ends_when_it_gets_no_better(start: Path) -> None:
    free = replace(configure(start), duration=DurationConfig())
    found = open_finetuning(free)
    assert (found.config.patience, found.objective.smoothing) == (5, 0.1)
    for words in ("ends after 5 evaluations without a better one", "labels smoothed by 0.1"):
        assert sum(note.startswith(words) and "(--" in note for note in found.notes) == 1
    assert open_finetuning(replace(free, patience=0)).config.patience == 0
    assert open_finetuning(configure(start)).config.patience is None, "who counts steps decides"
    probe = open_finetuning(replace(configure(start, frozen=True), duration=DurationConfig()))
    assert (probe.config.patience, probe.objective.smoothing) == (None, 0), "a head on its own is regular already"


def test_folds_share_the_features_of_all_rows_however_few_each_learns_from() -> None:
    found = [thin(folds=3, fold=fold, train_fraction=0.3) for fold in (0, 1)]
    rows = [store.used_rows(source, source.splits["train"]) for source in found]  # type: ignore[arg-type]
    assert np.array_equal(*rows) and len(rows[0]) == 1797


def test_a_feature_that_hardly_ever_occurs_is_not_made_loud() -> None:
    x = torch.randn(400, 6, generator=torch.Generator().manual_seed(0))
    targets = (x[:, 0] > 0).numpy().astype(np.int64)
    x[:, 4] = 0.25  # never varies
    x[:, 5] = 0.0
    x[:4, 5] = 1e-4  # hardly ever occurs, and by chance with one class
    targets[:4] = 1
    scale = linear.Scale.of(x)
    assert torch.allclose(scale(x)[:, :4].std(0, correction=0), torch.ones(4)), "the others are standardised"
    assert scale(x)[:, 4].abs().max() < 1e-6, "one that never varies is zero"
    model = linear.logistic(scale(x).numpy(), targets, 1.0, 100)
    weight, bias = (torch.from_numpy(np.atleast_2d(part)).float() for part in (model.coef_, model.intercept_))
    plain, shift = scale.unscaled(weight, bias[0])
    loud = x[:1].clone()
    loud[:, 5] = 1.0  # as another cut of the image may have it
    assert (loud @ plain.T + shift).abs() < 20, "and where it does occur, it does not decide alone"
    assert linear.Scale.of(torch.zeros(3, 2))(torch.ones(3, 2)).isfinite().all()
