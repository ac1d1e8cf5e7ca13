"""Pages of every kind that nobody trained for: with few and many classes, and names as long as data have them."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import torch

import weft
from insight.small import subject_of
from studies.fabricated import make_study
from studies.fabricated_speeds import fabricated
from weft.insight import Subject, look, render
from weft.insight.drawing.raster import address
from weft.networks.registry import build
from weft.report import experiment, page, tuning
from weft.report.probe import render_probe
from weft.report.source import render_source
from weft.studies.experiments.speed_tables.published_rows import ROWS
from weft.studies.experiments.speed_tables.speed_drawing import summary_of
from weft.studies.results.load import collect
from weft.studies.results.summary import summarise
from weft.training.inference.network_folder import NetworkMetadata

KINDS = ("staffordshire_bull_terrier", "British_Shorthair", "american pit bull terrier", "Sphynx", "miniature_pinscher")
PLACES = ("outdoors_in_bright_light", "indoors", "on a sofa, asleep", "puppy", "unknown")
CANDIDATES = {
    "mlp": 0.95, "vit_nano_p4_32": 0.9, "resnet20_cifar": 0.96, "control_identity_p4_32": 0.7,
    "control_depthwise_pico_p4_32": 0.8, "hog+logistic": 0.85,
}  # fmt: skip


def names(count: int) -> list[str]:
    """So many different names, most of them long."""
    every = (f"{kind}_{place}" for place, kind in itertools.product(PLACES, KINDS))
    first = list(itertools.islice(every, count))
    return first + [f"{KINDS[n % 5]} number {n}" for n in range(len(first), count)]


def comparison(folder: Path, classes: int) -> str:
    """The report of a comparison, with mistakes."""
    make_study(folder, CANDIDATES, classes=names(classes), examples=max(200, 3 * classes))
    summary = summarise(collect(folder))
    for number, row in enumerate(summary["rows"]):
        row["money"], row["parameters"] = 0.0123 * (number + 1), 50_000 + 3_000 * number
        row["core_seconds"] = 60.0 + 7 * number
    dot, place = address(np.zeros((8, 8, 3), np.uint8)), "photos/staffordshire_bull_terrier/IMG_20260101.jpg"
    answer = {"target": 0, "predicted": 1, "confidence": 0.97}
    example = {**answer, "wrong": 9, "of": 16, "picture": dot, "place": place}
    disputed = {"target": 0, "answers": [0, 1], "confidences": [0.97, 0.5], "place": place}
    shown = [{**disputed, "picture": dot}, {**disputed, "text": "a long review of a film " * 12}] * 3
    between = {"names": ["resnet20_cifar", "mlp"], "alone": [12, 7], "apart": 25, "of": 1200, "examples": shown}
    mistakes = {"candidate": "resnet20_cifar", "seed": 1, "examples": [example] * 5, "disagreement": between}
    steps = ", ".join(f"{row['name']} 1,024" for row in summary["rows"])
    summary["story"] = [(4.2, "plan for 15 min, until 12:00:00:"), (754.0, f"steps of a run: {steps}")]
    summary["guesses"] = ["2 candidates have not learnt anything: mlp, vit_nano_p4_32."]
    return page.render(summary, mistakes)


def inspection(classes: int) -> str:
    """A network on pictures, seen through the lenses whose pages have class names in them; untrained."""
    return of_lenses(pictured(classes), {
        "mistakes": {"examples": 150, "points": 40}, "saliency": {"examples": 4, "steps": 2, "shown": 4},
        "attention": {"examples": 8, "shown": 4}, "shift": {"examples": 40}, "activations": {"examples": 8},
    })  # fmt: skip


def inspection_of_convolutions() -> str:
    """A ResNet through lenses with layer names."""
    lenses = {name: {"examples": 8} for name in ("field", "gates", "activations", "shift")}
    first, last = {"mistakes": {"points": 30}}, {"filters": {}, "backprop": {"depth": 4}}
    return of_lenses(subject_of("resnet8_cifar"), {**first, **lenses, **last})


def inspection_of_texts() -> str:
    """A small BERT."""
    lenses: dict[str, Any] = {name: {"examples": 8} for name in ("attention", "shift", "field", "gates", "activations")}
    first = {"mistakes": {"points": 30}, "saliency": {"examples": 4, "steps": 2}}
    last = {"filters": {}, "positions": {}, "backprop": {"depth": 4}}
    return of_lenses(subject_of("bert_tiny"), {**first, **lenses, **last})


def of_lenses(subject: Subject, lenses: dict[str, dict[str, Any]]) -> str:
    found = [look(subject, name, **settings) for name, settings in lenses.items()]
    return render(subject, [*found, "the lens positions fits ViT, BERT, and any token network with positions=learned"])


def pictured(classes: int) -> Subject:
    """A small ViT on random pictures of so many classes."""
    chance = np.random.default_rng(classes)
    called = names(classes)
    many = 8 * classes
    pictures = chance.integers(0, 255, (many, 8, 8), dtype=np.uint8)
    opened = weft.open_source(pictures, [called[number % classes] for number in range(many)])
    subject = subject_of("vit_pico_p4_32")
    config = subject.config.replaced(num_classes=1 if classes == 2 else classes)
    network = build(config, seed=0).eval()
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(0.2 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(1)))
    card = NetworkMetadata("vit_pico_p4_32", opened.task, opened.classes)
    return Subject("vit_pico_p4_32", network, card, subject.transform, None, "test", lambda: opened)


def search() -> str:
    """The page of a search over settings."""
    settings = {"lr": 0.00123456, "weight_decay": 0.05, "batch_size": 128, "crop_padding": 4}
    trials = [{"number": n, "value": 0.8 + n / 100, "state": "COMPLETE", "settings": settings} for n in range(14)]
    return tuning.render_search(
        {
            "source": "data/oxford_pets_of_37_breeds",
            "model": "control_depthwise_pico_p4_32",
            "best": {"number": 13, "value": 0.93, "settings": settings},
            "states": {"COMPLETE": 14, "PRUNED": 2, "FAIL": 0},
            "trials": trials,
            "importance": {"weight_decay": 0.7, "lr": 0.2, "crop_padding": 0.1},
        },
        ["on the test split, which had no part in the choice: accuracy 0.9123",
         "train it anew: weft train data/oxford_pets_of_37_breeds --model control_depthwise_pico_p4_32 --lr 0.00123"],
    )  # fmt: skip


def source(classes: int) -> str:
    """What a folder of pictures of very different sizes holds."""
    chance, called = np.random.default_rng(classes), names(classes)
    values = chance.integers(30, 3024, 400).tolist()
    taken = "the side that pictures are resized to"
    split = {"rows": 1234, "sizes": "30–3,024 × 25–2,630 px, 861 sizes", "origin": "all without validation"}
    return render_source({
        "source": "data/oxford_pets_of_37_breeds", "about": f"image, {classes} classes, fingerprint {'0af' * 10}",
        "splits": [{"name": name, **split} for name in ("train", "validation", "test", "unsupervised_extra_rows")],
        "measures": [{"title": "width, px", "values": values, "mark": 128, "marked": taken},
                     {"title": "height, px", "values": [96] * 40, "mark": 96, "marked": taken}],
        "balance": {name: int(chance.integers(1, 5000)) for name in called},
        "notes": [f"1 label of train to look at, as all like rows have another: photos/{called[0]}/IMG_20260101.jpg"],
        "bad": [(f"{called[-1]}/IMG_{n:05}.jpg", "the image cannot be decoded (Truncated File)") for n in range(3)],
    })  # fmt: skip


def rate_maps() -> str:
    """The page of two maps over rate and width."""
    cells = [[0.9, 0.95, 0.1, None, 1.0], [None, 0.5, 0.71, 0.3, 0.2]]
    maps = {"control_depthwise_pico_p4_32": cells, "vit_pico_p4_32": cells}
    rates = [1e-4, 3e-4, 1e-3, 3e-3, 1e-2]
    return tuning.render_maps({"source": "digits", "rates": rates, "widths": [1, 2], "maps": maps})


def published_table() -> str:
    """The page of an experiment."""
    named = ("BERT", "gMLP", "aMLP", "Mixer, depth-wise convolution of 31 tokens")
    ordering = {
        "question": "is aMLP better than gMLP?", "outcome": "confirmed", "found": "aMLP is 1.2 better",
        "sentence": "said", "shown": True, "preliminary": True, "quantity": "perplexity",
        "low": -0.1, "mean": 0.1, "high": 0.3,
    }  # fmt: skip
    return experiment.render_experiment({
        "table": 6, "source": "wiki_small", "question": "What does attention add?", "scale": "smoke",
        "budget": "40 steps each", "conclusion": "one of two orderings is confirmed", "orderings": [ordering] * 2,
        "quantities": ["perplexity", "sst2"], "rows": [measured(n, name) for n, name in enumerate(named)],
        "reference": [{"name": "BERT base", "published": {"perplexity": 4.17, "sst2": 93.8}}],
        "time": "It took 3 min.", "problems": [], "command": "weft study run e4 wiki_small --scale smoke",
        "notes": ["a note"], "environment": {},
    })  # fmt: skip


def measured(number: int, name: str) -> dict[str, Any]:
    """A row of an experiment."""
    perplexity = {"mean": 12.3 + number, "low": 11.9 + number, "high": 12.8 + number}
    return {
        "name": f"{name} with a long name", "layers": 12, "parameters": 1.1e8, "seeds": 3, "predicted": 600.0,
        "taken": 650.0, "measured": {"perplexity": perplexity, "sst2": None},
        "published": {"perplexity": 4.2 + number, "sst2": 93.1},
    }  # fmt: skip


def measured_speeds() -> str:
    """The page of the speeds that were measured: fourteen columns, and names as papers have them."""
    records = {row.key: fabricated(row, seconds=1.7**number) for number, row in enumerate(ROWS)}
    study = {"scale": "cpu", "command": "weft study run e2"}
    return experiment.render_experiment(summary_of(study, records), "speeds.html.j2")


def probed() -> str:
    """Trained networks with simple classifiers on their features."""
    found = {"mean": 0.8123, "low": 0.79, "high": 0.8341}
    named = ("efficientnet_lite0", "runs/oxford_pets_of_37_breeds-control_depthwise_pico_p4_32-seed-12", "minilm_l6")
    row = {
        "features": 1280, "best": "ridge", "seconds": 123.4, "shots": {str(k): found for k in (1, 2, 5, 10)},
        "classifiers": dict.fromkeys(("neighbours", "ridge", "logistic"), found),
    }  # fmt: skip
    return render_probe({
        "source": "data/oxford_pets_of_37_breeds", "classes": 37, "draws": 5, "shots": [1, 2, 5, 10],
        "counts": {"train": 2944, "validation": 736, "test": 3669}, "rows": [{**row, "name": name} for name in named],
        "recommendation": f"{named[1]} is ahead, by less than luck gives", "notes": ["images of 96 px, from 128"],
    })  # fmt: skip


def one_lens(classes: int) -> str:
    """The page of a single lens."""
    return of_lenses(pictured(classes), {"mistakes": {"examples": 150, "points": 40}})
