"""From the configuration of a pre-training run to the things it works with, and its evaluation afterwards."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.torch
from torch import Tensor

from weft.data.batch.loader import Batches
from weft.data.corpus.batches import MaskedBatch, masked_batches
from weft.data.corpus.config import CorpusConfig
from weft.data.corpus.corpus import Corpus, open_corpus
from weft.data.corpus.masking import Masking
from weft.data.corpus.sequences import Pairs, Sequences, packed, separate
from weft.data.corpus.store import CorpusStore, store_of
from weft.data.corpus.vocabulary import tokenizer_of
from weft.data.read.cache import digest
from weft.data.transform.tokenizer import Tokenizer
from weft.data.transform.transforms import TextTransform
from weft.disk import write_bytes
from weft.errors import WeftError
from weft.networks.config import NetworkConfig, TextTokensConfig
from weft.networks.measure.cost import total_macs
from weft.networks.registry import REGISTRY, configured
from weft.networks.weights.outline import fill
from weft.training.inference.evaluate import require_there
from weft.training.inference.network_folder import PRETRAINED, NetworkMetadata, write_network
from weft.training.learnt import Learnt, judge_sentences, judge_words
from weft.training.loop.events import outputs_of
from weft.training.metrics import Metrics
from weft.training.optim.optimisers import Groups
from weft.training.pretraining.config import PretrainConfig
from weft.training.pretraining.network import HITS, MASKED, NEXT, NEXT_HITS, Pretraining, create_pretraining
from weft.training.pretraining.objective import WordObjective
from weft.training.storage.record import write_predictions
from weft.training.storage.run_folder import open_run

HEADS = "heads.safetensors"  # beside model.safetensors, which holds the encoder alone

Opened = tuple[Corpus, Tokenizer]


@dataclass(frozen=True)
class PretrainInputs:
    """What the configuration of a pre-training run names, opened and made."""

    config: PretrainConfig
    corpus: Corpus
    tokenizer: Tokenizer
    network: TextTokensConfig

    @cached_property
    def objective(self) -> WordObjective:
        masking = self.config.masking
        return WordObjective(self.network.vocab_size, masking.mask_fraction > 0, masking.next_sentence)

    @cached_property
    def store(self) -> CorpusStore:
        return store_of(self.corpus.documents, self.tokenizer)

    @cached_property
    def sequences(self) -> dict[str, Sequences]:
        """The sequences of each role."""
        form: Any = packed if self.config.transform.pack else separate
        form = Pairs if self.config.masking.next_sentence else form
        length = self.config.transform.max_length
        return {role: form(self.store, chosen, self.tokenizer, length) for role, chosen in self.corpus.roles.items()}

    @property
    def notes(self) -> list[str]:
        train, tokens = self.sequences["train"], self.store.tokens(self.corpus.roles["train"])
        sizes = f"{tokens:,} tokens to learn from, in {len(train):,} sequences of up to {self.transform.max_length}"
        return [*self.corpus.notes, f"{sizes}; vocabulary of {self.tokenizer.vocab_size:,}", *train.notes]

    @property
    def transform(self) -> TextTransform:
        return TextTransform(self.tokenizer, self.config.transform.max_length)

    @property
    def macs(self) -> int:
        return total_macs(self.network)

    @property
    def fingerprint(self) -> str:
        return f"{self.corpus.fingerprint}-{digest(self.tokenizer.content())}"

    def require(self, fingerprint: str) -> None:
        corpus, _, tokenizer = fingerprint.partition("-")
        if corpus != self.corpus.fingerprint:
            raise WeftError(f"the corpus {self.corpus.name} has changed since the run began; restore it or start anew")
        if tokenizer != digest(self.tokenizer.content()):
            raise WeftError(
                "the tokenizer.json of the run is not the one that its checkpoints were trained with; "
                "restore it or start a new run"
            )

    def create(self) -> Pretraining:
        masking = self.config.masking
        return create_pretraining(
            self.network, self.config.seed, masked=masking.mask_fraction > 0, next_sentence=masking.next_sentence
        )

    def groups(self, core: Pretraining) -> Groups:
        return core.parameter_groups(self.config.optimisation.weight_decay)

    def batches(self, role: str, rank: int = 0, world: int = 1) -> Batches:
        """Masked anew at every step for `train`; else every sequence once, with masks that are always the same."""
        if role not in self.sequences:
            raise WeftError(f"a corpus has no split {role!r}; use train, validation or test")
        asked, sequences = self.config.masking, self.sequences[role]
        masking = Masking.of(
            self.tokenizer, asked.mask_fraction, asked.mask_hidden, asked.mask_random, asked.whole_words
        )
        train = role == "train"
        assemble = MaskedBatch(
            sequences,
            masking,
            self.tokenizer.pad_id,
            self.config.transform.max_length,
            seed=self.config.seed if train else self.config.reading.split_seed,  # runs of all seeds are asked the same
            role=None if train else role,
        )
        return masked_batches(sequences, assemble, self.config.optimisation.batch, self.config.seed, rank, world)

    def save_transform(self, folder: Path) -> None:
        self.transform.save(folder)

    def measure(self, outputs: Tensor, targets: Tensor) -> Metrics:
        metrics = self.objective.measure(outputs, targets)
        if self.objective.masked:
            metrics["frequency_perplexity"] = self.frequency_perplexity()
        return metrics

    def judge(self, outputs: Tensor, targets: Tensor) -> Learnt:
        found, asked = self.objective.measure(outputs, targets), targets.sum(0).tolist()
        if not self.objective.masked:
            return judge_sentences(found["next_sentence_accuracy"], found["next_sentence_interval"], int(asked[1]))
        frequency = self.frequency_perplexity("validation")
        return judge_words(found["perplexity"], found["perplexity_interval"], frequency, int(asked[0]))

    def frequency_perplexity(self, role: str = "test") -> float:
        """Of the held-out words when they are guessed by their frequency in the training text: what to be below of."""
        known = 1.0 + np.bincount(self._ids("train"), minlength=self.network.vocab_size)
        held = np.bincount(self._ids(role), minlength=self.network.vocab_size)
        return math.exp(-float((held * np.log(known / known.sum())).sum() / max(held.sum(), 1)))

    def _ids(self, role: str) -> Any:
        return np.concatenate([self.store.ids[self.store.span(number)] for number in self.corpus.roles[role]])

    def described(self) -> dict[str, Any]:
        counts = {role: self.store.tokens(chosen) for role, chosen in self.corpus.roles.items()}
        return {
            "name": self.corpus.name,
            "fingerprint": self.corpus.fingerprint,
            "notes": self.notes,
            "tokens": counts,
            "vocabulary": self.tokenizer.vocab_size,
        }

    def keep(self, folder: Path, weights: dict[str, Tensor] | None, outputs: Tensor, targets: Tensor) -> None:
        """Losses of every held-out sequence, for comparisons over sequences; the encoder, and its heads apart."""
        columns = {"loss": MASKED, "hits": HITS, "next_loss": NEXT, "next_hits": NEXT_HITS}
        content = {name: outputs[:, column].float().numpy() for name, column in columns.items()}
        write_predictions(folder, {**content, "words": targets[:, 0].numpy(), "pairs": targets[:, 1].numpy()})
        if weights is None:
            return
        parts = {part: split_off(weights, f"{part}.") for part in ("encoder", "heads")}
        write_bytes(folder / HEADS, safetensors.torch.save(parts["heads"]))
        card = NetworkMetadata(self.config.model, PRETRAINED, [])
        write_network(folder, card, self.network, parts["encoder"], self.transform)


def split_off(weights: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """The weights whose names begin so, without it."""
    return {name.removeprefix(prefix): value for name, value in weights.items() if name.startswith(prefix)}


def open_data(config: PretrainConfig) -> Opened:
    """The corpus that a configuration names, and its tokeniser."""
    corpus = open_corpus(config.source, config.reading)
    return corpus, tokenizer_of(corpus, config.transform)


def open_pretraining(
    config: PretrainConfig, folder: Path | None = None, opened: Opened | None = None
) -> PretrainInputs:
    """Open the corpus, load or train the tokeniser (or take the one in `folder`) and size the network to it."""
    check_names(config)
    corpus = opened[0] if opened else open_corpus(config.source, config.reading)
    if folder is not None and (folder / "tokenizer.json").is_file():
        tokenizer = Tokenizer.load(folder)[0]
    else:
        tokenizer = opened[1] if opened else tokenizer_of(corpus, config.transform)
    inputs = PretrainInputs(config, corpus, tokenizer, size_network(config, tokenizer))
    size, rows = config.optimisation.batch, len(inputs.sequences["train"])
    if size > rows:
        raise WeftError(f"a batch of {size} is larger than the {rows} training sequences; use --batch-size {rows}")
    return inputs


def check_names(config: PretrainConfig) -> None:
    """Refuse a configuration without corpus or network, or with a network that mixes no tokens of text."""
    if not config.source:
        raise WeftError("say what to read: weft pretrain CORPUS --model NAME (pydocs, for instance, or a text file)")
    if not config.model:
        raise WeftError("say which network to pre-train: --model NAME, gmlp_text_small or bert_mini for instance")
    if config.model not in REGISTRY:
        configured(config.model)  # raises, naming the nearest
    if not isinstance(REGISTRY[config.model], TextTokensConfig):
        tiny = [n for n, entry in REGISTRY.items() if isinstance(entry, TextTokensConfig) and n.endswith("tiny")]
        raise WeftError(
            f"{config.model} is no token network on text; pre-train one that `weft models` lists as reading text, "
            f"such as {', '.join(tiny)}"
        )


def size_network(config: PretrainConfig, tokenizer: Tokenizer) -> TextTokensConfig:
    """The named network without a head for classes, its vocabulary and length those of the text."""
    shape: dict[str, Any] = {"vocab_size": tokenizer.vocab_size, "max_length": config.transform.max_length}
    network: NetworkConfig = configured(config.model, **{**shape, **config.network, "num_classes": 0})
    assert isinstance(network, TextTokensConfig)
    if network.vocab_size < tokenizer.vocab_size or network.max_length < config.transform.max_length:
        raise WeftError(
            f"the network has room for {network.vocab_size} words and {network.max_length} tokens, the text needs "
            f"{tokenizer.vocab_size} and {config.transform.max_length}; leave vocab_size and max_length to weft"
        )
    return network


def evaluate_pretrained(
    path: Path, source: str | None, split: str, batch_size: int, encoder: Path | None = None
) -> Metrics:
    """The metrics of a finished pre-training run on its own corpus or another, cut by its tokeniser."""
    config = open_run(path).config()
    assert isinstance(config, PretrainConfig)
    if encoder is not None:
        raise WeftError(f"{path} is an encoder itself; leave out --encoder")
    if source is None:
        require_there(path, config.source)
    else:
        config = replace(config, source=source, reading=CorpusConfig())
    config = replace(config, optimisation=replace(config.optimisation, batch_size=batch_size))
    inputs = open_for_evaluation(config, path)
    core = inputs.create()
    fill(core.encoder, path / "model.safetensors")
    fill(core.heads, path / HEADS)
    outputs, targets = outputs_of(core, inputs.batches(split))
    return {"examples": len(targets), **inputs.measure(outputs, targets)}


def open_for_evaluation(config: PretrainConfig, path: Path) -> PretrainInputs:
    """As `open_pretraining`, but any batch size will do."""
    tokenizer = Tokenizer.load(path)[0]
    corpus = open_corpus(config.source, config.reading)
    return PretrainInputs(config, corpus, tokenizer, size_network(config, tokenizer))
