"""Does a run take the time it was given, and is a run with no flag but the time a good one?

    python benchmarks/budgets.py times DATA [--json FILE] [--only 3 7]    30 networks × data × times
    python benchmarks/budgets.py defaults DATA [--json FILE] [--time 2m]  eleven sets, nothing given but the time

DATA is a folder of datasets: cifar10, oxford_pets_96, sign_digits, sst2, rotten_tomatoes, imdb, wiki_small. Three of
the eleven sets are made from these: five breeds of a hundred photographs, articles to be told from a paragraph, and
sentences with two neighbouring words exchanged. Fashion-MNIST is Debian's dataset-fashion-mnist. Alone on the machine.
Every command is run as a user would, once before with two steps, which fills the caches. Results are written as they
come; what is there is not repeated, and the table at the end is of what was asked for.
"""

from __future__ import annotations

import argparse
import csv
import json
import random
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

WITHIN = 0.05
REFUSED = 0.5  # of the time, at most, until a refusal
TIMES: list[tuple[str, str, str]] = [
    ("digits", "mlp", "20s"), ("cifar10", "lenet5", "30s"), ("digits", "resnet20_cifar", "20s"),
    ("digits", "mixer_pico_p4_32", "45s"), ("digits", "", "60s"),
    ("sign_digits/images", "mlp", "20s"), ("sign_digits/images", "resnet8_cifar", "30s"),
    ("sign_digits/images", "resnet18", "60s"), ("sign_digits/images", "", "90s"),
    ("oxford_pets_96", "resnet18", "60s"), ("oxford_pets_96", "resnet50", "40s"),
    ("oxford_pets_96", "mixer_s16_224", "60s"),
    ("oxford_pets_96", "mixer_b16_224", "30s"), ("oxford_pets_96", "vit_tiny_patch16_224", "60s"),
    ("oxford_pets_96", "", "120s"), ("oxford_pets_96", "gmlp_ti16_224", "45s"),
    ("cifar10", "mlp", "30s"), ("cifar10", "resnet8_cifar", "60s"), ("cifar10", "mixer_nano_p4_32", "60s"),
    ("cifar10", "vit_nano_p4_32", "45s"), ("cifar10", "rcnn_96", "60s"), ("cifar10", "gmlp_nano_p4_32", "180s"),
    ("pydocs", "conv_text", "20s"), ("pydocs", "bert_tiny", "40s"),
    ("sst2", "conv_text", "45s"), ("sst2", "gmlp_text_tiny", "60s"), ("sst2", "lstm_text", "60s"),
    ("rotten_tomatoes", "mixer_text_tiny", "30s"), ("rotten_tomatoes", "bert_mini", "60s"),
    ("imdb", "conv_text", "90s"),
]  # fmt: skip
FASHION = "/usr/share/datasets/fashion-mnist"
DEFAULTS = (
    "sign_digits/images", "five_pets", FASHION, "pydocs", "topics", "acceptability",
    "oxford_pets_96", "cifar10", "rotten_tomatoes", "imdb", "sst2",
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("times", "defaults"))
    parser.add_argument("data", type=Path)
    parser.add_argument("--json", type=Path, default=Path("budgets.json"))
    parser.add_argument("--only", type=int, nargs="+", default=None, help="numbers of cases, from 1 on")
    parser.add_argument("--time", default="2m")
    given = parser.parse_args()
    cases = TIMES if given.what == "times" else [(name, "", given.time) for name in DEFAULTS]
    cases = [cases[number - 1] for number in given.only] if given.only else cases
    done: dict[str, Any] = json.loads(given.json.read_text()) if given.json.exists() else {}
    for number, (source, model, asked) in enumerate(cases, 1):
        key = key_of(source, model, asked)
        if key not in done:
            done[key] = measured(given.data, source, model, asked)
            aside = given.json.with_suffix(".part")
            aside.write_text(json.dumps(done, indent=1))
            aside.replace(given.json)  # whole or not at all: a run that is stopped here goes on from there
        print(f"{number}/{len(cases)} {key}: {in_words(done[key])}", flush=True)
    print(table([key_of(*case) for case in cases], done))


def key_of(source: str, model: str, asked: str) -> str:
    return f"{source} {model or 'default'} {asked}"


def is_good(entry: dict[str, Any]) -> bool:
    """Within bounds, or refused in a sentence before half of the time was over: to be told later is no help."""
    return entry["ratio"] <= REFUSED if entry["refused"] else abs(entry["ratio"] - 1) <= WITHIN


def in_words(entry: dict[str, Any]) -> str:
    if entry["refused"]:
        return f"refused after {entry['wall']:.0f} s: {entry['refused']}"
    return f"{entry['wall']:.1f} s ({entry['ratio'] - 1:+.1%}), {entry['steps']} steps, {entry['epochs']} epochs"


def table(keys: list[str], done: dict[str, Any]) -> str:
    """Markdown, a line a case, and how many of them kept their time."""
    lines = ["| data, network, time | off by | steps | epochs | score | classical |", "|---|---|---|---|---|---|"]
    for key in keys:
        entry = done[key]
        if entry["refused"]:
            lines.append(f"| {key} | refused: {entry['refused'].splitlines()[-1]} | | | | |")
            continue
        simple = "" if entry["baseline"] is None else f"{entry['baseline']:.3f}"
        figures = f"{entry['ratio'] - 1:+.1%} | {entry['steps']} | {entry['epochs']} | {entry['score']:.3f} | {simple}"
        lines.append(f"| {key} | {figures} |")
    good = sum(is_good(done[key]) for key in keys)
    return "\n".join([*lines, "", f"{good} of {len(keys)} within {WITHIN:.0%}, or refused beforehand"])


def measured(data: Path, source: str, model: str, asked: str) -> dict[str, Any]:
    """One case: what came out, and in which time."""
    with tempfile.TemporaryDirectory() as folder:
        if source in MADE:
            place = str(MADE[source](data, Path(folder, source)))
        else:
            place = source if source in ("digits", "pydocs") else str(data / source)
        words = [place, *(["--model", model] if model else [])]
        weft(["train", place, *cheap(model), "--steps", "2", "--output", f"{folder}/warm"])  # fills the caches
        started = time.perf_counter()
        ended = weft(["train", *words, "--time", asked, "--output", f"{folder}/run"])
        wall = time.perf_counter() - started
        if ended.returncode:
            return {"refused": ended.stderr.strip()[:200], "ratio": wall / seconds(asked), "wall": wall}
        record = json.loads(Path(folder, "run", "record.json").read_text())
    metric = record["metric"]
    found = {"ratio": wall / seconds(asked), "steps": record["steps"], "epochs": round(record["epochs"], 2)}
    scores = {"score": record["metrics"][metric], "baseline": record.get("baseline", {}).get("score")}
    learnt = "not learnt" not in ended.stdout
    return {"refused": "", "wall": wall, **found, **scores, "learnt": learnt, "model": record["config"]["model"]}


def five_pets(data: Path, target: Path) -> Path:
    """A folder of photographs: a hundred of each of the first five breeds."""
    table = pq.read_table(data / "oxford_pets_96" / "train.parquet").to_pylist()
    for breed in range(5):
        place = target / f"breed_{breed}"
        place.mkdir(parents=True)
        for number, row in enumerate([row for row in table if row["label"] == breed][:100]):
            (place / f"{number}.jpg").write_bytes(row["image"]["bytes"])
    return target


def topics(data: Path, target: Path) -> Path:
    """A CSV file of paragraphs: from which of the twenty longest articles?"""
    table = pq.read_table(data / "wiki_small" / "train.parquet").to_pylist()
    longest = [title for title, _ in Counter(row["title"] for row in table).most_common(20)]
    return csv_file(target, [(row["text"], row["title"]) for row in table if row["title"] in longest])


def acceptability(data: Path, target: Path) -> Path:
    """A CSV file of sentences: as somebody wrote it, or with two neighbouring words exchanged?"""
    draw, rows = random.Random(0), []
    for row in pq.read_table(data / "wiki_small" / "train.parquet").to_pylist():
        for sentence in row["text"].split(". "):
            words = sentence.split()
            if not 6 <= len(words) <= 20 or len(rows) >= 9000:
                continue
            odd = draw.random() < 0.5
            if odd:
                place = draw.randrange(1, len(words) - 1)
                words[place], words[place + 1] = words[place + 1], words[place]
            rows.append((" ".join(words), "odd" if odd else "good"))
    return csv_file(target, rows)


def csv_file(target: Path, rows: list[tuple[str, str]]) -> Path:
    """A table of texts and labels."""
    path = target.with_suffix(".csv")
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("text", "label"), *rows])
    return path


MADE: dict[str, Callable[[Path, Path], Path]] = {
    "five_pets": five_pets,
    "topics": topics,
    "acceptability": acceptability,
}


def cheap(model: str) -> list[str]:
    """A network that reads what `model` reads, and takes no time: its images, of the side that it is made for, or its
    words."""
    if not model or "text" in model or model.startswith("bert"):
        return ["--model", model] if model else []
    return ["--model", "mlp", *(["--img-size", "224"] if model.endswith("_224") else [])]


def seconds(text: str) -> float:
    number, unit = re.fullmatch(r"(\d+)([sm])", text).groups()  # type: ignore[union-attr]
    return float(number) * {"s": 1, "m": 60}[unit]


def weft(words: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "weft", *words], capture_output=True, text=True)


if __name__ == "__main__":
    main()
