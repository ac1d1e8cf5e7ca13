"""A cache for each test, and small sources as fixtures."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from data.made import encoded


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """No test reads what another, or the user, has cached."""
    monkeypatch.setenv("WEFT_CACHE", str(tmp_path / "cache"))
    yield tmp_path / "cache"


@pytest.fixture
def image_folder(tmp_path: Path) -> Path:
    """24 images in two classes, no splits; every second one is a JPEG."""
    root = tmp_path / "images"
    for number in range(24):
        folder = root / ("cat" if number % 2 else "dog")
        folder.mkdir(parents=True, exist_ok=True)
        kind = "JPEG" if number % 4 < 2 else "PNG"
        (folder / f"{number:02}.{kind.lower()}").write_bytes(encoded(number, kind=kind))
    return root


@pytest.fixture
def csv_file(tmp_path: Path) -> Callable[[str], Path]:
    """A function that writes its text to a CSV file."""

    def write(text: str, name: str = "rows.csv") -> Path:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return write
