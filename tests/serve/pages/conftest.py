"""A folder with what the page shows: a comparison that nobody trained, and runs in every state."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from serve.pages.made_up import make_run
from studies.fabricated import CANDIDATES, make_study

pytest.importorskip("fastapi", reason="the server is in the extra serve")
pytest.importorskip("prometheus_client", reason="the server is in the extra serve")

from starlette.testclient import TestClient

from weft.serve.app import make_app
from weft.serve.config import ServeConfig


@pytest.fixture(scope="session")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`runs`: three are finished, one failed, one stopped, one is damaged; and `comparisons/study`."""
    root = tmp_path_factory.mktemp("shown")
    for seed in range(3):
        make_run(root / "runs" / f"mlp-{seed}", seed, 0.9 + seed / 100)
    failed = {"status": "failed", "reason": "the loss is <b>NaN</b>"}
    make_run(root / "runs" / "lost", 7, 0.1, **failed)
    make_run(root / "runs" / "halted", 8, None)
    (make_run(root / "runs" / "broken", 9) / "record.json").write_text("{")
    make_study(root / "comparisons" / "study", CANDIDATES)
    return root


@pytest.fixture
def client(shown: Path) -> Iterator[Callable[..., TestClient]]:
    """Makes clients that a browser would be; settings of `weft serve` as arguments."""
    with ExitStack() as stack:

        def make(**settings: Any) -> TestClient:
            usual = {"folders": (shown / "runs", shown / "comparisons")}
            app = make_app(ServeConfig(**{**usual, **settings}))
            found = TestClient(app, base_url="http://localhost", headers={"accept": "text/html"})
            return stack.enter_context(found)

        yield make
