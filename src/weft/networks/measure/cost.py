"""Parameters and multiply-adds by formula, stage by stage, from a configuration alone: no weights.

One multiply-add is one multiplication and one addition. `weft describe` prints these beside what torch counts. A mixer
has its formula beside its code (`cost`), and so has a family that is not in this file; a mixer or a block without one,
and a foreign network, are counted by torch on the meta device. torch loads only where one of these is asked for.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, singledispatch
from math import prod
from typing import TYPE_CHECKING, Any

from weft.errors import WeftError
from weft.networks.config import (
    FilterNetConfig,
    ForeignConfig,
    ImageTokensConfig,
    LeNetConfig,
    LSTMConfig,
    MLPConfig,
    NetworkConfig,
    RCNNConfig,
    ResNetConfig,
    TextConvConfig,
    TextTokensConfig,
    TokenConfig,
)

if TYPE_CHECKING:
    from torch import Tensor, nn

    from weft.nn.blocks import Layout, MixerContext


@dataclass(frozen=True)
class Stage:
    """A part of a network: the module it is, how often it stands there, what one of it costs per example."""

    module: str
    shape: tuple[int, ...]
    parameters: int
    macs: int
    count: int = 1


def linear(inputs: int, outputs: int, bias: bool = True) -> int:
    """Parameters of a linear layer."""
    return inputs * outputs + outputs * bias


def slope(act: str) -> int:
    """Parameters of an activation: PReLU learns one slope a layer."""
    return int(act == "prelu")


def total_parameters(config: NetworkConfig) -> int:
    return sum(stage.count * stage.parameters for stage in stages(config))


def total_macs(config: NetworkConfig) -> int:
    """Multiply-adds of one forward pass of one example; a text at its full length."""
    return sum(stage.count * stage.macs for stage in stages(config))


@singledispatch
def stages(config: NetworkConfig) -> list[Stage]:
    """The stages of a network, from input to head; those of a family that is not below stand beside its class."""
    from weft.networks.registry import network_class

    return list(network_class(config.family).cost(config))


def head(inputs: int, classes: int, name: str = "head") -> list[Stage]:
    return [Stage(name, (classes,), linear(inputs, classes), inputs * classes)] if classes else []


# ---- token networks


def mixer_cost(kind: Any, context: MixerContext) -> tuple[int, int]:
    """Parameters and multiply-adds of a mixer: by its own formula, not an inherited one; without, as torch counts."""
    if "cost" in vars(kind):
        found: tuple[int, int] = kind.cost(context)
        return found
    return counted_mixer(kind, context)


@cache
def counted_mixer(kind: Any, context: MixerContext) -> tuple[int, int]:
    from weft.nn.blocks import make_mixer

    def made() -> nn.Module:
        mixer = make_mixer(kind, context)
        mixer.register_forward_hook(lambda _, given, found: require_tokens(kind, given[0], found))
        return mixer

    return counted(made, (context.tokens, context.dim))


def require_tokens(kind: Any, given: Tensor, found: Any) -> None:
    """Refuse a mixer whose output is no tokens like those that it got."""
    if getattr(found, "shape", None) != given.shape:
        shape = f"a {type(found).__name__}" if not hasattr(found, "shape") else str(tuple(found.shape))
        raise WeftError(
            f"the mixer {kind.__name__} makes {shape} of {tuple(given.shape)}; let it return (batch, tokens, channels) "
            "as it got them"
        )


def counted(make: Callable[[], nn.Module], shape: tuple[int, ...], device: str = "meta") -> tuple[int, int]:
    """Parameters and multiply-adds for one example of some shape, as torch counts them."""
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    counter = FlopCounterMode(display=False)
    with torch.device(device), torch.no_grad():
        module = make().eval()
        with counter:
            module(torch.zeros(1, *shape))
    return sum(p.numel() for p in module.parameters()), counter.get_total_flops() // 2


@cache
def block_cost(config: TokenConfig, layout: Layout) -> tuple[int, int]:
    """Parameters and multiply-adds of a block. One that a family changed is counted."""
    from weft.networks.registry import mixer_class, network_class
    from weft.nn.blocks import Block

    if config.block == "gated":
        from weft.networks.gmlp import gated_cost

        return gated_cost(config, layout)
    network: Any = network_class(config.family)
    if network.block is not Block:
        return counted(lambda: network.make_block(config, layout), (layout.tokens, config.dim))
    s, c, d = layout.tokens, config.dim, config.hidden_dim
    parameters, macs = mixer_cost(mixer_class(config.mixer), network.mixer_context(config, layout))
    return 4 * c + parameters + linear(c, d) + slope(config.act) + linear(d, c), macs + 2 * d * s * c


def body(config: TokenConfig, grid: tuple[int, ...], extra: int = 0, final_norm: bool = True) -> Iterator[Stage]:
    """Positions, blocks and the norm after them."""
    from weft.nn.blocks import Layout

    layout, dim = Layout(grid, extra), config.dim
    tokens = layout.tokens
    if config.positions == "learned":
        yield Stage("positions", (tokens, dim), tokens * dim, 0)
    parameters, macs = block_cost(config, layout)
    yield Stage("blocks", (tokens, dim), parameters, macs, count=config.depth)
    if final_norm:
        yield Stage("norm", (tokens, dim), 2 * dim, 0)


@stages.register
def _(config: ImageTokensConfig) -> list[Stage]:
    rows, columns = config.grid
    found: list[Stage] = []
    inputs, patch = config.in_chans, config.patch_size
    if config.hybrid:
        widths = config.stem_widths[: len(config.stem_layers)]
        found += trunk(config.img_size, inputs, config.stem_layers, widths, stem=config.stem)
        inputs, patch = widths[-1], 1
    pixels = inputs * patch**2
    found.append(
        Stage("embed", (rows * columns, config.dim), linear(pixels, config.dim), rows * columns * pixels * config.dim)
    )
    if config.class_token:
        found.append(Stage("class_token", (1, config.dim), config.dim, 0))
    if config.family == "deit":
        found.append(Stage("distill_token", (1, config.dim), config.dim, 0))
    found += body(config, config.grid, extra=config.extra)
    found += head(config.dim, config.num_classes)
    return found + (head(config.dim, config.num_classes, "head_dist") if config.family == "deit" else [])


@stages.register
def _(config: TextTokensConfig) -> list[Stage]:
    shape = (config.max_length, config.dim)
    if config.encoder is None:
        found = [Stage("embed", shape, (config.vocab_size + config.segments) * config.dim, 0)]
    else:  # what stands below is not counted: its embeddings are computed once
        width = config.encoder.dim
        found = [Stage("project", shape, linear(width, config.dim), config.max_length * width * config.dim)]
    if config.embed_norm:
        found.append(Stage("embed_norm", (config.max_length, config.dim), 2 * config.dim, 0))
    found += body(config, (config.max_length,), final_norm=config.final_norm)
    if config.pooler:
        found.append(Stage("pooler", (config.dim,), linear(config.dim, config.dim), config.dim**2))
    return found + head(config.dim, config.num_classes)


@stages.register
def _(config: ForeignConfig) -> list[Stage]:
    from weft.networks.base.foreign import count

    parameters, macs = count(config)
    return [Stage("net", (config.num_classes,), parameters, macs)]


# ---- convolutional networks


def trunk(
    side: tuple[int, int],
    inputs: int,
    layers: tuple[int, ...],
    widths: tuple[int, ...],
    block: str = "basic",
    stem: str = "imagenet",
    padded: bool = False,
) -> Iterator[Stage]:
    """Stem and stages of a ResNet; a convolution with padding keeps the side, stride 2 halves it, rounding up."""
    kernel, weights = (7, inputs * 49 * widths[0]) if stem == "imagenet" else (3, inputs * 9 * widths[0])
    side = halved(side) if kernel == 7 else side
    yield Stage("trunk.conv1", (widths[0], *side), weights, weights * prod(side))
    yield Stage("trunk.bn1", (widths[0], *side), 2 * widths[0], 0)
    side = halved(side) if kernel == 7 else side
    inputs = widths[0]
    for number, (count, width) in enumerate(zip(layers, widths, strict=True)):
        after = side if number == 0 else halved(side)
        outputs = width * (4 if block == "bottleneck" else 1)
        parameters, macs = residual_block(inputs, width, prod(side), prod(after), block)
        if not padded and (number > 0 or inputs != outputs):  # a 1×1 convolution and its norm as the shortcut
            parameters += inputs * outputs + 2 * outputs
            macs += inputs * outputs * prod(after)
        more = residual_block(outputs, width, prod(after), prod(after), block)
        parameters, macs = parameters + (count - 1) * more[0], macs + (count - 1) * more[1]
        inputs, side = outputs, after
        yield Stage(f"trunk.layer{number + 1}", (outputs, *side), parameters, macs)


def halved(side: tuple[int, int]) -> tuple[int, int]:
    return (side[0] + 1) // 2, (side[1] + 1) // 2


def residual_block(inputs: int, width: int, before: int, after: int, block: str) -> tuple[int, int]:
    """Convolutions and norms of a branch, from `before` pixels to `after`."""
    if block == "basic":
        weights = 9 * inputs * width + 9 * width * width
        return weights + 4 * width, weights * after
    first, rest = inputs * width, 9 * width * width + 4 * width * width
    return first + rest + 12 * width, first * before + rest * after


@stages.register
def _(config: ResNetConfig) -> list[Stage]:
    found = list(
        trunk(
            config.img_size,
            config.in_chans,
            config.layers,
            config.widths,
            block=config.block,
            stem=config.stem,
            padded=config.padded,
        )
    )
    return found + head(found[-1].shape[0], config.num_classes)


@stages.register
def _(config: RCNNConfig) -> list[Stage]:
    first = config.in_chans * 25 * config.width
    halves = [half := halved(config.img_size), halved(half)]
    norm = 2 * config.width * config.norm
    found = [Stage("stem", (config.width, *halves[0]), first + norm, first * prod(config.img_size))]
    kernel = 9 * config.width**2
    kernels = 2 if config.form == "two_kernels" else 1
    for module, side in zip(("first", "second"), halves, strict=True):
        parameters = 2 * (kernels * kernel + (config.steps + 1) * norm)
        macs = 2 * (config.steps + 1) * kernel * prod(side)
        found.append(Stage(module, (config.width, *side), parameters, macs))
    return found + head(config.width, config.num_classes)


@stages.register
def _(config: LeNetConfig) -> list[Stage]:
    parameters = macs = 0
    inputs, before = config.in_chans, config.img_size
    for outputs, after in zip(config.channels, config.sides(), strict=True):
        pixels = (before[0] - config.kernel + 1) * (before[1] - config.kernel + 1)
        weights = inputs * config.kernel**2 * outputs
        parameters += (weights + outputs) * (pixels if config.local else 1) + slope(config.act)
        macs += weights * pixels
        inputs, before = outputs, after
    found = [Stage("convolutions", (inputs, *before), parameters, macs)]
    widths = (inputs * prod(before), *config.fc)
    pairs = list(itertools.pairwise(widths))
    if pairs:
        dense = sum(linear(a, b) + slope(config.act) for a, b in pairs)
        found.append(Stage("dense", (widths[-1],), dense, sum(a * b for a, b in pairs)))
    return found + head(widths[-1], config.num_classes)


@stages.register
def _(config: FilterNetConfig) -> list[Stage]:
    widths, pixels = (config.in_chans, *config.hidden, config.out_chans), prod(config.img_size)
    weights = [a * b * config.kernel**2 for a, b in itertools.pairwise(widths)]
    found = []
    if config.hidden:
        hidden = sum(weights[:-1])
        more = sum(width + slope(config.act) for width in config.hidden)
        found.append(Stage("hidden", (widths[-2], *config.img_size), hidden + more, hidden * pixels))
    last = Stage("head", (widths[-1], *config.img_size), weights[-1] + widths[-1], weights[-1] * pixels)
    return [*found, last]


# ---- vectors, and the older text networks


@stages.register
def _(config: MLPConfig) -> list[Stage]:
    widths = (config.inputs, *config.hidden)
    pairs = list(itertools.pairwise(widths))
    parameters = sum(linear(a, b, config.bias) + 2 * b * config.norm + slope(config.act) for a, b in pairs)
    layers = [Stage("layers", (widths[-1],), parameters, sum(a * b for a, b in pairs))] if pairs else []
    return layers + head(widths[-1], config.num_classes)


@stages.register
def _(config: LSTMConfig) -> list[Stage]:
    hidden, inputs, parameters, weights = config.hidden_dim, config.dim, 0, 0
    for _ in range(config.depth):
        weights += 2 * 4 * hidden * (inputs + hidden)
        parameters += 2 * 4 * hidden * (inputs + hidden + 2)  # torch keeps two biases a gate
        inputs = 2 * hidden
    found = [
        Stage("embed", (config.max_length, config.dim), config.vocab_size * config.dim, 0),
        Stage("lstm", (config.max_length, 2 * hidden), parameters, weights * config.max_length),
    ]
    return found + head(2 * hidden, config.num_classes)


@stages.register
def _(config: TextConvConfig) -> list[Stage]:
    weights = [kernel * config.dim * config.channels for kernel in config.kernels]
    windows = [config.max_length + kernel - 1 for kernel in config.kernels]
    width = len(config.kernels) * config.channels
    found = [
        Stage("embed", (config.max_length, config.dim), config.vocab_size * config.dim, 0),
        Stage(
            "convolutions",
            (width,),
            sum(weights) + width,
            sum(a * b for a, b in zip(weights, windows, strict=True)),
        ),
    ]
    return found + head(width, config.num_classes)
