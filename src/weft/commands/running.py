"""What `weft train`, `pretrain` and `finetune` share: where flags start from, one process or many, the end of a run."""

from __future__ import annotations

import glob
import os
import shlex
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Protocol

from tyro.conf import arg

from weft import api, machine
from weft.commands import main as command
from weft.disk import RUN, missing_folders
from weft.errors import Interrupted, WeftError
from weft.terminal import brief_list
from weft.training.config import difference, from_dict
from weft.training.run.kinds import AnyConfig, config_class
from weft.training.storage.run_folder import RunFolder, as_yaml, create, open_run, read_mapping

MAY_CHANGE = {"device", "strategy", "workers", "price_per_hour", "tensorboard"}  # when a run is resumed
UNTIL_PLANNED = {"precision", "compile"}  # and these as long as no plan is made of them


@dataclass(frozen=True, kw_only=True)
class Flags:
    """Flags that the three verbs have in common."""

    config_file: Annotated[Path | None, arg(name="config")] = None
    """Start from a YAML file, as --print-config writes it, or from the run.yaml of a run."""
    resume: Path | None = None
    """Continue the run in this folder."""
    processes: int = 1
    """Processes on this machine; more than one are started with torchrun, which restarts a rank that dies."""
    print_config: bool = False
    """Print the configuration as YAML and stop."""


class Arguments(Protocol):
    """What the three verbs ask for, as it is used here."""

    @property
    def config(self) -> AnyConfig: ...
    @property
    def output(self) -> Path | None: ...
    @property
    def resume(self) -> Path | None: ...
    @property
    def processes(self) -> int: ...
    @property
    def print_config(self) -> bool: ...


def starting_point(words: list[str], arguments: Any) -> Any:
    """The `arguments` of a verb before its flags are read: from a recipe, a file, or the run that is to be resumed.

    Whatever its kind, a run can be resumed by any of the verbs: then the arguments are those of its own verb.
    """
    given = {flag: value_of(words, flag) for flag in ("--recipe", "--config", "--resume")}
    if sum(value is not None for value in given.values()) > 1:
        raise WeftError("give one of --recipe, --config and --resume")
    if given["--recipe"] is not None:
        from weft.training.recipes import recipe

        return arguments(config=as_long_as_asked(recipe(given["--recipe"]), words))
    if given["--config"] is not None:
        found = from_file(Path(given["--config"]), arguments().config.kind)
        return arguments(config=as_long_as_asked(found, words))
    if given["--resume"] is not None:
        config = open_run(Path(given["--resume"])).config()
        return import_module(f"weft.commands.{config.kind}").Arguments(config=config)
    return arguments()


def as_long_as_asked(config: Any, words: list[str]) -> Any:
    """The configuration without its own length, where a flag gives another: they are three ways to say one thing."""
    flags = ("--epochs", "--steps", "--time")
    given = any(word in flags or word.startswith(tuple(f"{flag}=" for flag in flags)) for word in words)
    return replace(config, duration=type(config.duration)()) if given else config


def from_file(path: Path, kind: str) -> AnyConfig:
    """The configuration in a YAML file, or in the run.yaml of a run of the same kind."""
    values = read_mapping(path)
    if values.get("kind", kind) != kind:
        other = f"weft {values['kind']} --config {shlex.quote(str(path))}"
        raise WeftError(f"{path} is of a run of kind {values['kind']}: {other}")
    return from_dict(config_class(kind), values.get("config", values), f"{path}: ")


def value_of(words: list[str], flag: str) -> str | None:
    """The word after `flag`, or after its equals sign."""
    for word, following in zip(words, [*words[1:], ""], strict=False):
        if word == flag and following:
            return following
        if word.startswith(flag + "="):
            return word.partition("=")[2]
    return None


def run(arguments: Arguments) -> int:
    """Start or resume; 0 when the run ended, 130 when it was interrupted and saved."""
    if arguments.print_config:
        print(as_yaml(arguments.config), end="")
        return 0
    if arguments.processes < 1:
        raise WeftError(f"--processes {arguments.processes}: one at least is needed")
    folder, spared, made = arguments.resume, 0.0, None
    if folder is not None:
        refuse_changes(folder, arguments.config)
    elif arguments.processes > 1:
        folder, spared, made = prepare(arguments)
    if arguments.processes > 1:
        assert folder is not None
        from weft.training.run.launch import launch

        began = None if command.began is None else command.began + spared
        launch(folder, arguments.processes, changed_flags(folder, arguments.config), began, made)
    return as_rank(arguments, folder) if "RANK" in os.environ else train(arguments, folder)


def as_rank(arguments: Arguments, folder: Path | None) -> int:
    """Run in one of several processes; what it refuses is said by the one that started them."""
    from weft.training.run.launch import hand_in, leave_if_refused

    leave_if_refused()
    try:
        return train(arguments, folder)
    except WeftError as error:
        hand_in(error)
        raise


def prepare(arguments: Arguments) -> tuple[Path, float, int]:
    """A folder with the configuration alone, for several processes to find, the seconds that went into what is made
    once for all runs, and how many folders were made.

    What they would refuse is refused here, once and in a sentence: torchrun would start them again and again.
    """
    from weft.data.read.cache import FILLING
    from weft.training.run.inputs import open_inputs
    from weft.training.run.lifecycle import check_strategy

    check_strategy(arguments.config)
    open_inputs(arguments.config)
    path = arguments.output or api.default_run(arguments.config)
    made = len(missing_folders(path))
    create(path, arguments.config).release()
    return path, FILLING.seconds, made


def changed_flags(folder: Path, config: AnyConfig) -> list[str]:
    """The words that tell the processes of a resumed run what may change and did."""
    stored = open_run(folder).config()
    words = [] if places(stored) == places(config) else [*reversed(places(config).values())]  # as verbs take them
    for name in sorted(may_change(folder)):
        value, flag = getattr(config.execution, name), name.replace("_", "-")
        if value == getattr(stored.execution, name):
            continue
        words += [f"--{flag}" if value else f"--no-{flag}"] if isinstance(value, bool) else [f"--{flag}", str(value)]
    return words


def train(arguments: Arguments, folder: Path | None) -> int:
    """Run in this process."""
    with machine.loading():
        from weft.training.run import lifecycle

    if folder is None:
        folder = left_behind(arguments)
    path = folder or arguments.output or api.default_run(arguments.config)
    began = command.began
    try:
        if folder is not None:
            from weft.training.run.launch import launched

            began = launched() or began  # one of several processes goes on in the folder that was prepared for them
            outcome = lifecycle.resume(
                path, execution=arguments.config.execution, moved=places(arguments.config), baseline=True, began=began
            )
        else:
            outcome = lifecycle.start(arguments.config, path, began=began, baseline=True)
    except KeyboardInterrupt:  # before the first step, or too impatiently for it to be saved
        if not (path / RUN).is_file():
            raise
        raise Interrupted(f"interrupted; continue with: {RunFolder(path).resuming()}") from None
    if int(os.environ.get("RANK", "0")):
        return Interrupted.code if outcome.record is None else 0
    return tell(outcome)


def tell(outcome: object) -> int:
    """Print how the session ended."""
    from weft.training.learnt import CURVES
    from weft.training.run.lifecycle import Outcome

    assert isinstance(outcome, Outcome)
    if outcome.record is None:
        print(f"stopped and saved; continue with: {RunFolder(outcome.folder).resuming()}")
        return Interrupted.code
    record = outcome.record
    if record["status"] == "failed":
        raise WeftError(f"{outcome.folder} has failed: {record['reason']}")
    metric = record["metric"]
    already = "" if outcome.fresh else "already "
    split = judged_split(record["config"])
    print(f"{already}finished: {metric} {record['metrics'][metric]:.4f} on the {split} split, in {outcome.folder}")
    for line in besides(record):
        print(line)
    if never := record["metrics"].get("never_answered"):
        print(f"never answered, though they occur in the {split} split: {brief_list(never)}")
    for why in outcome.remarks():
        print(why)
    if (outcome.folder / CURVES).is_file():
        print(f"training and validation loss: {outcome.folder / CURVES}")
    return 0


def besides(record: dict[str, Any]) -> list[str]:
    """What a run's score is to be seen beside: the constant guess and a classical baseline."""
    parts, simple = constant_guess(record["metric"], record["metrics"]), record.get("baseline")
    if simple is not None:
        parts.append(f"{simple['name']}: {simple['score']:.4f} (from {simple['rows']:,} rows)")
    return [f"beside it: {'; '.join(parts)}"] if parts else []


def constant_guess(metric: str, metrics: dict[str, Any]) -> list[str]:
    """What an answer that does not look at its input reaches; in accuracy or R² where the metric is another."""
    guesses = {
        "accuracy": ("always the commonest class", metrics.get("chance")),
        "r2": ("always the mean", 0),
        "perplexity": ("guessing words by their frequency", metrics.get("frequency_perplexity")),
        "next_sentence_accuracy": ("guessing", 0.5),
    }
    shown = metric if metric in guesses else next((name for name in ("accuracy", "r2") if name in metrics), "")
    what, guess = guesses.get(shown, ("", None))
    if guess is None:
        return []
    value = f"{guess:.4f}" if guess else "0"
    return [f"{what}: {value}" if shown == metric else f"{shown} {metrics[shown]:.4f}, where {what} has {value}"]


def judged_split(config: dict[str, Any]) -> str:
    """The split of a run's final figures, as the user calls it."""
    split = str(config.get("objective", {}).get("judged_on", "test"))
    return str(config.get("test_split") or split) if split == "test" else split


def refuse_changes(folder: Path, config: AnyConfig) -> None:
    """A resumed run keeps its configuration, but for where its data lie, and where and how it is computed."""
    stored = open_run(folder).config()
    free = {name: getattr(config.execution, name) for name in may_change(folder)}
    same = replace(stored, execution=replace(stored.execution, **free), **places(config))
    changed = difference(same, config)
    if changed:
        raise WeftError(
            f"{folder} was started with another configuration ({'; '.join(changed)}); "
            f"resume it without these flags, or start a new run"
        )


def may_change(folder: Path) -> set[str]:
    """What of the execution may differ when the run in a folder is resumed."""
    return MAY_CHANGE if open_run(folder).plan() is not None else MAY_CHANGE | UNTIL_PLANNED


def places(config: AnyConfig) -> dict[str, Any]:
    """Where a run finds what it learns from: on another machine it may lie elsewhere, and a digest tells it again."""
    return {name: getattr(config, name) for name in ("source", "start") if hasattr(config, name)}


def left_behind(arguments: Arguments) -> Path | None:
    """What there is to go on from when torchrun has started this process again after a failure."""
    if int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")) == 0:
        return None
    path = arguments.output or latest_output(arguments.config)
    return path if path is not None and (path / "run.yaml").is_file() else None


def latest_output(config: AnyConfig) -> Path | None:
    """The newest folder that `default_run` has named for this very configuration and whose run has not ended."""
    found = [path for path in Path("runs").glob(glob.escape(api.run_name(config)) + "*") if unfinished(path, config)]
    return max(found, key=lambda path: path.stat().st_mtime, default=None)


def unfinished(path: Path, config: AnyConfig) -> bool:
    """Whether `path` holds a run of this configuration without a record."""
    from weft.training.run.settings import as_stored

    try:
        folder = open_run(path)
        return folder.config() in (config, as_stored(config, folder.config())) and folder.record() is None
    except WeftError:
        return False
