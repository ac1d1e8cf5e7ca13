"""Tensors of the Open Inference Protocol to and from bytes: in JSON, or behind it in the binary extension.

Binary data is little-endian, in rows, without gaps; an element of BYTES is its length in four bytes, then itself.
"""

from __future__ import annotations

import base64
import binascii
import math
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft.serve.refusal import Refusal

TYPES = {
    "BOOL": "?", "UINT8": "u1", "UINT16": "<u2", "UINT32": "<u4", "UINT64": "<u8", "INT8": "i1", "INT16": "<i2",
    "INT32": "<i4", "INT64": "<i8", "FP16": "<f2", "FP32": "<f4", "FP64": "<f8",
}  # fmt: skip
BYTES = "BYTES"


@dataclass(frozen=True)
class Tensor:
    """A named tensor: `data` is an array of `shape`, or for BYTES a flat list."""

    name: str
    datatype: str
    shape: tuple[int, ...]
    data: Any


def shape_of(content: dict[str, Any]) -> tuple[int, ...]:
    """The shape of an input, which must be whole numbers that make no absurd size."""
    shape = content.get("shape")
    fine = isinstance(shape, list) and 0 < len(shape) <= 8
    if not fine or not all(isinstance(side, int) and not isinstance(side, bool) and side >= 0 for side in shape or ()):
        raise Refusal(422, "an input needs a shape, such as [1, 3, 32, 32]")
    assert isinstance(shape, list)
    if math.prod(max(1, side) for side in shape) > 1 << 31:  # a side of 0 hides others that NumPy cannot have
        raise Refusal(413, f"an input of shape {shape} is too large")
    return tuple(shape)


def read_tensor(content: dict[str, Any], tail: memoryview | None) -> Tensor:
    """An input tensor; `tail` is its binary data, None where its data is in the JSON."""
    name, datatype, shape = content.get("name"), content.get("datatype"), shape_of(content)
    if not isinstance(name, str) or datatype not in (*TYPES, BYTES):
        raise Refusal(422, f"an input needs a name and a datatype out of {', '.join((*TYPES, BYTES))}")
    if datatype == BYTES:
        data: Any = elements(content.get("data"), tail)
        count = len(data)
    else:
        data = numbers(datatype, content.get("data"), tail)
        count = data.size
    if count != math.prod(shape):
        raise Refusal(422, f"input {name!r} of shape {list(shape)} needs {math.prod(shape)} elements, it has {count}")
    return Tensor(name, datatype, shape, data if datatype == BYTES else data.reshape(shape))


def numbers(datatype: str, data: Any, tail: memoryview | None) -> NDArray[Any]:
    """A flat array."""
    kind = np.dtype(TYPES[datatype])
    if tail is not None:
        if len(tail) % kind.itemsize:
            raise Refusal(422, f"{len(tail)} bytes are no whole number of {datatype}")
        return np.frombuffer(tail, kind)
    if not isinstance(data, list):
        raise Refusal(422, "an input needs data: a list of numbers, or binary_data_size and bytes behind the JSON")
    flat = list(flattened(data))
    if not all(isinstance(value, int | float) for value in flat):
        raise Refusal(422, f"the data of an input of {datatype} holds something else than numbers")
    if not datatype.startswith("FP") and not all(isinstance(value, int) or value.is_integer() for value in flat):
        raise Refusal(422, f"the data of an input of {datatype} holds fractions, which would be lost; send FP32")
    try:
        return np.array(flat, dtype=np.float64 if datatype.startswith("FP") else object).astype(kind)
    except (OverflowError, ValueError, TypeError) as error:
        raise Refusal(422, f"the data of an input does not fit into {datatype}") from error


def flattened(data: list[Any], deep: int = 0) -> Iterator[Any]:
    """The elements of nested lists."""
    if deep > 8:
        raise Refusal(422, "the data of an input is nested too deeply")
    for part in data:
        if isinstance(part, list):
            yield from flattened(part, deep + 1)
        else:
            yield part


def elements(data: Any, tail: memoryview | None) -> list[bytes | str]:
    """The elements of a tensor of BYTES: texts from JSON, bytes from binary data."""
    if tail is None:
        flat = list(flattened(data)) if isinstance(data, list) else None
        if flat is None or not all(isinstance(value, str) for value in flat):
            raise Refusal(422, "the data of an input of BYTES is a list of texts, or comes as bytes behind the JSON")
        return flat
    found: list[bytes | str] = []
    place = 0
    while place < len(tail):
        if place + 4 > len(tail):
            raise Refusal(422, "the bytes of an input end within the length of an element")
        (size,) = struct.unpack_from("<I", tail, place)
        if place + 4 + size > len(tail):
            raise Refusal(422, "the bytes of an input end within an element")
        found.append(bytes(tail[place + 4 : place + 4 + size]))
        place += 4 + size
    return found


def as_text(element: bytes | str) -> str:
    """An element of BYTES that stands for a text."""
    try:
        return element if isinstance(element, str) else element.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Refusal(422, f"a text is not UTF-8 (byte {error.start})") from error


def as_file(element: bytes | str) -> bytes:
    """An element of BYTES that stands for a file: in JSON it is base64."""
    if isinstance(element, bytes):
        return element
    try:
        return base64.b64decode(element, validate=True)
    except (binascii.Error, ValueError) as error:
        raise Refusal(422, "a picture within JSON must be base64; this text is none") from error


def in_binary(data: NDArray[Any] | Sequence[str]) -> bytes:
    """The binary data of an output: of numbers, or of texts."""
    if isinstance(data, np.ndarray):
        return data.tobytes()
    encoded = [text.encode("utf-8") for text in data]
    return b"".join(struct.pack("<I", len(one)) + one for one in encoded)
