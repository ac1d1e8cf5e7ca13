"""What a pre-training run is asked to do: the sections of every run, and how tokens are masked. Loads no torch."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar

from pydantic.dataclasses import dataclass
from tyro.conf import Positional

from weft.data.corpus.config import CorpusConfig, TokenizingConfig
from weft.errors import WeftError
from weft.training.config import (
    STRICT,
    DurationConfig,
    ExecutionConfig,
    Fraction,
    Natural,
    OptimisationConfig,
    Overrides,
)


@dataclass(frozen=True, kw_only=True, config=STRICT)
class MaskingConfig:
    """What the network has to guess. The defaults are BERT's (Devlin et al. 2018), without next sentences."""

    mask_fraction: Fraction = 0.15
    """Share of the tokens to guess; 0 leaves next-sentence prediction alone."""
    mask_hidden: float = 0.8
    """Share of those that are replaced by [MASK]."""
    mask_random: float = 0.1
    """Share of those that are replaced by a random word; the rest stay as they are."""
    whole_words: bool = False
    """Mask all pieces of a word or none."""
    next_sentence: bool = False
    """Sequences are pairs, half of them torn apart, and the network says which (next-sentence prediction)."""

    def __post_init__(self) -> None:
        if not (self.mask_hidden >= 0 and self.mask_random >= 0 and self.mask_hidden + self.mask_random <= 1):
            raise WeftError("--mask-hidden and --mask-random are shares that add up to at most 1")
        if not self.mask_fraction and not self.next_sentence:
            raise WeftError("nothing is left to learn: use --mask-fraction 0.15, or --next-sentence")


@dataclass(frozen=True, kw_only=True, config=STRICT)
class PretrainConfig:
    """One pre-training run: a text network taught the words of a corpus."""

    kind: ClassVar[str] = "pretrain"

    source: Positional[str] = ""
    """Corpus: a text file, a folder of them, Parquet, CSV or JSONL, hub:NAME, or pydocs."""
    model: str = ""
    """Name of a text network (`weft models` lists them)."""
    network: Overrides = field(default_factory=dict)
    """Changes to that network's configuration, as pairs: --network depth=4 gate=additive"""
    seed: Natural = 0
    """Decides initial weights, order, masks and noise."""
    reading: CorpusConfig = CorpusConfig()
    transform: TokenizingConfig = TokenizingConfig()
    masking: MaskingConfig = MaskingConfig()
    optimisation: OptimisationConfig = OptimisationConfig(batch_size=32, weight_decay=0.01)
    duration: DurationConfig = DurationConfig()
    execution: ExecutionConfig = ExecutionConfig()
