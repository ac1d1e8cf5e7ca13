"""Anything readable becomes splits of images, text, pairs or vectors with targets, and then batches of tensors.

Imports no other folder of weft. A batch is a pure function of (seed, step).
The names below are loaded on first use: `weft.data.config` must stay free of torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_PUBLIC = {
    "AugmentConfig": "weft.data.config",
    "Batch": "weft.data.batch.loader",
    "Batches": "weft.data.batch.loader",
    "Source": "weft.data.open.source",
    "SourceConfig": "weft.data.config",
    "Tokenizer": "weft.data.transform.tokenizer",
    "TransformConfig": "weft.data.config",
    "batches": "weft.data.batch.loader",
    "fit": "weft.data.transform.fit",
    "open_source": "weft.data.open.source",
    "train_tokenizer": "weft.data.transform.tokenizer",
}

__all__ = list(_PUBLIC)


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'weft.data' has no attribute {name!r}; it has {', '.join(_PUBLIC)}")
    return getattr(import_module(_PUBLIC[name]), name)
