"""A small trained encoder in the Hugging Face layout, and fine-tuning runs of seconds that start from it."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

import weft
from training.runs import sentences
from weft.data.config import TransformConfig
from weft.data.transform.tokenizer import Tokenizer, train_tokenizer
from weft.networks.weights import save_weights
from weft.training.config import DurationConfig, ExecutionConfig, OptimisationConfig
from weft.training.finetuning.config import FinetuneConfig, ThawingConfig

LENGTH = 32


def make_encoder(folder: Path, **changes: Any) -> Path:
    """A BERT of three blocks with a tokenizer for `sentences`; its weights are those of chance."""
    texts = [row["text"] for row in csv.DictReader(sentences().read_text().splitlines())]
    tokenizer = train_tokenizer(texts, vocab_size=256)
    torch.manual_seed(0)
    shape = {"dim": 32, "heads": 2, "hidden_dim": 64, "depth": 3, "max_length": LENGTH, "num_classes": 0}
    bert = weft.create_model("bert_tiny", **{**shape, "vocab_size": tokenizer.vocab_size, **changes})
    with torch.no_grad():
        bert.embed.words.weight.mul_(20)  # words that differ, so that a network on frozen embeddings can learn
    save_weights(bert, folder, layout="huggingface")
    tokenizer.save(folder, LENGTH)
    return folder


def tokenizer_of(folder: Path) -> Tokenizer:
    return Tokenizer.load(folder)[0]


def configure(start: Path, *, steps: int = 40, source: Path | None = None, **changes: Any) -> FinetuneConfig:
    """A fine-tuning run of seconds; `changes` go to the section that knows them, or to the run itself."""
    config = FinetuneConfig(
        start=str(start),
        source=str(source or sentences()),
        transform=TransformConfig(max_length=LENGTH),
        optimisation=OptimisationConfig(batch_size=32, lr=3e-3, sched="linear"),
        duration=DurationConfig(steps=steps),
        execution=ExecutionConfig(threads=1, compile=False, precision="float32", checkpoint_every=7, eval_every=7),
        thawing=ThawingConfig(),
    )
    for name, value in changes.items():
        sections = ("optimisation", "execution", "duration", "thawing", "transform", "reading")
        section = next((s for s in sections if hasattr(getattr(config, s), name)), None)
        change = {name: value} if section is None else {section: replace(getattr(config, section), **{name: value})}
        config = replace(config, **change)
    return config
