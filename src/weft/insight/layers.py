"""The layers of a network by name, and what comes out of them while it runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from weft.data.batch.loader import Batch
from weft.errors import WeftError, nearest
from weft.networks.base.network import Network
from weft.nn.noise import Dropout, DropPath

SILENT = (Dropout, DropPath, nn.Identity)  # what does nothing to a value outside of training


def layer_names(network: nn.Module) -> list[str]:
    """Names of all layers that do something and give a tensor, from the input on."""
    return [
        name
        for name, module in network.named_modules()
        if name
        and not isinstance(module, nn.ModuleList)
        and not all(isinstance(leaf, SILENT) for leaf in leaves(module))
    ]


def leaves(module: nn.Module) -> list[nn.Module]:
    """The modules below one that have none below themselves; the module itself if it has none."""
    return [below for below in module.modules() if not list(below.children())]


def find_layer(network: nn.Module, name: str) -> nn.Module:
    """The layer called `name`, or a sentence with the nearest names."""
    known = layer_names(network)
    if name not in known:
        raise WeftError(f"there is no layer {name!r}; {nearest(name, known)} the layers are {abbreviated(known)}")
    return network.get_submodule(name)


def abbreviated(names: list[str], many: int = 24) -> str:
    """The names as a list, the middle left out where they are many."""
    if len(names) <= many:
        return ", ".join(names)
    return f"{', '.join(names[: many // 2])}, …, {', '.join(names[-many // 2 :])}"


@contextmanager
def watching(layers: dict[str, nn.Module], see: Callable[[str, Tensor], None]) -> Iterator[None]:
    """Call `see(name, output)` whenever one of the layers has computed its output.

    Of a recurrent layer the output is what it says of each token: (batch, tokens, channels), or (all tokens, channels)
    where texts were packed.
    """

    def hook(name: str) -> Callable[[nn.Module, Any, Any], None]:
        return lambda module, inputs, output: see(name, tensor_of(output))

    handles = [layer.register_forward_hook(hook(name)) for name, layer in layers.items()]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def tensor_of(output: Any) -> Tensor:
    """The tensor among what a layer returns."""
    first = output[0] if isinstance(output, tuple) else output
    return first.data if isinstance(first, PackedSequence) else first


def output_of(network: Network, name: str, batch: Batch) -> Tensor:
    """What the layer `name` computes for a batch (the last time it runs, if it runs often)."""
    found: dict[str, Tensor] = {}
    layer = find_layer(network, name)
    with watching({name: layer}, lambda key, value: found.update({key: value.detach().clone()})):
        network(**batch.inputs)
    if name not in found:
        raise WeftError(f"the layer {name!r} holds weights that others use, and computes nothing itself; name another")
    return found[name][None] if isinstance(layer, nn.LSTM) and found[name].ndim == 2 else found[name]
