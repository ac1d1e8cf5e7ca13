"""Few-shot accuracy of a run's frozen network on a task: ridge regression on k rows a class, mean over five draws."""

from __future__ import annotations

from pathlib import Path

from weft.errors import WeftError
from weft.studies.experiments.transfer_tables.run_configs import Asked

DRAWS = 5
FOLDER = "shots"


def shot_file(folder: Path, run: str, shots: int) -> Path:
    """Where the scores of the network that a run on a task starts from are kept; the run's name tells its data."""
    return folder / FOLDER / f"{run}-{shots}.json"


def quantity(task: str, shots: int) -> str:
    """The column of the figures."""
    return f"{task}, {shots}-shot"


def shots_asked(asked: Asked) -> tuple[int, ...]:
    """The numbers of rows a class that are asked for."""
    return asked.scale.shots if asked.study == "e8" else ()


def require_rows(source: str, shots: tuple[int, ...]) -> None:
    """Refuse a source with a class of fewer training rows than are to be drawn of it."""
    import numpy as np

    from weft.studies.engine.data_facts import source_of
    from weft.studies.probe.probing import labels
    from weft.training.config import ReadingConfig

    opened = source_of(source, ReadingConfig())
    counts = np.bincount(labels(opened, "train"), minlength=len(opened.classes))
    if counts.min() < max(shots):
        raise WeftError(
            f"class {opened.classes[int(counts.argmin())]!r} of {source} has {counts.min()} training rows, fewer than "
            f"the {max(shots)} a class that few-shot figures are of; add rows, or give other --tasks"
        )


def few_shot_scores(run: Path, source: str, side: int, shots: int) -> list[float]:
    """For every test row of a source the share of draws in which a ridge on the run's features is right."""
    import torch

    from weft.data.config import TransformConfig
    from weft.data.open.source import ROLES
    from weft.studies.engine.data_facts import source_of
    from weft.studies.probe.probing import labels
    from weft.studies.probe.shots import shot_scores
    from weft.training.config import ReadingConfig
    from weft.training.features.linear import Scale, one_thread
    from weft.training.features.store import features_of
    from weft.training.finetuning.config import FinetuneConfig
    from weft.training.finetuning.prepare import open_frozen

    opened = source_of(source, ReadingConfig())
    config = FinetuneConfig(start=str(run), source=source, transform=TransformConfig(img_size=side))
    frozen, _ = open_frozen(config, opened)
    found = {role: features_of(opened, role, frozen, lambda _: None).x for role in ROLES}
    scale = Scale.of(found["train"])
    targets = {role: torch.from_numpy(labels(opened, role)) for role in ROLES}
    with one_thread():
        scores = shot_scores({role: scale(x) for role, x in found.items()}, targets, len(opened.classes), shots, DRAWS)
    return [float(value) for value in scores.mean(0)]
