"""What an experiment is: who stands in its table, what each starts from, and which orderings are judged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from weft.errors import WeftError
from weft.networks.config import TextTokensConfig
from weft.networks.measure.cost import total_parameters
from weft.networks.registry import configured
from weft.studies.compare.budget_matching import TOLERANCE, largest
from weft.studies.experiments.text_tables.scales import ExperimentScale

Changes = dict[str, Any]
Figures = dict[str, float]  # published ones of a candidate: parameters, perplexity, sst2, mnli
Start = Literal["pretrained", "scratch", "embeddings"]

PERPLEXITY = "perplexity"
ENCODER = "encoder"  # the candidate that others stand on, when it is trained here


@dataclass(frozen=True)
class TableCandidate:
    """A candidate of a table: a named network with changes, and what it starts from.

    pretrained: masked-language modelling first, then the tasks; scratch: the tasks alone; embeddings: the tasks, on
    the contextual embeddings of a trained encoder.
    """

    name: str
    model: str
    network: Changes
    start: Start
    published: Figures = field(default_factory=dict)

    @property
    def deep(self) -> bool:
        """Whether it has blocks of its own; a linear probe has none, and cannot be built without its encoder."""
        return bool(self.network["depth"])

    def config(self, scale: ExperimentScale) -> TextTokensConfig:
        """The encoder at a scale, without a head."""
        shape = {"vocab_size": scale.vocabulary, "max_length": scale.length, "num_classes": 0}
        found = configured(self.model, **{**shape, **self.network})
        assert isinstance(found, TextTokensConfig)
        return found


@dataclass(frozen=True)
class Experiment:
    """A table of the course work as something to run."""

    name: str
    table: int
    question: str
    candidates: Callable[[ExperimentScale], list[TableCandidate]]
    pairs: Callable[[ExperimentScale], list[tuple[str, str]]]  # candidates whose order is judged
    tasks: bool  # whether its networks are also fine-tuned
    time: str = "10m"  # time of a pre-training run at the cpu scale, on the mean over the candidates
    encoder: Callable[[ExperimentScale], TableCandidate] | None = (
        None  # what to train where one is needed and none was given
    )
    reference: dict[str, Figures] = field(default_factory=dict)  # published candidates that nobody trains here
    notes: tuple[str, ...] = ()


def table_candidates(experiment: Experiment, scale: ExperimentScale, encoder: str | None) -> list[TableCandidate]:
    """All candidates that are trained: those of the table, and the encoder below them unless a folder holds one."""
    needed = experiment.encoder is not None and encoder is None
    return [*([experiment.encoder(scale)] if needed and experiment.encoder else []), *experiment.candidates(scale)]


def equal_width(config: TextTokensConfig, parameters: int) -> TextTokensConfig:
    """The network with the expanded width, a multiple of eight, at which it has as many parameters, within 3 %."""

    def sized(eighth: int) -> TextTokensConfig:
        return config.replaced(hidden_dim=8 * max(eighth, 1))

    below = largest(lambda eighth: total_parameters(sized(eighth)) <= parameters)
    found = min(sized(below), sized(below + 1), key=lambda made: abs(total_parameters(made) - parameters))
    if abs(total_parameters(found) - parameters) > TOLERANCE * parameters:
        raise WeftError(f"a {config.gate} gate cannot meet {parameters:,} parameters within 3 % by its width alone")
    return found


def pretraining_parameters(config: TextTokensConfig) -> int:
    """Parameters of an encoder with the head of masked-language modelling, whose word vectors are the encoder's own."""
    return total_parameters(config.replaced(num_classes=0)) + config.dim**2 + 3 * config.dim + config.vocab_size
