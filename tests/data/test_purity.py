"""A batch is a pure function of (seed, step): whatever the workers, the ranks, and the batches made before it."""

from __future__ import annotations

import weakref
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from data.made import sentence, tar_of_images, write_parquet
from weft.data import AugmentConfig, TransformConfig, batches, open_source
from weft.data.batch.loader import Batch
from weft.data.open import splits
from weft.data.open.source import Source

EVERYTHING = AugmentConfig(
    resized_crop=(0.4, 1.0),
    crop_padding=2,
    flip=True,
    color_jitter=0.4,
    policy="trivial",
    reprob=0.5,
    mixup=0.4,
    cutmix=1.0,
)
KINDS = ("stored images", "decoded images", "text", "vectors", "streamed text", "streamed images")
few = settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Source]:
    """One open source of each kind that batches are made from differently."""
    folder = tmp_path_factory.mktemp("sources")
    tar_of_images(folder / "tar", 90)
    write_parquet(folder / "parquet", 200)
    return {
        "stored images": open_source("digits"),
        "decoded images": open_source(folder / "tar", memory=100_000),
        "text": open_source(folder / "parquet"),
        "vectors": open_source("breast_cancer"),
        "streamed text": open_source(folder / "parquet", stream=True),
        "streamed images": open_source(folder / "tar", stream=True),
    }


@pytest.fixture(scope="module")
def transforms(sources: dict[str, Source]) -> dict[str, Any]:
    from weft.data import fit

    config = TransformConfig(max_length=16, vocab_size=200)
    return {kind: fit(source, config) for kind, source in sources.items()}


def make(sources: dict[str, Source], transforms: dict[str, Any], kind: str, **options: Any) -> Any:
    options = {"batch_size": 11, "augment": EVERYTHING if "images" in kind else None, "workers": 0} | options
    return batches(sources[kind], "train", transform=transforms[kind], **options)


def assert_same(one: Batch, other: Batch) -> None:
    assert one.size == other.size
    assert torch.equal(one.index, other.index)
    assert torch.equal(one.targets, other.targets)
    assert one.inputs.keys() == other.inputs.keys()
    for name, tensor in one.inputs.items():
        assert torch.equal(tensor, other.inputs[name]), name


@pytest.mark.parametrize("kind", KINDS)
@few
@given(seed=st.integers(0, 2**31), step=st.integers(0, 60), before=st.lists(st.integers(0, 60), max_size=3))
def test_a_batch_does_not_depend_on_those_made_before_it(sources, transforms, kind, seed, step, before):
    used = make(sources, transforms, kind, seed=seed)
    for number in before:
        used[number]
    assert_same(used[step], make(sources, transforms, kind, seed=seed)[step])


@pytest.mark.parametrize("kind", KINDS)
@few
@given(seed=st.integers(0, 2**31), step=st.integers(0, 60), world=st.integers(1, 5))
def test_the_ranks_slices_are_the_whole_batch(sources, transforms, kind, seed, step, world):
    whole = make(sources, transforms, kind, seed=seed)[step]
    parts = [make(sources, transforms, kind, seed=seed, rank=rank, world=world)[step] for rank in range(world)]
    joined = Batch(
        {name: torch.cat([part.inputs[name] for part in parts]) for name in whole.inputs},
        torch.cat([part.targets for part in parts]),
        torch.cat([part.index for part in parts]),
        parts[0].size,
    )
    assert_same(joined, whole)


@pytest.mark.parametrize("kind", KINDS)
@few
@given(seed=st.integers(0, 2**31), first=st.integers(0, 40), workers=st.integers(1, 4))
def test_workers_and_prefetching_change_nothing(sources, transforms, kind, seed, first, workers):
    plain = make(sources, transforms, kind, seed=seed)
    fetched = list(make(sources, transforms, kind, seed=seed, workers=workers).range(first, first + 4))
    assert len(fetched) == 4
    for offset, batch in enumerate(fetched):
        assert_same(batch, plain[first + offset])


@pytest.mark.parametrize("kind", KINDS)
def test_the_seed_and_the_step_do_change_it(sources, transforms, kind):
    loader = make(sources, transforms, kind, seed=1)
    assert not torch.equal(loader[0].index, loader[1].index)
    assert not torch.equal(loader[0].index, make(sources, transforms, kind, seed=2)[0].index)
    epoch = loader.steps_per_epoch
    assert not torch.equal(loader[0].index, loader[epoch].index)


@pytest.mark.parametrize("kind", KINDS)
def test_an_epoch_has_no_example_twice_and_evaluation_has_each_once_in_order(sources, transforms, kind):
    loader = make(sources, transforms, kind)
    seen = torch.cat([loader[step].index for step in range(loader.steps_per_epoch)])
    assert len(seen.unique()) == len(seen) > len(sources[kind].splits["train"]) - 11
    report = batches(sources[kind], "test", batch_size=7, transform=transforms[kind])
    order = torch.cat([batch.index for batch in report])
    assert torch.equal(order, torch.arange(len(sources[kind].splits["test"])))


@pytest.mark.parametrize("kind", KINDS)
def test_every_row_of_a_batch_is_its_own_example(sources, transforms, kind):
    """Inputs and targets belong to the example that `index` names, in training as in evaluation."""
    split = sources[kind].splits["train"]
    for loader in (make(sources, transforms, kind, augment=None), make(sources, transforms, kind, train=False)):
        batch = loader[2]
        raws, targets = split.read(batch.index.numpy())
        assert batch.targets.tolist() == targets.tolist()
        for row, raw in enumerate(raws):
            alone = transforms[kind](raw)["x"][0]
            assert torch.equal(batch.inputs["x"][row][: len(alone)], alone)


def test_threads_of_torch_change_nothing(sources, transforms):
    single = make(sources, transforms, "stored images")[3]
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        assert_same(make(sources, transforms, "stored images")[3], single)
    finally:
        torch.set_num_threads(before)


def test_another_process_makes_the_same_batch(tmp_path: Path):
    """A restart: nothing of the first process but the source on disk is left."""
    import hashlib
    import subprocess
    import sys

    write_parquet(tmp_path / "text", 60)
    program = (
        "import hashlib, torch; from weft.data import *\n"
        "config = AugmentConfig(flip=True, policy='rand', cutmix=1.0)\n"
        f"for source in ['digits', {str(tmp_path / 'text')!r}]:\n"
        "    batch = batches(open_source(source), 'train', 16, seed=5, augment=config)[77]\n"
        "    print(hashlib.sha256(batch.inputs['x'].numpy().tobytes()).hexdigest())\n"
    )
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    for source, digest in zip(["digits", str(tmp_path / "text")], told, strict=True):
        config = AugmentConfig(flip=True, policy="rand", cutmix=1.0)
        batch = batches(open_source(source), "train", 16, seed=5, augment=config)[77]
        assert hashlib.sha256(batch.inputs["x"].numpy().tobytes()).hexdigest() == digest


def test_a_streamed_split_has_the_rows_of_the_one_in_memory(tmp_path: Path):
    folder = write_parquet(tmp_path / "text", 100)
    stream = open_source(folder, stream=True)
    texts = [text for split in ("train", "validation", "test") for text in read_all(stream, split)]
    assert sorted(texts) == sorted(sentence(row) for row in range(100))
    streamed = stream.splits["train"]
    labels = {sentence(row): row % 3 for row in range(100)}
    inputs, targets = streamed.read(np.arange(len(streamed))[::-1].copy())
    assert [labels[text] for text in inputs] == targets.tolist()


def read_all(source: Source, role: str) -> list[str]:
    split = source.splits[role]
    return list(split.read(np.arange(len(split)))[0])


def test_a_streamed_batch_reads_only_its_window(tmp_path: Path):
    source = open_source(write_parquet(tmp_path / "text", 4000, group=10), stream=True)
    split = source.splits["train"]
    split._recent.clear()
    read: list[int] = []
    block = split.shards.block
    split.shards.block = lambda number: read.append(number) or block(number)  # type: ignore[method-assign]
    split.read(split.order(9, 2000, 2008))
    assert 1 <= len(read) <= 2 * split.WINDOW < len(split.shards.rows)


def test_the_configurations_survive_being_written_down():
    assert AugmentConfig(**asdict(EVERYTHING)) == EVERYTHING


def test_a_streamed_epoch_holds_no_more_blocks_than_a_window(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    made: list[weakref.ref[splits.Checked]] = []
    checked = splits.Checked

    def counted(*parts: Any) -> splits.Checked:
        block = checked(*parts)
        made.append(weakref.ref(block))
        return block

    monkeypatch.setattr(splits, "Checked", counted)
    source = open_source(write_parquet(tmp_path / "text", 1000, group=10), stream=True)
    loader = batches(source, "train", 16)
    most = max(sum(block() is not None for block in made) for _ in loader.range())
    window = splits.StreamSplit.WINDOW
    assert window <= most <= window + 2 < len(source.splits["train"].shards.rows), "a window, the last and the next"
