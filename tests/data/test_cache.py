"""The cache survives two builders, a killed one, damage and a small limit."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch

from weft.data import SourceConfig, TransformConfig, batches, open_source, train_tokenizer
from weft.data.batch import stores
from weft.data.read import cache as cache_module
from weft.data.read.cache import FILLING, Cache, digest

BUILD = """
import sys, time, torch
from pathlib import Path
from weft.data.read.cache import Cache
def build():
    Path(sys.argv[2]).open("a").write("built ")
    time.sleep(float(sys.argv[3]))
    return {"x": torch.arange(1000)}
assert torch.equal(Cache(Path(sys.argv[1])).get("ab12", "numbers", build)["x"], torch.arange(1000))
"""


def builder(folder: Path, log: Path, seconds: float) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", BUILD, str(folder), str(log), str(seconds)])


def wait_for(path: Path) -> None:
    for _ in range(300):
        if path.exists():
            return
        time.sleep(0.1)
    raise AssertionError(f"{path} did not appear")


def test_two_processes_build_an_entry_once(tmp_path: Path):
    log = tmp_path / "log"
    both = [builder(tmp_path / "cache", log, 0.5) for _ in range(2)]
    assert [process.wait() for process in both] == [0, 0]
    assert log.read_text() == "built "


def test_a_builder_killed_in_the_middle_leaves_nothing_behind(tmp_path: Path):
    log = tmp_path / "log"
    victim = builder(tmp_path / "cache", log, 60)
    wait_for(log)
    os.kill(victim.pid, signal.SIGKILL)
    victim.wait()
    assert Cache(tmp_path / "cache").entries() == []
    assert builder(tmp_path / "cache", log, 0).wait() == 0
    assert log.read_text() == "built built "


def test_building_one_entry_may_need_another(tmp_path: Path):
    cache = Cache(tmp_path)
    inner = {"x": torch.ones(2)}
    assert torch.equal(cache.get("ab1", "", lambda: cache.get("ab2", "", lambda: inner))["x"], inner["x"])


def test_a_half_written_entry_is_overwritten(tmp_path: Path):
    (tmp_path / "ab12.part").write_bytes(b"half of it")
    cache = Cache(tmp_path)
    assert torch.equal(cache.get("ab12", "", lambda: {"x": torch.ones(3)})["x"], torch.ones(3))
    assert not (tmp_path / "ab12.part").exists()


@pytest.mark.parametrize("damage", ["flip a bit", "truncate", "empty"])
def test_a_damaged_entry_is_made_again(tmp_path: Path, damage: str):
    cache = Cache(tmp_path)
    cache.get("ab12", "", lambda: {"x": torch.arange(100)})
    path = tmp_path / "ab12.safetensors"
    data = bytearray(path.read_bytes())
    data[-17] ^= 4
    path.write_bytes({"flip a bit": bytes(data), "truncate": bytes(data[:-50]), "empty": b""}[damage])
    built = []
    again = cache.get("ab12", "", lambda: built.append(1) or {"x": torch.arange(100)})
    assert built == [1] and torch.equal(again["x"], torch.arange(100))


def refuse(*_: object, **__: object) -> None:
    raise OSError(errno.EROFS, "Read-only file system")


def test_an_entry_on_a_disk_that_is_only_read_serves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    Cache(tmp_path).get("ab12", "", lambda: {"x": torch.ones(3)})
    monkeypatch.setattr(os, "utime", refuse)
    again = Cache(tmp_path).get("ab12", "", lambda: pytest.fail("it is there"))
    assert torch.equal(again["x"], torch.ones(3))


@pytest.mark.filterwarnings("ignore:the cache")
def test_a_damaged_entry_that_cannot_be_removed_costs_only_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "ab12.safetensors").write_bytes(b"damaged")
    monkeypatch.setattr(Path, "unlink", refuse)
    assert torch.equal(Cache(tmp_path).get("ab12", "", lambda: {"x": torch.ones(3)})["x"], torch.ones(3))


@pytest.mark.filterwarnings("error")
def test_an_error_of_the_builder_is_its_own(tmp_path: Path):
    built = []

    def build() -> Any:
        built.append(1)
        raise FileNotFoundError(errno.ENOENT, "a picture is gone")

    with pytest.raises(FileNotFoundError, match="a picture is gone"):
        Cache(tmp_path).get("ab12", "", build)
    assert built == [1]


def test_what_was_built_and_cannot_be_stored_is_not_built_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(cache_module, "save_file", refuse)
    built = []
    with pytest.warns(UserWarning, match="cannot be used"):
        Cache(tmp_path).get("ab12", "", lambda: built.append(1) or {"x": torch.ones(3)})
    assert built == [1]


def test_the_least_recently_used_goes_when_the_limit_is_reached(tmp_path: Path):
    cache = Cache(tmp_path, limit=10_000)
    for number, name in enumerate(("a", "b", "c")):
        cache.get(digest(name), name, lambda: {"x": torch.zeros(1000)})
        os.utime(tmp_path / f"{digest(name)}.safetensors", (number, number))
    assert [entry.about for entry in cache.entries()] == ["b", "c"]
    cache.get(digest("b"), "", dict)  # used: now the newest
    cache.get(digest("d"), "d", lambda: {"x": torch.zeros(1000)})
    assert sorted(entry.about for entry in cache.entries()) == ["b", "d"]
    assert cache.clear() > 8000 and cache.entries() == []


def test_files_that_weft_did_not_write_are_neither_listed_nor_removed(tmp_path: Path):
    mine = [tmp_path / name for name in ("mine.safetensors", "a.lock", "notes.json")]
    for path in mine:
        path.write_bytes(bytes(20_000))
    cache = Cache(tmp_path, limit=10_000)
    cache.get(digest("a"), "a", lambda: {"x": torch.zeros(1000)})
    assert [entry.about for entry in cache.entries()] == ["a"]
    cache.clear()
    assert sorted(tmp_path.iterdir()) == sorted(mine)


def test_a_folder_that_cannot_be_written_costs_only_time(tmp_path: Path):
    (tmp_path / "file").write_text("in the way")
    with pytest.warns(UserWarning, match="going on without"):
        found = Cache(tmp_path / "file" / "cache").get("ab", "", lambda: {"x": torch.ones(1)})
    assert torch.equal(found["x"], torch.ones(1))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    return now


def test_to_wait_for_another_builder_counts_as_making_it(
    tmp_path: Path, clock: list[float], monkeypatch: pytest.MonkeyPatch
):
    cache, lock, before = Cache(tmp_path), Cache._lock, FILLING.seconds

    @contextmanager
    def held(self: Cache, key: str) -> Iterator[None]:
        """Another process holds the lock, makes the entry and lets go."""
        with lock(self, key):
            self._store(tmp_path / f"{key}.safetensors", {"x": torch.ones(1)}, "")
            clock[0] += 40.0
            yield

    monkeypatch.setattr(Cache, "_lock", held)
    assert torch.equal(cache.get("ab", "", lambda: pytest.fail("it was made meanwhile"))["x"], torch.ones(1))
    assert FILLING.seconds - before == 40.0
    cache.get("ab", "", lambda: pytest.fail("it is there"))
    assert FILLING.seconds - before == 40.0


def test_what_is_made_without_a_cache_counts_as_well(tmp_path: Path, clock: list[float]):
    (tmp_path / "file").write_text("in the way")
    before = FILLING.seconds

    def build() -> dict[str, torch.Tensor]:
        clock[0] += 30.0
        return {"x": torch.ones(1)}

    with pytest.warns(UserWarning, match="going on without"):
        Cache(tmp_path / "file" / "cache").get("ab", "", build)
    assert FILLING.seconds - before == 30.0


def test_arrays_are_resized_once_for_all_roles_and_kept_in_memory(
    own_cache: Path, clock: list[float], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    source, resized, rows = open_source("digits"), [], stores.DecodedPixels.rows

    def slow(self: stores.DecodedPixels, index: Any, boxes: Any) -> Any:
        resized.append(len(index))
        clock[0] += 4.0
        return rows(self, index, boxes)

    monkeypatch.setattr(stores.DecodedPixels, "rows", slow)
    for role in ("train", "validation", "test", "test"):
        assert batches(source, role, 4, transform=TransformConfig(img_size=12))[0].inputs["x"].shape[-1] == 12
    assert sum(resized) == 1797
    assert capsys.readouterr().err.count("preparing 1,797 images, once; they are kept in memory: about 4 s") == 1
    batches(source, "train", 4, transform=TransformConfig(img_size=14))
    assert sum(resized) == 2 * 1797, "another side is another table"


def test_images_are_decoded_once_and_keyed_by_content_and_size(image_folder: Path, own_cache: Path):
    first = batches(open_source(image_folder), "train", 4)[0]
    entries = {entry.path for entry in Cache().entries()}
    assert len(entries) == 3  # the images, and the sizes and the statistics of these training rows
    again = batches(open_source(image_folder, split_seed=1), "train", 4)
    assert len({entry.path for entry in Cache().entries()} - entries) == 2  # other rows, other sizes and statistics
    assert first.inputs["x"].shape == again[0].inputs["x"].shape
    batches(open_source(image_folder), "train", 4, transform=TransformConfig(img_size=8))
    assert len(Cache().entries()) == 7  # images and statistics; their sizes are known
    victim = next((image_folder / "cat").iterdir())
    victim.write_bytes((image_folder / "dog" / "00.jpeg").read_bytes())
    batches(open_source(image_folder), "train", 4)
    assert len(Cache().entries()) == 10


def test_other_columns_of_one_file_have_other_ids(tmp_path: Path) -> None:
    """The same tokenizer on a pair and on each of its texts: three entries of the cache, not one."""
    lines = [f"red {n},blue {n} sky,{n % 2}" for n in range(40)]
    (tmp_path / "pairs.csv").write_text("\n".join(["premise,hypothesis,label", *lines]) + "\n")
    tokenizer = train_tokenizer(lines, 200)

    def first(**config: Any) -> list[str]:
        source = open_source(tmp_path / "pairs.csv", SourceConfig(target="label", **config))
        batch = batches(source, "test", batch_size=1, train=False, tokenizer=tokenizer)[0]
        return tokenizer.decode(batch.inputs["x"][0].tolist()).split()

    pair = first()
    assert "red" in pair and "sky" in pair
    assert "red" not in first(inputs=("hypothesis",)) and "sky" not in first(inputs=("premise",))
