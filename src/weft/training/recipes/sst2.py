"""SST-2: 67,349 phrases of film reviews, positive or negative; reported on the 1,821 test sentences."""

from __future__ import annotations

from typing import Any

from weft.data.config import TransformConfig
from weft.training.config import DurationConfig, OptimisationConfig, RunConfig

RECIPES = ("lstm", "conv", "bert", "gmlp", "mixer")


def run(model: str, network: dict[str, Any] | None = None, epochs: float = 2, lr: float = 1e-3) -> RunConfig:
    """What all share: 64 tokens of a vocabulary of 8,192, batches of 128, dropout."""
    return RunConfig(
        source="hub:stanfordnlp/sst2",
        model=model,
        network={"drop_rate": 0.1, **(network or {})},
        transform=TransformConfig(max_length=64, vocab_size=8192),
        optimisation=OptimisationConfig(batch_size=128, lr=lr, weight_decay=0.05),
        duration=DurationConfig(epochs=epochs),
    )


def lstm() -> RunConfig:
    """Bidirectional LSTM.

    weft train SST2_FOLDER --recipe sst2/lstm
    Expect 81.8 % (80.0 – 83.5 over examples, one seed), 1,313,025 parameters,
    101 CPU seconds of training on two AVX2 cores.
    """
    return run("lstm_text")


def conv() -> RunConfig:
    """Convolutional text classifier.

    weft train SST2_FOLDER --recipe sst2/conv
    Expect 81.5 % (79.8 – 83.3 over examples, one seed), 1,202,777 parameters,
    64 CPU seconds of training on two AVX2 cores.
    """
    return run("conv_text")


def bert() -> RunConfig:
    """BERT tiny, from scratch.

    weft train SST2_FOLDER --recipe sst2/bert
    Expect 81.8 % (80.0 – 83.5 over examples, one seed), 1,470,465 parameters,
    130 CPU seconds of training on two AVX2 cores.
    """
    return run("bert_tiny")


def gmlp() -> RunConfig:
    """gMLP tiny, from scratch.

    weft train SST2_FOLDER --recipe sst2/gmlp
    Expect 80.7 % (78.8 – 82.4 over examples, one seed), 1,464,449 parameters,
    148 CPU seconds of training on two AVX2 cores.
    """
    return run("gmlp_text_tiny")


def mixer() -> RunConfig:
    """Mixer on text, tiny, from scratch.

    weft train SST2_FOLDER --recipe sst2/mixer
    Expect 81.1 % (79.2 – 82.7 over examples, one seed), 1,330,049 parameters,
    110 CPU seconds of training on two AVX2 cores.
    """
    return run("mixer_text_tiny")
