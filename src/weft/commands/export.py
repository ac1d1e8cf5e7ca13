"""`weft export`: a trained network as an .onnx file, or as a folder that timm or transformers reads."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tyro.conf import Positional

from weft.errors import WeftError

if TYPE_CHECKING:
    from weft.export.onnx_export import Exported


@dataclass(frozen=True)
class Arguments:
    """Export a run: weft export RUN --onnx [--int8], or --hub

    The .onnx file holds the classes and the preprocessing too: `weft predict FILE.onnx …` needs nothing else.
    """

    run: Positional[Path]
    """Run folder."""
    onnx: bool = False
    """Write an .onnx file; its answers are compared with the network's, and its speed is measured."""
    int8: bool = False
    """With weights of eight bits; the loss in accuracy is measured on the run's test split."""
    hub: bool = False
    """Write a folder in the layout of timm or transformers, where these have the architecture."""
    output: Path | None = None
    """The file, by default model.onnx (model-int8.onnx) in the run's folder; or the folder, by default hub in it."""
    encoder: Path | None = None
    """Where the frozen encoder lies that the network stands on, if it is not in the run's folder."""
    json: bool = False
    """Print JSON."""


def run(arguments: Arguments) -> int:
    """Write what was asked for and say what was measured."""
    if arguments.hub == arguments.onnx:
        raise WeftError("say what to write: --onnx for an .onnx file, or --hub for a folder of timm or transformers")
    if arguments.int8 and not arguments.onnx:
        raise WeftError("--int8 is for .onnx files; add --onnx, or leave it out")
    return hub(arguments) if arguments.hub else onnx(arguments)


def onnx(arguments: Arguments) -> int:
    from weft.export.onnx_export import export_onnx

    usual = arguments.run / ("model-int8.onnx" if arguments.int8 else "model.onnx")
    found = export_onnx(arguments.run, arguments.output or usual, eight_bits=arguments.int8, encoder=arguments.encoder)
    if arguments.json:
        print(json.dumps({**asdict(found), "path": str(found.path)}))
    else:
        show(found)
    return 0


def show(found: Exported) -> None:
    print(f"written: {found.path}, {found.size / 1e6:,.1f} MB")
    print(f"outputs differ from the network's by {found.difference:.1e} at most (they are up to {found.largest:.3g})")
    speed, threads = found.speed, f"{found.speed.threads} thread{'s' if found.speed.threads > 1 else ''}"
    print(
        f"one input takes {speed.onnx_ms:.2f} ms, with torch {speed.torch_ms:.2f}: {speed.ratio:.2f} times as fast "
        f"({threads})"
    )
    if loss := found.loss:
        change = loss.after - loss.before
        print(f"{loss.metric} {loss.after:.4f}, before {loss.before:.4f} ({change:+.4f}), on {loss.rows}")
    if found.note:
        print(found.note)


def hub(arguments: Arguments) -> int:
    from weft.export.hub_folder import write_hub_folder

    found = write_hub_folder(arguments.run, arguments.output or arguments.run / "hub")
    if arguments.json:
        print(json.dumps({"path": str(found.path), "library": found.library, "call": found.call}))
    else:
        print(f"written: {found.path}, for {found.library}: {found.call}")
    return 0
