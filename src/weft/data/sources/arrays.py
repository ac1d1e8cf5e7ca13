"""Arrays, lists and tables in memory: what they hold, and what of them are rows, texts and images.

Series and tables of pandas, polars and pyarrow are known by their methods; none of these libraries is imported.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from weft.data.config import Modality
from weft.errors import WeftError


@dataclass(frozen=True)
class Examples:
    """Inputs and what they are."""

    modality: Modality
    rows: Any  # vectors as they were given; texts; pairs of texts; uint8 (n, channels, height, width), or a list

    def __len__(self) -> int:
        return len(self.rows)


def recognise(inputs: Any) -> Examples:
    """Texts (a list, a column), pairs of them (two columns), images (arrays, Pillow images), else vectors."""
    rows = rows_of(inputs)
    if isinstance(rows, np.ndarray):
        return Examples("image", stacked(rows)) if rows.ndim in (3, 4) else Examples("vector", inputs)
    first = next((row for row in rows if not is_missing(row)), None) if isinstance(rows, list) else None
    if is_picture(first):
        return Examples("image", alike(listed(rows)))
    if isinstance(first, str) or is_row_of_texts(first):
        texts = [checked_text(row, number) for number, row in enumerate(rows)]
        return Examples(one_kind(texts), texts)
    if isinstance(rows, list) and first is not None and np.ndim(first) >= 2:
        return recognise(np.asarray(rows))
    return Examples("vector", inputs)


def rows_of(inputs: Any) -> Any:
    """The inputs one by one: a list, an array of numbers, or what else can be walked through as it is."""
    if type(inputs) is dict:
        raise WeftError("a dictionary of columns is no table; make one of it, pandas.DataFrame(…) or pyarrow.table(…)")
    if isinstance(inputs, str | bytes | os.PathLike) or is_pillow(inputs):
        raise WeftError(f"several inputs are expected, this is one ({type(inputs).__name__}); put it into a list")
    if hasattr(inputs, "to_pydict"):  # pyarrow's tables
        return list(zip(*inputs.to_pydict().values(), strict=True))
    if hasattr(inputs, "to_pylist"):  # pyarrow's arrays
        return inputs.to_pylist()
    found = inputs.to_numpy() if hasattr(inputs, "to_numpy") else inputs  # series and tables of pandas and polars
    if hasattr(found, "__array__"):
        found = np.asarray(found)
        return found.tolist() if found.dtype.kind in "OUT" else found
    lazy = isinstance(found, Sequence) and not isinstance(found, list)  # a tuple, or a column of `datasets`
    return list(found) if lazy else found


def is_missing(value: Any) -> bool:
    """None, and the NaN and NA that stand for it."""
    return value is None or (isinstance(value, float) and value != value) or type(value).__name__ == "NAType"


def is_row_of_texts(row: Any) -> bool:
    """Whether a row of a table, or a pair, holds texts."""
    if not isinstance(row, list | tuple):
        return False
    return all(isinstance(cell, str) or is_missing(cell) for cell in row) and not all(map(is_missing, row))


def checked_text(row: Any, number: int) -> str | tuple[str, str]:
    """A text or a pair of texts, or the sentence why it is neither."""
    cells = list(row) if isinstance(row, list | tuple) else [row]
    for cell in cells:
        if not isinstance(cell, str):
            what = repr(cell) if is_missing(cell) or isinstance(cell, int | float) else f"a {type(cell).__name__}"
            raise WeftError(f"row {number} (counted from 0) holds {what} in place of a text; fill it or leave it out")
    if len(cells) not in (1, 2):
        raise WeftError(f"row {number} holds {len(cells)} texts; give one text a row, or two for a pair")
    return cells[0] if len(cells) == 1 else (cells[0], cells[1])


def one_kind(texts: list[Any]) -> Modality:
    """Whether all rows are texts, or all are pairs."""
    pair = isinstance(texts[0], tuple)
    for number, text in enumerate(texts):
        if isinstance(text, tuple) != pair:
            raise WeftError(f"row 0 is {'a pair' if pair else 'one text'} and row {number} is not; give one kind only")
    return "pair" if pair else "text"


def alike(images: list[NDArray[np.uint8]]) -> list[NDArray[np.uint8]]:
    """Images with one number of channels: grey ones among coloured ones are repeated."""
    counts = {len(image) for image in images}
    if len(counts) == 1:
        return images
    if counts != {1, 3}:
        raise WeftError(f"the images have {' and '.join(map(str, sorted(counts)))} channels; give all of them the same")
    return [np.repeat(image, 3, 0) if len(image) == 1 else image for image in images]


# ---- Images in memory as uint8 (channels, height, width): arrays with channels first, last or none, and Pillow images.

Order = Literal["first", "last"]
Shape = tuple[int, ...]
USUAL = (1, 3, 4)  # channels: grey, RGB, RGB with transparency
GREY = ("1", "L", "LA")  # modes of Pillow
DEEP = ("I", "F")  # beginnings of its modes of more than eight bits


def is_pillow(value: Any) -> bool:
    return hasattr(value, "convert") and hasattr(value, "mode")


def is_picture(value: Any) -> bool:
    """Whether one input is an image in memory, rather than a path, a text or a row of numbers."""
    return is_pillow(value) or getattr(value, "ndim", 0) >= 2


def stacked(images: NDArray[Any], channels: int | None = None) -> NDArray[np.uint8]:
    """Images of one size, in an array (n, …), as (n, channels, height, width).

    `channels` is how many a trained network takes: it helps to tell an axis of channels from a short side.
    """
    if images.ndim == 3 and (images.shape[2] in USUAL or images.shape[0] == channels == 3):
        raise WeftError(
            f"an array {images.shape} may be one image or a row of grey ones; put a single image into a list, "
            "and give grey ones the shape (n, height, width, 1)"
        )
    return arranged(levels(images, brightest([images])), order_of([images.shape[1:]], channels))


def listed(images: Sequence[Any], channels: int | None = None, first: int = 0) -> list[NDArray[np.uint8]]:
    """Images of any sizes, each as (channels, height, width); `first` is the number of the first, for sentences."""
    arrays = [pixels_of(image) for image in images]
    order = order_of([array.shape for array in arrays], channels, first)
    white = brightest(arrays)
    return [arranged(levels(array[None], white, row), order)[0] for row, array in enumerate(arrays, first)]


def pixels_of(image: Any) -> NDArray[Any]:
    """An array, or the pixels of a Pillow image."""
    if not is_pillow(image):
        return np.asarray(image)
    if image.mode in GREY:
        return np.asarray(image.convert("L"))
    return np.asarray(image if image.mode.startswith(DEEP) else image.convert("RGB"))


def order_of(shapes: Sequence[Shape], channels: int | None = None, first: int = 0) -> Order:
    """Where the channels of images of these shapes are; those that are clear decide for the others."""
    possible: set[Order] = {"first", "last"}
    for row, shape in enumerate(shapes, first):
        if len(shape) not in (2, 3) or 0 in shape or not (found := orders_of(shape, channels)):
            raise WeftError(
                f"image {row} has the shape {shape}, which is none of (height, width), (height, width, channels) and "
                "(channels, height, width); bring all images into one of these forms"
            )
        if not possible & found:
            raise WeftError(f"image {row}, of shape {shape}, has its channels {found.pop()}, unlike those before it")
        possible &= found
    if len(possible) == 2 and any(len(shape) == 3 for shape in shapes):
        raise WeftError(
            f"images of shape {shapes[0]} may have their channels first or last; larger ones, or a list of Pillow "
            "images, would be clear"
        )
    return possible.pop()


def orders_of(shape: Shape, channels: int | None) -> set[Order]:
    """Where the channels of an image may be: where their number is the one expected, or usual, or by far the least."""
    if len(shape) == 2:
        return {"first", "last"}
    places: dict[Order, int] = {"first": shape[0], "last": shape[2]}
    for numbers in ((channels,), USUAL):
        if found := {order for order, size in places.items() if size in numbers}:
            return found
    return {order for order, size in places.items() if size < sorted(shape)[1]}


def arranged(images: NDArray[np.uint8], order: Order) -> NDArray[np.uint8]:
    """(n, …) with channels in `order`, or without, as (n, channels, height, width), copied only if it must be."""
    if images.ndim == 3:
        images = images[:, None]
    elif order == "last":
        images = np.moveaxis(images, 3, 1)
    return np.require(images, requirements=["C", "W"])  # torch warns of arrays that cannot be written to


def brightest(images: Sequence[NDArray[Any]]) -> int:
    """What white is in images of floats: 1, or 255 where one of them reaches into the upper half of that."""
    floats = [image for image in images if image.dtype.kind == "f" and image.size]
    return 255 if any(127 < image.max() <= 255 for image in floats) else 1


def levels(images: NDArray[Any], white: int = 1, first: int = 0) -> NDArray[np.uint8]:
    """Brightness from 0 to 255; floats go from 0 to `white`."""
    if images.dtype == np.uint8:
        return images
    if images.dtype.kind not in "buif":
        raise WeftError(f"images must be numbers, these are {images.dtype}; give uint8, or floats from 0 to 1")
    most = {"b": 1, "f": white}.get(images.dtype.kind, 255)
    fits = (images >= 0) & (images <= most)
    if not fits.all():
        row = int(np.flatnonzero(~fits.reshape(len(images), -1).all(1))[0])
        raise WeftError(
            f"image {first + row} has values from {images[row].min():.4g} to {images[row].max():.4g}; "
            "give numbers from 0 to 255, or floats from 0 to 1"
        )
    return (images * (255 / most)).round().astype(np.uint8)
