"""Requests that nobody means well: damaged pictures, odd JSON, tensors that lie, paths out; and schemathesis."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import math
import random
import struct
from collections import Counter
from typing import Any

import numpy as np
from PIL import Image
from serve.traffic import Line, connect, request

ROUNDS = 20  # in which schemathesis makes as many requests as are asked for
FORMATS = ("PNG", "JPEG", "GIF", "BMP", "WEBP", "TIFF")
VALUES: list[Any] = [
    None,
    True,
    0,
    -1,
    1e308,
    10**400,
    "",
    "a",
    "\ud800",
    "x" * 5000,
    [],
    {},
    [[]],
    [None],
    {"a": [1]},
    0.1,
]
HEADERS = {
    "origin": ("http://[", "null", "https://elsewhere.example", "http://localhost", "\xff"),
    "host": ("localhost:99999", "[", "elsewhere.example", "127.0.0.1", ""),
    "cookie": ("a=b; ;=;", "weft_=x", "=" * 500),
    "authorization": ("Bearer", "Bearer \xe9", "Basic x"),
    "content-encoding": ("gzip", "identity"),
    "last-event-id": ("-1", "9" * 30, "x"),
    "accept": ("text/html", "*/*"),
}
PAGES = ("/", "/runs/{}", "/runs/{}/curves", "/runs/{}/files/{}", "/curves", "/comparisons", "/comparisons/{}",
         "/tuning", "/predict", "/docs", "/openapi.json", "/metrics", "/api/v1/models", "/v2/models/{}", "*", "foo",
         "//", "/%")  # fmt: skip
QUERIES = ("page", "q", "sort", "run", "model", "second", "top_k", "limit", "offset", "x", "smooth", "log", "source")
PATHS = ("../../etc/passwd", "..%2f..%2fetc", "%00", "%ff", "a" * 3000, "digits/../x", "", "?", "{name}", "%2e%2e")


def pictures(count: int, side: int = 32) -> list[bytes]:
    """Files of noise in all formats."""
    chance, files = np.random.default_rng(0), []
    for number in range(count):
        file = io.BytesIO()
        pixels = chance.integers(0, 256, (side, side, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(file, FORMATS[number % len(FORMATS)])
        files.append(file.getvalue())
    return files


class Fuzzer:
    """One bad request after another, the same for the same seed."""

    def __init__(self, names: list[str], seed: int) -> None:
        self.chance, self.names, self.files = random.Random(seed), names, pictures(12)

    def request(self) -> bytes:
        if self.chance.random() < 0.2:
            return request("GET", self.page(), more=self.headers())
        path, infers = self.path()
        more = self.headers()
        if infers and self.chance.random() < 0.7:
            body, head = self.tensor()
            if head is not None:
                more["inference-header-content-length"] = self.chance.choice(
                    (str(head),) * 8 + ("-1", "x", str(1 << 40))
                )
        else:
            body = self.body()
        if self.chance.random() < 0.3:
            body = self.damaged(body)
        kinds = (
            "application/json",
            "image/png",
            "text/plain",
            "",
            "multipart/form-data; boundary=x",
            "application/xml",
        )
        method = self.chance.choices(("POST", "GET", "PUT"), (20, 1, 1))[0]
        return request(method, path, body, self.chance.choice(kinds), more)

    def headers(self) -> dict[str, str]:
        """One in five requests has a header that is odd."""
        if self.chance.random() > 0.2:
            return {}
        name = self.chance.choice(sorted(HEADERS))
        return {name: self.chance.choice(HEADERS[name])}

    def page(self) -> str:
        """The address of a page, with a query that may mean nothing."""
        names = [*self.names, *(path for path in PATHS if "?" not in path)]
        address = self.chance.choice(PAGES)
        address = address.format(*(self.chance.choice(names) for _ in range(address.count("{}"))))
        values = ("0", "-1", "1e9", "%00", "%ff", "(((", "[", "a" * 300, "words", "digits", "accuracy", "1")
        asked = [f"{self.chance.choice(QUERIES)}={self.chance.choice(values)}" for _ in range(self.chance.randrange(4))]
        return f"{address}?{'&'.join(asked)}" if asked else address

    def path(self) -> tuple[str, bool]:
        name = self.chance.choice(self.names) if self.chance.random() < 0.9 else self.chance.choice(PATHS)
        route = self.chance.choice(("/models/{}", "/api/v1/models/{}/predict", "/v2/models/{}/infer"))
        return route.format(name), "infer" in route

    def body(self) -> bytes:
        if self.chance.random() < 0.3:
            return self.chance.choice(self.files)
        content = {"inputs": self.value(), self.chance.choice(("parameters", "top_k", "table", "x")): self.value()}
        return json.dumps(content).encode()

    def value(self) -> Any:
        made = (
            lambda: self.chance.choice(VALUES),
            lambda: base64.b64encode(self.damaged(self.chance.choice(self.files))).decode(),
            lambda: [self.chance.choice(VALUES) for _ in range(self.chance.randrange(5))],
            lambda: [
                self.chance.gauss(0, 10.0 ** self.chance.randrange(40)) for _ in range(self.chance.choice((10, 30)))
            ],
            lambda: {"top_k": self.chance.choice(VALUES), "function_to_apply": self.chance.choice(VALUES)},
            lambda: "".join(chr(self.chance.choice((32, 65, 0, 0x202E, 0x1F600, 0x300))) for _ in range(50)),
        )
        return self.chance.choice(made)()

    def tensor(self) -> tuple[bytes, int | None]:
        """A request of the Open Inference Protocol whose parts may not fit together; the bytes of its JSON, where a
        binary tensor follows."""
        shape = [self.chance.choice((0, 1, 2, 3, 8, 30, -1, 1 << 40)) for _ in range(self.chance.randrange(1, 5))]
        kind = self.chance.choice(("FP32", "UINT8", "BYTES", "INT64", "FP16", "BOOL", "FP8"))
        tensor: dict[str, Any] = {"name": "input", "shape": shape, "datatype": kind}
        tail = b""
        if self.chance.random() < 0.5:
            tensor["data"] = [self.chance.choice(VALUES) for _ in range(self.chance.choice((0, 1, 10, 30)))]
        else:
            tail = struct.pack("<I", 5) + self.chance.randbytes(self.chance.choice((0, 5, 120)))
            tensor["parameters"] = {"binary_data_size": self.chance.choice((len(tail), 5, -1, "x"))}
        wanted = self.chance.choice((None, [], [{"name": "label"}]))
        head = json.dumps({"inputs": [tensor], "outputs": wanted}).encode()
        return head + tail, len(head) if tail else None

    def damaged(self, data: bytes) -> bytes:
        """A few bytes changed, or the end missing."""
        found = bytearray(data)
        for _ in range(self.chance.randrange(1, 8)):
            if found:
                found[self.chance.randrange(len(found))] = self.chance.randrange(256)
        return bytes(found[: self.chance.randrange(len(found) + 1)] if self.chance.random() < 0.2 else found)


def fuzz(port: int, kind: str, names: list[str], count: int, seed: int) -> Counter[int]:
    """Send `count` requests; the statuses that came back, 0 where there was no answer."""
    return asyncio.run(own(port, names, count, seed)) if kind == "own" else by_schema(port, names, count, seed)


async def own(port: int, names: list[str], count: int, seed: int, clients: int = 8) -> Counter[int]:
    """Several clients; some hang up without waiting."""
    fuzzer, statuses = Fuzzer(names, seed), Counter[int]()

    async def client(share: int) -> None:
        line: Line | None = None
        for _ in range(share):
            line = line if line is not None and line.open else await connect(port)
            asked = line.ask(fuzzer.request())
            if fuzzer.chance.random() < 0.02:
                line.transport.abort()
                line = None
                continue
            answer = await asked
            statuses[answer.status] += 1
        if line is not None:
            line.transport.close()

    await asyncio.gather(*(client(count // clients) for _ in range(clients)))
    return statuses


def by_schema(port: int, names: list[str], count: int, seed: int) -> Counter[int]:
    """What schemathesis makes of the server's own description, good and bad requests in turns."""
    import schemathesis
    from hypothesis import HealthCheck, Phase, given, settings
    from hypothesis import seed as seeded
    from hypothesis.errors import Unsatisfiable

    schema = schemathesis.openapi.from_url(f"http://127.0.0.1:{port}/openapi.json")
    statuses, chance = Counter[int](), random.Random(seed)
    operations = [(found.ok(), mode) for found in schema.get_all_operations() for mode in schemathesis.GenerationMode]
    for round_number in range(ROUNDS):  # some operations have but few different requests
        left = count - sum(statuses.values())
        if left <= 0:
            break
        few = math.ceil(left / len(operations))
        for operation, mode in operations:

            @seeded(seed * ROUNDS + round_number)
            @settings(
                max_examples=few,
                deadline=None,
                database=None,
                phases=[Phase.generate],
                suppress_health_check=list(HealthCheck),
            )
            @given(case=operation.as_strategy(generation_mode=mode))
            def check(case: Any) -> None:
                if "name" in (case.path_parameters or {}) and chance.random() < 0.8:
                    case.path_parameters["name"] = chance.choice(names)
                statuses[case.call(timeout=120).status_code] += 1

            try:
                check()
            except Unsatisfiable:  # where nothing is sent, nothing can be wrong
                continue
    return statuses
