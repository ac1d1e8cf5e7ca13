"""pydocs: docstrings of the running Python's standard library, labelled by package; embedded."""

from __future__ import annotations

from typing import Any

from weft.data.config import TransformConfig
from weft.training.config import BudgetConfig, OptimisationConfig, RunConfig

RECIPES = ("lstm", "conv", "bert", "gmlp", "mixer")


def run(model: str, network: dict[str, Any] | None = None, epochs: float = 8, lr: float = 1e-3) -> RunConfig:
    """What all share: 64 tokens of a vocabulary of 4,096, batches of 64, dropout."""
    return RunConfig(
        source="pydocs",
        model=model,
        network={"drop_rate": 0.1, **(network or {})},
        transform=TransformConfig(max_length=64, vocab_size=4096),
        optimisation=OptimisationConfig(batch_size=64, lr=lr, weight_decay=0.05),
        budget=BudgetConfig(epochs=epochs),
    )


def lstm() -> RunConfig:
    """Bidirectional LSTM."""
    return run("lstm_text")


def conv() -> RunConfig:
    """Convolutional text classifier."""
    return run("conv_text")


def bert() -> RunConfig:
    """BERT tiny, from scratch."""
    return run("bert_tiny")


def gmlp() -> RunConfig:
    """gMLP tiny, from scratch."""
    return run("gmlp_text_tiny")


def mixer() -> RunConfig:
    """Mixer on text, tiny, from scratch."""
    return run("mixer_text_tiny")
