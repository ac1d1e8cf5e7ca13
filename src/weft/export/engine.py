"""A run computed by onnxruntime in the place of torch: exported when it is first wanted, and kept in the cache."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from weft import __version__, machine
from weft.data.read.cache import Cache, digest
from weft.disk import brief
from weft.errors import WorkFailed
from weft.export.graph import require_exporter
from weft.networks.base.encoder import folder_digest
from weft.networks.config import CARRIED
from weft.training.inference.onnx_file import opened
from weft.training.inference.predictor import Predictor

ENTRY = "onnx"
LONGEST = 900.0  # seconds of an export


def onnx_predictor(run: Path) -> Predictor:
    """The network of a run as `weft.load` gives it, in float32, with another engine below."""
    require_exporter()

    def build() -> dict[str, Tensor]:
        with tempfile.TemporaryDirectory(prefix="weft-") as folder:
            content = exported(run, Path(folder, "model.onnx"))
        return {ENTRY: torch.frombuffer(bytearray(content), dtype=torch.uint8)}

    stored = Cache().get(cache_key(run), f"ONNX graph of {run.name}", build)[ENTRY]
    return Predictor(*opened(np.asarray(stored).tobytes(), run))


def exported(run: Path, file: Path) -> bytes:
    """What `weft export RUN --onnx` writes, in a process of its own: a server answers others meanwhile, and what the
    exporter loads and prints goes with it."""
    command = [sys.executable, "-P", "-m", "weft", "export", str(run), "--onnx", "--output", str(file)]
    try:
        ended = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=LONGEST)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise WorkFailed(f"{run} could not be exported ({brief(error)}); try again when there is less to do") from error
    if ended.returncode:
        said = ended.stderr.decode(errors="replace").strip().splitlines() or [machine.death(ended.returncode)]
        raise WorkFailed(f"{run} could not be exported: {said[-1].removeprefix('weft: ')}")
    return file.read_bytes()


def cache_key(run: Path) -> str:
    """The name of the entry: of the network's weights and configuration, its preprocessing, and an encoder below it."""
    inputs = [run / name for name in ("preprocessor_config.json", "tokenizer.json", "tokenizer_config.json")]
    below = folder_digest(run / CARRIED) if (run / CARRIED).is_dir() else ""
    contents = [path.read_bytes() for path in inputs if path.is_file()]
    return digest("onnx", __version__, torch.__version__, folder_digest(run), below, *contents)
