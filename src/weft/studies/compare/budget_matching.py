"""Equal budgets: width and depth of a network solved so that its parameters or multiply-adds meet a number.

Counts come from the closed forms of `networks/measure/cost.py`, so a solution takes milliseconds. `resized` says
how each family grows: by a main width, and by `extra` units of its finest dimension, which fill the gap between one
width and the next. Proportions stay those of the named size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import singledispatch
from math import lcm

from weft.errors import WeftError
from weft.networks.config import (
    BiTConfig,
    EfficientNetConfig,
    HaloNetConfig,
    LeNetConfig,
    LSTMConfig,
    MLPConfig,
    NetworkConfig,
    NFNetConfig,
    RCNNConfig,
    ResNetConfig,
    SideMismatch,
    TextConvConfig,
    TokenConfig,
    TooNarrow,
)
from weft.networks.measure.cost import total_macs, total_parameters

TOLERANCE = 0.03
FARTHEST = 0.5  # share of the budget by which a candidate may miss it, with a note
MEASURES: dict[str, tuple[Callable[[NetworkConfig], int], str]] = {
    "params": (total_parameters, "parameters"),
    "macs": (total_macs, "multiply-adds"),
}


class Unmatched(WeftError):
    """A network that cannot be given the size of a budget; the sentence goes on after its name."""


@dataclass(frozen=True)
class Shape:
    """A size of a family: main width, units added in its finest dimension, layers."""

    width: int
    extra: int
    depth: int


def solve(config: NetworkConfig, match: str, budget: float) -> NetworkConfig:
    """The network of this family whose count is within 3 % of the budget and whose depth is nearest its proportions;
    or the one nearest to the budget, if that misses it by no more than half."""
    count, words = MEASURES[match]
    closest = None
    for depth in depths(config, budget / max(count(config), 1)):
        found = fitted(config, depth, count, budget)
        if found is None:
            continue
        if abs(count(found) - budget) <= TOLERANCE * budget:
            return found
        if closest is None or abs(count(found) - budget) < abs(count(closest) - budget):
            closest = found
    if closest is None:
        least = count(resized(config, Shape(1, 0, 1)))
        raise Unmatched(f"cannot meet {budget:,.0f} {words}: its smallest size has {least:,}; raise --amount to that")
    near = count(closest)
    if abs(near - budget) <= FARTHEST * budget:
        return closest
    raise Unmatched(f"cannot meet {budget:,.0f} {words} within 3 %: its nearest size has {near:,}; use --amount {near}")


def depths(config: NetworkConfig, growth: float) -> Iterator[int]:
    """Depths to try, nearest first: the cube root of the growth, as counts grow with depth · width²."""
    named = depth_of(config)
    if named is None:
        yield 1
        return
    wanted = max(1, round(named * growth ** (1 / 3)))
    yield from sorted(range(1, 2 * wanted + 4), key=lambda depth: (abs(depth - wanted), -depth))


def fitted(
    config: NetworkConfig, depth: int, count: Callable[[NetworkConfig], int], budget: float
) -> NetworkConfig | None:
    """The largest size of this depth within the budget, or one step above it if that is nearer; None if all exceed."""

    def size(width: int, extra: int) -> int:
        try:
            return count(resized(config, Shape(width, extra, depth)))
        except TooNarrow:  # to be a network at all
            return 0

    if size(1, 0) > budget * (1 + TOLERANCE):
        return None
    width = largest(lambda width: size(width, 0) <= budget)
    if size(max(width, 1), 1) == size(max(width, 1), 0):  # no finer dimension
        choices = [Shape(max(width, 1), 0, depth), Shape(width + 1, 0, depth)]
    else:
        width = max(width, 1)
        extra = largest(lambda extra: size(width, extra) <= budget)
        choices = [Shape(width, extra, depth), Shape(width, extra + 1, depth)]
    sized = []
    for shape in choices:
        with suppress(TooNarrow):
            sized.append(resized(config, shape))
    if not sized:
        return None
    return min(sized, key=lambda candidate: abs(count(candidate) - budget))


def largest(holds: Callable[[int], bool]) -> int:
    """The largest n ≥ 0 up to which a condition holds that, once false, stays false; 0 where it never holds."""
    low, high = 0, 1
    while holds(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def depth_of(config: NetworkConfig) -> int | None:
    """Layers of a family whose depth is solved too; None where it is fixed."""
    if isinstance(config, ResNetConfig):
        return config.layers[0]
    if isinstance(config, EfficientNetConfig | NFNetConfig | BiTConfig):
        return max(config.layers)
    if isinstance(config, HaloNetConfig):
        return max(map(len, config.stages))
    return config.depth if isinstance(config, TokenConfig | LSTMConfig) else None


@singledispatch
def resized(config: NetworkConfig, shape: Shape) -> NetworkConfig:
    """The network at another size."""
    raise Unmatched(f"cannot be matched: nobody has said how {config.family} networks grow; use --match none")


@resized.register
def _(config: TokenConfig, shape: Shape) -> NetworkConfig:
    dim = 4 * shape.width  # a multiple of four, which vector units like
    even = 2 if config.block == "gated" else 1
    hidden = even * (round(dim * config.hidden_dim / config.dim) // even + shape.extra)
    heads = max(heads for heads in range(1, config.heads + 1) if dim % heads == 0)
    token = max(1, round(dim * config.token_width / config.dim))
    sizes = {"dim": dim, "depth": shape.depth, "hidden_dim": max(hidden, even), "heads": heads, "token_dim": token}
    return config.replaced(**sizes)


@resized.register
def _(config: MLPConfig, shape: Shape) -> NetworkConfig:
    widths = [max(1, round(shape.width * hidden / config.hidden[0])) for hidden in config.hidden]
    return config.replaced(hidden=(*widths[:-1], widths[-1] + shape.extra))


@resized.register
def _(config: LeNetConfig, shape: Shape) -> NetworkConfig:
    channels = tuple(max(1, round(shape.width * c / config.channels[0])) for c in config.channels)
    dense = [max(1, round(shape.width * width / config.channels[0])) for width in config.fc]
    return config.replaced(channels=channels, fc=(*dense[:-1], dense[-1] + shape.extra))


@resized.register
def _(config: ResNetConfig, shape: Shape) -> NetworkConfig:
    widths = [shape.width * width // config.widths[0] for width in config.widths]
    layers = [max(1, round(shape.depth * count / config.layers[0])) for count in config.layers]
    return config.replaced(widths=(*widths[:-1], widths[-1] + shape.extra), layers=tuple(layers))


def proportional(width: int, widths: tuple[int, ...], multiple: int) -> list[int]:
    """Widths in the proportions of others, the first about `width`; each a multiple."""
    return [multiple * max(1, round(width * other / widths[0] / multiple)) for other in widths]


def deepened(depth: int, layers: tuple[int, ...]) -> tuple[int, ...]:
    """Layers a stage in the proportions of others, the most of them `depth`."""
    return tuple(max(1, round(depth * count / max(layers))) for count in layers)


@resized.register
def _(config: EfficientNetConfig, shape: Shape) -> NetworkConfig:
    stem, *widths = proportional(4 * shape.width, (config.stem_width, *config.widths), 4)
    last = round(config.head_width * stem / config.stem_width) + shape.extra
    layers = deepened(shape.depth, config.layers)
    return config.replaced(stem_width=stem, widths=tuple(widths), head_width=max(1, last), layers=layers)


@resized.register
def _(config: NFNetConfig, shape: Shape) -> NetworkConfig:
    stem, *widths = proportional(8 * shape.width, (config.stem_width, *config.widths), 8)
    scale = stem / config.stem_width
    last, group = round(config.head_width * scale) + shape.extra, max(1, round(config.group_size * scale))
    sizes = {"stem_width": stem, "widths": tuple(widths), "head_width": max(1, last), "group_size": group}
    return config.replaced(**sizes, layers=deepened(shape.depth, config.layers))


@resized.register
def _(config: BiTConfig, shape: Shape) -> NetworkConfig:
    *widths, last = proportional(8 * shape.width, config.widths, 4)
    return config.replaced(widths=(*widths, last + 4 * shape.extra), layers=deepened(shape.depth, config.layers))


@resized.register
def _(config: HaloNetConfig, shape: Shape) -> NetworkConfig:
    whole = lcm(8, *config.heads)
    *widths, last = proportional(whole * shape.width, config.widths, whole)
    counts = deepened(shape.depth, tuple(map(len, config.stages)))
    staged = list(zip(config.stages, counts, strict=True))
    sized = config.replaced(widths=(*widths, last + config.heads[-1] * shape.extra))
    try:  # more blocks of the same kinds, unless attention would then meet maps that its blocks do not divide
        return sized.replaced(stages=tuple((kinds * count)[:count] for kinds, count in staged))
    except SideMismatch:
        return sized.replaced(stages=tuple(kinds[:count].ljust(count, "c") for kinds, count in staged))


@resized.register
def _(config: RCNNConfig, shape: Shape) -> NetworkConfig:
    return config.replaced(width=shape.width)


@resized.register
def _(config: LSTMConfig, shape: Shape) -> NetworkConfig:
    hidden = round(shape.width * config.hidden_dim / config.dim) + shape.extra
    return config.replaced(dim=shape.width, hidden_dim=max(1, hidden), depth=shape.depth)


@resized.register
def _(config: TextConvConfig, shape: Shape) -> NetworkConfig:
    channels = round(shape.width * config.channels / config.dim) + shape.extra
    return config.replaced(dim=shape.width, channels=max(1, channels))
