"""The tokeniser: WordPiece, trained on the training split or loaded from vocab.txt or tokenizer.json.

A thin layer over the `tokenizers` library that fixes what must be the same everywhere: BERT's five markers, its
normalisation and cutting into words, and the form `[CLS] a [SEP]` or `[CLS] a [SEP] b [SEP]`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer as Library
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors, trainers

from weft.errors import WeftError

MARKERS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


class Tokenizer:
    """Texts to ids and back."""

    def __init__(self, library: Library) -> None:
        missing = [marker for marker in MARKERS if library.token_to_id(marker) is None]
        if missing:
            raise WeftError(f"the vocabulary lacks {', '.join(missing)}; it is not a BERT vocabulary")
        self.library = library
        self.pad_id, self.unk_id, self.cls_id, self.sep_id, self.mask_id = map(library.token_to_id, MARKERS)
        self.vocab_size: int = library.get_vocab_size()
        library.no_padding()

    def encode(self, raws: Sequence[Any], max_length: int) -> list[tuple[list[int], list[int]]]:
        """(ids, segments) of each text or pair of texts; of a pair the longer text is cut first."""
        self.library.enable_truncation(max_length, strategy="longest_first")
        starts = [_start(raw, 16 * max_length) for raw in raws]
        encodings = self.library.encode_batch_fast(starts)
        for row, (raw, start) in enumerate(zip(raws, starts, strict=True)):
            if start is not raw and len(encodings[row].ids) < max_length:  # the start was not enough
                encodings[row] = self.library.encode(raw)
        return [(encoding.ids, encoding.type_ids) for encoding in encodings]

    def decode(self, ids: Sequence[int], skip_markers: bool = True) -> str:
        """The text that the ids stand for, as far as it can be told."""
        return self.library.decode(list(ids), skip_special_tokens=skip_markers)

    def save(self, folder: str | os.PathLike[str], max_length: int) -> None:
        """Write tokenizer.json and tokenizer_config.json, as `transformers` reads them."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        self.library.no_truncation()
        self.library.save(str(folder / "tokenizer.json"))
        names = dict(zip(["pad_token", "unk_token", "cls_token", "sep_token", "mask_token"], MARKERS, strict=True))
        config = {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": max_length, **names}
        (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> tuple[Tokenizer, int]:
        """From a folder, a tokenizer.json or a vocab.txt; with the longest text it was made for (512 if unsaid)."""
        path = Path(path)
        if path.is_dir():
            found = [path / name for name in ("tokenizer.json", "vocab.txt") if (path / name).is_file()]
            if not found:
                raise WeftError(f"{path} holds neither tokenizer.json nor vocab.txt")
            path = found[0]
        tokenizer = cls(_read(path))
        config = path.with_name("tokenizer_config.json")
        stated = json.loads(config.read_text(encoding="utf-8")) if config.is_file() else {}
        return tokenizer, min(int(stated.get("model_max_length", 512)), 1 << 20)

    def content(self) -> str:
        """All that decides its output, as text: the key of cached ids."""
        self.library.no_truncation()
        return self.library.to_str()


def train_tokenizer(texts: Iterable[Any], vocab_size: int, lowercase: bool = True) -> Tokenizer:
    """WordPiece vocabulary of at most `vocab_size` entries from texts or pairs; the same texts give the same one."""
    library = _wordpiece({marker: number for number, marker in enumerate(MARKERS)}, lowercase)
    trainer = trainers.WordPieceTrainer(
        vocab_size=vocab_size, special_tokens=MARKERS, continuing_subword_prefix="##", show_progress=False,
        limit_alphabet=min(1000, vocab_size // 4),
    )  # fmt: skip
    library.train_from_iterator(_flat(texts), trainer)
    return Tokenizer(_wordpiece(library.get_vocab(), lowercase))


def _start(raw: Any, length: int) -> Any:
    """At least `length` characters of a long text, up to a blank: its first words are cut into the same pieces."""
    if not isinstance(raw, str) or len(raw) <= length:
        return raw
    blank = raw.find(" ", length)
    return raw if blank < 0 else raw[:blank]


def _flat(texts: Iterable[Any]) -> Iterable[str]:
    for text in texts:
        if isinstance(text, str):
            yield text
        else:
            yield from text


def _wordpiece(vocab: dict[str, int], lowercase: bool) -> Library:
    library = Library(models.WordPiece(vocab, unk_token="[UNK]", max_input_chars_per_word=100))
    library.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    library.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    library.decoder = decoders.WordPiece()
    library.add_special_tokens(MARKERS)
    library.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(marker, vocab[marker]) for marker in ("[CLS]", "[SEP]")],
    )
    return library


def _read(path: Path) -> Library:
    if path.suffix == ".txt":
        words = path.read_text(encoding="utf-8").splitlines()
        lowercase = not any(word != word.lower() for word in words if word not in MARKERS and word[:1] != "[")
        return _wordpiece({word: number for number, word in enumerate(words)}, lowercase)
    try:
        return Library.from_file(str(path))
    except Exception as error:  # the library raises a bare Exception
        raise WeftError(f"{path} is not a tokenizer.json ({error})") from error
