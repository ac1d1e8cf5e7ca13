"""A folder with a run for each kind of input, and servers for it: inside the test, or at a port of this machine."""

from __future__ import annotations

import io
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from training.runs import configure, train

pytest.importorskip("fastapi", reason="the server is in the extra serve")
pytest.importorskip("uvicorn", reason="the server is in the extra serve")
pytest.importorskip("prometheus_client", reason="the server is in the extra serve")

from starlette.testclient import TestClient

from weft.serve.app import make_app
from weft.serve.config import ServeConfig


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`digits` takes pictures of 8 × 8, `words` texts, `cells` rows in two classes, `sugar` rows to a number."""
    folder = tmp_path_factory.mktemp("served") / "runs"
    few = configure("mlp", steps=4)
    train(few, folder / "digits")
    train(configure("text", steps=4), folder / "words")
    train(replace(few, source="breast_cancer"), folder / "cells")
    train(replace(few, source="diabetes"), folder / "sugar")
    return folder


@pytest.fixture
def client(runs: Path) -> Iterator[Callable[..., TestClient]]:
    """Makes clients of a server inside this process; settings of `weft serve` as arguments."""
    with ExitStack() as stack:

        def make(**settings: Any) -> TestClient:
            app = make_app(ServeConfig(**{"folders": (runs,), **settings}))
            found = TestClient(app, base_url="http://localhost", raise_server_exceptions=False, follow_redirects=False)
            return stack.enter_context(found)

        yield make


@pytest.fixture(scope="module")
def address(runs: Path) -> Iterator[str]:
    """Where a server listens, as host:port."""
    with listening(ServeConfig(folders=(runs,))) as found:
        yield found


@contextmanager
def listening(config: ServeConfig) -> Iterator[str]:
    """A server at a free port, in a thread."""
    from weft.serve.connections import Server

    server = Server(make_app(config), 5.0)
    with socket.create_server(("127.0.0.1", 0)) as door:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [door]}, daemon=True)
        thread.start()
        while not server.started and thread.is_alive():
            time.sleep(0.01)
        yield f"127.0.0.1:{door.getsockname()[1]}"
        server.should_exit = True
        thread.join(30)
        assert not thread.is_alive()


@pytest.fixture(scope="session")
def serve() -> Callable[[ServeConfig], Any]:
    """Starts servers with other settings."""
    return listening


@pytest.fixture(scope="session")
def picture() -> bytes:
    """A grey PNG of 32 × 32."""
    return png(np.arange(1024, dtype=np.uint8).reshape(32, 32))


@pytest.fixture(scope="session")
def as_png() -> Callable[[Any], bytes]:
    return png


def png(pixels: Any) -> bytes:
    """The bytes of a PNG file."""
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    return file.getvalue()
