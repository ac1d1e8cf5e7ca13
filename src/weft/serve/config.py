"""What `weft serve` can be asked. No torch here."""

from __future__ import annotations

import ipaddress
import os
import re
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass
from tyro.conf import Positional

from weft.data.config import Bytes
from weft.errors import WeftError
from weft.training.config import STRICT, Count, Natural, NotNegative, Positive

USUAL = ("runs", "comparisons")  # where `weft train` and `weft compare` put what they make
TOKEN = "WEFT_TOKEN"  # in the environment
SHORTEST = 16  # letters of a token


@dataclass(frozen=True, kw_only=True, config=STRICT)
class ServeConfig:
    """What is served, where, and within which limits."""

    folders: Positional[tuple[Path, ...]] = ()
    """Folders with runs and comparisons in them or below; by default runs and comparisons of this folder."""
    data: tuple[Path, ...] = ()
    """Folders whose sources may be looked at and compared from the page; none by default."""
    host: str = "127.0.0.1"
    """Address to listen at; one that other machines can reach needs --token."""
    port: Annotated[int, Field(ge=0, le=65535)] = 8000
    """Port to listen at; 0 takes a free one and prints it."""
    token: str | None = Field(default=None, repr=False)
    """Secret of 16 letters or more that requests must bring; better in $WEFT_TOKEN, as others may see commands."""
    engine: Literal["torch", "onnx"] = "torch"
    """What computes: torch, or onnxruntime (extra `onnx`) with graphs that are made when they are first wanted."""
    max_batch: Count = 32
    """Inputs that are computed together."""
    max_delay: NotNegative = 2.0
    """Milliseconds that an input waits for others, where others are on their way."""
    max_queue: Count = 128
    """Inputs that a network has accepted and not answered; further ones are refused at once (503)."""
    max_models: Count = 4
    """Networks kept in memory; the one not asked for longest makes room."""
    timeout: Positive = 30.0
    """Seconds that a request may take before it is given up (503)."""
    max_body: Bytes = Field(default=16 << 20, gt=0)
    """Bytes of a request, such as 16M; larger ones are refused (413)."""
    max_pixels: Count = 50_000_000
    """Pixels that a picture may declare; more are refused before it is decoded (413)."""
    threads: Natural = 0
    """Threads that compute; 0: as many as there are cores."""

    def __post_init__(self) -> None:
        secret = self.secret
        if secret is None and not self.local:
            raise WeftError(f"--host {self.host} can be reached by other machines; give a --token (or set {TOKEN})")
        if secret is not None and len(secret) < SHORTEST:
            raise WeftError(f"the token has {len(secret)} letters, too few to keep anyone out; give {SHORTEST} or more")
        if secret is not None and not re.fullmatch(r"[!-~]+", secret):
            raise WeftError("the token holds what a header cannot; use letters, digits and signs, without blanks")

    @property
    def secret(self) -> str | None:
        """The token, from the command or else from the environment."""
        return self.token or os.environ.get(TOKEN) or None

    @property
    def local(self) -> bool:
        """Whether only this machine can reach the server."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    def places(self) -> tuple[Path, ...]:
        """The folders to serve, which must exist."""
        for folder in (*self.folders, *self.data):
            if not folder.is_dir():
                raise WeftError(f"there is no folder {folder}; give folders with runs or comparisons in them")
        found = self.folders or tuple(Path(name) for name in USUAL if Path(name).is_dir())
        if not found and not self.data:
            raise WeftError("there is neither a folder runs nor a folder comparisons here; give a folder with runs")
        return found
