"""Made-up data of many shapes: does `weft compare` end with verdicts on each, in the time that was named?

    python benchmarks/shapes.py [--time 30s] [--only WORDS …] [--part 1/2] [--keep FOLDER] [--json FILE]

Sides from 1 to 1,024 pixels and mixed, grey to RGBA, 12 rows to tens of thousands, 2 to 1,000 classes, 99 : 1, texts
from one word to thousands in several scripts, pairs, vectors, and numbers to be predicted; groups of rows, classes of
few rows and numbers in cross-validation, which take three times as long; and sources that are streamed. A shape passes
when the command ends with exit code 0, a report with a leaderboard of at least two candidates and a verdict or a
recommendation, no traceback, and within 5 % of its time (or sooner, where no run may make more passes).

FILE is written after every shape, and those that have passed there are not tried again. With `--part 1/2` every other
shape is tried: two parts at once, each bound to a core by `taskset`, take half as long and give each comparison half of
the machine.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

Make = Callable[[Path], None]
LATE = 0.05
LONGER = 3  # times as long a comparison takes where a seed is a cross-validation
WORDS = ("red", "blue", "green", "small", "large", "old", "new", "fast", "slow", "warm", "cold", "north", "south",
         "day", "night", "tree", "river", "stone", "bird", "fish")  # fmt: skip
CHINESE = "天地玄黄宇宙洪荒日月盈昃辰宿列张寒来暑往秋收冬藏"
ARABIC = ["سلام", "بيت", "شمس", "قمر", "نهر", "جبل", "طريق", "كتاب", "مدينة", "ليل"]


def pictures(rows: int, side: Any, classes: int = 2, mode: str = "RGB", share: float | None = None) -> Make:
    """Noise with a brighter spot whose place tells the class; `share` is that of the first of two classes."""

    def make(folder: Path) -> None:
        draw = np.random.default_rng(0)
        labels = draw.choice(classes, rows, p=None if share is None else [share, 1 - share])
        labels[:classes] = np.arange(classes)[:rows]
        labels[-classes:] = np.arange(classes)[:rows]
        found = []
        for label in labels.tolist():
            high, wide = side(draw) if callable(side) else (side, side)
            channels = {"L": 1, "RGB": 3, "RGBA": 4}[mode]
            image = draw.integers(0, 120, (high, wide, channels), dtype=np.uint8)
            place = label * high // classes
            image[place : place + max(1, high // 4), : max(1, wide // 2)] += 120
            file = io.BytesIO()
            Image.fromarray(image[..., 0] if channels == 1 else image, mode).save(file, "PNG")
            found.append({"bytes": file.getvalue(), "path": None})
        write(folder, {"image": found, "label": [f"class {label}" for label in labels]})

    return make


def texts(rows: int, words: Any, length: int, classes: int = 2, share: float | None = None, join: str = " ") -> Make:
    """Words at random, some of them of the class alone."""

    def make(folder: Path) -> None:
        draw = np.random.default_rng(0)
        labels = draw.choice(classes, rows, p=None if share is None else [share, 1 - share])
        labels[: 2 * classes] = np.resize(np.arange(classes), min(rows, 2 * classes))
        found = []
        for label in labels.tolist():
            own = words[label % len(words)]
            chosen = [own if draw.random() < 0.3 else words[draw.integers(len(words))] for _ in range(length)]
            found.append(join.join(chosen) or own)
        write(folder, {"text": found, "label": [f"class {label}" for label in labels]})

    return make


def pairs(rows: int) -> Make:
    def make(folder: Path) -> None:
        draw = np.random.default_rng(0)
        first = [" ".join(draw.choice(WORDS, 6)) for _ in range(rows)]
        same = draw.random(rows) < 0.5
        second = [one if keep else " ".join(draw.choice(WORDS, 6)) for one, keep in zip(first, same, strict=True)]
        write(folder, {"sentence1": first, "sentence2": second, "label": same.astype(int).tolist()})

    return make


def numbers(rows: int, columns: int, classes: int = 2, share: float | None = None, target: str = "") -> Make:
    """Vectors; `target` names the distribution of a number to be predicted instead of classes."""

    def make(folder: Path) -> None:
        draw = np.random.default_rng(0)
        x = draw.normal(size=(rows, columns))
        score = x[:, 0] + 0.3 * draw.normal(size=rows)
        if target:
            y: Any = {"normal": score, "exponential": np.exp(score) - 1, "log-normal": np.exp(2 * score)}[target]
        elif share is not None:
            y = (score > np.quantile(score, share)).astype(int)
        else:
            y = np.digitize(score, np.quantile(score, np.linspace(0, 1, classes + 1)[1:-1]))
        y = y if target else [f"class {label}" for label in y]
        with (folder / "table.csv").open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow([*(f"x{number}" for number in range(columns)), "label"])
            writer.writerows([*row, label] for row, label in zip(x.round(4).tolist(), y, strict=True))

    return make


def measured_pictures(rows: int, side: int) -> Make:
    """Images with a number to be predicted: how bright they are."""

    def make(folder: Path) -> None:
        draw = np.random.default_rng(0)
        bright = draw.uniform(20, 200, rows)
        found = []
        for value in bright:
            file = io.BytesIO()
            noise = draw.normal(value, 20, (side, side, 3)).clip(0, 255).astype(np.uint8)
            Image.fromarray(noise, "RGB").save(file, "PNG")
            found.append({"bytes": file.getvalue(), "path": None})
        write(folder, {"image": found, "label": bright.tolist()})

    return make


def grouped(make: Make, people: int) -> Make:
    """The same with a column of people, each of whom has several rows."""

    def make_grouped(folder: Path) -> None:
        make(folder)
        table = pq.read_table(folder / "train.parquet")
        person = pa.array([f"person {number % people}" for number in range(len(table))])
        pq.write_table(table.append_column("person", person), folder / "train.parquet")

    return make_grouped


def few(make: Make, most: int) -> Make:
    """The same with so many rows of each class at most."""

    def make_few(folder: Path) -> None:
        make(folder)
        table, seen, kept = pq.read_table(folder / "train.parquet"), Counter[str](), []
        for label in table["label"].to_pylist():
            seen[label] += 1
            kept.append(seen[label] <= most)
        pq.write_table(table.filter(pa.array(kept)), folder / "train.parquet")

    return make_few


def write(folder: Path, columns: dict[str, list[Any]]) -> None:
    pq.write_table(pa.table(columns), folder / "train.parquet", row_group_size=500)


def mixed(draw: np.random.Generator) -> tuple[int, int]:
    return int(draw.integers(20, 200)), int(draw.integers(20, 200))


SHAPES: dict[str, Make] = {
    **{f"images of {side} px": pictures(200, side) for side in (1, 2, 3, 5, 8, 16, 17, 32, 33, 64, 100)},
    "images of 224 px": pictures(120, 224),
    "images of 1,024 px": pictures(40, 1024),
    "images of many sizes": pictures(200, mixed),
    "images of 20 × 200 px": pictures(150, lambda draw: (20, 200)),
    "grey images": pictures(300, 28, 10, "L"),
    "images with alpha": pictures(200, 24, 2, "RGBA"),
    "12 images": pictures(12, 32),
    "30 images of 3 classes": pictures(30, 32, 3),
    "20,000 images": pictures(20_000, 16, 10),
    "images of 100 classes": pictures(1000, 16, 100),
    "images of 1,000 classes": pictures(4000, 16, 1000),
    "images, 99 : 1": pictures(1000, 24, 2, "RGB", 0.99),
    "images and a number": measured_pictures(300, 24),
    "texts of one word": texts(300, WORDS, 1),
    "texts of one letter": texts(300, list("abcdefgh"), 1),
    "texts of 12 words": texts(1000, WORDS, 12, 4),
    "texts of 3,000 words": texts(60, WORDS, 3000),
    "12 texts": texts(12, WORDS, 8),
    "30,000 texts": texts(30_000, WORDS, 10),
    "Chinese without spaces": texts(400, list(CHINESE), 20, join=""),
    "Arabic": texts(400, ARABIC, 12),
    "emoji": texts(300, list("😀😢🎉🔥🌍🚀"), 6),
    "texts of 150 classes": texts(1500, [f"word{number}" for number in range(150)], 8, 150),
    "texts, 99 : 1": texts(1000, WORDS, 10, 2, 0.99),
    "pairs of texts": pairs(600),
    "12 vectors": numbers(12, 3),
    "vectors of 20 numbers": numbers(1000, 20, 5),
    "vectors of 2,000 numbers": numbers(300, 2000),
    "50,000 vectors": numbers(50_000, 10),
    "vectors of 50 classes": numbers(2000, 8, 50),
    "vectors, 99 : 1": numbers(2000, 8, share=0.99),
    **{f"{name} targets": numbers(500, 6, target=name) for name in ("normal", "exponential", "log-normal")},
    "images in folds": pictures(150, 16, 3),
    "images of people": grouped(pictures(300, 16, 3), 20),
    "images of people in folds": grouped(pictures(200, 16), 25),
    "images of 12 classes of 5 rows in folds": few(pictures(300, 16, 12), 5),
    "texts of people in folds": grouped(texts(200, WORDS, 8), 25),
    "texts of 10 classes of 6 rows in folds": few(texts(300, WORDS, 8, 10), 6),
    "vectors in folds": numbers(300, 6, 3),
    "normal targets in folds": numbers(200, 6, target="normal"),
    "log-normal targets in folds": numbers(200, 6, target="log-normal"),
    "images and a number in folds": measured_pictures(150, 16),
    "images that are streamed": pictures(3000, 16, 4),
    "texts that are streamed": texts(6000, WORDS, 10, 3),
}


def flags_of(name: str) -> list[str]:
    """What a shape is compared with, beside the time, by the words of its name."""
    words = {"in folds": "--folds 5", "of people": "--group person", "are streamed": "--stream"}
    return [flag for said, flags in words.items() if said in name for flag in flags.split()]


def attempt(name: str, make: Make, limit: str, place: Path) -> dict[str, Any]:
    """Make the data, compare on it, and tell what was wrong."""
    folder = place / name.replace(" ", "_").replace("/", "_")
    (folder / "data").mkdir(parents=True, exist_ok=True)
    make(folder / "data")
    source = folder / "data" / "table.csv" if (folder / "data" / "table.csv").is_file() else folder / "data"
    flags = flags_of(name)
    seconds = float(limit.removesuffix("s")) * (LONGER if "--folds" in flags else 1)
    words = [sys.executable, "-m", "weft", "compare", str(source), "--time", f"{seconds:g}s", *flags]
    words += ["--output", str(folder / "out")]
    started = time.perf_counter()
    ended = subprocess.run(words, capture_output=True, text=True, check=False, timeout=600)
    took = time.perf_counter() - started
    faults = faults_of(ended, folder / "out", took, seconds)
    if faults:
        (folder / "said.txt").write_text(ended.stdout + ended.stderr)
    print(f"{'✗' if faults else '✓'} {name}: {took:.1f} s {'; '.join(faults)}", flush=True)
    return {"shape": name, "seconds": round(took, 1), "faults": faults}


def faults_of(ended: subprocess.CompletedProcess[str], out: Path, took: float, limit: float) -> list[str]:
    faults = []
    if ended.returncode != 0:
        faults.append(f"exit code {ended.returncode}: {ended.stderr.strip().splitlines()[-1:] or ''}")
    if "Traceback" in ended.stderr + ended.stdout or "Warning" in ended.stderr:
        faults.append("a traceback or a warning")
    if took > limit * (1 + LATE):
        faults.append(f"{took - limit:.1f} s late")
    if not (out / "report.html").is_file():
        return [*faults, "no report"]
    shown = subprocess.run(
        [sys.executable, "-m", "weft", "leaderboard", str(out), "--json"], capture_output=True, text=True, check=False
    )
    if shown.returncode != 0:
        return [*faults, f"no leaderboard: {shown.stderr.strip()}"]
    summary = json.loads(shown.stdout)
    if sum(row["score"] is not None for row in summary["rows"]) < 2:
        faults.append("fewer than two candidates")
    if not summary["verdicts"] and not summary["recommendation"]:
        faults.append("no verdict")
    return faults


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--time", default="30s")
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--part", default="1/1")
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    part, parts = (int(number) for number in asked.part.split("/"))
    chosen = {n: make for n, make in SHAPES.items() if not asked.only or any(words in n for words in asked.only)}
    chosen = dict(list(chosen.items())[part - 1 :: parts])
    known = json.loads(asked.json.read_text()) if asked.json and asked.json.is_file() else []
    found = {result["shape"]: result for result in known}
    with tempfile.TemporaryDirectory() as temporary:
        for name, make in chosen.items():
            if name in found and not found[name]["faults"]:
                continue
            found[name] = attempt(name, make, asked.time, asked.keep or Path(temporary))
            if asked.json:
                asked.json.write_text(json.dumps(list(found.values()), indent=1, ensure_ascii=False) + "\n")
    passed = sum(not found[name]["faults"] for name in chosen)
    print(f"{passed} of {len(chosen)} shapes")
    sys.exit(0 if passed == len(chosen) else 1)


if __name__ == "__main__":
    main()
