"""Tar files, IDX files, and compressed ones."""

from __future__ import annotations

import gzip
from typing import Any

from odd.case import Case, Ends
from odd.making import idx, inflating, mnist, samples, tar

FINE = {0: "2 classes"}


def shard(name: str, content: bytes, ends: Ends, flags: str = "", **more: Any) -> Case:
    """`weft data show` of one tar file."""
    sheet = ("*.png",) if 0 in ends else ()
    return Case(name, {"a.tar": content}, f"weft data show a.tar {flags}".strip(), ends, **{"writes": sheet, **more})


def digits(name: str, files: dict[str, bytes], ends: Ends, **more: Any) -> Case:
    """`weft data show` of a folder of IDX files."""
    return Case(name, dict(files), "weft data show m", ends, **{"writes": ("*.png",) if 0 in ends else (), **more})


GOOD = tar(samples())
CASES = (
    shard("tar, as it should be", GOOD, FINE),
    shard("a tar file that is cut", GOOD[: len(GOOD) // 2 + 100], {2: "a.tar"}),
    shard("a tar file without a byte", b"", {2: "a.tar"}),
    shard("a tar file without members", tar({}), {2: "a.tar"}),
    shard("a tar file of noise", bytes(range(256)) * 40, {2: "a.tar"}),
    shard("a compressed tar file", gzip.compress(GOOD), {2: "a.tar"}),
    Case(
        "a compressed tar file, named so", {"a.tar.gz": gzip.compress(GOOD)}, "weft data show a.tar.gz", {2: "a.tar.gz"}
    ),
    shard("a label of two signs", tar(samples(s3_cls="--5")), {0: "", 2: "s3"}),
    shard("a label of a raised digit", tar(samples(s3_cls="²")), {0: "", 2: "s3"}),
    shard("a label that is empty", tar(samples(s3_cls="")), {2: "s3"}),
    shard("a label of a thousand digits", tar(samples(s3_cls="9" * 5000)), {0: "", 2: "s3"}),
    shard(
        "a label that is an object",
        tar(
            {
                f"s{n}.{end}": data
                for n in range(20)
                for end, data in (("txt", f"text {n}"), ("json", '{"label": {"a": 1}}'))
            }
        ),
        {2: "label"},
    ),
    shard(
        "a label of brackets",
        tar({f"s{n}.{end}": data for n in range(20) for end, data in (("txt", f"text {n}"), ("json", "[" * 100_000))}),
        {2: "s0"},
    ),
    shard("a sample without its label", tar({k: v for k, v in samples().items() if k != "s3.cls"}), {2: "s3"}),
    shard(
        "a sample without its label, skipped",
        tar({k: v for k, v in samples().items() if k != "s3.cls"}),
        FINE,
        "--on-bad skip",
    ),
    shard("a member that points outside", tar({**samples(), "../s99.png": b"x", "../s99.cls": "1"}), {2: "../s99"}),
    shard("a member that is a link", tar({**samples(), "s99.cls": "1"}, {"s99.png": "/etc/passwd"}), {2: "s99"}),
    shard("a picture that is cut", tar(samples(s3_png=b"\x89PNG\r\n")), {2: "s3"}),
    digits("IDX, as it should be", mnist(), FINE),
    digits("images that are cut", mnist(images=idx((40, 8, 8))[:500]), {2: "train-images"}),
    digits("a head that is cut", mnist(images=b"\0\0\x08"), {2: "train-images"}),
    digits("an IDX file without a byte", mnist(images=b""), {2: "train-images"}),
    digits("a wrong magic number", mnist(images=b"\x50\x4b\x03\x04" + bytes(2600)), {2: "train-images"}),
    digits("a billion images declared", mnist(images=idx((10**9, 28, 28), b"x" * 100)), {2: "train-images"}),
    digits("2³² − 1 each way declared", mnist(images=idx((2**32 - 1,) * 3, b"x" * 100)), {2: "train-images"}),
    digits("images without pixels", mnist(images=idx((40, 0, 0), b"")), {2: "train-images"}),
    digits("fewer labels than images", mnist(labels=idx((30,))), {2: "train-labels"}),
    digits("labels of floats", mnist(labels=idx((40,), bytes(160), kind=13)), {2: "train-labels"}),
    digits("no labels", {"m/train-images-idx3-ubyte": idx((40, 8, 8))}, {2: "train-labels"}),
    digits("compressed", {f"{name}.gz": gzip.compress(data) for name, data in mnist().items()}, FINE),
    digits(
        "compressed and cut",
        {f"{name}.gz": gzip.compress(data)[:-20] for name, data in mnist().items()},
        {2: "train-images"},
    ),
    digits(
        "not compressed, though named so", {f"{name}.gz": data for name, data in mnist().items()}, {2: "train-images"}
    ),
    digits(
        "four gigabytes of compressed zeros",
        {f"{name}.gz": inflating(4096) if "images" in name else gzip.compress(data) for name, data in mnist().items()},
        {2: "train-images"},
    ),
)
