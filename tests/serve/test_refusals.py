"""What cannot be answered: a status and a sentence, never a traceback, and nobody else is the worse for it."""

from __future__ import annotations

import base64
import json
import random
import struct
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient

Client = Callable[..., TestClient]


def declared(width: int, height: int) -> bytes:
    """A PNG file of a few bytes that claims to be of this size."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b"\0" * 100)) + chunk(b"IEND", b"")
    )


def in_base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


BOMB = declared(60_000, 60_000)
BODIES: list[tuple[str, str, Any, int]] = [
    ("a picture bomb", "digits", BOMB, 413),
    ("a picture bomb in JSON", "digits", {"inputs": in_base64(BOMB)}, 413),
    ("a line that would be enlarged to billions of pixels", "digits", declared(40_000_000, 1), 413),
    ("a picture that ends too early", "digits", declared(64, 64), 422),
    ("bytes that are no picture", "digits", b"hello, this is a text", 415),
    ("half a PNG", "digits", b"\x89PNG\r\n\x1a\n\0\0", 422),
    ("nothing", "digits", b"", 422),
    ("a text for a picture", "digits", {"inputs": "a red fish, not base64"}, 422),
    ("a row for a picture", "digits", {"inputs": [1, 2, 3]}, 422),
    ("an address for a picture", "digits", {"inputs": "http://example.org/cat.jpg"}, 422),
    ("a text of ten million letters", "words", {"inputs": "word " * 2_000_000}, 413),
    ("a number for a text", "words", {"inputs": 3}, 422),
    ("null for a text", "words", {"inputs": None}, 422),
    ("half a letter", "words", b'{"inputs": "\\ud800"}', 422),
    ("half a letter in bytes", "words", b'{"inputs": "\xed\xa0\x80"}', 400),
    ("UTF-16", "words", '{"inputs": "red"}'.encode("utf-16"), 400),
    ("no list at all", "words", {"inputs": []}, 422),
    ("more inputs than the queue holds", "words", {"inputs": ["a"] * 1000}, 413),
    ("a short row", "cells", {"inputs": [1.0, 2.0]}, 422),
    ("a text for a row", "cells", {"inputs": "1,2,3"}, 422),
    ("a row with a text in it", "cells", {"inputs": [*["1"] * 30]}, 422),
    ("a row with a truth value", "cells", {"inputs": [*[True] * 30]}, 422),
    ("a row beyond all bounds", "cells", {"inputs": [*[1.0] * 29, 10**400]}, 422),
    ("a row beyond float32", "cells", {"inputs": [*[1.0] * 29, 1e300]}, 422),
    ("an object without columns", "cells", {"inputs": {"mean radius": 1}}, 422),
    ("not a number", "cells", b'{"inputs": [NaN]}', 400),
    ("no JSON", "cells", b'{"inputs": [1, 2', 400),
    ("no object", "cells", b"[1, 2]", 422),
    ("not UTF-8", "cells", b'{"inputs": "\xff"}', 400),
    ("nested without end", "cells", b'{"inputs": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", 400),
    ("more values than are parsed at once", "cells", b'{"inputs": [' + b"[]," * 1_000_000 + b"0]}", 413),
    ("a number of a million digits", "cells", b'{"inputs": ' + b"1" * 1_000_000 + b"}", 400),
]


@pytest.mark.parametrize("route", ["/api/v1/models/{}/predict", "/models/{}"])
def test_what_cannot_be_answered_is_a_status_and_a_sentence(client: Client, route: str) -> None:
    asked = client()
    for what, name, body, status in BODIES:
        kind = "image/png" if name == "digits" and isinstance(body, bytes) else "application/json"
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        answer = asked.post(route.format(name), content=content, headers={"content-type": kind})
        assert answer.status_code == status, (what, answer.text)
        sentence = answer.json()["error"]
        assert 10 < len(sentence) < 400 and "Traceback" not in sentence and "Error" not in sentence, what


@pytest.mark.parametrize(
    "content",
    [
        {"inputs": "red", "top_k": 0},
        {"inputs": "red", "top_k": "many"},
        {"inputs": "red", "top_k": True},
        {"inputs": "red", "topk": 1},
        {"top_k": 1},
    ],
)
def test_fields_that_mean_nothing_are_named(client: Client, content: dict[str, Any]) -> None:
    answer = client().post("/api/v1/models/words/predict", json=content)
    assert answer.status_code == 422 and ("top" in answer.json()["error"] or "inputs" in answer.json()["error"])
    moved = {"parameters": {key: value for key, value in content.items() if key != "inputs"}}
    assert client().post("/models/words", json=moved | {"inputs": "red"}).status_code == (
        422 if "inputs" in content else 200
    )


def tensor(**changes: Any) -> dict[str, Any]:
    usual = {"name": "input", "datatype": "FP32", "shape": [1, 30], "data": [0.5] * 30}
    return {name: value for name, value in {**usual, **changes}.items() if value is not None}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({"inputs": []}, "one tensor"),
        ({"inputs": [tensor(), tensor()]}, "one tensor"),
        ({"inputs": ["text"]}, "one tensor"),
        ({"inputs": [tensor(name="x")]}, "no input"),
        ({"inputs": [tensor(shape=[1, 29])]}, "29 elements"),
        ({"inputs": [tensor(shape=[30])]}, "shape"),
        ({"inputs": [tensor(shape=[-1, 30])]}, "shape"),
        ({"inputs": [tensor(shape=[1.5])]}, "shape"),
        ({"inputs": [tensor(shape=[1 << 40, 1 << 40])]}, "too large"),
        ({"inputs": [tensor(shape=[1 << 40, 0, 1 << 40], data=[])]}, "too large"),
        ({"inputs": [tensor(datatype="FP8")]}, "datatype"),
        ({"inputs": [tensor(datatype="UINT8", data=[0] * 29 + [1e9])]}, "UINT8"),
        ({"inputs": [tensor(datatype="UINT8")]}, "fractions"),
        ({"inputs": [tensor(datatype="BYTES", data=["a"] * 30)]}, "rows of numbers"),
        ({"inputs": [tensor(data=["a"] * 30)]}, "numbers"),
        ({"inputs": [tensor(data=None)]}, "data"),
        ({"inputs": [tensor(parameters=3)]}, "parameters"),
        ({"inputs": [tensor(data=None, parameters={"binary_data_size": 120})]}, "0 bytes"),
        ({"inputs": [tensor()], "outputs": [{"name": "logits"}]}, "no output"),
        (
            {"inputs": [tensor()], "outputs": [{"name": "label", "parameters": {"classification": -1}}]},
            "classification",
        ),
        ({"inputs": [tensor()], "outputs": "label"}, "outputs"),
        ({"inputs": [tensor()], "outputs": [{"name": "label"}] * 3}, "each of them once"),
        ({"inputs": [tensor()], "id": 3}, "id"),
        ({"inputs": [tensor(shape=[0, 30], data=[])]}, "no input"),
    ],
)
def test_tensors_that_do_not_fit_are_explained(client: Client, content: dict[str, Any], words: str) -> None:
    answer = client().post("/v2/models/cells/infer", json=content)
    assert answer.status_code in (413, 422) and words in answer.json()["error"], answer.text


def test_binary_tensors_that_do_not_fit_are_explained(client: Client) -> None:
    asked = client()

    def ask(tail: bytes, length: str | None = None, name: str = "cells", **changes: Any) -> tuple[int, str]:
        size = {"binary_data_size": len(tail)}
        text = json.dumps({"inputs": [tensor(data=None, **{"parameters": size, **changes})]}).encode()
        header = {"Inference-Header-Content-Length": str(len(text)) if length is None else length}
        answer = asked.post(f"/v2/models/{name}/infer", content=text + tail, headers=header)
        return answer.status_code, answer.json().get("error", "")

    assert ask(np.zeros(30, "<f4").tobytes())[0] == 200
    for length in ("x", "-1", "99999", "1" * 30, "1_0"):
        assert ask(b"\0" * 120, length)[0] == 400
    assert "whole number" in ask(b"\0" * 119)[1]
    assert "binary_data_size" in ask(b"\0" * 120, parameters={"binary_data_size": 8})[1]
    assert "binary_data_size" in ask(b"\0" * 120, parameters={})[1]
    assert "end within" in ask(struct.pack("<I", 99) + b"abc", name="words", datatype="BYTES", shape=[1])[1]
    assert "end within" in ask(b"\1\0", name="words", datatype="BYTES", shape=[1])[1]
    assert "UTF-8" in ask(struct.pack("<I", 1) + b"\xff", name="words", datatype="BYTES", shape=[1])[1]
    infinite = np.full(30, np.inf, "<f4").tobytes()
    assert "finite" in ask(infinite)[1]


def test_bodies_are_limited_before_they_are_read(client: Client) -> None:
    asked = client(max_body=1000)

    def parts() -> Any:
        for _ in range(3):
            yield b"x" * 500

    assert asked.post("/models/digits", content=b"x" * 1001).status_code == 413
    assert asked.post("/models/digits", content=parts()).status_code == 413  # says no length beforehand
    packed = asked.post("/models/digits", content=b"x", headers={"content-encoding": "gzip"})
    assert packed.status_code == 415 and "gzip" in packed.json()["error"]
    form = asked.post("/models/words", files={"file": b"red"})
    assert form.status_code == 415


def test_a_bad_input_costs_nobody_else(client: Client, picture: bytes) -> None:
    asked = client()
    for body in (picture, b"bad", picture):
        asked.post("/models/digits", content=body)
    assert asked.post("/models/digits", content=picture).status_code == 200


def test_random_bytes_never_bring_the_server_to_fall(client: Client, picture: bytes) -> None:
    chance, asked = random.Random(0), client()
    routes = [f"/models/{name}" for name in ("digits", "words", "cells")] + ["/v2/models/cells/infer"]
    for _ in range(200):
        damaged = bytearray(chance.choice([picture, b'{"inputs": [1, 2, {"a": "b"}], "parameters": {"top_k": 1}}']))
        for _ in range(chance.randrange(1, 6)):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        kind = chance.choice(["image/png", "application/json", ""])
        answer = asked.post(chance.choice(routes), content=bytes(damaged), headers={"content-type": kind})
        assert answer.status_code < 500, (answer.text, bytes(damaged))
