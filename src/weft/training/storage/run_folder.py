"""A run is a folder: what was asked, the network, the curve, the checkpoints, and what came out.

run.yaml                  the configuration, and the plan measured from it before step 0
config.json, model.safetensors, preprocessor_config.json | tokenizer.json     the network, Hugging Face layout
metrics.jsonl, summary.csv, checkpoints/, record.json

What may be thrown away is weft's own, each file by its name; what else lies in the folder stays. No torch.
"""

from __future__ import annotations

import re
import shlex
import warnings
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import yaml

from weft import __version__
from weft.data.config import EMBEDDED
from weft.disk import LOCK, LOCKS, RUN, Damaged, discard, read_text, strangers, user_path, write_bytes, write_json
from weft.errors import WeftError
from weft.machine import Busy, Lock
from weft.networks.config import CARRIED
from weft.training.config import RunConfig, from_dict, to_dict
from weft.training.embeddings.carried import carried_names
from weft.training.run.kinds import AnyConfig, config_class
from weft.training.run.plan import Plan
from weft.training.storage.metrics_log import read_events
from weft.training.storage.record import read_record

TRAINING = "training"  # the phase in which steps are counted
ENDING = 2.0  # seconds that a process which was just killed may take to let go of its run
TENSORS, MANIFEST = "state.safetensors", "manifest.json"  # of a checkpoint
CHECKPOINT = re.compile(r"\d{8,12}", re.ASCII)
WRITING = re.compile(r"\.\d{8,12}\.writing", re.ASCII)  # what a kill leaves of a checkpoint
EARLY = (RUN, *LOCKS, "preprocessor_config.json", "tokenizer.json", "tokenizer_config.json")  # before the first step
# libyaml's are ten times as fast, and PyYAML's wheels have them
LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
DUMPER: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
LIMIT, DEPTH = 1 << 20, 32  # bytes and levels of a YAML file, far beyond any real configuration
NOTE = 1000  # bytes of what a process says it does
FORMAT = 1  # of the folder; raised when an older weft could not read a newer one


class RunBusy(WeftError):
    """Another process trains in the folder."""


@dataclass(frozen=True)
class RunFolder:
    """The files of one run."""

    path: Path

    @property
    def checkpoints(self) -> Path:
        return self.path / "checkpoints"

    @property
    def metrics(self) -> Path:
        return self.path / "metrics.jsonl"

    def config(self) -> AnyConfig:
        """What was asked, of whatever kind the run is."""
        asked, where = self.asked(), f"{self.path / 'run.yaml'}: "
        return from_dict(config_class(asked.get("kind", "train"), where), asked["config"], where)

    def labelled(self) -> RunConfig:
        """What was asked, of a run that has learnt classes or numbers; others are refused."""
        config = self.config()
        if not isinstance(config, RunConfig):
            raise WeftError(
                f"{self.path} is of kind {config.kind} and knows no classes; `weft finetune` teaches it some"
            )
        return config

    def plan(self) -> Plan | None:
        """What was measured, or None when the run was stopped before its probe ended."""
        stored = self.asked().get("plan")
        return None if stored is None else from_dict(Plan, stored, f"{self.path / 'run.yaml'}: ")

    def asked(self) -> dict[str, Any]:
        """What run.yaml holds: kind, config and, once it was measured, plan."""
        values = read_mapping(self.path / "run.yaml")
        version = values.get("format")
        if not isinstance(version, int) or "config" not in values or not isinstance(values.get("kind", ""), str):
            raise WeftError(
                f"{self.path / 'run.yaml'} was not written by weft, or is damaged: it lacks `format` or `config`"
            )
        if version > FORMAT:
            raise WeftError(
                f"{self.path} was written by a newer weft (format {version}, this one knows {FORMAT}); upgrade weft"
            )
        return values

    def write_asked(self, config: AnyConfig, plan: Plan | None = None) -> None:
        """Write run.yaml."""
        content: dict[str, Any] = {"format": FORMAT, "weft": __version__, "kind": config.kind}
        content["config"] = to_dict(config)
        if plan is not None:
            content["plan"] = to_dict(plan)
        write_bytes(self.path / "run.yaml", dump(content).encode())

    def record(self) -> dict[str, Any] | None:
        """What came out, or None while the run has not ended; nor has it where the record is damaged."""
        try:
            return self.sound_record()
        except Damaged as error:
            warnings.warn(f"{error}; `{self.resuming()}` writes it anew", stacklevel=2)
            return None

    def resuming(self) -> str:
        """The command that goes on with the run, to be copied."""
        return f"weft train --resume {shlex.quote(str(self.path))}"

    def sound_record(self) -> dict[str, Any] | None:
        """The same, but a damaged record is refused."""
        path = self.path / "record.json"
        return read_record(path) if path.exists() else None

    def write_record(self, content: dict[str, Any]) -> None:
        write_json(self.path / "record.json", content)

    def lock(self, wait: float = 0.0) -> Lock:
        """Hold the run for this process until the lock is released or the process ends, however it ends.

        Waits up to `wait` seconds for a process that is about to end.
        """
        try:
            return Lock(self.path / LOCK).acquire(wait)
        except Busy as busy:
            raise RunBusy(f"{self.path} is being trained by another process; wait for it or stop it") from busy
        except OSError as error:
            raise WeftError(f"cannot open {self.path / LOCK}: {error.strerror}; do the files belong to you?") from error

    def phase(self) -> str:
        """What the process that holds the run is doing, or was doing when it ended: its lock says so."""
        try:
            doing = read_text(self.path / LOCK, NOTE).strip()
        except Damaged:
            doing = ""
        if doing != TRAINING:
            return doing or "starting"
        steps = [event["step"] for event in read_events(self.metrics) if event.get("kind") == "train"]
        return f"training after step {steps[-1] if steps else 0}"

    def status(self) -> str:
        """finished, failed, running, or stopped (and to be resumed)."""
        record = self.record()
        if record is not None:
            return str(record["status"])
        return "running" if self.is_busy() else "stopped"

    def is_busy(self) -> bool:
        """Whether a process trains in the folder; refused where what stands in the place of its lock is none."""
        lock = self.path / LOCK
        if not lock.exists() and not lock.is_symlink():  # to ask leaves no file behind, in others' folders least of all
            return False
        try:
            self.lock().release()
        except RunBusy:
            return True
        return False


def create(path: Path, config: AnyConfig) -> Lock:
    """Make a new run folder that holds what was asked; returns the lock on it, which is held."""
    folder = RunFolder(path)
    try:
        path.mkdir(parents=True, exist_ok=True)
        check_new(folder)
        lock = folder.lock()
    except OSError as error:
        raise WeftError(f"cannot write to {path}: {error.strerror}; choose another --output") from error
    try:
        check_new(folder)  # until it was locked, another process may have done the same
        folder.write_asked(config)
    except BaseException:
        lock.release()
        raise
    return lock


def check_new(folder: RunFolder) -> None:
    """Refuse a folder in which there is anything but a lock, and what a kill left of the first write."""
    if (folder.path / RUN).exists():
        raise WeftError(
            f"{folder.path} already holds a run; `{folder.resuming()}` continues it, or choose another --output"
        )
    if found := strangers(folder.path, (RUN, *LOCKS)):
        raise WeftError(f"{folder.path} exists and is not empty (it holds {found[0].name}); choose another --output")


def open_run(path: Path) -> RunFolder:
    """An existing run folder."""
    if not (path / "run.yaml").is_file():
        raise WeftError(f"{path} is not a run folder: it has no run.yaml (`weft runs` lists those below a folder)")
    return RunFolder(path)


def free_name(parent: Path, name: str) -> Path:
    """`parent/name`, or with the first number that makes it new."""
    candidates = [parent / name, *(parent / f"{name}-{number}" for number in range(2, 10_000))]
    return next(path for path in candidates if not path.exists())


def name_for(source: str) -> str:
    """What a default folder for work on a source is called: no two sources share one, the same finds its own again."""
    if source in EMBEDDED:
        return source
    hub = source.startswith("hub:")
    place = source if hub else str(user_path(source).resolve())
    readable = source.removeprefix("hub:") if hub else Path(place).name
    safe = "".join(letter if letter.isalnum() or letter in "-_+." else "-" for letter in readable)[:60]
    return f"{safe.lstrip('.') or 'source'}-{blake2b(place.encode(errors='replace'), digest_size=3).hexdigest()}"


def checkpoint_folders(folder: Path) -> Iterator[Path]:
    """The folders of a run's checkpoints, whole or not; a link to somewhere else is none."""
    if folder.is_symlink() or not folder.is_dir():
        return
    for path in sorted(folder.iterdir()):
        named = CHECKPOINT.fullmatch(path.name) or WRITING.fullmatch(path.name)
        if named and path.is_dir() and not path.is_symlink():
            yield path


def has_checkpoints(folder: Path) -> bool:
    """Whether there is a whole checkpoint to go on from."""
    return any(CHECKPOINT.fullmatch(path.name) for path in checkpoint_folders(folder))


def discard_checkpoint(path: Path) -> None:
    """Delete one checkpoint."""
    discard(path, (TENSORS, MANIFEST))


def discard_checkpoints(folder: Path) -> list[Path]:
    """Delete all checkpoints of a run and their folder; returns what is left because weft did not write it."""
    for path in checkpoint_folders(folder):
        discard_checkpoint(path)
    discard(folder, ())
    return foreign_checkpoints(folder)


def foreign_checkpoints(folder: Path) -> list[Path]:
    """What lies among a run's checkpoints and is none."""
    if folder.is_symlink():
        return [folder]
    if not folder.is_dir():
        return []
    own = list(checkpoint_folders(folder))
    within = [found for path in own for found in strangers(path, (TENSORS, MANIFEST))]
    return [*strangers(folder, {path.name for path in own}), *within]


def foreign_files(run: Path) -> list[Path]:
    """What the folder of a run that never began holds beside what weft has written until then."""
    encoder = run / CARRIED
    carried = strangers(encoder, carried_names(encoder)) if encoder.is_dir() else []
    return [*strangers(run, {*EARLY, CARRIED, "checkpoints"}), *foreign_checkpoints(run / "checkpoints"), *carried]


def discard_early(run: Path, made: Collection[Path] = ()) -> None:
    """Delete the files of a run that never began, its folder, and those `made` for it, if nothing else is in them."""
    discard_checkpoints(run / "checkpoints")
    discard(run / CARRIED, carried_names(run / CARRIED))
    discard(run, EARLY)
    for folder in made:
        discard(folder, ())


# ---- YAML: run.yaml, and what --print-config prints and --config reads.


def as_yaml(config: Any) -> str:
    """A configuration as YAML text, keys in the order of the dataclass."""
    return dump(to_dict(config))


def dump(content: dict[str, Any]) -> str:
    """Plain content as YAML text, keys in their order."""
    try:
        return str(yaml.dump(content, Dumper=DUMPER, sort_keys=False, allow_unicode=True))
    except UnicodeEncodeError as error:
        raise WeftError(
            f"the name {error.object!r} is not UTF-8, so that no record could hold it; rename it"
        ) from error


def read_mapping(path: Path) -> dict[str, Any]:
    """The mapping stored in a YAML file; what its values are is left to others."""
    text = read_text(path, LIMIT)
    try:
        check_events(text, path)
        values = yaml.load(text, LOADER)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise WeftError(
            f"{path} is not valid YAML ({' '.join(str(error).split())}); repair it, or write one with --print-config"
        ) from error
    if not isinstance(values, dict):
        raise WeftError(f"{path} holds no mapping of keys to values; write one with --print-config")
    return values


def check_events(text: str, path: Path) -> None:
    """Refuse what a few lines can make endless: aliases, which stand for other parts, and very deep nesting."""
    depth = 0
    for event in yaml.parse(text, LOADER):
        if isinstance(event, yaml.AliasEvent):
            raise WeftError(f"{path} has an alias (*{event.anchor}), which weft does not read; write its content out")
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > DEPTH:
            raise WeftError(
                f"{path} is nested more than {DEPTH} levels deep; restore it, or write one with --print-config"
            )
