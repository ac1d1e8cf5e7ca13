"""The command that repeats a run, from its record."""

from __future__ import annotations

import shlex
from typing import Any

from weft.training.config import to_dict
from weft.training.run.kinds import config_class


def command_of(record: dict[str, Any] | None) -> str:
    """The command that repeats a run: `weft train SOURCE --model NAME …`, every setting that is not the default."""
    if record is None:
        return ""
    config = record["config"]
    verb = record.get("kind") if record.get("kind") in ("train", "finetune", "pretrain") else "train"
    usual = to_dict(config_class(str(verb))())
    if "+" in config["model"] or config["model"] == "logistic":
        return f"weft compare {shlex.quote(config['source'])}  # {config['model']} is fitted by the comparison"
    words = ["weft", str(verb), *([config["start"]] if config.get("start") else []), config["source"]]
    words += ["--model", config["model"]] if config["model"] else []
    if config["network"]:
        words += ["--network", *(f"{key}={plain(value)}" for key, value in config["network"].items())]
    words += ["--seed", str(config["seed"])]
    for section, fields in config.items():
        for name, value in fields.items() if isinstance(fields, dict) and section != "network" else ():
            if value != usual.get(section, {}).get(name):
                words += flag(name.replace("_", "-"), value)
    return shlex.join(words)


def flag(name: str, value: Any) -> list[str]:
    """A setting as words of a command line."""
    if isinstance(value, bool):
        return [f"--{name}" if value else f"--no-{name}"]
    return [f"--{name}", *(map(str, value) if isinstance(value, list) else [str(value)])]


def plain(value: Any) -> str:
    """A value of `--network KEY=VALUE`, without spaces."""
    return str(list(value) if isinstance(value, tuple) else value).replace(" ", "")
