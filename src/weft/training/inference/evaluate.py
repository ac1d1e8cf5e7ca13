"""The metrics of a finished run, computed again on its own source or on another."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from weft.data.batch.loader import Batches, batches
from weft.data.config import EMBEDDED, OnBad
from weft.data.open.labels import Labels
from weft.data.open.source import Source, open_for, open_source
from weft.data.transform.transforms import VectorTransform
from weft.disk import user_path
from weft.errors import WeftError, nearest
from weft.training.config import RunConfig
from weft.training.finetuning.config import FinetuneConfig
from weft.training.inference.predictor import Predictor, load
from weft.training.learnt import never_answered
from weft.training.loop.events import outputs_of
from weft.training.metrics import Metrics, measure, score
from weft.training.pretraining.config import PretrainConfig
from weft.training.storage.run_folder import RunFolder, open_run

Loading = Callable[[Source, str], Batches]  # the batches of a split


@dataclass(frozen=True)
class Asked:
    """Where another source is to be read otherwise than the run's own was."""

    on_bad: OnBad | None = None
    target: str | None = None
    inputs: tuple[str, ...] | None = None

    def refuse_columns(self, why: str) -> None:
        """Refuse columns where there is nothing to choose."""
        if self.target is not None or self.inputs is not None:
            raise WeftError(f"{why}; leave out --target and --inputs")


ANYHOW = Asked()


def evaluate_run(
    path: Path,
    source: str | None = None,
    split: str | None = None,
    batch_size: int = 256,
    encoder: Path | None = None,
    on_bad: OnBad | None = None,
    predictor: Predictor | None = None,
    target: str | None = None,
    inputs: tuple[str, ...] | None = None,
) -> Metrics:
    """Loss and metrics of a run's network on a source; by default what its record reports.

    Of another source all rows are scored, or its test split if it has one, or the `split` that is asked for; `rows`
    says which. `encoder` is where the frozen encoder lies that the network stands on, if not in the run's folder.
    `predictor` is asked in the place of the run's own network, of which it is another form. `target` and `inputs` are
    the columns of another source, where they are not called as in the run's own.
    """
    if batch_size < 1:
        raise WeftError("--batch-size must be at least 1")
    config, reading = open_run(path).config(), Asked(on_bad, target, inputs)
    if source is None:
        reading.refuse_columns("the run's own source is read by the columns that it learnt from")
    if isinstance(config, PretrainConfig):
        reading.refuse_columns(f"{path} was pretrained and has no target")
        from weft.training.pretraining.prepare import evaluate_pretrained

        return evaluate_pretrained(path, source, split or "test", batch_size, encoder)
    asked = predictor or load(path, encoder)

    def loader(opened: Source, name: str) -> Batches:
        return batches(opened, name, batch_size, transform=asked.transform, train=False)

    if isinstance(config, FinetuneConfig):
        from weft.training.finetuning.prepare import loading

        made = loader if predictor else loading(asked, batch_size)  # another form has an encoder below it in itself
        return evaluate_labelled(path, asked, source, split, made, reading)
    return evaluate_labelled(path, asked, source, split, loader, reading)


def evaluate_labelled(
    path: Path, predictor: Predictor, source: str | None, split: str | None, loading: Loading, reading: Asked
) -> Metrics:
    """The same for a run that has learnt targets, classes or numbers."""
    folder = open_run(path)
    config = folder.labelled()
    if reading.on_bad is not None:
        config = replace(config, reading=replace(config.reading, on_bad=reading.on_bad))
    opened, names, rows = chosen(folder, config, predictor, source, split, reading)
    parts = [outputs_of(predictor.network, loading(opened, name)) for name in names]
    outputs, targets = (torch.cat(part) for part in zip(*parts, strict=True))
    objective = predictor.card.objective()
    answers = objective.answers(outputs)
    metrics = measure(predictor.card.task, answers, targets, len(predictor.classes))
    if predictor.classes:
        metrics["never_answered"] = never_answered(metrics["confusion"], predictor.classes)
    if (asked := config.objective.metric) is not None:
        metrics[asked] = score(asked, predictor.card.task, answers, targets)
    found = {"rows": rows, "examples": len(targets), "loss": objective.mean_loss(outputs, targets), **metrics}
    return found | ({"classes": predictor.classes} if predictor.classes else {})


def chosen(
    folder: RunFolder,
    config: RunConfig,
    predictor: Predictor,
    source: str | None,
    split: str | None,
    reading: Asked = ANYHOW,
) -> tuple[Source, list[str], str]:
    """The source, the splits of it that are scored, and which rows these are, in words."""
    plan, known = folder.plan(), None
    if source is not None:
        known = open_known(source, config, predictor, reading)
        if plan is None or known.fingerprint != plan.fingerprint.partition("+")[0]:
            names = names_of(known, split)
            count = sum(known.count(name) for name in names)
            return known, names, rows_in_words(known, names, count)
        reading.refuse_columns(f"{source} is what the run learnt from, and is read by the same columns")
    else:
        require_there(folder.path, config.source)
    opened = open_source(source or config.source, config.reading, test_split=config.reported_on)
    if plan is not None:
        opened.require(plan.fingerprint.partition("+")[0])  # after it stands what fine-tuning started from
    check(predictor, opened)
    name = role_of(opened, split)
    return opened, [name], own_in_words(opened, name)


def open_known(source: str, config: RunConfig, predictor: Predictor, reading: Asked) -> Source:
    """Another source, its labels in the code of the network and its inputs out of the same columns."""
    card = predictor.card
    asked = config.reading
    if columns := predictor.columns:
        asked = replace(asked, inputs=tuple(columns), target=asked.target or card.target)
    asked = replace(asked, inputs=reading.inputs or asked.inputs, target=reading.target or asked.target)
    labels = Labels(card.task, tuple(card.classes), wide=True)
    opened = open_for(source, replace(asked, task=card.task), predictor.takes, labels)
    check(predictor, opened)
    return opened


def names_of(source: Source, asked: str | None) -> list[str]:
    """The splits to score: as asked, else the one for tests, else the one for choices, else all."""
    names = list(source.splits)
    starts = {"validation": ("val", "dev", "eval")}.get(asked or "", (asked or "test",))
    found = [name for name in names if name == asked] or [n for n in names if n.lower().startswith(starts)]
    if asked is not None and not found:
        raise WeftError(f"{source.name} has no split {asked!r} with labels; it has {', '.join(names)}")
    if not found and len(names) > 1:
        found = [name for name in names if name.lower().startswith(("val", "dev", "eval"))]
    return found[:1] or names


def rows_in_words(source: Source, names: list[str], count: int) -> str:
    if len(names) == len(source.splits):
        return f"all {count:,} rows of {source.name}"
    return f"the {count:,} rows of the split {names[0]!r} of {source.name}"


def own_in_words(source: Source, name: str) -> str:
    """Which rows of the run's own source a split holds, and whether the run has learnt from them."""
    rows = f"the {source.count(name):,} rows of {name} of {source.name}"
    if name == "train":
        return f"{rows}, which the run has learnt from"
    if not source.splits[name].drawn:
        return rows
    return f"{rows}, which were held out when the run learnt from the others"


def role_of(source: Source, split: str | None) -> str:
    """The split of the run's own source that is asked for: by role, by its name on disk, or `test`."""
    stored = {found.stored: name for name, found in source.splits.items() if found.stored}
    wanted = split or "test"
    if wanted not in source.splits and wanted not in stored:
        raise WeftError(
            f"{source.name} has no split {wanted!r}; {nearest(wanted, source.splits)} "
            f"choose one of {', '.join(source.splits)}"
        )
    return wanted if wanted in source.splits else stored[wanted]


def require_there(folder: Path, source: str) -> None:
    """Refuse a run whose source is not on this machine, or no longer where it was."""
    if source not in EMBEDDED and not source.startswith("hub:") and not user_path(source).exists():
        raise WeftError(
            f"{folder} has learnt from {source}, which is not here; say where it lies: "
            f"weft eval {shlex.quote(str(folder))} SOURCE"
        )


def some_of(classes: list[str]) -> str:
    """The first of the classes, and how many there are where these are not all."""
    return ", ".join(classes[:5]) + (f" … of {len(classes)}" if len(classes) > 5 else "")


def check(predictor: Predictor, source: Source) -> None:
    """Refuse a source of another kind, with other classes or other columns."""
    modality = "text" if source.modality == "pair" else source.modality
    if modality != predictor.modality:
        raise WeftError(
            f"the network takes {predictor.modality}, {source.name} holds {modality}; give one that fits the other"
        )
    if source.task != predictor.card.task or source.classes != predictor.classes:
        raise WeftError(
            f"{source.name} has other targets ({source.task}: {some_of(source.classes)}) than the network "
            f"({predictor.card.task}: {some_of(predictor.classes)}); give one with the same"
        )
    known = predictor.transform.columns if isinstance(predictor.transform, VectorTransform) else ()
    if known and list(known) != source.columns:  # a row is told by the places of its numbers alone
        raise WeftError(
            f"{source.name} has other columns ({', '.join(source.columns[:8])}) than the network was trained on "
            f"({', '.join(known[:8])}); give it the same columns in the same order"
        )
