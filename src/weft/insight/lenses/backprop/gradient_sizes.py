"""The size of the gradient at each layer: root mean square of ∂L/∂output over examples and units."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch
from torch import Tensor, nn

from weft.data.batch.loader import Batch
from weft.insight.layers import watching
from weft.insight.lenses.backprop.ablations import BLOCKS, Unshortened
from weft.insight.subject import Subject
from weft.nn.convolution import LocallyConnected2d
from weft.nn.embeddings import PatchEmbed, WordEmbed
from weft.training.objective import example_losses

WEIGHTED = (nn.Linear, nn.Conv1d, nn.Conv2d, LocallyConnected2d, PatchEmbed, WordEmbed, nn.LSTM)


def stations(network: nn.Module) -> dict[str, nn.Module]:
    """The layers at which the gradient is measured: embedding or stem, blocks and head; else all that have weights."""
    modules = dict(network.named_modules())
    blocks = [name for name, module in modules.items() if isinstance(module, (*BLOCKS, Unshortened))]
    inside = tuple(f"{name}." for name in blocks)
    weighted = [name for name, module in modules.items() if isinstance(module, WEIGHTED)]
    outer = [name for name in weighted if not name.startswith(inside)] if blocks else weighted
    top = tuple(f"{name}." for name in outer)
    chosen = {name for name in [*blocks, *outer] if not name.startswith((*inside, *top))}
    return {name: module for name, module in modules.items() if name in chosen}


def loss_of(subject: Subject, network: nn.Module, batch: Batch) -> Tensor:
    """Mean training loss of a batch; without targets that fit, the squared size of the output."""
    outputs = network(**batch.inputs)
    if subject.config.num_classes == 0 or outputs.ndim != 2:
        return outputs.square().mean()
    return example_losses(subject.card.task, outputs, batch.targets).mean()


def gradient_sizes(network: nn.Module, loss: Callable[[Batch], Tensor], batches: Iterable[Batch]) -> dict[str, float]:
    """Root mean square of the gradient by each station's output, in order of computing, over all batches."""
    squares: dict[str, float] = {}
    counts: dict[str, int] = {}

    def catch(name: str, output: Tensor) -> None:
        squares.setdefault(name, 0.0)
        counts.setdefault(name, 0)

        def add(gradient: Tensor) -> None:
            per_example = gradient.detach().double() * len(gradient)  # the loss is a mean over the batch
            squares[name] += float(per_example.square().sum())
            counts[name] += gradient.numel()

        if output.requires_grad:
            output.register_hook(add)

    with watching(stations(network), catch), torch.enable_grad():
        for batch in batches:
            for parameter in network.parameters():
                parameter.grad = None
            loss(batch).backward()
    for parameter in network.parameters():
        parameter.grad = None
    return {name: (squares[name] / counts[name]) ** 0.5 if counts[name] else 0.0 for name in squares}
