"""Three sets that come with scikit-learn: `digits` (images), `breast_cancer` (binary), `diabetes` (regression)."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.data.read.cache import digest
from weft.data.sources.table import Reading, Table


def read_digits() -> Reading:
    """1,797 grey images of 8 × 8; the file's 17 levels are spread over the 256 of a byte."""
    from sklearn.datasets import load_digits

    bunch: Any = load_digits()
    pixels = np.rint(bunch.images * (255 / 16)).astype(np.uint8)[:, None]
    return _reading("digits", "image", pixels, bunch.target, names=[str(name) for name in bunch.target_names])


def read_breast_cancer() -> Reading:
    """569 tumours, 30 measurements each, malignant or benign."""
    from sklearn.datasets import load_breast_cancer

    bunch: Any = load_breast_cancer()
    return _vectors("breast_cancer", bunch, names=[str(name) for name in bunch.target_names])


def read_diabetes() -> Reading:
    """442 patients, 10 measurements each, and the disease's progression after a year."""
    from sklearn.datasets import load_diabetes

    return _vectors("diabetes", load_diabetes(), names=None)


def _vectors(name: str, bunch: Any, names: list[str] | None) -> Reading:
    reading = _reading(name, "vector", bunch.data.astype(np.float32), bunch.target, names)
    reading.columns = [str(column) for column in bunch.feature_names]
    return reading


def _reading(name: str, modality: Any, inputs: Any, labels: Any, names: list[str] | None) -> Reading:
    table = Table(inputs=inputs, labels=labels, place=lambda row: f"{name} row {row}")
    content = digest(inputs.tobytes(), np.asarray(labels).tobytes())
    return Reading(modality=modality, tables={"all": table}, files={name: content}, names=names)
