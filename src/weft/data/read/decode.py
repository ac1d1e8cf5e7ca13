"""Encoded images to uint8 tensors: one path for training, evaluation and serving.

JPEG goes through simplejpeg (twice as fast as Pillow), everything else through Pillow. Size and format are read from
the header first: what declares too many pixels, or is of a format not listed here, is never decoded.
"""

from __future__ import annotations

import io
import re
import warnings
from typing import Any

import numpy as np
import simplejpeg
import torch
from numpy.typing import NDArray
from PIL import Image, ImageOps
from torch import Tensor

FORMATS = ("JPEG", "PNG", "WEBP", "BMP", "GIF", "TIFF", "PPM")
ENDINGS = (".jpg", ".jpeg", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff", ".ppm", ".pgm")
_JPEG = b"\xff\xd8\xff"
_ORIENTATION = 0x0112  # EXIF tag: how the camera was held
warnings.filterwarnings("ignore", category=Image.DecompressionBombWarning)  # our own cap is lower and names the file


class BadImage(Exception):
    """Why an image cannot be used, without saying which: the caller knows file and row."""


def decode(data: bytes, channels: int = 3, max_pixels: int = 50_000_000, side: int = 0) -> Tensor:
    """(channels, height, width) uint8 from a file's bytes, upright.

    With `side` a JPEG may come out smaller than it is, though no side below `side`: its frequencies beyond that are
    not worth computing when the image is about to be shrunk anyway.
    """
    if not data:
        raise BadImage("the image has no bytes")
    if data.startswith(_JPEG):
        pixels = _decode_jpeg(data, channels, max_pixels, side)
        if pixels is not None:
            return torch.from_numpy(pixels).permute(2, 0, 1)
    try:
        return _to_tensor(_decode_pillow(data, max_pixels), channels)
    except (ValueError, OSError) as error:  # colours that Pillow reads and cannot convert
        raise BadImage(f"the image cannot be converted ({_reason(error)})") from error


def header(data: bytes) -> tuple[int, int]:
    """(height, width) as declared, before decoding."""
    try:
        if data.startswith(_JPEG):
            height, width, _, _ = simplejpeg.decode_jpeg_header(data, strict=False)
            return height, width
        with _open(data) as image:
            return image.height, image.width
    except Exception as error:  # the libraries raise almost anything on damaged files, KeyError(-1) for instance
        raise BadImage(f"the image cannot be read ({_reason(error)})") from error


def _decode_jpeg(data: bytes, channels: int, max_pixels: int, side: int) -> NDArray[np.uint8] | None:
    """(height, width, channels), or None where Pillow has to judge: CMYK, rotated or damaged files."""
    try:
        height, width, space, _ = simplejpeg.decode_jpeg_header(data)
        _cap(height, width, max_pixels)
        if space not in {"YCbCr", "Gray", "RGB"} or _rotated(data):
            return None
        wanted = "GRAY" if channels == 1 else "RGB"
        pixels: NDArray[np.uint8] = simplejpeg.decode_jpeg(data, wanted, min_height=side, min_width=side, min_factor=2)
        return pixels
    except BadImage:
        raise
    except Exception:
        return None


def _rotated(data: bytes) -> bool:
    # The standard wants EXIF in the first segment, or after JFIF's.
    return data.find(b"Exif\0\0", 0, 1 << 12) > 0 and _open(data).getexif().get(_ORIENTATION, 1) != 1


def _decode_pillow(data: bytes, max_pixels: int) -> Image.Image:
    try:
        with _open(data) as image:
            _cap(image.height, image.width, max_pixels)
            image.load()  # of an animation: the first frame
            return ImageOps.exif_transpose(image) if "exif" in image.info else image
    except BadImage:
        raise
    except Image.DecompressionBombError as error:  # Pillow's own cap, far above ours
        raise BadImage(f"the header declares too many pixels ({_reason(error)})") from error
    except Exception as error:  # Pillow's plugins raise almost anything on damaged files
        raise BadImage(f"the image cannot be decoded ({_reason(error)})") from error


def _open(data: bytes) -> Image.Image:
    return Image.open(io.BytesIO(data), formats=FORMATS)


def _cap(height: int, width: int, max_pixels: int) -> None:
    if height * width > max_pixels:
        raise BadImage(f"the header declares {width} × {height} pixels, more than the limit of {max_pixels:,}")


def _to_tensor(image: Image.Image, channels: int) -> Tensor:
    if image.mode.startswith("I") or image.mode == "F":  # 16 bits: keep the upper eight, where convert() would clip
        image = Image.fromarray(_upper_bits(np.asarray(image)))
    if "transparency" in image.info and image.mode == "P":
        image = image.convert("RGBA")
    mode = "L" if channels == 1 else "RGB"
    image = image if image.mode == mode else image.convert(mode)
    levels = torch.frombuffer(bytearray(image.tobytes()), dtype=torch.uint8)
    return levels.view(image.height, image.width, channels).permute(2, 0, 1)


def _upper_bits(values: NDArray[Any]) -> NDArray[np.uint8]:
    scale = 1 / 256 if values.dtype.kind in "iu" and values.max(initial=0) > 255 else 1.0
    return np.clip(values * scale, 0, 255).astype(np.uint8)


def _reason(error: Exception) -> str:
    said = (
        re.sub(r" ?<_io\.BytesIO object at \w+>", "", str(error)).strip() if isinstance(error, OSError) else str(error)
    )
    return (said or type(error).__name__).splitlines()[0]
