"""The lens `filters`: hand-made filters on a picture, what the first layer has learned, and feature maps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from weft.data.batch.loader import Batch
from weft.data.transform.transforms import ImageTransform
from weft.errors import WeftError
from weft.insight.drawing.raster import DIVERGING, Key
from weft.insight.drawing.tiles import Tile, sheet
from weft.insight.finding import Cell, Finding, Picture, Table, Unfit
from weft.insight.layers import find_layer, output_of
from weft.insight.lenses.filters.classic_filters import HANDMADE, filtered, most_like, visible
from weft.insight.lenses.filters.feature_maps import by_word, default_layer, layout_of, maps_of, maps_sheet
from weft.insight.lenses.filters.first_layer import FirstLayer, as_picture, first_layer
from weft.insight.options import FiltersOptions
from weft.insight.subject import Subject
from weft.report.columns import share

TITLE = "Filters and feature maps"
KEY = Key(DIVERGING, "below zero", "above, each tile on its own scale")
LARGEST = 240  # side to which a picture is brought before the hand-made filters


def filters(subject: Subject, asked: FiltersOptions) -> Finding:
    """Hand-made filters, learned filters with their principal components, and the feature maps of a layer."""
    if asked.layer is not None:
        find_layer(subject.network, asked.layer)  # a wrong name is said before anything is computed
    pictures: dict[str, Picture] = {}
    record: dict[str, Any] = {}
    tables: dict[str, Table] = {}
    sentences = []
    if subject.config.input == "image":
        image = picture_for(subject, asked.picture)
        pictures["handmade"] = handmade_sheet(image)
        tables["handmade"] = handmade_table(image)
    elif asked.picture is not None:
        raise Unfit(f"{subject.name} takes no pictures; leave --picture out")
    first = first_layer(subject.network)
    if first is not None:
        sentences.append(add_learned(pictures, tables, record, first, asked.maps))
    if subject.opener is not None or asked.picture is not None:
        sentences.append(add_maps(pictures, record, subject, asked))
    if not pictures:
        raise Unfit(f"{subject.name} has no filters to be seen without data; give some with --source")
    leading = "learned" if first is not None and first.filters.shape[2:] == (3, 3) else "components"
    table = tables.get(leading) or tables.get("handmade") or Table(["layer"], [])
    said = " ".join(sentences)
    return Finding("filters", TITLE, said, pictures, table, record, tables, textbook=frozenset({"handmade"}))


def picture_for(subject: Subject, path: Path | None) -> NDArray[np.uint8]:
    """The picture that hand-made filters are shown on: the file given, one of the source, or scikit-learn's flower."""
    if path is not None:
        return read_picture(path)
    if subject.opener is not None:
        return subject.pixels(subject.examples(1).inputs["x"])[0]
    from sklearn.datasets import load_sample_image

    whole: NDArray[np.uint8] = load_sample_image("flower.jpg")
    return whole[::2, 80:-80:2]


def read_picture(path: Path) -> NDArray[np.uint8]:
    """A picture file as pixels, at most LARGEST wide and high."""
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(path) as opened:
            image = opened.convert("RGB")
    except FileNotFoundError:
        raise WeftError(f"there is no picture {path}") from None
    except (UnidentifiedImageError, OSError) as error:
        raise WeftError(f"{path} is not a picture that can be read: {error}") from error
    image.thumbnail((LARGEST, LARGEST))
    return np.array(image)


def handmade_sheet(image: NDArray[np.uint8]) -> Picture:
    tiles: list[Tile] = [("the picture", image)]
    tiles += [(name, visible(filtered(image, name), name)) for name in HANDMADE]
    said = f"A picture, and after each of six filters: {', '.join(HANDMADE)}"
    return sheet(tiles, said, "Hand-made filters on a picture: edges, sharpen, blur", columns=4)


def handmade_table(image: NDArray[np.uint8]) -> Table:
    """Kernels, and how large they answer: an edge detector's values sum to zero, the others' to one."""
    rows: list[list[Cell]] = []
    for name, kernel in HANDMADE.items():
        values = " / ".join(" ".join(f"{value:.3g}" for value in line) for line in kernel)
        answer = float(np.abs(filtered(image, name)).mean())
        rows.append([name, values, round(sum(map(sum, kernel)), 12) + 0.0, answer])
    return Table(["filter", "kernel", "sum", "mean answer"], rows)


def add_learned(
    pictures: dict[str, Picture], tables: dict[str, Table], record: dict[str, Any], first: FirstLayer, count: int
) -> str:
    """Pictures and tables of the first layer; returns what they say."""
    components, energies = first.components()
    chosen = torch.linspace(0, len(first.filters) - 1, min(count, len(first.filters))).round().long()
    name = f"{first.kind} {first.name}"
    said = f"{len(chosen)} of the {len(first.filters)} filters of the {name}"
    tiles: list[Tile] = [("", as_picture(first.filters[i])) for i in chosen.tolist()]
    key = None if first.filters.shape[1] == 3 else KEY
    pictures["learned"] = sheet(tiles, said, said[0].upper() + said[1:], columns=8, key=key)
    shown: list[Tile] = [
        (f"{share(energy)}", as_picture(one)) for one, energy in zip(components[:16], energies.tolist(), strict=False)
    ]
    about = "Principal components of the first layer's filters, with their share of the energy"
    pictures["components"] = sheet(shown, about, about, columns=8, key=key)
    tables["components"] = Table(["component", "share of the energy"], list(map(list, enumerate(energies.tolist(), 1))))
    tables["learned"] = learned_table(first)
    record["first_layer"] = {"name": first.name, "kind": first.kind, "energies": energies.tolist()}
    enough = int((energies.cumsum(0) < 0.9).sum()) + 1
    return f"{enough} of {len(energies)} principal components hold 90 % of the {name}'s energy."


def learned_table(first: FirstLayer) -> Table:
    """Norm of each filter; beside 3×3 ones the hand-made filter that they are most like."""
    rows: list[list[Cell]] = []
    for number, weights in enumerate(first.filters):
        row: list[Cell] = [number, float(weights.norm())]
        if weights.shape[1:] == (3, 3):
            row += most_like(weights.double().mean(0).numpy())
        rows.append(row)
    return Table(["filter", "norm", "most like", "cosine"][: len(rows[0])], rows)


def add_maps(pictures: dict[str, Picture], record: dict[str, Any], subject: Subject, asked: FiltersOptions) -> str:
    """The feature maps of the layer asked for; returns what was shown."""
    name = asked.layer or default_layer(subject.network)
    batch = example_of(subject, asked.picture)
    with torch.no_grad():
        output = output_of(subject.network, name, batch)
    shape = "×".join(map(str, output.shape[1:]))
    record["maps"] = {"layer": name, "shape": list(output.shape[1:])}
    if subject.config.input == "text":
        words = subject.words(batch.inputs["x"][0][batch.inputs["mask"][0]])
        pictures["maps"] = by_word(output, words, f"What {name} computes for each word")
        return f"The layer {name} gives {shape} values for a text."
    maps = maps_of(output, layout_of(subject.network))
    said = f"{min(asked.maps, len(maps))} of {len(maps)} feature maps of {name}"
    pictures["maps"] = maps_sheet(maps, asked.maps, said)
    silent = float((maps.flatten(1).std(1) < 1e-6).double().mean()) if maps[0].numel() > 1 else 0.0
    return f"The layer {name} gives {shape} values; {share(silent)} of its maps are constant on this example."


def example_of(subject: Subject, picture: Path | None) -> Batch:
    """One example: the picture given, as the network takes it, or one of the source."""
    if picture is None:
        return subject.examples(1)
    if not isinstance(subject.transform, ImageTransform):
        raise Unfit(f"{subject.name} has no way from a picture to its input; give --source as well")
    inputs = subject.transform(picture)
    return Batch(inputs, torch.zeros(1), torch.zeros(1, dtype=torch.int64), 1)
