"""From a source and a TransformConfig to the transform of its inputs; statistics and vocabulary are found once."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import torch

from weft import machine
from weft.data.batch.stores import StoredPixels, made_once, pixels_of, token_store
from weft.data.config import TransformConfig
from weft.data.open.source import Source
from weft.data.open.splits import MemorySplit, Split, spread
from weft.data.read.decode import BadImage, header
from weft.data.sources.table import refusal
from weft.data.transform.tokenizer import Tokenizer, train_tokenizer
from weft.data.transform.transforms import ImageTransform, TextTransform, Transform, VectorTransform, fields

Shape = tuple[int, int, int]
SAMPLE = 10_000
"""Training images whose mean and deviation stand for all; the standard error is then below a thousandth."""
LETTERS = 10_000_000
"""Characters that a vocabulary is learnt from; ten million take some seconds and settle its 8,000 commonest pieces."""
DEFAULT_SIZE = 128  # px, at most, unless a side was asked for; patches of 4, 8, 16 and 32 px fit into it
SMALL, LARGE = 32, 64  # px, at most, of images for a network that a run chooses itself: in short runs, in long ones
HEADERS = 1000  # images whose sizes stand for all
COMMON = 0.8  # share of the images that must be of one size for it to be the side
TEXTS, COVERED, SHORTEST, LONGEST = 2000, 0.95, 16, 256  # texts looked at, share that fits, bounds of the length


def fit(source: Source, config: TransformConfig | None = None, tokenizer: Tokenizer | None = None) -> Transform:
    """The transform that training, evaluation and serving share; its statistics come from the training rows alone."""
    config = config or TransformConfig()
    train = source.splits["train"]
    if source.modality == "image":
        return _fit_image_once(source, config)
    if source.modality == "vector":
        return _fit_vector(train, config, source.columns)
    if tokenizer is None:
        tokenizer = train_tokenizer(_sample_texts(train), config.vocab_size, config.lowercase)
    return TextTransform(tokenizer, config.max_length or fitting_length(train, tokenizer))


def fitting_length(train: Split, tokenizer: Tokenizer) -> int:
    """Tokens that most training texts fit into, a multiple of eight within bounds."""
    encoded = tokenizer.encode(list(train.read(spread(len(train), TEXTS))[0]), LONGEST + 1)
    length = float(np.quantile([len(ids) for ids, _ in encoded], COVERED))
    return min(LONGEST, max(SHORTEST, 8 * math.ceil(length / 8)))


def _sample_texts(train: Split) -> Iterator[Any]:
    """Training texts spread evenly over the split, about LETTERS characters of them at most."""
    probe = train.read(spread(len(train), 500))[0]
    letters = sum(len(text) if isinstance(text, str) else sum(map(len, text)) for text in probe) / len(probe)
    chosen = spread(len(train), int(LETTERS / letters))
    for chunk in np.array_split(chosen, math.ceil(len(chosen) / 2000)):
        yield from train.read(chunk)[0]


def _fit_image_once(source: Source, config: TransformConfig) -> ImageTransform:
    """The fitted transform from the cache: looking at all training images takes as long as opening them."""
    train = source.splits["train"]
    if not isinstance(train, MemorySplit):
        return _fit_image(source, config)

    def build() -> dict[str, torch.Tensor]:
        found = json.dumps(asdict(_fit_image(source, config))).encode()
        return {"json": torch.frombuffer(bytearray(found), dtype=torch.uint8)}

    recipe = (train.rows.tobytes(), f"{config}, at most {DEFAULT_SIZE}")
    stored = made_once(source, "fit", f"sizes and statistics of {source.name}", build, *recipe)["json"]
    return ImageTransform(**fields(json.loads(stored.numpy().tobytes())))


def _fit_image(source: Source, config: TransformConfig) -> ImageTransform:
    shapes = image_shapes(source)
    channels = config.channels or shapes.most_common(1)[0][0][0]
    size = config.img_size or fitting_side(shapes)
    plain = ImageTransform(size, channels, (0.0,) * channels, (1.0,) * channels, config.crop, config.max_pixels)
    if config.normalize == "unit":
        return plain
    mean, std = _statistics(source, plain)
    return replace(plain, mean=mean, std=std)


def image_shapes(source: Source) -> Counter[Shape]:
    """(channels, height, width) of training images spread over the split, and how many have it.

    Kept in the cache: their files are read whole to see their headers.
    """
    train = source.splits["train"]
    if not isinstance(train, MemorySplit) or isinstance(train.table.inputs, np.ndarray):
        return _image_shapes(train)

    def build() -> dict[str, torch.Tensor]:
        return {"shapes": torch.tensor([[*shape, count] for shape, count in _image_shapes(train).items()])}

    stored = made_once(source, "shapes", f"sizes of {source.name}", build, train.rows.tobytes())["shapes"]
    return Counter({(channels, height, width): count for channels, height, width, count in stored.tolist()})


def _image_shapes(train: Split) -> Counter[Shape]:
    found: Counter[Shape] = Counter()
    chosen = spread(len(train), HEADERS)
    for example, raw in zip(chosen.tolist(), train.read(chosen)[0], strict=True):
        try:
            found[(3, *header(raw)) if isinstance(raw, bytes) else raw.shape] += 1
        except BadImage as error:
            raise refusal(train.place(example), str(error)) from error
    return found


def fitting_side(shapes: Counter[Shape]) -> int:
    """The side of images where none was asked for: their own, and at most DEFAULT_SIZE."""
    return min(DEFAULT_SIZE, own_side(shapes))


def own_side(shapes: Counter[Shape]) -> int:
    """The shorter side of nearly all images; where they differ, about that of half of them."""
    (_, height, width), count = shapes.most_common(1)[0]
    if count >= COMMON * shapes.total():
        return min(height, width)
    shorter = sorted(min(shape[1:]) for shape in shapes.elements())
    median = shorter[len(shorter) // 2]
    return max(16, median // 16 * 16)


def size_note(source: Source, transform: ImageTransform) -> list[str]:
    """A sentence about images of other sizes than that of the network's, if there are any."""
    shapes, side = image_shapes(source), transform.size
    others, own = other_sizes(shapes, side), own_side(shapes)
    smaller = f", from {own}" if side < own else ""
    return [f"images of {side} px{smaller}: {others}, and are resized (--img-size)"] if others else []


def other_sizes(shapes: Counter[Shape], side: int) -> str:
    """How many images are not squares of this side, in words; empty where all are."""
    other = sum(count for shape, count in shapes.items() if shape[1:] != (side, side))
    sides = [one for shape in shapes for one in shape[1:]]
    seen = f"{other:,} of {shapes.total():,} looked at are of other sizes, {min(sides)} to {max(sides)} px"
    return seen if other else ""


def remarks(source: Source, config: TransformConfig, transform: Transform) -> list[str]:
    """Sentences about image side and text length where they followed the data; found once for an opened source."""
    key = f"remarks on {config}"
    if key not in source.stores:
        source.stores[key] = list(_remarks(source, config, transform))
    found: list[str] = source.stores[key]
    return found


def _remarks(source: Source, config: TransformConfig, transform: Transform) -> Iterator[str]:
    if isinstance(transform, TextTransform):
        if config.max_length is None:
            yield length_note(transform.max_length)
        yield from cut_note(source, transform)
    elif isinstance(transform, ImageTransform) and config.img_size is None:
        yield from size_note(source, transform)


def length_note(length: int) -> str:
    """A sentence about the length of texts that `fitting_length` has found."""
    why = "the most that is taken unasked" if length == LONGEST else f"{100 * COVERED:.0f} % of the training texts fit"
    return f"texts of up to {length} tokens: {why} (--max-length)"


def cut_note(source: Source, transform: TextTransform) -> Iterator[str]:
    """A sentence about the training texts that are longer than the network, if there are any."""
    split = source.splits["train"]
    if not isinstance(split, MemorySplit):  # streamed texts are read when they are needed, and not counted
        return
    lengths = token_store(source, split, transform).lengths[split.rows]
    full = np.flatnonzero(lengths == transform.max_length)  # cut, or just as long
    longer = transform.tokenizer.encode(list(split.read(full)[0]), transform.max_length + 1) if len(full) else []
    count = sum(len(ids) > transform.max_length for ids, _ in longer)
    if count:
        what, how = ("pairs", ", the longer text first") if source.modality == "pair" else ("texts", "")
        yield f"{count:,} of {len(split):,} training {what} are longer than {transform.max_length} tokens: cut{how}"


def _statistics(source: Source, transform: ImageTransform) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Mean and deviation of each channel, of values in [0, 1], over the training images.

    From counts of the 256 levels, so exact and the same in any order. Images not kept in memory are sampled.
    """
    train = source.splits["train"]
    pixels = pixels_of(source, train, transform, machine.cores())
    chosen = np.arange(len(train)) if isinstance(pixels, StoredPixels) else spread(len(train), SAMPLE)
    counts = np.zeros((transform.channels, 256))
    for chunk in np.array_split(chosen, math.ceil(len(chosen) / 512)):
        images = pixels.rows(chunk, None)[0]
        for channel in range(transform.channels):
            counts[channel] += torch.bincount(images[:, channel].flatten(), minlength=256).numpy()
    weights, levels = counts / counts.sum(1, keepdims=True), np.arange(256) / 255
    mean = weights @ levels
    std = np.sqrt(np.maximum(weights @ levels**2 - mean**2, 0))
    return tuple(mean.tolist()), tuple(np.where(std > 1e-3, std, 1.0).tolist())  # a flat channel stays at zero


def _fit_vector(train: Split, config: TransformConfig, columns: list[str]) -> VectorTransform:
    rows = np.asarray(train.read(np.arange(min(len(train), 1_000_000)))[0], dtype=np.float64)
    mean, std = np.zeros(rows.shape[1]), np.ones(rows.shape[1])
    if config.normalize == "zscore":
        mean, deviation = rows.mean(0), rows.std(0)
        std = np.where(deviation > 1e-12 * np.abs(mean) + 1e-30, deviation, 1.0)  # a constant column stays at zero
    return VectorTransform(tuple(mean.tolist()), tuple(std.tolist()), tuple(columns))
