"""The lens `attention`: where each head looks, how far and how evenly, and what reaches the output.

The fused kernel forms no maps; they are computed again from the input of each layer, while the network runs as ever.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict
from math import log2
from typing import Any

import numpy as np
import torch
from torch import Tensor

from weft.insight.drawing.highlight import Sentence, enlarged, highlighted, texts
from weft.insight.drawing.raster import POSITIVE, SEQUENTIAL, Key, shaded
from weft.insight.drawing.tiles import sheet
from weft.insight.finding import Finding, Picture, Table, Unfit
from weft.insight.lenses.attention import map_statistics
from weft.insight.lenses.attention.head_statistics import Head, watch_heads
from weft.insight.options import AttentionOptions
from weft.insight.subject import Subject
from weft.nn.attention import Attention, TinyAttention, attention_maps
from weft.nn.halo import HaloAttention
from weft.report.chart import HEIGHT, WIDTH, Plane, Scale, picture, short
from weft.report.charts import colour
from weft.report.curves import legend_of, moved

COLUMNS = ["layer", "head", "distance", "entropy", "tokens attended", "fixed"]
SPECIAL = re.compile(r"\[[A-Z]+\d*\]")  # tokens that are no words
TILES = 96  # maps that a sheet shows at most


def attention(subject: Subject, asked: AttentionOptions) -> Finding:
    """Figures and mean maps over many examples; what reaches the output, on a few."""
    layers = {name: layer for name, layer in subject.network.named_modules() if isinstance(layer, Attention)}
    if not layers:
        halos = any(isinstance(layer, HaloAttention) for layer in subject.network.modules())
        has = "attends within blocks and their halo, of which there are no maps over all places" if halos else ""
        raise Unfit(
            f"{subject.name} {has or 'has no attention'}; the lens attention fits ViT, BERT, the hybrid and aMLP, and "
            "the lens gates shows with what this network mixes its tokens"
        )
    heads, means = watch_heads(subject, layers, asked.examples)
    tokens = next(iter(means.values())).shape[-1]
    layout: Any = subject.network.layout
    grid = layout.grid if len(layout.grid) == 2 else (tokens,)
    even = {"distance": map_statistics.even_distance(grid), "entropy": log2(tokens)}
    alike = "dashed: a head that looks at all tokens alike"
    pictures = {
        "distance": Picture(
            head_chart(heads, "distance", even["distance"]), f"How far each head looks, in tokens; {alike}"
        ),
        "entropy": Picture(
            head_chart(heads, "entropy", even["entropy"]), f"How evenly it looks: entropy, in bits; {alike}"
        ),
        **examples_shown(subject, layers, asked.shown),
        "maps": map_sheet(means),
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


def head_chart(heads: Sequence[Head], figure: str, even: float) -> str:
    """A dot a head over the number of its layer; dashed, a head that looks at all tokens alike."""
    unit = {"distance": "mean distance, tokens", "entropy": "mean entropy, bits"}[figure]
    layers = list(dict.fromkeys(head.layer for head in heads))
    values = [getattr(head, figure) for head in heads]
    across = Scale(0.4, len(layers) + 0.6, Plane.left, WIDTH - Plane.right, whole=True)
    frame = Plane(across, Scale(0, 1.12 * max([even, *values]), HEIGHT - Plane.bottom, Plane.top))
    level = frame.y(even)
    parts = [frame.axes("layer, from the input", unit, short, short)]
    parts.append(f'<path class="front" d="M{frame.left} {level:.1f}H{WIDTH - frame.right}"/>')
    for head, value in zip(heads, values, strict=True):
        at = frame.x(layers.index(head.layer) + 1), frame.y(value)
        words = f"{head.layer}, head {head.head}: {figure} {value:.2f}"
        place = f'cx="{at[0]:.1f}" cy="{at[1]:.1f}" r="5"'
        parts.append(f'<circle class="dot {colour(head.head - 1)}" {place}><title>{words}</title></circle>')
    key, below = legend_of([f"head {number}" for number in sorted({head.head for head in heads})], WIDTH, solid=True)
    content = "".join(parts) + moved(key, HEIGHT + 6)
    return picture(WIDTH, HEIGHT + below, content, f"{figure} of {len(heads)} heads by layer")


def map_sheet(means: dict[str, Tensor]) -> Picture:
    """Mean maps as tiles, a row a layer; of many layers, some from first to last."""
    columns = max(len(mean) for mean in means.values())
    rows = max(1, min(len(means), TILES // columns))
    chosen = [list(means)[int(place)] for place in np.linspace(0, len(means) - 1, rows).round()]
    tiles = {
        name: [(f"head {number + 1}", shaded(each.numpy())) for number, each in enumerate(means[name])]
        for name in chosen
    }
    said = f"Mean attention maps of {len(chosen)} layers with {columns} heads each"
    caption = "Mean maps, a row a layer and a tile a head: the row's token looks at the column's"
    key = Key(SEQUENTIAL, "looks away", "looks most, each tile on its own scale")
    return sheet(tiles, said, caption, columns=max(columns, 4), key=key)


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
            sentences.append(words_alone(len(sentences) + 1, subject.words(ids[real]), each[real].tolist()))
        said = f"Words of {count} texts by what reaches the output of them ({what})"
        caption = f"What reaches the output, word by word: {what}"
        return {"examples": texts(sentences, said, caption, Key(POSITIVE, "little", "most of a text's words"))}
    layout: Any = subject.network.layout
    tiles = []
    for pixels, each in zip(subject.pixels(batch.inputs["x"]), weights[:, layout.extra :], strict=True):
        tiles += [("", enlarged(pixels)), ("", highlighted(pixels, each.reshape(layout.grid).numpy()))]
    said = f"{count} pictures, each beside what of it reaches the output ({what})"
    key, caption = Key(POSITIVE, "little", "most of a picture's patches"), f"What reaches the output: {what}"
    return {"examples": sheet(tiles, said, caption, columns=8, together=2, key=key)}


def words_alone(number: int, words: Sequence[str], weights: Sequence[float]) -> Sentence:
    """A text in which the words are compared with each other: [CLS] and its like, which hold most, have no colour."""
    special = [SPECIAL.fullmatch(word) is not None for word in words]
    if all(special):
        return f"Text {number}", words, weights
    held = sum(weight for weight, aside in zip(weights, special, strict=True) if aside) / (sum(weights) or 1.0)
    names = " and ".join(dict.fromkeys(word for word, aside in zip(words, special, strict=True) if aside))
    title = f"Text {number}" + (f": {names} hold {100 * held:.0f} % and have no colour" if names else "")
    return title, words, [None if aside else weight for weight, aside in zip(weights, special, strict=True)]
