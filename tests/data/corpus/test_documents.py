"""Corpora of every form become documents; what is left out is counted, and bad input is a sentence."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from data.corpus import texts
from weft.data.corpus.config import CorpusConfig, TokenizingConfig
from weft.data.corpus.corpus import open_corpus
from weft.data.corpus.documents import read_documents
from weft.data.corpus.sentences import sentences
from weft.data.corpus.store import store_of
from weft.data.corpus.vocabulary import tokenizer_of
from weft.errors import WeftError


def read(path: Path, **options: object) -> list[str]:
    return read_documents(str(path), CorpusConfig(**options)).texts  # type: ignore[arg-type]


def test_text_files_are_documents_or_hold_them_between_blank_lines(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("One.\nTwo.\n")
    (tmp_path / "b.txt").write_text("Three.\n\nFour.\n \nFive.\n")
    assert read(tmp_path) == ["One.\nTwo.\n", "Three.", "Four.", "Five."]
    assert read(tmp_path, documents="files") == ["One.\nTwo.\n", "Three.\n\nFour.\n \nFive.\n"]
    assert read(tmp_path / "a.txt", documents="lines") == ["One.", "Two."]


@pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl"])
def test_a_row_of_a_table_is_a_document(tmp_path: Path, ending: str) -> None:
    rows = ["first text", "second text", "third text"]
    path = tmp_path / f"corpus.{ending}"
    if ending == "parquet":
        pq.write_table(pa.table({"body": rows, "label": [0, 1, 0], "note": ["a", "b", "c"]}), path)
    elif ending == "csv":
        path.write_text("body,label,note\n" + "".join(f"{row},0,n\n" for row in rows))
    else:
        path.write_text("".join(json.dumps({"body": row, "label": 0, "note": "n"}) + "\n" for row in rows))
    assert read(path, column="body") == rows


def test_neighbouring_rows_of_one_article_are_one_document(tmp_path: Path) -> None:
    table = pa.table({"text": ["a one", "a two", "b one"], "title": ["A", "A", "B"]})
    pq.write_table(table, tmp_path / "train.parquet")
    assert read(tmp_path) == ["a one\na two", "b one"]


def splits(folder: Path) -> Path:
    for name in ("train", "unsupervised", "test"):
        pq.write_table(pa.table({"text": [f"{name} {number}" for number in range(3)]}), folder / f"{name}.parquet")
    return folder


def test_held_out_splits_are_never_learnt_from_and_it_is_said_which_are(tmp_path: Path) -> None:
    found = read_documents(str(splits(tmp_path)), CorpusConfig())
    assert not any(text.startswith("test") for text in found.texts)
    assert "train and unsupervised" in found.notes[-1] and "not read: test" in found.notes[-1]
    chosen = read_documents(str(tmp_path), CorpusConfig(split=("unsupervised",)))
    assert chosen.texts == ["unsupervised 0", "unsupervised 1", "unsupervised 2"]
    with pytest.raises(WeftError, match=r"no split 'unsupervized'.*unsupervised"):
        read_documents(str(tmp_path), CorpusConfig(split=("unsupervized",)))


def test_empty_documents_are_counted_and_said(tmp_path: Path) -> None:
    pq.write_table(pa.table({"text": ["one", "", "  ", "two", None]}), tmp_path / "train.parquet")
    found = read_documents(str(tmp_path), CorpusConfig())
    assert found.texts == ["one", "two"]
    assert "3 empty documents were left out of 5" in found.notes


def test_a_corpus_of_empty_documents_or_of_one_sentence_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty.txt").write_text("\n \n")
    with pytest.raises(WeftError, match="holds no text"):
        open_corpus(str(tmp_path / "empty.txt"))
    (tmp_path / "one.txt").write_text("A single sentence.")
    with pytest.raises(WeftError, match="holds one sentence; a corpus needs three"):
        open_corpus(str(tmp_path / "one.txt"))
    (tmp_path / "bytes.txt").write_bytes("é caf".encode() + b"\xe9")
    with pytest.raises(WeftError, match=r"not UTF-8 text \(byte 6\)"):
        open_corpus(str(tmp_path / "bytes.txt"))


def test_few_documents_are_cut_so_that_some_can_be_held_out(tmp_path: Path) -> None:
    (tmp_path / "book.txt").write_text(" ".join(f"Sentence number {number} ends here." for number in range(300)))
    corpus = open_corpus(str(tmp_path / "book.txt"))
    assert "1 document was cut into 100 pieces of up to 3 sentences" in " ".join(corpus.notes)
    assert min(len(chosen) for chosen in corpus.roles.values()) >= 2


def test_documents_have_one_role_each_and_equal_ones_the_same(tmp_path: Path) -> None:
    twice = [*texts.documents(200), *texts.documents(200)]
    (tmp_path / "corpus.txt").write_text("\n\n".join(twice))
    corpus = open_corpus(str(tmp_path / "corpus.txt"), CorpusConfig(val_fraction=0.2, test_fraction=0.2))
    numbers = [int(number) for chosen in corpus.roles.values() for number in chosen]
    assert sorted(numbers) == list(range(400))
    assert not set(corpus.texts("train")) & {*corpus.texts("validation"), *corpus.texts("test")}
    less = open_corpus(
        str(tmp_path / "corpus.txt"), CorpusConfig(val_fraction=0.2, test_fraction=0.2, train_fraction=0.5)
    )
    assert set(less.roles["train"]) < set(corpus.roles["train"])
    assert (less.roles["test"] == corpus.roles["test"]).all()


def test_sentences_end_at_marks_and_lines_and_lose_no_word() -> None:
    text = 'Mr. Smith left. "Why?" she asked! It cost 3.50 dollars… He\n\nsaid nothing (to J. Doe).'
    found = sentences(text)
    assert found == ["Mr. Smith left.", '"Why?" she asked!', "It cost 3.50 dollars…", "He", "said nothing (to J. Doe)."]
    assert " ".join(found).split() == text.split()


def test_word_ids_are_made_once_and_hold_every_piece(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_CACHE", str(tmp_path / "cache"))
    corpus, tokenizer = open_corpus(str(texts.write(tmp_path))), texts.tokenizer()
    store = store_of(corpus.documents, tokenizer)
    for number in (0, 7, 149):
        assert store.ids[store.span(number)].tolist() == tokenizer.pieces([corpus.documents.texts[number]])[0]
    monkeypatch.setattr(tokenizer, "pieces", None)  # a second time it comes from the cache
    assert (store_of(corpus.documents, tokenizer).ids == store.ids).all()


def test_a_vocabulary_smaller_than_its_alphabet_is_refused(tmp_path: Path) -> None:
    chars = "".join(chr(number) for number in range(0x4E00, 0x4E00 + 200))
    (tmp_path / "corpus.txt").write_text("\n\n".join(f"{char} text {number}." for number, char in enumerate(chars)))
    corpus = open_corpus(str(tmp_path / "corpus.txt"))
    with pytest.raises(WeftError, match=r"a vocabulary of 100 is smaller than the alphabet .* use --vocab-size"):
        tokenizer_of(corpus, TokenizingConfig(vocab_size=100))


def test_case_is_folded_unless_asked_otherwise(tmp_path: Path) -> None:
    corpus = open_corpus(str(texts.write(tmp_path)))
    cased, folded = (tokenizer_of(corpus, TokenizingConfig(vocab_size=200, lowercase=flag)) for flag in (False, True))
    assert cased.decode(cased.pieces(["The cat"])[0]) == "The cat"
    assert folded.decode(folded.pieces(["The cat"])[0]) == "the cat"


def test_imdb_and_sst2_are_corpora(datasets: Path) -> None:
    found = read_documents(str(datasets / "sst2"), CorpusConfig())
    assert len(found) == 67349 and "validation" in found.notes[-1]
    corpus = open_corpus(str(datasets / "imdb" / "unsupervised.parquet"))
    assert len(corpus.documents) == 50_000


@pytest.mark.parametrize(
    "lines", [["Hello there."] * 120, ["Hello there.", "Bye now."] * 75, ["a b c d e f", "a b", "c d", "e f"] * 40]
)
def test_texts_too_alike_to_hold_some_out_are_refused(tmp_path: Path, lines: list[str]) -> None:
    (tmp_path / "corpus.txt").write_text("\n\n".join(lines))
    with pytest.raises(WeftError, match="too few different texts to hold some out"):
        open_corpus(str(tmp_path / "corpus.txt"))


@pytest.mark.parametrize("encoding", ["utf-16", "cp1252"])
def test_a_corpus_in_another_encoding_is_read(tmp_path: Path, encoding: str) -> None:
    words = "One café here.\n\nAnother café there.\n\nA third café.\n\nAnd a fourth.\n"
    (tmp_path / "corpus.txt").write_text(words, encoding=encoding)
    found = read_documents(str(tmp_path / "corpus.txt"), CorpusConfig())
    assert found.texts[1] == "Another café there."
    assert any("Latin-1" in note for note in found.notes) == (encoding == "cp1252")
