"""The metrics of a finished run, computed again on its own source or on another."""

from __future__ import annotations

from pathlib import Path

from weft.data.batch.loader import batches
from weft.data.config import EMBEDDED
from weft.data.open.source import Source, open_source
from weft.data.transform.transforms import VectorTransform
from weft.errors import WeftError
from weft.training.config import RunConfig
from weft.training.finetuning.config import FinetuneConfig
from weft.training.inference.predictor import Predictor, load
from weft.training.loop.evaluation import outputs_of
from weft.training.metrics import Metrics, measure, score
from weft.training.pretraining.config import PretrainConfig
from weft.training.storage.run_folder import RunFolder, open_run


def evaluate_run(
    path: Path,
    source: str | None = None,
    split: str = "test",
    batch_size: int = 256,
    encoder: Path | None = None,
) -> Metrics:
    """Loss and metrics of a run's network on a split of a source; by default what its record reports.

    `encoder` is where the frozen encoder lies that the network stands on, if not in the run's folder.
    """
    if batch_size < 1:
        raise WeftError("--batch-size must be at least 1")
    config = open_run(path).config()
    if isinstance(config, PretrainConfig):
        from weft.training.pretraining.prepare import evaluate_pretrained

        return evaluate_pretrained(path, source, split, batch_size, encoder)
    if isinstance(config, FinetuneConfig):
        from weft.training.finetuning.prepare import evaluate_finetuned

        return evaluate_finetuned(path, source, split, batch_size, encoder)
    return evaluate_classifier(path, source, split, batch_size, encoder)


def evaluate_classifier(
    path: Path, source: str | None, split: str, batch_size: int, encoder: Path | None = None
) -> Metrics:
    """The same for a run that has learnt targets, classes or numbers."""
    folder, predictor = open_run(path), load(path, encoder)
    opened = reopened(folder, folder.labelled(), source)
    check(predictor, opened)
    loader = batches(opened, split, batch_size, transform=predictor.transform, train=False)
    outputs, targets = outputs_of(predictor.network, loader)
    objective = predictor.card.objective()
    metrics = measure(predictor.card.task, objective.answers(outputs), targets, len(predictor.classes))
    if (asked := folder.labelled().objective.metric) is not None:
        metrics[asked] = score(asked, predictor.card.task, objective.answers(outputs), targets)
    return {"examples": len(targets), "loss": objective.mean_loss(outputs, targets), **metrics}


def reopened(folder: RunFolder, config: RunConfig, source: str | None) -> Source:
    """Another source, read as the run's own was; or its own, which must be what the run has learnt from."""
    if source is None:
        require_there(folder.path, config.source)
    opened, plan = open_source(source or config.source, config.reading), folder.plan()
    if source is None and plan is not None:
        opened.require(plan.fingerprint.partition("+")[0])  # after it stands what fine-tuning started from
    return opened


def require_there(folder: Path, source: str) -> None:
    """Refuse a run whose source is not on this machine, or no longer where it was."""
    if source not in EMBEDDED and not source.startswith("hub:") and not Path(source).expanduser().exists():
        raise WeftError(
            f"{folder} has learnt from {source}, which is not here; say where it lies: weft eval {folder} SOURCE"
        )


def check(predictor: Predictor, source: Source) -> None:
    """Refuse a source of another kind, with other classes or other columns."""
    modality = "text" if source.modality == "pair" else source.modality
    if modality != predictor.modality:
        raise WeftError(f"the network takes {predictor.modality}, {source.name} holds {modality}")
    if source.task != predictor.card.task or source.classes != predictor.classes:
        raise WeftError(
            f"{source.name} has other targets ({source.task}: {', '.join(source.classes[:5])}) than the network "
            f"({predictor.card.task}: {', '.join(predictor.classes[:5])}); give one with the same"
        )
    known = predictor.transform.columns if isinstance(predictor.transform, VectorTransform) else ()
    if known and list(known) != source.columns:  # a row is told by the places of its numbers alone
        raise WeftError(
            f"{source.name} has other columns ({', '.join(source.columns[:8])}) than the network was trained on "
            f"({', '.join(known[:8])}); give it the same columns in the same order"
        )
