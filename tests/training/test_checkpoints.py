"""Checkpoints are whole or not there: truncation, flipped bits, a full disk, a kill while writing."""

from __future__ import annotations

import random
import resource
import signal
from pathlib import Path

import pytest
import torch

from weft.errors import WeftError
from weft.training.storage.checkpoints import MANIFEST, TENSORS, Checkpoint, CheckpointStore, Damaged


@pytest.fixture
def store(tmp_path: Path) -> CheckpointStore:
    """A store with checkpoints of steps 1 and 2."""
    store = CheckpointStore(tmp_path / "checkpoints")
    for step in (1, 2):
        store.save(checkpoint(step))
    return store


def checkpoint(step: int, size: int = 50) -> Checkpoint:
    generator = torch.Generator().manual_seed(step)
    tensors = {"model.weight": torch.randn(size, generator=generator), "count": torch.tensor(step)}
    return Checkpoint(step, tensors, {"loss": 0.1 + step, "nothing": None, "word": "é"})


def test_what_was_saved_is_loaded(store: CheckpointStore) -> None:
    found, expected = store.load(2), checkpoint(2)
    assert found.numbers == expected.numbers
    assert all(torch.equal(found.tensors[name], value) for name, value in expected.tensors.items())


def test_no_truncated_checkpoint_is_accepted(store: CheckpointStore) -> None:
    """Each file cut at 100 places: 200 in all, every one noticed, and the checkpoint before it used."""
    for name in (TENSORS, MANIFEST):
        path = store.folder / "00000002" / name
        content = path.read_bytes()
        for number in range(100):
            path.write_bytes(content[: len(content) * number // 100])
            with pytest.raises(Damaged):
                store.load(2)
        path.write_bytes(content)
    assert store.load(2).step == 2


def test_no_flipped_bit_is_accepted(store: CheckpointStore) -> None:
    """1,000 single bits flipped at random places of both files."""
    chance = random.Random(0)
    paths = [store.folder / "00000002" / name for name in (TENSORS, MANIFEST)]
    contents = [path.read_bytes() for path in paths]
    for _ in range(1000):
        which = chance.randrange(2)
        damaged = bytearray(contents[which])
        damaged[chance.randrange(len(damaged))] ^= 1 << chance.randrange(8)
        paths[which].write_bytes(damaged)
        with pytest.raises(Damaged):
            store.load(2)
        paths[which].write_bytes(contents[which])


def test_a_damaged_checkpoint_falls_back_to_the_one_before_it(store: CheckpointStore) -> None:
    (store.folder / "00000002" / TENSORS).write_bytes(b"")
    with pytest.warns(UserWarning, match="00000002.*using the one before it"):
        assert store.require().step == 1


def test_nothing_sound_is_an_error_with_a_remedy(store: CheckpointStore) -> None:
    for step in store.steps():
        (store.folder / f"{step:08d}" / MANIFEST).unlink()
    with pytest.warns(UserWarning), pytest.raises(WeftError, match="no sound checkpoint"):
        store.require()


def test_a_renamed_checkpoint_is_not_taken_for_another_step(store: CheckpointStore) -> None:
    (store.folder / "00000002").rename(store.folder / "00000009")
    with pytest.raises(Damaged):
        store.load(9)


def test_a_full_disk_is_a_clear_error_and_leaves_the_older_checkpoint(store: CheckpointStore) -> None:
    """The kernel refuses bytes beyond a limit, as a full disk does."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
    try:
        with pytest.raises(WeftError, match=r"disk is full.*intact"):
            store.save(checkpoint(3, size=1_000_000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)
    assert store.steps() == [1, 2]
    assert not list(store.folder.glob(".*")), "the half-written checkpoint is still there"
    assert store.require().step == 2


def test_what_a_killed_writer_left_is_swept_away(store: CheckpointStore) -> None:
    leftover = store.folder / ".00000003.writing"
    leftover.mkdir()
    (leftover / TENSORS).write_bytes(b"half")
    assert store.steps() == [1, 2]
    store.save(checkpoint(3))
    store.prune({2, 3})
    assert store.steps() == [2, 3]
    assert not list(store.folder.glob(".*"))
