"""The tokeniser gives exactly what `tokenizers` gives, the same vocabulary in every process, and buckets of text."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from data.made import sentence
from weft.data import Tokenizer, train_tokenizer
from weft.data.batch.noise import bucketed
from weft.data.batch.token_batches import bucket, pad_batch
from weft.errors import WeftError

TEXTS = [sentence(number) + " Él está aquí, naïve!" for number in range(200)]
texts = st.text(alphabet=st.sampled_from("aeé ñ.,-\t\n\x1c\x85\u3000中文Σσ[MASK]rdgbluwft0123456789"), max_size=60)


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return train_tokenizer(TEXTS, vocab_size=300)


@settings(max_examples=150, deadline=None)
@given(raws=st.lists(texts | st.tuples(texts, texts), min_size=1, max_size=6), length=st.integers(8, 40))
def test_ids_are_exactly_those_of_the_library(tokenizer: Tokenizer, raws, length):
    ours = tokenizer.encode(raws, length)
    tokenizer.library.enable_truncation(length, strategy="longest_first")
    try:
        theirs = [tokenizer.library.encode(*((raw,) if isinstance(raw, str) else raw)) for raw in raws]
    finally:
        tokenizer.library.no_truncation()
    assert ours == [(encoding.ids, encoding.type_ids) for encoding in theirs]


@pytest.mark.parametrize("filler", ["word " * 5000, "a" * 50_000 + " b", " " * 50_000 + "red green", "blue\n" * 9000])
def test_long_texts_are_cut_as_if_they_had_been_read_whole(tokenizer: Tokenizer, filler: str):
    [(ids, _)] = tokenizer.encode([filler], 16)
    whole = tokenizer.library.encode(filler, add_special_tokens=False).ids
    assert ids == [tokenizer.cls_id, *whole[:14], tokenizer.sep_id]


def test_the_vocabulary_is_the_same_in_every_process(datasets: Path):
    """The trainer of `tokenizers` alone gives another one each time: its hash tables are seeded by the process."""
    program = (
        "import hashlib, pyarrow.parquet as pq; from weft.data.transform.tokenizer import train_tokenizer\n"
        f"texts = pq.read_table({str(datasets / 'rotten_tomatoes' / 'train.parquet')!r})['text'].to_pylist()\n"
        "print(hashlib.sha256(train_tokenizer(texts, 4000).content().encode()).hexdigest())"
    )
    told = [subprocess.check_output([sys.executable, "-c", program]) for _ in range(3)]
    assert told[0] == told[1] == told[2] and len(told[0]) == 65


def test_only_training_rows_shape_the_vocabulary(csv_file):
    from weft.data import TransformConfig, fit, open_source

    rows = [f"{'zebra' * (n % 5 == 0)} plain words {n},{n % 2}" for n in range(100)]
    source = open_source(csv_file("text,label\n" + "\n".join(rows)))
    texts, _ = source.splits["train"].read(np.arange(len(source.splits["train"])))
    transform = fit(source, TransformConfig(vocab_size=200))
    assert transform.tokenizer.content() == train_tokenizer(texts, 200).content()


def test_a_saved_tokenizer_is_read_back_by_us_and_by_transformers(tokenizer: Tokenizer, tmp_path: Path):
    tokenizer.save(tmp_path, max_length=32)
    loaded, length = Tokenizer.load(tmp_path)
    raws = ["red warp, 42", ("blue loom", "green knot")]
    assert length == 32 and loaded.encode(raws, 32) == tokenizer.encode(raws, 32)
    transformers = pytest.importorskip("transformers")
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    assert theirs("red warp, 42")["input_ids"] == tokenizer.encode(["red warp, 42"], 32)[0][0]


def test_a_vocab_txt_of_bert_is_understood(tmp_path: Path):
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "weft", "##s", "cross", ","]
    (tmp_path / "vocab.txt").write_text("\n".join(words))
    tokenizer, _ = Tokenizer.load(tmp_path / "vocab.txt")
    [(ids, segments)] = tokenizer.encode(["The wefts, cross quickly"], 16)
    assert [words[token] for token in ids] == ["[CLS]", "the", "weft", "##s", ",", "cross", "[UNK]", "[SEP]"]
    assert segments == [0] * 8
    (tmp_path / "vocab.txt").write_text("the\nweft")
    with pytest.raises(WeftError, match="lacks"):
        Tokenizer.load(tmp_path)


def test_padding_goes_to_the_bucket_and_the_mask_tells_it(tokenizer: Tokenizer):
    rows = tokenizer.encode(["red", ("green blue red green blue", "warp")], 64)
    batch = pad_batch(rows, tokenizer.pad_id, 64)
    assert batch["x"].shape[1] % 8 == 0 and batch["mask"].dtype == torch.bool
    for row, (ids, segments) in enumerate(rows):
        assert batch["x"][row][batch["mask"][row]].tolist() == ids
        assert batch["segments"][row, : len(ids)].tolist() == segments
        assert (batch["x"][row, len(ids) :] == tokenizer.pad_id).all()
    assert [bucket(length, 30) for length in (1, 8, 9, 29, 30)] == [8, 8, 16, 30, 30]


def test_buckets_save_padding_and_keep_the_order_random():
    lengths = np.random.default_rng(0).geometric(0.05, size=6400).clip(1, 128)
    plan = bucketed(lengths, 64, seed=3)
    batches = np.stack([plan(step) for step in range(100)])
    assert np.array_equal(np.sort(batches.ravel()), np.arange(6400))
    padded = lengths[batches].max(1).sum() * 64
    unsorted = lengths.reshape(100, 64).max(1).sum() * 64
    assert padded < 1.15 * lengths.sum() < unsorted / 2
    longest = lengths[batches].max(1)
    assert abs(np.corrcoef(np.arange(100), longest)[0, 1]) < 0.3  # short and long batches are mixed
    assert not np.array_equal(plan(0), plan(100))


def test_every_letter_has_its_place_in_a_vocabulary_with_room_for_it() -> None:
    letters = [chr(0x4E00 + number) for number in range(60)]
    tokenizer = train_tokenizer([f"{letter}{letters[0]} ab" for letter in letters], 2 * 63 + 5)
    ids = [number for letter in letters for number in tokenizer.pieces([letter])[0]]
    assert tokenizer.unk_id not in ids


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("vocab.txt", None, "there is no tokenizer at"),
        ("vocab.txt", b"\xff\xfe", "vocab.txt is damaged"),
        ("tokenizer_config.json", b"{", "is damaged"),
        ("tokenizer_config.json", b'{"model_max_length": [1]}', "model_max_length"),
    ],
)
def test_damaged_tokenizers_are_named(tmp_path: Path, name: str, content: bytes | None, sentence: str) -> None:
    train_tokenizer(["a b c"], 64).save(tmp_path, 32)
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(WeftError, match=sentence):
        Tokenizer.load(tmp_path / "vocab.txt" if name == "vocab.txt" else tmp_path)


def test_a_foreign_vocabulary_is_parted_at_line_feeds_alone(tmp_path: Path) -> None:
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "\u2028", "\x85", "word"]
    (tmp_path / "vocab.txt").write_text("\n".join(words) + "\n", encoding="utf-8", newline="")
    tokenizer, longest = Tokenizer.load(tmp_path)
    assert tokenizer.pieces(["word"]) == [[7]] and longest == 512
    (tmp_path / "tokenizer_config.json").write_text('{"model_max_length": null}')
    assert Tokenizer.load(tmp_path)[1] == 512
