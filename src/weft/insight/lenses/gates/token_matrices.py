"""The matrix over tokens that each layer of a network applies, whatever the layer is, so that one scale fits them all.

A gate has one: W. A token MLP, W₂ σ(W₁ X), is measured by its mean slope on data, W₂ diag(E σ′) W₁; attention by the
mean of its maps, one a head; a convolution by what its kernels do to patches: how each patch answers to each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from weft.insight.finding import Unfit
from weft.insight.layers import watching
from weft.insight.lenses.gates.conv_matrices import convolution_matrices, local_matrices
from weft.insight.subject import BATCH, Subject
from weft.insight.toeplitz import Grid
from weft.networks.controls import PoolingMixer, RandomMixer
from weft.networks.gmlp import SpatialGate
from weft.networks.mixer import TokenMLP
from weft.nn.attention import Attention, attention_maps
from weft.nn.convolution import LocallyConnected2d

Watched = Attention | TokenMLP
See = Callable[[str, Tensor, Tensor | None], None]
ROOM = 2**24  # numbers that the maps of one batch may take: 64 MB


@dataclass(frozen=True)
class Mixing:
    """A layer's matrices (k, tokens, tokens) over `grid`, without class tokens: one, or one a head or kernel.

    `halves` are attention's mean maps over every other example, and over the others.
    """

    layer: str
    kind: str
    matrices: Tensor
    grid: Grid
    halves: tuple[Tensor, Tensor] | None = None

    def measurable(self) -> tuple[Tensor, Grid, Tensor | None]:
        """The matrices, their grid, and their twin where they are means over examples."""
        first, twin = self.halves or (self.matrices, None)
        return first, self.grid, twin


def mixings(subject: Subject, examples: int) -> list[Mixing]:
    """Every layer of the network that mixes tokens, in order; data is asked for only where a layer depends on it."""
    network = subject.network
    watched = {name: layer for name, layer in network.named_modules() if isinstance(layer, Watched)}
    lengths_matter = subject.config.input == "text" and hasattr(network, "layout")
    means = Means(subject, watched, examples) if watched or lengths_matter else None
    found = list(token_layers(subject, means)) + list(convolutions(subject))
    if not found:
        raise Unfit(
            f"{subject.name} has no layer that mixes tokens or pixels by their place; the lens gates fits gMLP, Mixer, "
            "attention and convolutions, the lens saliency fits this network"
        )
    order = {name: number for number, (name, _) in enumerate(network.named_modules())}
    return sorted(found, key=lambda mixing: order[mixing.layer])


def token_layers(subject: Subject, means: Means | None) -> Iterator[Mixing]:
    """Gates, token MLPs, attention and the controls of a token network."""
    layout = getattr(subject.network, "layout", None)
    if layout is None:
        return
    tokens, extra = layout.tokens if means is None else means.tokens, layout.extra
    grid = layout.grid if len(layout.grid) == 2 else (tokens,)
    for name, layer in subject.network.named_modules():
        matrices = matrices_of(name, layer, tokens, means)
        if matrices is not None:
            halves = means.halves(name) if isinstance(layer, Attention) and means is not None else None
            inner = None if halves is None else (halves[0][:, extra:, extra:], halves[1][:, extra:, extra:])
            yield Mixing(name, KINDS[type(layer).__name__], matrices[:, extra:, extra:], grid, inner)


KINDS = {
    "SpatialGate": "gate",
    "TokenMLP": "token MLP",
    "Attention": "attention",
    "TinyAttention": "tiny attention",
    "RandomMixer": "random",
    "PoolingMixer": "pooling",
}


@torch.no_grad()
def matrices_of(name: str, layer: nn.Module, tokens: int, means: Means | None) -> Tensor | None:
    """The matrices of one layer of a token network, (k, tokens, tokens), or None if it has none."""
    if isinstance(layer, SpatialGate):
        return layer.spatial.matrix(tokens).detach()[None]
    if isinstance(layer, Watched) and means is not None:
        return means.matrices(name, layer)
    if isinstance(layer, RandomMixer | PoolingMixer):
        return layer(torch.eye(tokens)[None])  # channel j is token j alone, so the answers are the columns
    return None


class Means:
    """What depends on data, averaged over it one batch at a time: attention's maps, the slopes of token MLPs.

    Texts differ in length, and what stands beyond most of them was hardly trained: they are measured over `tokens`,
    their median length, and maps over the texts that have as many. Shorter ones share their attention among fewer.
    """

    def __init__(
        self, subject: Subject, layers: Mapping[str, Watched], examples: int, see: See = lambda name, maps, mask: None
    ) -> None:
        """Average over `examples`; `see` is shown the maps of every layer and batch on the way."""
        layout: Any = subject.network.layout
        self.tokens: int = median_length(subject, examples) if subject.config.input == "text" else layout.tokens
        self.sums: dict[str, list[Tensor]] = {}  # over every other example, and over the others
        self.counts: dict[str, list[int]] = {}
        with torch.no_grad(), ExitStack() as stack:
            for name, layer in layers.items():
                if isinstance(layer, TokenMLP):
                    stack.callback(layer.act.register_forward_pre_hook(self._slopes(name, layer.act)).remove)
            maps = stack.enter_context(attention_maps(subject.network))
            for batch in subject.batches(examples, batch_size(subject)) if layers else ():
                subject.network(**batch.inputs)
                mask = batch.inputs.get("mask")
                for name, each in maps.items():
                    see(name, each, mask)
                    self._add(name, each if mask is None else each[mask.sum(1) >= self.tokens])

    def _add(self, name: str, values: Tensor) -> None:
        """Add the maps (batch, heads, tokens, tokens), or slopes (batch, hidden), of a batch."""
        values = values[..., : self.tokens, : self.tokens] if values.ndim == 4 else values
        counts = self.counts.setdefault(name, [0, 0])
        sums = self.sums.setdefault(name, [torch.zeros(values.shape[1:]), torch.zeros(values.shape[1:])])
        start = sum(counts) % 2
        for half in (0, 1):
            part = values[(half - start) % 2 :: 2]
            sums[half] += part.sum(0)
            counts[half] += len(part)

    def _slopes(self, name: str, act: nn.Module) -> Any:
        def hook(_: nn.Module, args: tuple[Tensor, ...]) -> None:
            with torch.enable_grad():
                hidden = args[0].detach().requires_grad_()  # (batch, hidden, channels)
                (slope,) = torch.autograd.grad(act.forward(hidden).sum(), hidden)
            self._add(name, slope.mean(2))

        return hook

    def matrices(self, name: str, layer: Watched) -> Tensor:
        """Mean maps (heads, tokens, tokens), or a token MLP's mean slope (1, tokens, tokens)."""
        mean = torch.stack(self.sums[name]).sum(0) / sum(self.counts[name])
        if isinstance(layer, Attention):
            return mean
        down, up = layer.fc1.weight[:, : self.tokens], layer.fc2.weight[: self.tokens]
        return (up * mean @ down).detach()[None]

    def halves(self, name: str) -> tuple[Tensor, Tensor] | None:
        """Mean maps over every other example, and over the others; None where there is one example."""
        if not all(self.counts[name]):
            return None
        first, second = (total / count for total, count in zip(self.sums[name], self.counts[name], strict=True))
        return first, second


def median_length(subject: Subject, examples: int) -> int:
    """Tokens of the text in the middle, by length."""
    lengths = [length for batch in subject.batches(examples) for length in batch.inputs["mask"].sum(1).tolist()]
    return int(sorted(lengths)[len(lengths) // 2])


def batch_size(subject: Subject) -> int:
    """Examples at a time, so that all layers' maps have room whatever the network's size."""
    layers = [layer for layer in subject.network.modules() if isinstance(layer, Attention)]
    if not layers:
        return BATCH
    tokens: int = subject.network.layout.tokens  # type: ignore[assignment, union-attr]
    return max(1, min(BATCH, ROOM // sum(layer.heads * tokens**2 for layer in layers)))


def convolutions(subject: Subject) -> Iterator[Mixing]:
    """Convolutions that see more than one pixel or token, depth-wise mixers and locally connected layers."""
    for name, (layer, grid) in answer_grids(subject).items():
        if isinstance(layer, LocallyConnected2d):
            matrices, tokens = local_matrices(layer)
            yield Mixing(name, "locally connected", matrices, tokens)
        else:
            matrices, tokens = convolution_matrices(layer.weight.detach(), grid, layer.stride, layer.dilation)
            yield Mixing(name, "convolution", matrices, tokens)


@torch.no_grad()
def answer_grids(subject: Subject) -> dict[str, tuple[Any, Grid]]:
    """Every convolution with the grid of what it gives for one example: (rows, columns) or (length,)."""
    layers = {name: layer for name, layer in subject.network.named_modules() if sees_neighbours(layer)}
    found: dict[str, tuple[Any, Grid]] = {}
    if layers:
        with watching(layers, lambda name, y: found.update({name: (layers[name], tuple(y.shape[2:]))})):
            subject.network(blank(subject.config))
    return found


def sees_neighbours(layer: nn.Module) -> bool:
    """Whether a layer is a convolution, or locally connected, over more than one pixel or token."""
    if isinstance(layer, nn.Conv1d | nn.Conv2d):
        return max(layer.kernel_size) > 1
    return isinstance(layer, LocallyConnected2d)


def blank(config: Any) -> Tensor:
    """An input of the network's shape with nothing in it."""
    if config.input == "text":
        return torch.zeros(1, config.max_length, dtype=torch.long)
    return torch.zeros(1, config.in_chans, *config.img_size)
