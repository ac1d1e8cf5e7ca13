"""`weft.open_source`, `weft.train`, `weft.compare` and `weft.probe`: what the commands do, from a script or a notebook.

Settings are the flags of the commands with underscores: `batch_size=64` is `--batch-size 64`. The commands run
the same code: `lifecycle` for one run, `run_comparison` for many.
"""

from __future__ import annotations

import dataclasses
import html
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_args, get_origin, get_type_hints, overload

from weft.errors import Interrupted, WeftError, nearest

if TYPE_CHECKING:
    from weft.data.open.source import Source
    from weft.studies.compare.config import ComparisonConfig
    from weft.studies.probe.outcome import Probe
    from weft.training.config import RunConfig
    from weft.training.inference.predictor import Predictor
    from weft.training.run.kinds import AnyConfig
    from weft.training.run.lifecycle import Outcome

C = TypeVar("C")
Settings = dict[str, Any]


def open_source(X: Any, y: Any = None, *, test: Any = None, validation: Any = None, **settings: Any) -> Source:
    """Open data: its splits, classes and task, and what was decided on the way (`notes`).

    X is a path, the name of an embedded source or `hub:NAME`; or data in memory: an array (n, features) of vectors,
    images (an array, or a list of arrays or Pillow images; uint8 or floats from 0 to 1, channels first, last or none),
    a list of texts or of pairs of texts, a column or table of pandas, polars or pyarrow, a `Dataset` or `DatasetDict`
    of the library `datasets`, or a Dataset of torch with a length, whose items are pairs (input, target). y holds one
    label each, where X has none of its own. `test` and `validation` are pairs (X, y), or hold both as X may.

    Data in memory are written once as Parquet files into `sources/` below the cache ($WEFT_CACHE, or ~/.cache/weft),
    in a folder that is named after their content: worker processes, and runs that are resumed, read them there. Delete
    it when no run needs it any more.
    """
    from weft.data.config import SourceConfig
    from weft.data.open import source

    config = configured(SourceConfig, settings)
    if isinstance(X, str | os.PathLike):
        if y is not None or test is not None or validation is not None:
            raise WeftError("a path or a name brings its own labels and splits; leave out y, test and validation")
        return source.open_source(str(X), config)
    from weft.data.sources.memory import store

    return source.open_source(store(X, y, validation=validation, test=test), config)


def train(source: Any, model: str | type = "", *, time: str | None = None, output: Any = None, **settings: Any) -> Run:
    """Train a network: `weft.train("digits", "mlp", epochs=5)` is `weft train digits --model mlp --epochs 5`.

    `source` is what `open_source` returned, or what it takes as X. `time` is a wall time such as "90s" or "5m"; other
    settings are the command's flags. A network of your own is an import string, "package.module:Class", or that class;
    `metric` and `augmentation` take functions likewise. The run is a folder, `output`, by default a new one below
    runs/. With an `output` that holds a run of the same configuration, it goes on where that stopped, or returns what
    came out.
    """
    from weft.training.config import RunConfig
    from weft.training.storage.run_folder import open_run

    config = configured(RunConfig, {"model": model, "time": time} | settings, place_of(source))
    outcome = start_or_resume(config, None if output is None else Path(output))
    if outcome.record is None:
        path = str(outcome.folder)
        raise Interrupted(f"stopped and saved; the same call with output={path!r} goes on, or weft train --resume")
    if outcome.record["status"] == "failed":
        raise WeftError(f"{outcome.folder} has failed: {outcome.record['reason']}")
    settled = open_run(outcome.folder).config()
    assert isinstance(settled, RunConfig)
    return Run(outcome.folder, settled, outcome.record)


def compare(
    source: Any,
    models: str | Sequence[str | type] = "families",
    *,
    time: str | None = None,
    output: Any = None,
    **settings: Any,
) -> Comparison:
    """Compare networks at equal budget: `weft.compare("photos/", ["resnet18", "vit_nano_p4_32"], seeds=5)`.

    `source` is as for `train`; `models` are names, families ("resnet"), classes of your own, or a preset (families,
    mixers, gates, sizes); settings are the flags of `weft compare`. What is finished in the folder `output` (by
    default one below comparisons/ that is the source's own) is not run again. Works in a notebook and in a script
    without `if __name__ == "__main__"`.
    """
    from weft.studies.compare.config import ComparisonConfig

    names = models if isinstance(models, str) else ",".join(str(named("models", model)) for model in models)
    asked = {"models": names, "time": time} | settings
    config = configured(ComparisonConfig, asked, place_of(source))
    folder = default_comparison(config.source) if output is None else Path(output)
    words = [repr(config.source), *(f"{name}={value!r}" for name, value in asked.items() if value is not None)]
    run_comparison(config, folder, f"weft.compare({', '.join(words)})")
    return Comparison.read(folder)


def probe(starts: Any, source: Any, *, say: Callable[[str], None] | None = None, **settings: Any) -> Probe:
    """Simple classifiers on the features of trained networks: `weft.probe("efficientnet_lite0", "photos/")`.

    `starts` is one, or a list, of what `weft finetune` starts from: runs, folders or files of weights, names that pip
    brings, `hub:NAME`. `source` is as for `train`, and settings are the flags of `weft probe`. Features are computed
    once and kept in the cache; `say` is told how far that is.
    """
    from weft.studies.probe.config import ProbeConfig
    from weft.studies.probe.outcome import Probe
    from weft.studies.probe.probing import probe

    several = not isinstance(starts, str | os.PathLike)
    names = tuple(str(start) for start in (starts if several else (starts,)))
    if not names:
        raise WeftError("there is nothing to probe; name a trained network, such as efficientnet_lite0")
    given = place_of(source) | {"starts": names}
    return Probe(probe(configured(ProbeConfig, settings, given), say or (lambda _: None)))


# ---- What the commands share.


def start_or_resume(config: AnyConfig, output: Path | None) -> Outcome:
    """Start a run in `output`, by default a new folder below runs/; one that holds this very run is gone on with."""
    from weft.training.config import difference
    from weft.training.run import lifecycle
    from weft.training.run.settings import as_stored
    from weft.training.storage.run_folder import open_run

    if output is None or not (output / "run.yaml").is_file():
        return lifecycle.start(config, output or default_run(config), baseline=True)
    stored = open_run(output).config()
    if changed := difference(stored, as_stored(config, stored)):
        raise WeftError(f"{output} holds a run of another configuration ({'; '.join(changed)}); choose another output")
    return lifecycle.resume(output, baseline=True)


def run_comparison(
    config: ComparisonConfig,
    folder: Path,
    command: str,
    show: Callable[[Path], object] | None = None,
    began: float | None = None,
) -> None:
    """Run a comparison in `folder`, or go on with it, and `show` what came out; by default write the report.

    `began` is when the command was called (perf_counter): `--time` counts from there.
    """
    from weft.disk import require_output
    from weft.studies.compare import comparison, progress
    from weft.studies.engine.folder_lock import concluded
    from weft.studies.results.summary import draw_report

    def run() -> None:
        try:
            with progress.shown() as (say, watch):
                comparison.compare(config, folder, command, say, watch, began)
        except Interrupted as error:
            raise Interrupted(f"{error} ({command})") from None

    require_output(folder)
    concluded(folder, run, show or draw_report)  # type: ignore[arg-type]


def default_run(config: AnyConfig) -> Path:
    """A new folder below runs/."""
    from weft.training.storage.run_folder import free_name

    return free_name(Path("runs"), run_name(config))


def run_name(config: AnyConfig) -> str:
    """A readable name: source, network and seed."""
    from weft.training.storage.run_folder import name_for

    source = name_for(config.source) if config.source else "run"
    model = "".join(letter if letter.isalnum() or letter in "-_+." else "-" for letter in config.model or "chosen")
    return f"{source}-{model}-seed{config.seed}"


def default_comparison(source: str) -> Path:
    """The folder in comparisons/ that is the source's own."""
    from weft.training.storage.run_folder import name_for

    return Path("comparisons") / name_for(source)


# ---- From settings to configurations.


def place_of(source: Any) -> Settings:
    """Where a source lies, and the settings that it was opened with, as far as they are not the defaults."""
    from weft.data.config import SourceConfig
    from weft.data.open.source import Source

    if isinstance(source, str | os.PathLike):
        return {"source": str(source)}
    opened = source if isinstance(source, Source) else open_source(source)
    usual, flags = SourceConfig(), paths_of(SourceConfig)
    used = {flag: getattr(opened.config, path[-1]) for flag, path in flags.items()}
    return {"source": opened.name} | {
        flag: value for flag, value in used.items() if value != getattr(usual, flags[flag][-1])
    }


def configured(kind: type[C], settings: Settings, given: Settings | None = None) -> C:
    """The configuration with these settings, by the names of the flags; None leaves a default.

    `given` are settings of other origin, which must not be named again.
    """
    from weft.training.config import from_dict

    paths = paths_of(kind)
    values: Settings = {}
    for name, value in {**(given or {}), **settings}.items():
        if name == "source" and name in settings:
            raise WeftError("the source is the first argument; leave out source=…")
        if name not in paths:
            raise WeftError(f"there is no setting {name!r}; {nearest(name, paths) or 'known: ' + ', '.join(paths)}")
        if value is None:
            continue
        section = values
        for part in paths[name][:-1]:
            section = section.setdefault(part, {})
        section[paths[name][-1]] = named(name, value)
    return from_dict(kind, values)


def named(setting: str, value: Any) -> Any:
    """A function as its import string, anything else as it is; what a caller names may be imported."""
    from weft import imported

    found = imported.name_of(value, setting) if callable(value) else value
    imported.trust(found)
    return found


def paths_of(kind: Any, before: tuple[str, ...] = ()) -> dict[str, tuple[str, ...]]:
    """Setting -> the fields that lead to it: `lr` -> (optimisation, lr). Sections are fields that are dataclasses."""
    found: dict[str, tuple[str, ...]] = {}
    types = get_type_hints(kind, include_extras=True)
    for field in dataclasses.fields(kind):
        path, hint = (*before, field.name), types[field.name]
        if dataclasses.is_dataclass(hint):
            found |= {name: inner for name, inner in paths_of(hint, path).items() if name not in found}
        else:
            found[flag_of(field.name, hint)] = path
    return found


def flag_of(name: str, hint: Any) -> str:
    """What the flag of a field is called, with underscores."""
    marks = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
    flags = [mark.name for mark in marks if getattr(mark, "name", None)]
    return flags[0].replace("-", "_") if flags else name


# ---- What comes back.


@dataclass(frozen=True, repr=False)
class Run:
    """A finished run: its folder, its configuration with every setting decided, and what came out."""

    path: Path
    config: RunConfig
    record: dict[str, Any]
    """all of record.json: metrics, curve, cost, environment"""

    @property
    def metrics(self) -> dict[str, Any]:
        """On the test split, with the weights that did best on the validation split."""
        return dict(self.record["metrics"])

    @property
    def metric(self) -> str:
        """Name of the metric that chose those weights."""
        return str(self.record["metric"])

    @property
    def curve(self) -> list[dict[str, Any]]:
        """One dictionary per point: `kind` is train (loss), evaluation (validation_loss, validation_metric), …"""
        return list(self.record["curve"])

    def predictor(self) -> Predictor:
        """The network, as `weft.load` returns it."""
        from weft.training.inference.predictor import load

        return load(self.path)

    def predict(self, inputs: Any) -> list[Any]:
        """The class, or the number, for each input: files, texts, rows, images in memory."""
        return self.predictor().predict(inputs)

    def __repr__(self) -> str:
        found = f"{self.metric} {self.metrics[self.metric]:.4f}"
        return f"Run({self.config.model} on {self.config.source}: {found}, {self.path})"


@dataclass(frozen=True, repr=False)
class Comparison:
    """A comparison: who came first, and what can be concluded from it."""

    path: Path
    summary: dict[str, Any]
    """everything that the report shows"""

    @classmethod
    def read(cls, folder: Path) -> Comparison:
        """What a folder of results holds."""
        from weft.studies.results.load import collect
        from weft.studies.results.summary import summarise

        return cls(folder, summarise(collect(folder)))

    @property
    def leaderboard(self) -> Leaderboard:
        """A row per candidate, best first."""
        return Leaderboard(self.summary)

    @property
    def verdicts(self) -> list[str]:
        """A sentence per question: is attention needed, is convolution, …"""
        return [str(verdict["sentence"]) for verdict in self.summary["verdicts"]]

    @property
    def recommendation(self) -> str:
        """Which candidate to use; empty where that cannot be said."""
        return str(self.summary["recommendation"])

    @property
    def report(self) -> Path:
        """The page with everything on it."""
        return self.path / "report.html"

    def _repr_html_(self) -> str:
        verdicts = "".join(f"<li>{html.escape(verdict)}</li>" for verdict in self.verdicts)
        return f"{self.leaderboard._repr_html_()}<ul>{verdicts}</ul><p>{html.escape(str(self.report))}</p>"

    def __repr__(self) -> str:
        return "\n".join([str(self.leaderboard), *(f"• {verdict}" for verdict in self.verdicts), f"{self.report}"])


class Leaderboard(Sequence[dict[str, Any]]):
    """The table of a comparison: a sequence of rows (dictionaries) that prints well, also in a notebook."""

    def __init__(self, summary: dict[str, Any]) -> None:
        from weft.report.table import STORED

        self._summary = summary
        own = summary.get("own_metric")
        names = [*STORED, *([own] if own else [])]
        self.rows: list[dict[str, Any]] = [{name: row.get(name) for name in names} for row in summary["rows"]]

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, place: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, place: slice) -> list[dict[str, Any]]: ...
    def __getitem__(self, place: int | slice) -> dict[str, Any] | list[dict[str, Any]]:
        return self.rows[place]

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.rows)

    def to_pandas(self) -> Any:
        """The rows as a DataFrame."""
        try:
            import pandas
        except ImportError as error:
            raise WeftError("to_pandas needs pandas: pip install pandas; list(leaderboard) does without") from error
        return pandas.DataFrame(self.rows)

    def __repr__(self) -> str:
        titles, rows = self._cells()
        widths = [max(map(len, column)) for column in zip(titles, *rows, strict=True)]
        return "\n".join(
            "  ".join(cell.ljust(width) if number == 0 else cell.rjust(width)
                      for number, (cell, width) in enumerate(zip(line, widths, strict=True))).rstrip()
            for line in [titles, *rows]
        )  # fmt: skip

    def _repr_html_(self) -> str:
        titles, rows = self._cells()
        head = "".join(f"<th>{html.escape(title)}</th>" for title in titles)
        body = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"

    def _cells(self) -> tuple[list[str], list[list[str]]]:
        from weft.report.table import cell_table

        return cell_table(self._summary)
