"""Images in memory as uint8 (channels, height, width): arrays with channels first, last or none, and Pillow images.

Where the channels are is told from the shapes, and what could be read both ways is refused: a network learns from
pictures with rows for channels too, only worse, and nobody would notice.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from weft.errors import WeftError

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
    return arranged(levels(images), order_of([images.shape[1:]], channels))


def listed(images: Sequence[Any], channels: int | None = None, first: int = 0) -> list[NDArray[np.uint8]]:
    """Images of any sizes, each as (channels, height, width); `first` is the number of the first, for sentences."""
    arrays = [pixels_of(image) for image in images]
    order = order_of([array.shape for array in arrays], channels, first)
    return [arranged(levels(array[None], row), order)[0] for row, array in enumerate(arrays, first)]


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
                "(channels, height, width)"
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


def levels(images: NDArray[Any], first: int = 0) -> NDArray[np.uint8]:
    """Brightness from 0 to 255; floats go from 0 to 1."""
    if images.dtype == np.uint8:
        return images
    if images.dtype.kind not in "buif":
        raise WeftError(f"images must be numbers, these are {images.dtype}; give uint8, or floats from 0 to 1")
    most = 255 if images.dtype.kind in "iu" else 1
    fits = (images >= 0) & (images <= most)
    if not fits.all():
        row = int(np.flatnonzero(~fits.reshape(len(images), -1).all(1))[0])
        raise WeftError(
            f"image {first + row} has values from {images[row].min():.4g} to {images[row].max():.4g}; "
            "give uint8 from 0 to 255, or floats from 0 to 1"
        )
    return (images * (255 / most)).round().astype(np.uint8)
