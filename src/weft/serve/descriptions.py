"""What a run's network is, read from its small files alone: nothing is built, and what was read once is kept."""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path
from typing import Any, get_args

from weft.data.config import Modality
from weft.data.transform.transforms import FILE
from weft.disk import read_object
from weft.errors import WeftError
from weft.serve.catalogue import Entry
from weft.training.inference.network_folder import PRETRAINED, section

WEIGHTS = "model.safetensors"
KEPT = 20_000  # descriptions
_known: OrderedDict[tuple[Path, int], dict[str, Any]] = OrderedDict()


def is_trained(folder: Path) -> bool:
    """Whether a run has written its network; the weights are written last."""
    return (folder / WEIGHTS).is_file() and (folder / "config.json").is_file()


def describe(entry: Entry) -> dict[str, Any]:
    """Name, modality, task and classes of a run's network."""
    changed = (entry.path / "config.json").stat().st_mtime_ns
    known = _known.get((entry.path, changed))
    if known is None:
        known = _known[entry.path, changed] = read(entry.path)
        if len(_known) > KEPT:
            _known.popitem(last=False)
    return {"name": entry.name, **known}


def answers_questions(entry: Entry) -> bool:
    """Whether there is a network that can be asked: not only pre-trained, and not damaged."""
    try:
        if not is_trained(entry.path):
            return False
        about = describe(entry)
        return about["task"] != PRETRAINED and about["modality"] in get_args(Modality)
    except (WeftError, OSError):
        return False


def read(folder: Path) -> dict[str, Any]:
    """The description, from config.json and the preprocessing beside it."""
    stored = section(folder / "config.json")
    network = stored["network"]
    found = {
        "model": stored.get("model"),
        "modality": modality(folder, bool(stored.get("pairs"))),
        "task": stored.get("task"),
        "classes": stored.get("classes"),
        "columns": stored.get("columns") or [],
        "target": stored.get("target"),
        "features": network.get("in_features"),
    }
    size = network.get("img_size")
    return found | ({"img_size": size, "channels": network.get("in_chans")} if found["modality"] == "image" else {})


def modality(folder: Path, pairs: bool) -> str:
    """image, text, pair or vector."""
    if (folder / "tokenizer.json").is_file():
        return "pair" if pairs else "text"
    stored = read_object(folder / FILE).get("weft")
    return str(stored.get("kind")) if isinstance(stored, dict) else "unknown"
