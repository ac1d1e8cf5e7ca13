"""Everything that is said to load does, and the roles are given as promised."""

from __future__ import annotations

import gzip
import json
import shutil
import struct
from importlib.machinery import ModuleSpec
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.datasets import load_digits

from data.made import encoded, sentence, tar_of_images, write_parquet, write_tar
from weft.data import batches, open_source
from weft.data.batch import noise
from weft.data.open.groups import sentence_cut
from weft.data.open.splits import MemorySplit, StreamSplit, draw_rows
from weft.data.sources import find
from weft.errors import WeftError


def rows_of(split: MemorySplit | StreamSplit) -> list:
    return list(split.read(np.arange(len(split)))[0])


@pytest.mark.parametrize(
    ("name", "modality", "task", "rows"),
    [
        ("digits", "image", "classes", 1797),
        ("breast_cancer", "vector", "binary", 569),
        ("diabetes", "vector", "regression", 442),
    ],
)
def test_embedded_sets_are_whole(name, modality, task, rows):
    source = open_source(name)
    assert (source.modality, source.task) == (modality, task)
    assert sum(len(split) for split in source.splits.values()) == rows
    assert any("held out" in note for note in source.notes)


def test_pydocs_has_a_dozen_classes_and_a_corpus():
    source = open_source("pydocs")
    assert 8 <= len(source.classes) <= 20 and source.task == "classes"
    assert sum(len(split) for split in source.splits.values()) > 6000
    assert "asyncio" in source.classes
    assert len(source.splits["unlabelled"]) > 1000


EXPECTED = {
    "cifar10": ("image", "classes", 60_000),
    "oxford_pets_96": ("image", "classes", 7_349),
    "sst2": ("text", "binary", 70_042),
    "mnli_subset": ("pair", "classes", 26_873),
    "imdb": ("text", "binary", 100_000),
    "rotten_tomatoes": ("text", "binary", 10_662),
    "rte": ("pair", "binary", 2_767),
    "wikitext2_heldout": ("text", "none", 8_118 - 1_299 - 1_467),
    "wiki_small": ("text", "none", 12_318),
}


@pytest.mark.parametrize("name", EXPECTED)
def test_every_real_dataset_loads_by_its_path_with_no_options(datasets: Path, name: str):
    source = open_source(datasets / name)
    modality, task, rows = EXPECTED[name]
    assert (source.modality, source.task) == (modality, task)
    assert sum(len(split) for split in source.splits.values()) == rows
    report = "held out of train by seed" if name == "wiki_small" else ("test", "validation", "validation_matched")
    assert source.splits["test"].origin in report


def test_weights_are_not_data(datasets: Path):
    with pytest.raises(WeftError, match="nothing that weft can read"):
        open_source(datasets / "resnet_cifar10_weights")


def test_no_phrase_of_a_validation_sentence_is_trained_on(datasets: Path, tmp_path: Path):
    for file in (datasets / "sst2").rglob("train*.parquet"):
        shutil.copy(file, tmp_path)
    source = open_source(tmp_path)
    train, validation = set(rows_of(source.splits["train"])), rows_of(source.splits["validation"])
    sentences = sorted(validation, key=len)[-300:]
    phrases = {
        " ".join(words[a:b])
        for words in map(str.split, sentences)
        for a in range(len(words))
        for b in range(a + 1, len(words) + 1)
    }
    assert len(phrases) > 10_000
    assert not phrases & train
    assert any("by sentence" in note for note in source.notes)


def test_phrases_follow_every_sentence_that_contains_them():
    texts = ["the film is very good", "very good", "the film", "a dull affair", "dull", "the film bored me", "bored me"]
    for stream in range(20):
        cut = sentence_cut(texts, 0.34, stream)
        assert cut is not None
        taken = {text for text, chosen in zip(texts, cut, strict=True) if chosen}
        left = set(texts) - taken
        assert not any(f" {phrase} " in f" {whole} " for phrase in left for whole in taken)
    assert sentence_cut([sentence(number) for number in range(50)], 0.1, 0) is None


def test_equal_texts_never_straddle_a_cut(tmp_path: Path):
    rows = [{"text": f"text number {number // 3}", "label": "ab"[number % 2]} for number in range(90)]
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    source = open_source(path)
    sets = [set(rows_of(split)) for split in source.splits.values()]
    assert not sets[0] & sets[1] and not sets[0] & sets[2] and not sets[1] & sets[2]


def as_folder(folder: Path, images: list[int]) -> Path:
    for row, number in enumerate(images):
        (folder / "ab"[row % 2]).mkdir(parents=True, exist_ok=True)
        (folder / "ab"[row % 2] / f"{row:03}.png").write_bytes(encoded(number))
    return folder


def as_tar(folder: Path, images: list[int]) -> Path:
    members = {f"{row:03}.png": encoded(number) for row, number in enumerate(images)}
    labels = {f"{row:03}.cls": str(row % 2).encode() for row in range(len(images))}
    return write_tar(folder / "rows.tar", dict(sorted((members | labels).items())))


def as_parquet(folder: Path, images: list[int]) -> Path:
    folder.mkdir()
    rows = {"image": [{"bytes": encoded(number), "path": None} for number in images]}
    pq.write_table(pa.table(rows | {"label": [row % 2 for row in range(len(images))]}), folder / "rows.parquet")
    return folder


def as_idx(folder: Path, images: list[int]) -> Path:
    folder.mkdir()
    pixels = np.stack([np.random.default_rng(number).integers(0, 256, (8, 8), dtype=np.uint8) for number in images])
    header = struct.pack(">HBB3I", 0, 8, 3, len(images), 8, 8)
    (folder / "all-images-idx3-ubyte").write_bytes(header + pixels.tobytes())
    labels = bytes(row % 2 for row in range(len(images)))
    (folder / "all-labels-idx1-ubyte").write_bytes(struct.pack(">HBBI", 0, 8, 1, len(images)) + labels)
    return folder


@pytest.mark.parametrize("stored", [as_folder, as_tar, as_parquet, as_idx])
@pytest.mark.parametrize("folds", [{}, {"folds": 3, "fold": 0}, {"folds": 3, "fold": 2}])
def test_equal_images_never_straddle_a_cut(tmp_path: Path, stored, folds: dict[str, int]):
    path = stored(tmp_path / "data", [row // 3 for row in range(90)])
    for _ in range(2):  # which are equal is kept for the second time
        source = open_source(path, **folds)
        sets = [{bytes(image) for image in rows_of(split)} for split in source.splits.values()]
        assert not sets[0] & sets[1] and not sets[0] & sets[2] and not sets[1] & sets[2]
        assert sum(map(len, sets)) == 30 and all(len(part) >= 2 for part in sets)


def test_a_pair_of_equal_images_hardly_moves_the_cut(tmp_path: Path):
    """And where none is equal the cut is the one of plain rows, as it was before images were compared."""
    tested = []
    for name, images in (("all_differ", list(range(200))), ("two_equal", [*range(199), 0])):
        source = open_source(as_idx(tmp_path / name, images))
        tested.append(set(source.splits["test"].rows.tolist()))
    rows = np.flatnonzero(draw_rows(np.arange(200) % 2, None, 0.2, noise.key(0, "test"), 200))
    assert tested[0] == set(rows.tolist()) and len(tested[0] ^ tested[1]) <= 2


def test_groups_stay_together(csv_file):
    lines = ["text,label,group"] + [f"note {n} of a patient,{n % 2},p{n // 5}" for n in range(100)]
    source = open_source(csv_file("\n".join(lines)))
    groups = [{int(text.split()[1]) // 5 for text in rows_of(split)} for split in source.splits.values()]
    assert sum(map(len, groups)) == 20


def test_selection_takes_the_same_share_of_every_class_and_nothing_of_the_report(csv_file):
    lines = ["x,y,label"] + [f"{n},{n * n},{'rare' if n % 10 == 0 else 'common'}" for n in range(400)]
    source = open_source(csv_file("\n".join(lines)), val_fraction=0.25)
    counts = {role: np.bincount(split.targets.astype(int)).tolist() for role, split in source.splits.items()}
    assert counts == {"train": [216, 24], "validation": [72, 8], "test": [72, 8]}
    values = [tuple(row) for split in source.splits.values() for row in rows_of(split)]
    assert len(set(values)) == 400


def test_the_seed_decides_what_is_held_out():
    one, same, other = (open_source("diabetes", split_seed=seed).splits["test"].rows for seed in (1, 1, 2))
    assert np.array_equal(one, same) and not np.array_equal(one, other)


def test_an_image_folder_with_and_without_splits(image_folder: Path, tmp_path: Path):
    source = open_source(image_folder)
    assert (source.classes, source.modality) == (["cat", "dog"], "image")
    assert sum(len(split) for split in source.splits.values()) == 24
    for split in ("train", "val", "test"):
        for name in ("a", "b", "c"):
            folder = tmp_path / "split" / split / name
            folder.mkdir(parents=True)
            for number in range(4):
                (folder / f"{number}.png").write_bytes(encoded(number))
    source = open_source(tmp_path / "split")
    assert len(source.splits["test"]) == 12 and source.splits["test"].origin == "test"
    assert len(source.splits["validation"]) == 12 and source.splits["validation"].origin == "val"
    assert len(source.splits["train"]) == 12 and list(source.splits) == ["train", "validation", "test"]
    assert "'val' serves for choices, 'test' for the final figures" in source.notes
    assert batches(source, "train", 4)[0].inputs["x"].shape == (4, 3, 16, 16)


def test_idx_files_as_of_mnist(tmp_path: Path):
    pixels = np.random.default_rng(0).integers(0, 256, (30, 28, 28), dtype=np.uint8)
    for name, opener in (("train", open), ("t10k", gzip.open)):
        ending = ".gz" if opener is gzip.open else ""
        with opener(tmp_path / f"{name}-images-idx3-ubyte{ending}", "wb") as file:
            file.write(struct.pack(">HBB3I", 0, 8, 3, 30, 28, 28) + pixels.tobytes())
        with opener(tmp_path / f"{name}-labels-idx1-ubyte{ending}", "wb") as file:
            file.write(struct.pack(">HBBI", 0, 8, 1, 30) + bytes(n % 3 for n in range(30)))
    source = open_source(tmp_path)
    assert source.splits["test"].origin == "test" and len(source.splits["test"]) == 30
    assert np.array_equal(np.stack(rows_of(source.splits["test"]))[:, 0], pixels)


@pytest.mark.parametrize("stream", [False, True])
def test_tar_shards_in_memory_and_streamed(tmp_path: Path, stream: bool):
    source = open_source(tar_of_images(tmp_path / "shards", 700), stream=stream)
    assert source.classes == ["0", "1", "2"] and source.modality == "image"
    images = {encoded(row, (12, 12)): row % 3 for row in range(700)}
    for split in source.splits.values():
        inputs, targets = split.read(np.arange(len(split)))
        assert [images.pop(data) for data in inputs] == targets.tolist()
    assert not images


def test_text_pairs_vectors_and_plain_text(csv_file, tmp_path: Path):
    pairs = "premise\thypothesis\tlabel\n" + "\n".join(
        f'it "rains {n}\tit is wet\tyes' if n % 2 else f"sun {n}\tit is wet\tno" for n in range(20)
    )
    source = open_source(csv_file(pairs, "pairs.tsv"))
    assert source.modality == "pair" and source.classes == ["no", "yes"]
    numbers = "a,b,target\n" + "\n".join(f"{n},{n / 7},{n / 3}" for n in range(20))
    source = open_source(csv_file(numbers, "numbers.csv"))
    assert (source.modality, source.task, source.columns) == ("vector", "regression", ["a", "b"])
    source = open_source(csv_file("\n\n".join(sentence(n) for n in range(20)), "plain.txt"))
    assert (source.modality, source.task) == ("text", "none")
    assert any("19 blank rows" in note for note in source.notes)
    lists = tmp_path / "lists.parquet"
    pq.write_table(
        pa.table({"features": [[1.0, float(n)] for n in range(20)], "label": [n % 2 for n in range(20)]}), lists
    )
    assert open_source(lists).splits["train"].table.inputs.shape == (20, 2)


def test_the_target_is_guessed_only_when_that_is_unambiguous(csv_file):
    table = "text,stars,helpful\n" + "\n".join(f"review {n},{n % 5},{n % 2}" for n in range(40))
    with pytest.raises(WeftError, match=r"which column is to be predicted.*stars, helpful"):
        open_source(csv_file(table))
    assert len(open_source(csv_file(table), target="stars").classes) == 5
    with pytest.raises(WeftError, match="no column 'starz'; did you mean stars"):
        open_source(csv_file(table), target="starz")
    assert open_source(csv_file(table), target="stars", task="regression").task == "regression"


def test_labels_may_be_names_or_numbers(tmp_path: Path):
    names = {"info": {"features": {"label": {"names": ["no", "yes"], "_type": "ClassLabel"}}}}
    for labels in ([0, 1] * 10, ["no", "yes"] * 10):
        table = pa.table({"text": [sentence(n) for n in range(20)], "label": labels})
        table = table.replace_schema_metadata({"huggingface": json.dumps(names)})
        pq.write_table(table, tmp_path / "train.parquet")
        source = open_source(tmp_path)
        whole = {
            text: target
            for split in source.splits.values()
            for text, target in zip(*split.read(np.arange(len(split))), strict=True)
        }
        assert [whole[sentence(n)] for n in range(20)] == [0, 1] * 10


def test_a_test_split_without_labels_reports_on_validation(tmp_path: Path):
    for split, labels in (("train", [0, 1] * 20), ("validation", [0, 1] * 5), ("test", [-1] * 10)):
        table = pa.table({"sentence": [f"{split} {sentence(n)}" for n in range(len(labels))], "label": labels})
        pq.write_table(table, tmp_path / f"{split}.parquet")
    source = open_source(tmp_path)
    assert source.splits["test"].origin == "validation"
    assert any("test split has no labels" in note for note in source.notes)


def test_a_streamed_source_counts_its_rows_and_says_what_is_held_out(tmp_path: Path):
    source = open_source(write_parquet(tmp_path / "text", 3000), memory=1000)
    assert all(isinstance(split, StreamSplit) for split in source.splits.values())
    assert sum(len(split) for split in source.splits.values()) == 3000
    assert abs(len(source.splits["test"]) - 600) < 90
    assert any("held out" in note for note in source.notes)


def test_text_in_tar_shards(tmp_path: Path):
    members = {
        f"{n:03}{end}": data
        for n in range(20)
        for end, data in ((".txt", sentence(n).encode()), (".json", json.dumps({"label": n % 2}).encode()))
    }
    source = open_source(write_tar(tmp_path / "train.tar", members))
    assert (source.modality, source.task) == ("text", "binary")


def test_the_hub_needs_its_extra(monkeypatch: pytest.MonkeyPatch):
    import sys

    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(WeftError, match=r"pip install 'weft\[hub\]'"):
        open_source("hub:stanfordnlp/imdb")


def test_an_unknown_name_is_told_the_nearest():
    with pytest.raises(WeftError, match="did you mean digits"):
        open_source("digit")


def test_digits_are_those_of_scikit_learn_whether_or_not_its_file_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    theirs, elsewhere = load_digits(), ModuleSpec("sklearn", None)
    elsewhere.submodule_search_locations = [str(tmp_path)]
    found = [find.read_digits()]
    assert find._digits_file() is not None
    monkeypatch.setattr(find, "find_spec", lambda name: elsewhere)
    assert find._digits_file() is None
    found.append(find.read_digits())
    for reading in found:
        (table,) = reading.tables.values()
        assert np.array_equal(table.inputs[:, 0], np.rint(theirs.images * (255 / 16)))
        assert np.array_equal(table.labels, theirs.target) and table.labels.dtype == np.int64
    assert found[0].files == found[1].files
