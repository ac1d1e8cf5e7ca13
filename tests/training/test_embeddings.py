"""M7: contextual embeddings are computed once, cached by content, and are what the encoder would give again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from oracles import import_transformers
from training.encoders import LENGTH, make_encoder, tokenizer_of
from training.runs import sentences
from weft.data.batch.loader import batches
from weft.data.batch.token_batches import TokenStore, pack
from weft.data.open.source import open_source
from weft.data.transform.transforms import TextTransform
from weft.errors import WeftError
from weft.networks.base.encoder import TrainedEncoder, folder_digest
from weft.networks.config import EncoderConfig
from weft.networks.registry import configured
from weft.training.config import ReadingConfig, RunConfig
from weft.training.embeddings import store as stores
from weft.training.embeddings.batches import embedded_batches, tokens_read
from weft.training.embeddings.store import fitting_layers, of_one_length, vector_store
from weft.training.run.inputs import read_source


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> EncoderConfig:
    folder = make_encoder(tmp_path_factory.mktemp("encoder"))
    return EncoderConfig(folder=str(folder), digest=folder_digest(folder), dim=32, layers=(3,))


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the test's own, with small parts."""
    monkeypatch.setenv("WEFT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(stores, "PART", 7)
    return tmp_path / "cache"


def tokens(count: int = 20) -> TokenStore:
    chance = np.random.default_rng(0)
    texts = [chance.integers(5, 200, chance.integers(1, 12)).tolist() for _ in range(count - 1)]
    return pack([*((text, [0] * len(text)) for text in texts), ([], [])])  # the last was skipped


def test_embeddings_are_transformers_rounded_to_float16(encoder: EncoderConfig) -> None:
    theirs = import_transformers().BertModel.from_pretrained(encoder.folder).eval()
    read = tokens()
    store = vector_store(read, encoder, "texts", lambda sentence: None)
    for row, (ids, _) in enumerate(read.rows(np.arange(19))):
        with torch.no_grad():
            expected = theirs(torch.from_numpy(ids.astype(np.int64))[None]).last_hidden_state[0]
        torch.testing.assert_close(store.rows(np.array([row]))[0].float(), expected, atol=2e-3, rtol=1e-3)


def test_nothing_is_computed_twice(encoder: EncoderConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    first = vector_store(tokens(), encoder, "texts", said.append)
    assert said[0].startswith("embedding texts once: 20 of 20")
    monkeypatch.setattr(stores, "compute", lambda *_: pytest.fail("it is in the cache"))
    again = vector_store(tokens(), encoder, "texts", lambda sentence: pytest.fail(sentence))
    assert all(torch.equal(one, other) for one, other in zip(first.parts, again.parts, strict=True))


def test_what_was_computed_before_a_kill_is_kept(encoder: EncoderConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kill costs one part: the others are there, whole."""
    compute, calls = stores.compute, []

    def dies_at_the_second(*arguments):
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return compute(*arguments)

    monkeypatch.setattr(stores, "compute", dies_at_the_second)
    with pytest.raises(KeyboardInterrupt):
        vector_store(tokens(), encoder, "texts", lambda sentence: None)
    vector_store(tokens(), encoder, "texts", lambda sentence: None)
    assert len(calls) == 2 + 2  # of three parts the first is not made again


def test_other_texts_layers_and_weights_are_other_entries(encoder: EncoderConfig) -> None:
    from dataclasses import replace

    whole = tokens()
    keys = {stores.part_key(stores.cut(whole, 0, 7), encoder), stores.part_key(stores.cut(whole, 7, 14), encoder)}
    keys |= {stores.part_key(stores.cut(whole, 0, 7), replace(encoder, **change))
             for change in ({"layers": (2,)}, {"digest": "0"})}  # fmt: skip
    assert len(keys) == 4
    assert stores.part_key(stores.cut(whole, 0, 7), replace(encoder, folder="moved")) in keys


def test_texts_of_one_length_are_read_together() -> None:
    lengths = np.array([3, 5, 3, 0, 5000, 5])
    found = list(of_one_length(lengths))
    assert sorted(np.concatenate(found).tolist()) == [0, 1, 2, 4, 5]
    assert all(len(np.unique(lengths[rows])) == 1 for rows in found)


def test_batches_hold_the_examples_of_ordinary_ones(encoder: EncoderConfig) -> None:
    """Same rows, same targets, same mask; where ids were, what the encoder makes of them. Padding is zero."""
    transform = TextTransform(tokenizer_of(Path(encoder.folder)), LENGTH)
    source = open_source(sentences())
    plain = batches(source, "train", batch_size=16, seed=3, transform=transform)
    made = embedded_batches(source, "train", transform, encoder, batch_size=16, seed=3)
    for step in (0, 5, plain.steps_per_epoch + 1):
        ids, vectors = plain[step], made[step]
        assert torch.equal(ids.index, vectors.index) and torch.equal(ids.targets, vectors.targets)
        mask = ids.inputs["mask"]
        assert torch.equal(mask, vectors.inputs["mask"])
        expected = TrainedEncoder(encoder)(ids.inputs["x"], mask, ids.inputs["segments"])
        torch.testing.assert_close(vectors.inputs["x"][mask], expected[mask], atol=2e-3, rtol=1e-3)
        assert not vectors.inputs["x"][~mask].any()


def test_only_the_rows_that_a_run_reads_are_embedded(encoder: EncoderConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    """A part of the training rows and few test rows: the others are not computed, and batches are the same."""
    compute, read = stores.compute, []
    monkeypatch.setattr(stores, "compute", lambda part, by: read.append(part) or compute(part, by))
    reading = ReadingConfig(train_fraction=0.1, validation_rows=20, test_rows=30)
    source = read_source(RunConfig(source=str(sentences()), reading=reading))
    transform = TextTransform(tokenizer_of(Path(encoder.folder)), LENGTH)
    found = embedded_batches(source, "test", transform, encoder, batch_size=8)
    assert sum(len(part.lengths) for part in read) == source.count("train") + 20 + 30 < 150
    assert sum(int(part.offsets[-1]) for part in read) == tokens_read(source, transform)
    read.clear()
    assert len(embedded_batches(source, "train", transform, encoder, batch_size=8)) > 0 and not read
    for one, other in zip(found, batches(source, "test", 8, transform=transform), strict=True):
        expected = TrainedEncoder(encoder)(other.inputs["x"], other.inputs["mask"], other.inputs["segments"])
        real = other.inputs["mask"]
        torch.testing.assert_close(one.inputs["x"][real], expected[real], atol=2e-3, rtol=1e-3)
        assert torch.equal(one.targets, other.targets)


def test_parts_of_the_rows_find_what_was_embedded_of_more_and_more_rows_cost_the_new_ones(
    encoder: EncoderConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a learning curve has parts of the rows, and a comparison with more time more of them."""
    compute, read = stores.compute, list[int]()
    monkeypatch.setattr(stores, "compute", lambda part, by: read.append(len(part.lengths)) or compute(part, by))
    transform = TextTransform(tokenizer_of(Path(encoder.folder)), LENGTH)

    def embed(share: float) -> int:
        reading = ReadingConfig(train_fraction=share, validation_rows=20, test_rows=30)
        source = read_source(RunConfig(source=str(sentences()), reading=reading))
        found = embedded_batches(source, "train", transform, encoder, batch_size=8)
        plain = batches(source, "train", 8, transform=transform)[0]
        assert torch.equal(found[0].inputs["mask"], plain.inputs["mask"])
        expected = TrainedEncoder(encoder)(plain.inputs["x"], plain.inputs["mask"], plain.inputs["segments"])
        real = plain.inputs["mask"]
        torch.testing.assert_close(found[0].inputs["x"][real], expected[real], atol=2e-3, rtol=1e-3)
        return source.count("train") + 20 + 30

    some, few, many, again = map(embed, (0.3, 0.1, 0.5, 0.3))
    assert few < some == again < many == sum(read), "each row once"


def test_as_many_blocks_are_kept_as_there_is_room_for(monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    cache.mkdir()
    bert = configured("bert_tiny", depth=6, dim=100, heads=2)
    for limit, layers in (("1000000", (1, 2, 3, 4, 5, 6)), ("500000", (2, 4, 6)), ("300000", (6,))):
        monkeypatch.setenv("WEFT_CACHE_LIMIT", limit)
        assert fitting_layers(bert, 400, "texts") == layers
    monkeypatch.setenv("WEFT_CACHE_LIMIT", "1000000")
    assert fitting_layers(bert, 400, "texts", encoders=2) == (2, 4, 6), "two encoders share the room"
    monkeypatch.setenv("WEFT_CACHE_LIMIT", "100000")
    with pytest.raises(WeftError, match="raise WEFT_CACHE_LIMIT"):
        fitting_layers(bert, 4000, "texts")


def test_more_than_the_cache_may_hold_is_refused(encoder: EncoderConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_CACHE_LIMIT", "1000")
    with pytest.raises(WeftError, match="WEFT_CACHE_LIMIT"):
        vector_store(tokens(), encoder, "texts")
