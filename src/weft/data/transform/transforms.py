"""The evaluation transform as an object: what a run used is saved beside its weights and gives the identical tensor
from a file's bytes later.

    transform = fit(source, TransformConfig())     # means and deviations of the training split, computed once
    transform.save(folder)                         # preprocessor_config.json, or tokenizer.json
    load(folder)("cat.jpg")                        # {"x": tensor}, as in evaluation
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
from pydantic import Field
from torch import Tensor
from torch.nn.functional import interpolate, pad

from weft.data.batch.token_batches import pad_batch
from weft.data.read.decode import BadImage, decode
from weft.data.transform.tokenizer import SHORTEST, Tokenizer
from weft.disk import Damaged, read_object, validated, write_json
from weft.errors import WeftError

Inputs = dict[str, Tensor]
FILE = "preprocessor_config.json"
Finite = Annotated[float, Field(allow_inf_nan=False)]
Deviation = Annotated[float, Field(gt=0, allow_inf_nan=False)]


@dataclass(frozen=True)
class ImageTransform:
    """Decode, resize the short side (antialiased bilinear, uint8), crop the centre, normalise each channel."""

    size: Annotated[int, Field(ge=1, le=4096)]
    channels: Annotated[int, Field(ge=1, le=512)]
    mean: tuple[Finite, ...]
    std: tuple[Deviation, ...]
    crop: Annotated[float, Field(gt=0, le=1)] = 1.0
    max_pixels: Annotated[int, Field(ge=1, le=1 << 40)] = 50_000_000

    def pixels(self, raw: bytes | np.ndarray | Tensor) -> Tensor:
        """(channels, size, size) uint8 of one image."""
        if isinstance(raw, bytes):
            image = decode(raw, self.channels, self.max_pixels, side=self.resized)
        else:
            image = self._as_channels(torch.as_tensor(raw))
        if image.shape[1] == image.shape[2] == self.size == self.resized:
            return image
        return centre_crop(resize_short(image, self.resized), self.size)

    def crop_of(self, raw: bytes | np.ndarray | Tensor, box: Sequence[float]) -> Tensor:
        """(channels, size, size) uint8: the part of an image that `box` (top, left, height, width in shares) names."""
        if isinstance(raw, bytes):
            side = math.ceil(self.size / min(box[2], box[3]))
            image = decode(raw, self.channels, self.max_pixels, side=side)
        else:
            image = self._as_channels(torch.as_tensor(raw))
        height, width = image.shape[1:]
        top, left = round(box[0] * height), round(box[1] * width)
        bottom, right = max(top + 1, round((box[0] + box[2]) * height)), max(left + 1, round((box[1] + box[3]) * width))
        return resize(image[:, top:bottom, left:right], (self.size, self.size))

    @property
    def resized(self) -> int:
        """What the short side becomes before the centre crop."""
        return max(self.size, round(self.size / self.crop))

    def normalize(self, pixels: Tensor) -> Tensor:
        """(batch, channels, height, width) uint8 to float32."""
        scale = torch.tensor([1 / (255 * std) for std in self.std]).view(-1, 1, 1)
        shift = torch.tensor([-mean / std for mean, std in zip(self.mean, self.std, strict=True)]).view(-1, 1, 1)
        # One layout whatever decoded the pixels: networks may round differently in another.
        return pixels.to(torch.float32, memory_format=torch.contiguous_format).mul_(scale).add_(shift)

    def __call__(self, raw: Any) -> Inputs:
        """A batch of one from bytes, a path, a Pillow image or a uint8 array (channels, height, width)."""
        try:
            return {"x": self.normalize(self.pixels(_image_bytes(raw))[None])}
        except BadImage as error:
            name = str(raw) if isinstance(raw, str | os.PathLike) else "the image given"
            raise WeftError(f"{name}: {error}; give another picture, or convert this one") from error

    def _as_channels(self, image: Tensor) -> Tensor:
        if image.shape[0] == self.channels:
            return image
        if self.channels == 3:
            return image.expand(3, -1, -1)
        weights = torch.tensor([299, 587, 114]).view(3, 1, 1)  # ITU-R 601 luma, as Pillow's convert("L")
        return ((image[:3].int() * weights).sum(0, keepdim=True) // 1000).to(torch.uint8)

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write preprocessor_config.json in the Hugging Face layout, `decoder` naming the one path to pixels."""
        size = {"height": self.size, "width": self.size}
        public = {"image_processor_type": "ViTImageProcessor", "do_resize": True, "size": size, "resample": 2,
                  "do_rescale": True, "rescale_factor": 1 / 255, "do_normalize": True,
                  "image_mean": list(self.mean), "image_std": list(self.std)}  # fmt: skip
        _write(folder, {**public, "weft": self.description()})

    def description(self) -> dict[str, Any]:
        """All that decides its output, for JSON; `described` is the way back."""
        return {"kind": "image", "decoder": "simplejpeg+torch", **asdict(self)}


@dataclass(frozen=True)
class VectorTransform:
    """Rows of floats, each column shifted and scaled by the training split's mean and deviation."""

    mean: tuple[Finite, ...]
    std: tuple[Deviation, ...]
    columns: tuple[str, ...] = ()

    @property
    def features(self) -> int:
        return len(self.mean)

    def normalize(self, rows: np.ndarray) -> Tensor:
        """(batch, features) float32."""
        scaled = (rows.astype(np.float64) - np.array(self.mean)) / np.array(self.std)
        return torch.from_numpy(scaled.astype(np.float32))

    def __call__(self, raw: Sequence[float] | np.ndarray | dict[str, float]) -> Inputs:
        """A batch of one from a row in the columns' order, or a dictionary by column."""
        values = [raw[column] for column in self.columns] if isinstance(raw, dict) else raw
        with np.errstate(over="ignore"):  # what is beyond float32 is refused below
            row = np.asarray(values, dtype=np.float32).reshape(1, -1)
        if row.shape[1] != self.features:
            raise WeftError(f"a row of {row.shape[1]} values was given where the network takes {self.features}")
        if not np.isfinite(row).all():
            worst = next(float(value) for value in row[0] if not np.isfinite(value))
            raise WeftError(
                f"a row holds the value {worst}, of which no network knows what to say; give finite numbers"
            )
        return {"x": self.normalize(row)}

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write preprocessor_config.json."""
        _write(folder, {"weft": self.description()})

    def description(self) -> dict[str, Any]:
        """All that decides its output, for JSON."""
        return {"kind": "vector", **asdict(self)}


@dataclass(frozen=True)
class TextTransform:
    """WordPiece ids of a text, or of a pair of texts as two segments."""

    tokenizer: Tokenizer
    max_length: int

    @property
    def vocab_size(self) -> int:
        return self.tokenizer.vocab_size

    def encode(self, raws: Sequence[Any]) -> list[tuple[list[int], list[int]]]:
        """(ids, segments) of each text or pair, cut to `max_length`."""
        return self.tokenizer.encode(raws, self.max_length)

    def __call__(self, raw: str | tuple[str, str]) -> Inputs:
        """A batch of one, padded to its bucket as in evaluation."""
        return pad_batch(self.encode([raw]), self.tokenizer.pad_id, self.max_length)

    def fits(self, words: int, length: int) -> bool:
        """Whether a network with vectors for so many words, and texts of at most this length, takes what is made."""
        return self.tokenizer.largest_id < words and self.max_length <= length

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write tokenizer.json and tokenizer_config.json, as `transformers` reads them."""
        self.tokenizer.save(folder, self.max_length)

    def description(self) -> dict[str, Any]:
        """All that decides its output, for JSON: the tokenizer as tokenizer.json has it."""
        return {"kind": "text", "max_length": self.max_length, "tokenizer": self.tokenizer.content()}


@dataclass(frozen=True)
class _StoredText:
    """A TextTransform as its description has it."""

    tokenizer: str
    max_length: Annotated[int, Field(ge=SHORTEST, le=1 << 20)]


Transform = ImageTransform | VectorTransform | TextTransform


def load(folder: str | os.PathLike[str]) -> Transform:
    """The transform that a run saved in `folder`."""
    folder = Path(folder)
    if (folder / "tokenizer.json").is_file():
        tokenizer, max_length = Tokenizer.load(folder)
        return TextTransform(tokenizer, max_length)
    if not (folder / FILE).is_file():
        raise WeftError(f"{folder} has neither tokenizer.json nor {FILE}; is it the folder of a run?")
    try:
        return _read(folder / FILE)
    except Damaged as error:
        raise Damaged(f"{error}; or remove the file and resume the run, which makes it anew") from error


def _read(path: Path) -> Transform:
    """The transform of a preprocessor_config.json."""
    stored = read_object(path).get("weft")
    if not isinstance(stored, dict) or stored.get("kind") not in ("image", "vector"):
        raise Damaged(
            f"{path} was not written by weft: its section 'weft' is missing, or says neither image nor vector"
        )
    return described(stored, path)


def described(stored: dict[str, Any], path: Path) -> Transform:
    """The transform that `description` was taken of, from the file `path`."""
    if stored.get("kind") == "image":
        image = validated(ImageTransform, stored, path)
        _require_numbers(path, image.channels, image.mean, image.std)
        return image
    if stored.get("kind") == "text":
        text = validated(_StoredText, stored, path)
        return TextTransform(Tokenizer.from_text(text.tokenizer, path), text.max_length)
    rows = validated(VectorTransform, stored, path)
    _require_numbers(path, len(rows.columns) or rows.features, rows.mean, rows.std)
    return rows


def _require_numbers(path: Path, count: int, mean: Sequence[float], std: Sequence[float]) -> None:
    if not len(mean) == len(std) == count:
        raise Damaged(f"{path} has {len(mean)} means and {len(std)} deviations for {count} inputs; restore it")


def fields(stored: dict[str, Any]) -> dict[str, Any]:
    """A transform's fields as JSON gave them back: lists were tuples."""
    return {name: tuple(value) if isinstance(value, list) else value for name, value in stored.items()}


def resize_short(image: Tensor, side: int) -> Tensor:
    """Resize (channels, height, width) uint8 so that the shorter side is `side`."""
    height, width = image.shape[1:]
    short = min(height, width)
    if short == side:
        return image
    shape = (max(side, round(height * side / short)), max(side, round(width * side / short)))
    return resize(image, shape)


def resize(image: Tensor, shape: tuple[int, int]) -> Tensor:
    """Antialiased bilinear resize of (channels, height, width) uint8, in integers, so exact everywhere."""
    pixels = image[None].contiguous(memory_format=torch.channels_last)  # the layout that the fast kernel wants
    return interpolate(pixels, size=shape, mode="bilinear", antialias=True)[0]


def centre_crop(image: Tensor, side: int) -> Tensor:
    """The middle `side` × `side` of (channels, height, width); a smaller image is surrounded by black."""
    height, width = image.shape[1:]
    if height < side or width < side:
        missing = max(0, side - height), max(0, side - width)
        image = pad(
            image, [missing[1] // 2, missing[1] - missing[1] // 2, missing[0] // 2, missing[0] - missing[0] // 2]
        )
        height, width = image.shape[1:]
    top, left = (height - side) // 2, (width - side) // 2
    return image[:, top : top + side, left : left + side]


def _image_bytes(raw: Any) -> Any:
    if isinstance(raw, str | os.PathLike):
        try:
            if Path(raw).is_fifo():
                raise WeftError(f"{raw} is a pipe, whose end may never come; copy its content into a file")
            return Path(raw).read_bytes()
        except (OSError, ValueError) as error:  # a name may hold what no name can
            why = getattr(error, "strerror", None) or error
            raise WeftError(f"cannot read the image {raw}: {why}; give a file that can be read") from error
    if hasattr(raw, "convert") and hasattr(raw, "mode"):  # a Pillow image
        return np.array(raw.convert("RGB")).transpose(2, 0, 1)
    return raw


def _write(folder: str | os.PathLike[str], content: dict[str, Any]) -> None:
    Path(folder).mkdir(parents=True, exist_ok=True)
    write_json(Path(folder) / FILE, content)
