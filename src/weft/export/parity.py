"""Does a graph answer as its network does, and how much sooner? Both are measured before a file is handed over."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from weft.export.graph import Inputs, made_up_inputs
from weft.networks.config import NetworkConfig, TextConfig

ROUNDS = 30  # pairs of one input each
SECONDS = 5.0  # after which a slow network has been timed enough
FEWEST = 5
WARM = 3  # runs that are not counted


def trials(config: NetworkConfig) -> Iterator[Inputs]:
    """Batches of one and more, texts short and as long as may be."""
    if not isinstance(config, TextConfig):
        yield from (made_up_inputs(config, batch, seed=batch) for batch in (1, 3))
        return
    for batch, length in ((1, config.max_length), (3, min(config.max_length, 9)), (2, 1)):
        yield made_up_inputs(config, batch, length, seed=batch)


@torch.no_grad()
def difference(network: nn.Module, graph: nn.Module, inputs: Iterable[Inputs]) -> tuple[float, float]:
    """The largest difference between the outputs of the two on some batches, and the largest output."""
    pairs: list[tuple[Tensor, Tensor]] = [(network(**given), graph(**given)) for given in inputs]
    return max(float((a - b).abs().max()) for a, b in pairs), max(float(a.abs().max()) for a, _ in pairs)


@dataclass(frozen=True)
class Speed:
    """Milliseconds for one input, and how many times as fast the graph is: the median of pairs, run in turn."""

    torch_ms: float
    onnx_ms: float
    ratio: float
    threads: int


@torch.inference_mode()
def speed(network: nn.Module, graph: nn.Module, config: NetworkConfig, rounds: int = ROUNDS) -> Speed:
    """Time one input at a time; a text has the greatest length."""
    given = next(trials(config))
    for _ in range(WARM):
        network(**given), graph(**given)
    began = time.perf_counter()
    pairs: list[tuple[float, float]] = []
    while len(pairs) < rounds and (len(pairs) < FEWEST or time.perf_counter() - began < SECONDS):
        pairs.append((taken(network, given), taken(graph, given)))
    first, second = (1000 * statistics.median(times) for times in zip(*pairs, strict=True))
    return Speed(first, second, statistics.median(a / b for a, b in pairs), torch.get_num_threads())


def taken(network: nn.Module, given: Inputs) -> float:
    started = time.perf_counter()
    network(**given)
    return time.perf_counter() - started
