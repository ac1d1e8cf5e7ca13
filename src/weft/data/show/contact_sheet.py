"""Contact sheets: images in rows with a word beside each row, as one PNG."""

from __future__ import annotations

import io
import itertools
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageDraw
from PIL.PngImagePlugin import PngInfo
from torch import Tensor

from weft.data.augment.pipeline import Augmenter
from weft.data.batch.loader import ImageBatch
from weft.data.batch.stores import DecodedPixels
from weft.data.config import AugmentConfig, TransformConfig
from weft.data.open.source import Source
from weft.data.transform.fit import fit
from weft.data.transform.transforms import ImageTransform
from weft.disk import mark, user_path, write_bytes
from weft.errors import WeftError

CELL = 64  # least side of an image on a sheet
LABEL = 120  # pixels for the words on the left
SIGNED = ("Software", "weft data")  # written into each sheet, so that it is known again
EACH = {
    "flip": AugmentConfig(flip=True),
    "crop": AugmentConfig(crop_padding=4),
    "resized crop": AugmentConfig(resized_crop=(0.35, 1.0)),
    "colour jitter": AugmentConfig(color_jitter=0.4),
    "TrivialAugment": AugmentConfig(policy="trivial"),
    "RandAugment": AugmentConfig(policy="rand"),
    "erasing": AugmentConfig(reprob=1.0),
    "Mixup": AugmentConfig(mixup=1.0),
    "CutMix": AugmentConfig(cutmix=1.0),
}
"""The augmentations that `augment_sheet` shows, a row each."""


def class_sheet(source: Source, path: Path, columns: int = 10, rows: int = 40) -> None:
    """The first training images of each class, or of the split where there are no classes."""
    transform = _transform(source)
    split = source.splits["train"]
    pixels = DecodedPixels(split, transform, workers=0)
    targets = split.targets if source.classes else np.arange(len(split)) // columns
    lines = []
    for value in np.unique(targets)[:rows]:
        name = source.classes[int(value)] if source.classes else ""
        lines.append((name, pixels.rows(np.flatnonzero(targets == value)[:columns], None)[0]))
    draw(lines, path)
    mark_own(source, path)


def augment_sheet(source: Source, path: Path, seed: int = 0, columns: int = 12) -> None:
    """The same images under each augmentation."""
    transform = _transform(source)
    split = source.splits["train"]
    pixels = DecodedPixels(split, transform, workers=0)
    index = split.order(seed, 0, min(columns, len(split)))
    lines = [("as they are", pixels.rows(index, None)[0])]
    for name, config in EACH.items():
        config = replace(config, crop_padding=max(1, transform.size // 8)) if config.crop_padding else config
        batch = ImageBatch(split, transform, pixels, Augmenter(config, seed), len(source.classes))
        lines.append((name, _levels(batch(0, index, slice(None))[0]["x"])))
    draw(lines, path)
    mark_own(source, path)


def mark_own(source: Source, path: Path) -> None:
    """Let it be known that a sheet, or a page, inside its own source is no part of it."""
    root = user_path(source.name)
    if root.is_dir() and path.resolve().is_relative_to(root.resolve()):
        mark(path.parent, path.name)


def draw(lines: list[tuple[str, Tensor]], path: Path) -> None:
    """Write rows of (word, (images, channels, height, width) uint8) as a PNG."""
    side = lines[0][1].shape[-1]
    scale = max(1, -(-CELL // side))
    step = side * scale + 2
    columns = max(len(images) for _, images in lines)
    sheet = Image.new("RGB", (LABEL + columns * step, len(lines) * step), "white")
    pen = ImageDraw.Draw(sheet)
    for row, (name, images) in enumerate(lines):
        pen.text((4, row * step + step // 2 - 6), name[:18], fill="black")
        for column, image in enumerate(images):
            cell = Image.fromarray(image.expand(3, -1, -1).permute(1, 2, 0).numpy())
            sheet.paste(cell.resize((side * scale,) * 2, Image.Resampling.NEAREST), (LABEL + column * step, row * step))
    about = PngInfo()
    about.add_text(*SIGNED)
    content = io.BytesIO()
    sheet.save(content, "PNG", pnginfo=about)
    write_bytes(path, content.getvalue())


def sheet_path(name: str, asked: Path | None) -> Path:
    """Where a sheet may go: as asked, or to NAME.png in this folder; no file is overwritten but a sheet of weft's."""
    if asked is None:
        numbered = (Path(f"{name}-{number}.png") for number in itertools.count(2))
        return next(path for path in itertools.chain([Path(f"{name}.png")], numbered) if _free(path))
    if asked.suffix.lower() != ".png":
        raise WeftError(f"--output {asked}: a sheet is a PNG file; call it {asked.name or 'sheet'}.png")
    if not _free(asked):
        raise WeftError(f"--output {asked} exists and is no sheet of weft's; give another name, or remove it")
    try:
        asked.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise WeftError(f"--output {asked}: the folder cannot be made ({error.strerror}); give another") from error
    return asked


def _free(path: Path) -> bool:
    """Whether nothing lies at `path`, or a sheet that was drawn here before."""
    if not os.path.lexists(path):
        return True
    try:
        with Image.open(path, formats=["PNG"]) as image:
            return image.info.get(SIGNED[0]) == SIGNED[1]
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError):
        return False


def _transform(source: Source) -> ImageTransform:
    if source.modality != "image":
        raise WeftError(
            f"{source.name} holds no images but {source.modality}s; sheets are for images: give a source of images"
        )
    transform = fit(source, TransformConfig(normalize="unit"))
    assert isinstance(transform, ImageTransform)
    return transform


def _levels(images: Tensor) -> Tensor:
    return (images * 255).round().clamp(0, 255).to(torch.uint8)
