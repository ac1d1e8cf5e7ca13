"""What tests of trained networks for images share."""

from __future__ import annotations

from pathlib import Path

import pytest

from training.image_starts import tiny
from weft.networks.weights import save_weights


@pytest.fixture(scope="session")
def start(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The weights of a small network for digits."""
    file = tmp_path_factory.mktemp("start") / "weights.safetensors"
    save_weights(tiny(), file)
    return file


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is in the cache yet."""
    monkeypatch.setenv("WEFT_CACHE", str(tmp_path / "cache"))
