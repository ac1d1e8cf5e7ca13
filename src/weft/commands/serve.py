"""`weft serve`: the page and the prediction API for runs and comparisons."""

from __future__ import annotations

import socket
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated

from tyro.conf import OmitArgPrefixes, arg, configure

from weft.errors import WeftError
from weft.serve.config import ServeConfig
from weft.terminal import brief_list

if TYPE_CHECKING:
    from weft.serve.catalogue import Catalogue

COMMON = {
    "what": ("folders", "data", "engine"),
    "where": ("host", "port", "token"),
    "limits": ("max_batch", "max_delay", "max_queue", "max_models", "timeout"),
}


@configure(OmitArgPrefixes)
@dataclass(frozen=True)
class Arguments:
    """Serve runs and comparisons: weft serve, or weft serve FOLDER --port 8000

    A page to watch and compare runs and to try networks, and an API for predictions that clients of Hugging Face and
    of the Open Inference Protocol speak. On this machine alone, unless --host and --token say otherwise.
    """

    config: Annotated[ServeConfig, arg(name="")] = field(default_factory=ServeConfig)


def run(arguments: Arguments) -> int:
    """Serve until told to end."""
    if not all(map(find_spec, ("fastapi", "uvicorn", "prometheus_client"))):
        raise WeftError("weft serve needs more packages; install them with pip install 'weft[serve]'")
    config = arguments.config
    config.places()
    if config.engine == "onnx":
        from weft.export.graph import require_exporter

        require_exporter()
    door = listen(config.host, config.port)
    from weft.serve.app import make_app
    from weft.serve.connections import Server

    app = make_app(config)
    require_something(config, app.state.catalogue)
    server = Server(app, config.timeout)
    host, port = door.getsockname()[:2]
    print(f"serving at http://{f'[{host}]' if ':' in host else host}:{port}/ (Ctrl-C ends it)", flush=True)
    with suppress(KeyboardInterrupt):  # raised again by uvicorn after everything was answered
        server.run(sockets=[door])
    return 0


def require_something(config: ServeConfig, catalogue: Catalogue) -> None:
    """Refuse folders in which there is nothing to show, unless work can be started from the page."""
    if not config.data and not catalogue.entries():
        named = brief_list(str(folder) for folder in config.places())
        raise WeftError(
            f"there is no run or comparison in {named}; give a folder that `weft train` or compare has filled"
        )


def listen(host: str, port: int) -> socket.socket:
    """A socket at the address; one that cannot be had is a sentence."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        door = socket.socket(family, kind, protocol)
        door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        door.bind(address)
        door.listen(1024)
    except OSError as error:
        raise WeftError(
            f"no listening at {host}:{port}: {error.strerror or error}; choose another --host or --port (0: a free one)"
        ) from error
    return door
