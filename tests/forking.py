"""Processes forked from a server that has torch loaded: starting one costs a fraction of a second in place of six."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from weft.studies.engine import worker

SERVER = multiprocessing.get_context("forkserver")
SERVER.set_forkserver_preload(
    [
        *(
            "training.runs",
            "weft.studies.engine.run_one",
            "weft.networks.base.backbone",
            "weft.networks.vit",
            "weft.networks.mlp",
        ),
        *("torch._dynamo", "sklearn.datasets", "sklearn.metrics", "sklearn.linear_model"),
        *("sklearn.feature_extraction.text", "sklearn.pipeline"),
        *("lightning_fabric", "lightning_fabric.strategies.model_parallel", "torch.distributed.fsdp"),
    ]
)


@contextmanager
def quick_workers() -> Iterator[None]:
    """Studies begun in this block fork their workers; how they start them otherwise is tested with the workers."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(worker, "multiprocessing", SimpleNamespace(get_context=lambda _: SERVER))
        yield
