"""The command that repeats a run, from its record."""

from __future__ import annotations

import shlex
from typing import Any

from weft.training import yaml_file
from weft.training.config import RunConfig

FLAGS = {("reading", "seed"): "split-seed"}  # where a flag is not called as its field


def command_of(record: dict[str, Any] | None) -> str:
    """`weft train SOURCE --model NAME …` with every setting that is not the default."""
    if record is None:
        return ""
    config, usual = record["config"], yaml_file.to_dict(RunConfig())
    if "+" in config["model"] or config["model"] == "logistic":
        return f"weft compare {shlex.quote(config['source'])}  # {config['model']} is fitted by the comparison"
    words = ["weft", "train", config["source"], "--model", config["model"]]
    if config["network"]:
        words += ["--network", *(f"{key}={plain(value)}" for key, value in config["network"].items())]
    words += ["--seed", str(config["seed"])]
    for section, fields in config.items():
        for name, value in fields.items() if isinstance(fields, dict) and section != "network" else ():
            if value != usual[section].get(name):
                words += flag(FLAGS.get((section, name), name.replace("_", "-")), value)
    return shlex.join(words)


def flag(name: str, value: Any) -> list[str]:
    """A setting as words of a command line."""
    if isinstance(value, bool):
        return [f"--{name}" if value else f"--no-{name}"]
    return [f"--{name}", *(map(str, value) if isinstance(value, list) else [str(value)])]


def plain(value: Any) -> str:
    """A value of `--network KEY=VALUE`, without spaces."""
    return str(list(value) if isinstance(value, tuple) else value).replace(" ", "")
