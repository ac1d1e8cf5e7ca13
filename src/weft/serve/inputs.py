"""From what a request holds to inputs that a network can take, each checked alone: a bad one costs nobody else.

Pictures are measured by their headers before they are decoded, texts by their letters before they are cut to words.
"""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from weft.data.config import Modality
from weft.data.read.decode import BadImage, decode, header
from weft.data.sources.arrays import listed
from weft.data.transform.transforms import ImageTransform, Transform, VectorTransform
from weft.disk import is_number
from weft.errors import WeftError
from weft.serve.refusal import Refusal

LETTERS = 100_000  # of a text: far beyond what any network here reads, and tokenised within a tenth of a second
SMALL = 128 * 128  # pixels that are decoded faster than they are handed to another thread
KNOWN = ((b"\xff\xd8\xff", "JPEG"), (b"\x89PNG", "PNG"), (b"RIFF", "WebP"), (b"BM", "BMP"), (b"GIF8", "GIF"),
         (b"II*\0", "TIFF"), (b"MM\0*", "TIFF"), (b"P5", "PGM"), (b"P6", "PPM"))  # fmt: skip
WANTED = {
    "image": "pictures: the bytes of a JPEG or PNG file, in JSON as base64",
    "text": "texts",
    "pair": 'pairs of texts: ["first", "second"]',
    "vector": "rows of numbers",
}


@dataclass(frozen=True)
class Inputs:
    """What a network takes, and within which limits."""

    takes: Modality
    transform: Transform
    columns: Sequence[str]
    max_pixels: int

    # ---- What JSON holds.

    def listed(self, value: Any) -> tuple[list[Any], bool]:
        """The inputs of a field `inputs`, and whether they came as a list."""
        if isinstance(value, list) and self._several(value):
            return [self.raw(one) for one in value], True
        return [self.raw(value)], False

    def _several(self, value: list[Any]) -> bool:
        """Whether a list holds inputs, rather than being one."""
        if self.takes in ("image", "text"):
            return True
        return not value or isinstance(value[0], list | dict)

    def raw(self, value: Any) -> Any:
        """One input as the network takes it, not yet decoded."""
        if self.takes == "image":
            return from_base64(value)
        if self.takes == "text":
            return self.text(value)
        if self.takes == "pair":
            return self._pair(value)
        return self._row(value)

    def text(self, value: Any) -> str:
        if not isinstance(value, str):
            raise self.unfit(value)
        if len(value) > LETTERS:
            raise Refusal(413, f"a text may have {LETTERS:,} letters and this one has {len(value):,}; send less of it")
        return value

    def _pair(self, value: Any) -> tuple[str, str]:
        if isinstance(value, dict) and set(value) == {"text", "text_pair"}:
            value = [value["text"], value["text_pair"]]
        if not isinstance(value, list | tuple) or len(value) != 2:
            raise self.unfit(value)
        return self.text(value[0]), self.text(value[1])

    def _row(self, value: Any) -> NDArray[np.float64]:
        """Numbers in the order of the columns, (features,)."""
        transform = cast(VectorTransform, self.transform)
        if isinstance(value, dict):
            names = self.columns
            missing = [name for name in names if name not in value]
            if missing or not names:
                raise Refusal(
                    422, f"the row has no column {missing[0]!r}" if missing else "this network has no columns"
                )
            value = [value[name] for name in names]
        if not isinstance(value, list) or not all(is_number(cell) for cell in value):
            raise self.unfit(value)
        if len(value) != transform.features:
            raise Refusal(422, f"a row of {len(value)} numbers was sent, the network takes {transform.features}")
        try:
            row = np.array(value, dtype=np.float64)
        except OverflowError as error:
            raise Refusal(422, "a row holds a number beyond all bounds; send finite ones") from error
        if not (np.abs(row) <= np.finfo(np.float32).max).all():
            raise Refusal(422, "a row holds a number that is not finite, or beyond float32; send finite ones")
        return row

    def unfit(self, value: Any) -> Refusal:
        """Something else than the network takes."""
        return Refusal(422, f"this network takes {WANTED[self.takes]}; a {kind_of(value)} was sent")

    # ---- Bytes, and arrays of pixels.

    def plain(self, body: bytes, media: str) -> Any:
        """A whole body as one input: a picture, or a text."""
        if self.takes == "image":
            return body
        if self.takes == "text" and media in ("", "text/plain", "application/x-www-form-urlencoded"):
            try:
                return self.text(body.decode("utf-8"))
            except UnicodeDecodeError as error:
                raise Refusal(415, f"the text is not UTF-8 (byte {error.start}); send UTF-8") from error
        raise Refusal(415, f'this network takes {WANTED[self.takes]}; send JSON: {{"inputs": …}}')

    def picture(self, pixels: NDArray[Any]) -> NDArray[np.uint8]:
        """An image of pixels, its channels first or last, as (channels, height, width)."""
        transform = cast(ImageTransform, self.transform)
        try:
            image = listed([pixels], transform.channels)[0]
        except WeftError as error:
            raise Refusal(422, f"these are no pictures: {error}") from error
        if len(image) == 4 and transform.channels in (1, 3):
            image = image[:3]
        if len(image) != transform.channels and {len(image), transform.channels} != {1, 3}:
            raise Refusal(422, f"a picture of {len(image)} channels was sent, the network takes {transform.channels}")
        self._require_modest(*image.shape[1:])
        return image

    def is_quick(self, raw: Any) -> bool:
        """Whether preparing it takes no longer than handing it to another thread; what is no picture is refused."""
        return not isinstance(raw, bytes) or math.prod(self._size(raw)) <= SMALL

    def prepared(self, raw: Any) -> Any:
        """What is left to do, once `is_quick` was asked, before inputs are computed together: pictures are decoded to
        the network's size."""
        if self.takes != "image":
            return raw
        transform = cast(ImageTransform, self.transform)
        if not isinstance(raw, bytes):
            return transform.pixels(raw).numpy()
        try:
            return transform.pixels(decode(raw, transform.channels, self.max_pixels, transform.resized)).numpy()
        except BadImage as error:
            raise Refusal(422, f"the picture is damaged: {error}") from error

    def _size(self, data: bytes) -> tuple[int, int]:
        """Height and width as the header declares them; refused where it is no picture, or too large a one."""
        try:
            height, width = header(data)
        except BadImage as error:
            if isinstance(error.__cause__, Image.DecompressionBombError):  # Pillow's own limit, before ours is asked
                raise Refusal(413, f"the picture is far too large; {self.max_pixels:,} pixels are allowed") from error
            known = next((name for start, name in KNOWN if data.startswith(start)), None)
            if known is None:
                raise Refusal(415, f"this network takes {WANTED['image']}; what was sent is none") from error
            raise Refusal(422, f"the picture is damaged, or no whole {known} file; send another") from error
        self._require_modest(height, width)
        return height, width

    def _require_modest(self, height: int, width: int) -> None:
        """Refuse too many pixels, also those of a long and narrow picture when its short side has been enlarged."""
        if min(height, width) < 1:
            raise Refusal(422, f"a picture of {width} × {height} has no pixels; send another")
        side = cast(ImageTransform, self.transform).resized
        enlarged = side * side * max(height, width) / min(height, width)
        if max(height * width, enlarged) > self.max_pixels:
            raise Refusal(413, f"a picture of {width} × {height} is too large; {self.max_pixels:,} pixels are allowed")


def from_base64(value: Any) -> bytes:
    """The bytes of a picture from base64, or from a data: URL."""
    if not isinstance(value, str):
        raise Refusal(422, f"this network takes {WANTED['image']}; a {kind_of(value)} was sent")
    if value.startswith(("http://", "https://")):
        raise Refusal(422, "the server fetches nothing from other places; send the picture itself, as base64")
    text = value.partition(",")[2] if value.startswith("data:") else value
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise Refusal(422, f"this network takes {WANTED['image']}; this text is no base64") from error


def kind_of(value: Any) -> str:
    """What a value of JSON is called."""
    names = {str: "text", bool: "truth value", int: "number", float: "number", list: "list", dict: "object"}
    return names.get(type(value), "null")
