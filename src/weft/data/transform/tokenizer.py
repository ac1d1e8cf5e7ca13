"""The tokeniser: WordPiece, trained on the training split or loaded from vocab.txt or tokenizer.json.

A thin layer over the `tokenizers` library that fixes what must be the same everywhere: BERT's five markers, its
normalisation and cutting into words, and the form `[CLS] a [SEP]` or `[CLS] a [SEP] b [SEP]`.
"""

from __future__ import annotations

import os
import reprlib
from collections import Counter
from collections.abc import Iterable, Sequence, Sized
from itertools import chain
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer as Library
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors, trainers

from weft.disk import Damaged, brief, read_object, read_text, write_bytes, write_json
from weft.errors import WeftError

FILES = ("tokenizer_config.json", "tokenizer.json")  # what `save` writes
MARKERS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
SHORTEST = 4  # tokens of a text: its markers, and something between them
_REMEMBERED = 1_000_000  # chunks whose ids are kept


class Tokenizer:
    """Texts to ids and back."""

    def __init__(self, library: Library) -> None:
        _require_markers(library.get_vocab())
        self.library = library
        ids: list[Any] = [library.token_to_id(marker) for marker in MARKERS]
        self.pad_id: int
        self.pad_id, self.unk_id, self.cls_id, self.sep_id, self.mask_id = ids
        self.vocab_size: int = library.get_vocab_size()
        library.no_padding()
        library.no_truncation()
        self._known: dict[str, list[int]] = {}

    @property
    def largest_id(self) -> int:
        """The largest id that it can give."""
        return max(self.library.get_vocab().values())

    def encode(self, raws: Sequence[Any], max_length: int) -> list[tuple[list[int], list[int]]]:
        """(ids, segments) of each text or pair of texts; of a pair the longer text is cut first."""
        known = self._learn(
            chunk for raw in raws for text in _parts(raw) for chunk in _chunks(_start(text, max_length))
        )
        return [self._compose(_parts(raw), max_length, known) for raw in raws]

    def _learn(self, chunks: Iterable[str]) -> dict[str, list[int]]:
        """Ids of these chunks, and of others. What lies between two blanks is cut without regard to its neighbours,
        and texts repeat themselves: each chunk need be cut only once, ten times faster than cutting texts."""
        if len(self._known) > _REMEMBERED:
            self._known = {}  # not cleared: another thread may be reading the old ones
        known = self._known
        new = [chunk for chunk in set(chunks) if chunk not in known]
        encodings = self.library.encode_batch_fast(new, add_special_tokens=False)
        known.update((chunk, encoding.ids) for chunk, encoding in zip(new, encodings, strict=True))
        return known

    def _ids(self, text: str, limit: int, known: dict[str, list[int]]) -> list[int]:
        """Ids of a text, complete up to `limit` of them at least."""
        start = _start(text, limit)
        ids = list(chain.from_iterable([known[chunk] for chunk in _chunks(start)]))
        if len(ids) >= limit or len(start) == len(text):
            return ids
        return self.library.encode(text, add_special_tokens=False).ids  # long, and yet of few tokens

    def _compose(
        self, texts: tuple[str, ...], max_length: int, known: dict[str, list[int]]
    ) -> tuple[list[int], list[int]]:
        parts = [self._ids(text, max_length, known) for text in texts]
        ids, segments = [self.cls_id], [0]
        for segment, (part, room) in enumerate(zip(parts, rooms(parts, max_length), strict=True)):
            ids += [*part[:room], self.sep_id]
            segments += [segment] * (min(len(part), room) + 1)
        return ids, segments

    def pieces(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of each text, all of them, without markers."""
        known = self._learn(chunk for text in texts for chunk in _chunks(text))
        return [list(chain.from_iterable([known[chunk] for chunk in _chunks(text)])) for text in texts]

    def words(self) -> list[str]:
        """The entries of the vocabulary, by id."""
        return [str(self.library.id_to_token(number)) for number in range(self.vocab_size)]

    def decode(self, ids: Sequence[int], skip_markers: bool = True) -> str:
        """The text that the ids stand for, as far as it can be told."""
        return self.library.decode(list(ids), skip_special_tokens=skip_markers)

    def save(self, folder: str | os.PathLike[str], max_length: int) -> None:
        """Write tokenizer.json and tokenizer_config.json, as `transformers` reads them."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        names = dict(zip(["pad_token", "unk_token", "cls_token", "sep_token", "mask_token"], MARKERS, strict=True))
        config = {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": max_length, **names}
        write_json(folder / "tokenizer_config.json", config)
        # last, since a folder with a tokenizer.json is taken to be whole
        write_bytes(folder / "tokenizer.json", self.library.to_str(pretty=True).encode())

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
        return tokenizer, _longest(path.with_name("tokenizer_config.json"))

    @classmethod
    def from_text(cls, text: str, path: Path) -> Tokenizer:
        """From what `content` gave, which stands in the file `path`."""
        return cls(_parsed(text, path))

    def content(self) -> str:
        """All that decides its output, as text: the key of cached ids."""
        return self.library.to_str()


def train_tokenizer(texts: Iterable[Any], vocab_size: int, lowercase: bool = True) -> Tokenizer:
    """WordPiece vocabulary of at most `vocab_size` entries from texts or pairs; the same texts give the same one."""
    library = _wordpiece({marker: number for number, marker in enumerate(MARKERS)}, lowercase)
    words = [text for raw in texts for text in _parts(raw)]
    letters = _commonest(alphabet(words, lowercase), (vocab_size - len(MARKERS)) // 2)  # each alone, and inside words
    trainer = trainers.WordPieceTrainer(
        vocab_size=vocab_size,
        # The trainer numbers letters inside words as it meets them, in the order of a hash table that differs from
        # process to process, and breaks ties by number. Told beforehand, they have fixed numbers.
        special_tokens=[*MARKERS, *("##" + letter for letter in letters)],
        initial_alphabet=letters,
        limit_alphabet=len(letters),
        continuing_subword_prefix="##",
        show_progress=False,
    )
    library.train_from_iterator(words, trainer)
    return Tokenizer(_wordpiece(library.get_vocab(with_added_tokens=True), lowercase))


def alphabet(texts: Iterable[str], lowercase: bool = True) -> Counter[str]:
    """The letters of the texts, as words are made of them after normalisation, and how often each occurs."""
    normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    chunks: Counter[str] = Counter()
    for text in texts:
        chunks.update(_chunks(text))
    letters: Counter[str] = Counter()
    for chunk, count in chunks.items():
        for letter in normalizer.normalize_str(chunk):
            letters[letter] += count
    del letters[" "]
    return letters


def _commonest(letters: Counter[str], most: int) -> list[str]:
    """So many letters of an alphabet, in a fixed order."""
    ranked = sorted(letters, key=lambda letter: (-letters[letter], letter))
    return sorted(ranked[: max(1, most)])


def _parts(raw: Any) -> tuple[str, ...]:
    return (raw,) if isinstance(raw, str) else tuple(raw)


def _chunks(text: str) -> list[str]:
    """What lies between blanks, perhaps nothing. A bare `split()` would also part at letters that BERT drops."""
    return text.replace("\t", " ").replace("\n", " ").replace("\r", " ").split(" ")


def _start(text: str, tokens: int) -> str:
    """So much of a long text, up to a blank, as `tokens` word pieces are likely to need."""
    blank = text.find(" ", 16 * tokens)
    return text if blank < 0 else text[:blank]


def rooms(parts: Sequence[Sized], max_length: int) -> list[int]:
    """How many ids of each text fit: of two, the longer gives way until both are equal, as `tokenizers` does it."""
    room = max_length - 1 - len(parts)
    if len(parts) == 1 or sum(map(len, parts)) <= room:
        return [room] * len(parts)
    short = min(len(parts[0]), len(parts[1]), room // 2)
    long = room - short
    return [short, long] if len(parts[0]) <= len(parts[1]) else [long, short]


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


def _require_markers(words: Iterable[str]) -> None:
    missing = [marker for marker in MARKERS if marker not in set(words)]
    if missing:
        raise WeftError(f"the vocabulary lacks {', '.join(missing)}; it is not a BERT vocabulary")


def _longest(config: Path) -> int:
    """The longest text that a tokenizer_config.json speaks of."""
    if not config.is_file():
        return 512
    stated = read_object(config).get("model_max_length") or 512
    if not isinstance(stated, int | float) or isinstance(stated, bool) or not stated >= SHORTEST:
        raise Damaged(
            f"{config}: model_max_length: {reprlib.repr(stated)} is no number of at least {SHORTEST}; restore the file"
        )
    return int(min(stated, 1 << 20))  # some write 1e30 for no limit


def _vocabulary(path: Path) -> list[str]:
    """A word a line; other marks at which Python would part lines belong to words."""
    return read_text(path).removesuffix("\n").split("\n")


def _read(path: Path) -> Library:
    if not path.is_file():
        raise WeftError(f"there is no tokenizer at {path}; give a vocab.txt, a tokenizer.json, or a folder with one")
    if path.suffix == ".txt":
        words = _vocabulary(path)
        _require_markers(words)
        lowercase = not any(word != word.lower() for word in words if word not in MARKERS and word[:1] != "[")
        return _wordpiece({word: number for number, word in enumerate(words)}, lowercase)
    return _parsed(read_text(path), path)


def _parsed(text: str, path: Path) -> Library:
    """The tokenizer that a text from the file `path` describes, as tokenizer.json does."""
    try:
        library = Library.from_str(text)
        library.encode("a word")  # some faults show only in use
        return library
    except (WeftError, KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # the library raises a bare Exception, and where it panics not even that
        raise Damaged(f"{path} is not a tokenizer.json ({brief(error)}); restore it") from error
