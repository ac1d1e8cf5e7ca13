"""The lens `attention`: where each head looks, how far and how evenly, and what reaches the output.

The fused kernel forms no maps; they are computed again from the input of each layer, while the network runs as ever.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from math import log2
from typing import Any

import numpy as np
import torch
from torch import Tensor

from weft.insight.drawing import raster
from weft.insight.drawing.highlight import Sentence, enlarged, highlighted, weighted_words
from weft.insight.finding import Finding, Picture, Table, Unfit
from weft.insight.lenses.attention import map_statistics
from weft.insight.lenses.attention.head_statistics import Head, watch_heads
from weft.insight.options import AttentionOptions
from weft.insight.subject import Subject
from weft.nn.attention import Attention, TinyAttention, attention_maps
from weft.report.chart import Plane, Scale, picture, short, text
from weft.report.charts import colour

COLUMNS = ["layer", "head", "distance", "entropy", "tokens attended", "fixed"]
TILES = 96  # maps that a sheet shows at most


def attention(subject: Subject, asked: AttentionOptions) -> Finding:
    """Figures and mean maps over many examples; what reaches the output, on a few."""
    layers = {name: layer for name, layer in subject.network.named_modules() if isinstance(layer, Attention)}
    if not layers:
        raise Unfit(
            f"{subject.name} has no attention; the lens attention fits ViT, BERT, the hybrid and aMLP, and the lens "
            "gates shows with what this network mixes its tokens"
        )
    heads, means = watch_heads(subject, layers, asked.examples)
    tokens = next(iter(means.values())).shape[-1]
    layout: Any = subject.network.layout
    grid = layout.grid if len(layout.grid) == 2 else (tokens,)
    even = {"distance": map_statistics.even_distance(grid), "entropy": log2(tokens)}
    pictures = {
        "distance": Picture(head_chart(heads, "distance", even["distance"]), "How far each head looks, in tokens"),
        "entropy": Picture(head_chart(heads, "entropy", even["entropy"]), "How evenly: entropy, in bits"),
        **examples_shown(subject, layers, asked.shown),
        "maps": Picture(map_sheet(means), "Mean maps, a tile a head: the row's token looks at the column's"),
    }
    return Finding(
        "attention", "Attention: where each head looks", sentence(heads, even), pictures,
        Table(COLUMNS, [head.row() for head in heads]), {"heads": [asdict(head) for head in heads], "even": even},
    )  # fmt: skip


def sentence(heads: Sequence[Head], even: dict[str, float]) -> str:
    """Near and far heads, and how fixed they are."""
    near, far = min(heads, key=lambda head: head.distance), max(heads, key=lambda head: head.distance)
    mean = sum(head.distance for head in heads) / len(heads)
    fixed = [head.fixed for head in heads if head.fixed is not None]
    words = (
        f"{len(heads)} heads look {mean:.1f} tokens away on average (all tokens alike: {even['distance']:.1f}), from "
        f"{near.distance:.1f} ({near.layer}, head {near.head}) to {far.distance:.1f} ({far.layer}, head {far.head})"
    )
    if not fixed:
        return f"{words}."
    return f"{words}; {100 * sum(fixed) / len(fixed):.0f} % of what they do is the same for every input."


def head_chart(heads: Sequence[Head], figure: str, even: float, width: float = 460, height: float = 280) -> str:
    """A dot a head over the number of its layer; dashed, a head that looks at all tokens alike."""
    layers = list(dict.fromkeys(head.layer for head in heads))
    values = [getattr(head, figure) for head in heads]
    across, up = Scale(0.4, len(layers) + 0.6, 54, width - 14), Scale(0, 1.1 * max([even, *values]), height - 40, 12)
    frame = Plane(across, up, width, height)
    axis = frame.axes("layer", figure, lambda value: f"{value:.0f}" if value == int(value) else "", short)
    level = frame.y(even)
    parts = [axis, f'<path class="front" d="M{frame.left} {level:.1f}H{width - frame.right}"/>']
    parts.append(text(width - 16, level - 5, "all tokens alike", "end"))
    for head, value in zip(heads, values, strict=True):
        at = frame.x(layers.index(head.layer) + 1), frame.y(value)
        words = f"{head.layer}, head {head.head}: {figure} {value:.2f}"
        place = f'cx="{at[0]:.1f}" cy="{at[1]:.1f}" r="5"'
        parts.append(f'<circle class="dot {colour(head.head - 1)}" {place}><title>{words}</title></circle>')
    return picture(width, height, "".join(parts), f"{figure} of {len(heads)} heads by layer")


def map_sheet(means: dict[str, Tensor]) -> str:
    """Mean maps as tiles, a row a layer; of many layers, some from first to last."""
    columns = max(len(mean) for mean in means.values())
    rows = max(1, min(len(means), TILES // columns))
    chosen = [list(means)[int(place)] for place in np.linspace(0, len(means) - 1, rows).round()]
    tiles = [
        (f"{name.replace('blocks.', '')} {number + 1}", raster.shaded(each.numpy()))
        for name in chosen
        for number, each in enumerate(means[name])
    ]
    said = f"Mean attention maps of {len(chosen)} layers with {columns} heads each"
    return raster.sheet(tiles, said, columns=max(columns, 4), width=560 if columns <= 6 else 720)


@torch.no_grad()
def examples_shown(subject: Subject, layers: dict[str, Attention], count: int) -> dict[str, Picture]:
    """What reaches the output, on some examples: by rollout, or for aMLP by its last tiny attention."""
    batch = subject.examples(count)
    with attention_maps(subject.network) as seen:
        subject.network(**batch.inputs)
    tiny = any(isinstance(layer, TinyAttention) for layer in layers.values())
    flow = list(seen.values())[-1].mean(1) if tiny else map_statistics.rollout(seen.values())
    config: Any = subject.config
    mask = batch.inputs.get("mask")
    weights = map_statistics.read_by_output(flow, mask, config.pool)
    what = "the last tiny attention" if tiny else "rollout through all layers"
    if config.input == "text":
        sentences: list[Sentence] = []
        for ids, real, each in zip(batch.inputs["x"], mask, weights, strict=True):  # type: ignore[arg-type]
            sentences.append((f"example {len(sentences) + 1}", subject.words(ids[real]), each[real].tolist()))
        said = f"Words of {count} texts by what reaches the output of them ({what})"
        return {"examples": Picture(weighted_words(sentences, said), f"What reaches the output: {what}")}
    layout: Any = subject.network.layout
    tiles = []
    for pixels, each in zip(subject.pixels(batch.inputs["x"]), weights[:, layout.extra :], strict=True):
        tiles += [("", enlarged(pixels)), ("", highlighted(pixels, each.reshape(layout.grid).numpy()))]
    said = f"{count} pictures, each beside what of it reaches the output ({what})"
    return {"examples": Picture(raster.sheet(tiles, said, columns=8), f"What reaches the output: {what}")}
