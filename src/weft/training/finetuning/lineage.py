"""What a start has learnt from: its test rows must not be rows that it knows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from weft.disk import Damaged
from weft.errors import WeftError
from weft.networks.weights.packages import PACKAGES
from weft.training.config import ReadingConfig
from weft.training.storage.run_folder import RunFolder

CUT = ("split_seed", "test_fraction")  # what decides which rows are tested
ANCESTORS = 10  # runs that started from each other, at most


def learnt_record(start: str, fingerprint: str) -> dict[str, Any] | None:
    """The record of the run that learnt from the targets of a source: the start, or one that it started from."""
    for _ in range(ANCESTORS):
        path = Path(start)
        folder = path.parent if path.is_file() else path  # the weights of a run are a file in its folder
        try:
            record = RunFolder(folder).sound_record() if start not in PACKAGES else None
        except Damaged:
            return None
        if record is None or record.get("kind", "train") == "pretrain":
            return None
        if record["source"]["fingerprint"] == fingerprint:
            return record
        start = str(record["config"].get("start") or "")
        if not start:
            return None
    return None


def refuse_other_cut(
    start: str, record: dict[str, Any], reading: ReadingConfig, remedy: str = "leave out --start"
) -> None:
    """Refuse a start that has learnt from rows which are held out for test here."""
    then = record["config"].get("reading") or {}
    if then.get("folds") is not None:
        raise WeftError(
            f"{start} is of a cross-validation, and has learnt from rows that would be tested here; {remedy}"
        )
    if reading.folds is not None:
        raise WeftError(f"--folds would test rows that {start} has learnt from; leave out --folds, or {remedy}")
    for name in CUT:
        if name in then and then[name] != getattr(reading, name):
            flag = f"--{name.replace('_', '-')}"
            raise WeftError(
                f"{start} has learnt from rows that would be tested here, as its {flag} was {then[name]}; "
                f"give the same, or {remedy}"
            )
