"""`weft tokenizer`: train a WordPiece vocabulary on the training documents of a corpus."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated

from tyro.conf import OmitArgPrefixes, Positional, arg, configure

from weft.data.corpus.config import CorpusConfig, TokenizingConfig
from weft.disk import mark
from weft.errors import WeftError


@configure(OmitArgPrefixes)
@dataclass(frozen=True)
class Arguments:
    """Train a tokenizer: weft tokenizer CORPUS --vocab-size 30000 --output FOLDER

    WordPiece, as BERT's; cased or uncased. `weft pretrain --tokenizer FOLDER` uses it. Documents that pre-training
    holds out with the same --split-seed, --val-fraction and --test-fraction are held out here too.
    """

    source: Positional[str]
    """A text file, a folder of them, Parquet, CSV or JSONL, hub:NAME, or pydocs."""
    output: Path
    """Folder for tokenizer.json, tokenizer_config.json and vocab.txt; a new one, or an empty one."""
    reading: Annotated[CorpusConfig, arg(name="")] = field(default_factory=CorpusConfig)
    vocab_size: int = 30_000
    """Words and word pieces of the vocabulary."""
    lowercase: bool = True
    """Fold case and accents, as uncased BERT does."""
    max_length: int = 512
    """Tokens of a text that the files name as the longest, for `transformers`."""


def run(arguments: Arguments) -> int:
    """Train, save, and say how well it fits the held-out documents."""
    if arguments.vocab_size < 64:
        raise WeftError(f"--vocab-size must be at least 64, not {arguments.vocab_size}")
    if arguments.output.exists() and (not arguments.output.is_dir() or any(arguments.output.iterdir())):
        raise WeftError(f"{arguments.output} exists and is not empty; choose another --output")
    from weft.data.corpus.corpus import open_corpus
    from weft.data.corpus.vocabulary import fit_of, tokenizer_of

    corpus = open_corpus(arguments.source, arguments.reading)
    for note in corpus.notes:
        print(note)
    wanted = replace(TokenizingConfig(), vocab_size=arguments.vocab_size, lowercase=arguments.lowercase)
    tokenizer = tokenizer_of(corpus, wanted)
    mark(arguments.output)
    tokenizer.save(arguments.output, arguments.max_length)
    (arguments.output / "vocab.txt").write_text("\n".join(tokenizer.words()) + "\n", encoding="utf-8")
    fit = fit_of(tokenizer, corpus.texts("test"))
    print(
        f"{tokenizer.vocab_size:,} entries in {arguments.output}; on held-out text {fit.pieces:.2f} pieces a word, "
        f"{fit.unknown:.2%} unknown"
    )
    return 0
