"""pydocs: docstrings of the running Python's standard library, labelled by package; embedded."""

from __future__ import annotations

from typing import Any

from weft.data.config import TransformConfig
from weft.training.config import DurationConfig, OptimisationConfig, RunConfig

RECIPES = ("lstm", "conv", "bert", "gmlp", "mixer")


def run(model: str, network: dict[str, Any] | None = None, epochs: float = 8, lr: float = 1e-3) -> RunConfig:
    """What all share: 64 tokens of a vocabulary of 4,096, batches of 64, dropout."""
    return RunConfig(
        source="pydocs",
        model=model,
        network={"drop_rate": 0.1, **(network or {})},
        transform=TransformConfig(max_length=64, vocab_size=4096),
        optimisation=OptimisationConfig(batch_size=64, lr=lr, weight_decay=0.05),
        duration=DurationConfig(epochs=epochs),
    )


def lstm() -> RunConfig:
    """Bidirectional LSTM.

    weft train --recipe pydocs/lstm
    Expect 79.2 % (76.6 – 82.0 over examples, one seed), 792,078 parameters,
    47 CPU seconds of training on two AVX2 cores.
    """
    return run("lstm_text", lr=5e-3)


def conv() -> RunConfig:
    """Convolutional text classifier.

    weft train --recipe pydocs/conv
    Expect 72.4 % (69.4 – 75.4 over examples, one seed), 682,402 parameters,
    27 CPU seconds of training on two AVX2 cores.
    """
    return run("conv_text")


def bert() -> RunConfig:
    """BERT tiny, from scratch.

    weft train --recipe pydocs/bert
    Expect 69.3 % (66.3 – 72.6 over examples, one seed), 947,854 parameters,
    94 CPU seconds of training on two AVX2 cores.
    """
    return run("bert_tiny", epochs=12, lr=3e-4)


def gmlp() -> RunConfig:
    """gMLP tiny, from scratch.

    weft train --recipe pydocs/gmlp
    Expect 81.7 % (79.2 – 84.3 over examples, one seed), 941,838 parameters,
    56 CPU seconds of training on two AVX2 cores.
    """
    return run("gmlp_text_tiny")


def mixer() -> RunConfig:
    """Mixer on text, tiny, from scratch.

    weft train --recipe pydocs/mixer
    Expect 84.1 % (81.7 – 86.7 over examples, one seed), 807,438 parameters,
    37 CPU seconds of training on two AVX2 cores.
    """
    return run("mixer_text_tiny")
