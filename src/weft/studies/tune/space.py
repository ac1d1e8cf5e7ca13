"""`weft tune`: a search of settings with Optuna, judged on the validation split.

Trials are runs in folders of their own. The search is a journal file (or any storage that Optuna knows by address),
which survives a kill and can be shared by workers on several machines. Trials that a dead worker left running are
marked failed at the next start, and bad ones are stopped early.
"""

from __future__ import annotations

import dataclasses
import socket
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from pydantic.dataclasses import dataclass

from weft.errors import WeftError, nearest
from weft.machine import is_running
from weft.networks.config import ImageTokensConfig, NetworkConfig
from weft.studies.compare.budget_matching import Shape, depth_of, resized
from weft.training.config import STRICT, RunConfig

Kind = Literal["float", "log", "int", "choice"]


@dataclass(frozen=True, config=STRICT)
class Range:
    """What a setting may be."""

    kind: Kind
    low: float = 0.0
    high: float = 0.0
    choices: tuple[Any, ...] = ()

    def draw(self, trial: Any, name: str) -> Any:
        """A value of this setting, chosen by Optuna."""
        if self.kind == "choice":
            return trial.suggest_categorical(name, list(self.choices))
        if self.kind == "int":
            return trial.suggest_int(name, int(self.low), int(self.high))
        return trial.suggest_float(name, self.low, self.high, log=self.kind == "log")


SPACE: dict[str, Range] = {
    "lr": Range("log", 1e-4, 3e-2),
    "weight_decay": Range("log", 1e-4, 0.5),
    "batch_size": Range("choice", choices=(32, 64, 128, 256)),
    "width": Range("log", 0.5, 2.0),  # times the named width
    "depth": Range("int", 1, 12),
    "patch_size": Range("choice", choices=(1, 2, 4, 8, 16)),
    "drop_rate": Range("float", 0.0, 0.3),
    "smoothing": Range("float", 0.0, 0.2),
    "crop_padding": Range("int", 0, 4),
    "flip": Range("choice", choices=(False, True)),
    "mixup": Range("float", 0.0, 0.8),
}
USUAL = "lr,weight_decay,width,depth"
DRIVERS = {"psycopg": "'psycopg[binary]'", "psycopg2": "psycopg2-binary", "MySQLdb": "mysqlclient"}  # module: package


def parse_space(words: str) -> list[str]:
    """Names of settings, separated by commas, that are all in the space."""
    names = [name.strip() for name in words.split(",") if name.strip()]
    for name in names:
        if name not in SPACE:
            raise WeftError(
                f"there is no setting {name!r} to tune; {nearest(name, SPACE)} there are {', '.join(SPACE)}"
            )
    if not names:
        raise WeftError(f"--space needs settings separated by commas, of {', '.join(SPACE)}")
    return names


def usable(names: list[str], network: NetworkConfig) -> list[str]:
    """The settings that this network has: no depth where it is fixed, no patch or pictures where there are none."""
    absent = set() if isinstance(network, ImageTokensConfig) else {"patch_size"}
    absent |= set() if depth_of(network) is not None else {"depth"}
    absent |= set() if network.input == "image" else {"crop_padding", "flip", "mixup"}
    return [name for name in names if name not in absent]


def apply(config: RunConfig, network: NetworkConfig, values: dict[str, Any]) -> RunConfig:
    """The configuration with tuned values; `network` is the named network, sized to the data."""
    optimisation = {name: values[name] for name in ("lr", "weight_decay", "batch_size") if name in values}
    augment = {name: values[name] for name in ("crop_padding", "flip", "mixup") if name in values}
    smoothing = {"smoothing": values["smoothing"]} if "smoothing" in values else {}
    return replace(
        config,
        network={**config.network, **changes(network, values)},
        optimisation=replace(config.optimisation, **optimisation),
        augment=replace(config.augment, **augment),
        objective=replace(config.objective, **smoothing),
    )


def changes(network: NetworkConfig, values: dict[str, Any]) -> dict[str, Any]:
    """What differs from the named network: width and depth in its proportions, patch, dropout."""
    found: dict[str, Any] = {}
    if "patch_size" in values and isinstance(network, ImageTokensConfig):
        found["patch_size"] = values["patch_size"]
        network = network.replaced(patch_size=values["patch_size"])
    if "width" in values or "depth" in values:
        depth = values.get("depth") or depth_of(network) or 1
        sized = resized(network, Shape(main_width(network, values.get("width", 1.0)), 0, depth))
        before = dataclasses.asdict(network)
        found |= {key: value for key, value in dataclasses.asdict(sized).items() if value != before[key]}
    if "drop_rate" in values:
        found["drop_rate"] = values["drop_rate"]
    return found


def main_width(network: NetworkConfig, factor: float) -> int:
    """The number that `resized` calls width, `factor` times the named one."""
    named: dict[str, Any] = vars(network)
    if "mixer" in named:
        return max(1, round(factor * named["dim"] / 4))
    for field in ("width", "dim"):
        if field in named:
            return max(1, round(factor * named[field]))
    first = named.get("widths") or named.get("hidden") or named.get("channels")
    assert first is not None
    return max(1, round(factor * first[0]))


def open_storage(address: str) -> Any:
    """Optuna's storage: a path is a journal file, anything with :// an address."""
    import optuna
    from optuna.storages.journal import JournalFileBackend, JournalStorage

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    if "://" not in address:
        Path(address).parent.mkdir(parents=True, exist_ok=True)
        return JournalStorage(JournalFileBackend(address))
    try:
        return optuna.storages.get_storage(address)
    except ImportError as error:
        module = getattr(error.__cause__, "name", None) or str(error)
        package = DRIVERS.get(module, module)
        raise WeftError(f"{address.partition('://')[0]}:// needs a driver: pip install {package}") from error
    except Exception as error:  # a server that is down, a password that is wrong: many kinds, one meaning
        where = address.rpartition("@")[2] or address  # without name and password
        raise WeftError(f"the storage {where} cannot be opened: {reason(error)}") from error


def reason(error: Exception) -> str:
    """The innermost cause, whose first line says what happened; what lies around it says where."""
    while isinstance(cause := error.__cause__ or getattr(error, "orig", None), Exception):
        error = cause
    return str(error).splitlines()[0]


def open_search(address: str, name: str) -> Any:
    """The search of this name, new or found."""
    import optuna

    pruner = optuna.pruners.MedianPruner(n_startup_trials=4, n_warmup_steps=1)
    try:
        return optuna.create_study(
            storage=open_storage(address), study_name=name, direction="maximize", load_if_exists=True, pruner=pruner
        )
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError, AssertionError) as error:
        raise WeftError(f"{address} is damaged, or holds no search; remove it to begin a new one") from error


def fail_dead_trials(search: Any, patience: float = 0.0) -> int:
    """Mark trials failed that a worker on this machine left running when it died; returns how many.

    Those that are about to die have some seconds of `patience` to do so.
    """
    from optuna.trial import TrialState

    until = time.monotonic() + patience
    running = {t.number: worker_of(t) for t in search.get_trials(deepcopy=False, states=(TrialState.RUNNING,))}
    here = {number: process for number, process in running.items() if process is not None}
    while any(is_running(process) for process in here.values()) and time.monotonic() < until:
        time.sleep(0.05)
    dead = [number for number, process in here.items() if not is_running(process)]
    for number in dead:
        search.tell(number, state=TrialState.FAIL)
    return len(dead)


def worker_of(trial: Any) -> int | None:
    """The process of this machine that does a trial."""
    host, _, process = str(trial.user_attrs.get("worker", "")).rpartition(":")
    return int(process) if host == socket.gethostname() and process.isdigit() else None


def counted(search: Any) -> list[Any]:
    """Trials that count towards the number asked for: all but those whose worker died."""
    trials = search.get_trials(deepcopy=False)
    return [trial for trial in trials if trial.state.name != "FAIL" or "reason" in trial.user_attrs]


def importances(search: Any) -> dict[str, float]:
    """Share of each setting in the variance of the result (fANOVA), largest first; empty where it cannot be told."""
    from optuna.importance import get_param_importances
    from optuna.trial import TrialState

    done = search.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
    if len(done) < 4 or len({trial.value for trial in done}) < 2:
        return {}
    return dict(get_param_importances(search))
