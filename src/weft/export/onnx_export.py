"""From a trained network to one .onnx file, checked before it is written: same answers, measured speed and loss."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from weft import __version__
from weft.data.batch.loader import batches
from weft.disk import write_bytes
from weft.errors import WeftError, WorkFailed
from weft.export.graph import onnx_graph, require_exporter
from weft.export.parity import Speed, difference, speed, trials
from weft.export.quantisation import Row, int8
from weft.networks.config import CARRIED, NetworkConfig, TextTokensConfig
from weft.training.inference import onnx_file
from weft.training.inference.evaluate import chosen, evaluate_run
from weft.training.inference.network_folder import described
from weft.training.inference.onnx_file import KEY, OnnxNetwork, Precision, is_own_file, opened
from weft.training.inference.predictor import Predictor, load
from weft.training.metrics import HEADLINE
from weft.training.storage.run_folder import open_run

if TYPE_CHECKING:
    import onnx

FAR = 1e-3  # of the largest output, or of 1: a float32 graph whose answers are further off computes something else
LOOKED_AT = 4  # batches of training rows that ranges are measured on
BATCH = 16


@dataclass(frozen=True)
class Loss:
    """What weights of eight bits cost on the run's test split."""

    metric: str
    before: float
    after: float
    rows: str


@dataclass(frozen=True)
class Exported:
    """A file that was written, and what was measured of it."""

    path: Path
    size: int
    """bytes of the file"""
    difference: float
    """the largest one between its outputs and the network's"""
    largest: float
    """the largest output of the network's"""
    speed: Speed
    loss: Loss | None = None
    note: str = ""
    """why the loss is not known, where it should be"""


def export_onnx(run: Path, output: Path, *, eight_bits: bool = False, encoder: Path | None = None) -> Exported:
    """Write the network of a run to the file `output`, which must be new or weft's own."""
    require_exporter()
    predictor = load(run, encoder)
    require_place(output)
    network, config = predictor.network, predictor.network.config
    rows, note = training_rows(run, predictor) if eight_bits else ([], "")
    content = graph_file(predictor, rows, eight_bits)
    twin = Predictor(*opened(content, output))
    off, largest = difference(network, twin.network, rows or trials(config))
    if not eight_bits:
        require_same(off, largest)
    loss = loss_of(run, twin, encoder) if rows else None
    found = speed(network, twin.network, config)
    write_bytes(output, content)
    return Exported(output, len(content), off, largest, found, loss, note)


def graph_file(predictor: Predictor, rows: Sequence[Row] = (), eight_bits: bool = False) -> bytes:
    """The content of a file; the ranges of an int8 network are those of the rows, where they are of use."""
    require_answers(predictor)
    model = onnx_graph(predictor.network)
    return finished(int8(model, rows), predictor, "int8") if eight_bits else finished(model, predictor, "float32")


def require_answers(predictor: Predictor) -> None:
    """Refuse a network that has learnt no answers, and one that is a graph already."""
    predictor.card.objective()
    if isinstance(predictor.network, OnnxNetwork):
        raise WeftError(f"{predictor.network.path} is exported already; give the run folder")


def require_place(output: Path) -> None:
    """Refuse a place that is not weft's to write to, before any work is done; make its folder."""
    if output.suffix != ".onnx":
        raise WeftError(f"{output} does not end in .onnx, by which such a file is known; choose another --output")
    if (output.exists() or output.is_symlink()) and not is_own_file(output):
        raise WeftError(f"{output} exists and weft did not write it; move it away or choose another --output")
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise WeftError(f"cannot make the folder {output.parent}: {error.strerror}; choose another --output") from error


def require_same(off: float, largest: float) -> None:
    """Hand over no graph that computes something else."""
    if not off <= FAR * max(1.0, largest):
        raise WorkFailed(
            f"the exported graph answers otherwise than the network, by {off:.2g} where outputs are up to "
            f"{largest:.2g}; nothing was written: use the run itself, and report it with the network's configuration"
        )


def finished(model: onnx.ModelProto, predictor: Predictor, precision: Precision) -> bytes:
    """The file of a graph, with all that using it needs in its metadata."""
    facts = {
        **described(predictor.card, alone(predictor.network.config)),
        "transform": predictor.transform.description(),
        "precision": precision,
        "digest": onnx_file.digest(model),
    }
    model.producer_name, model.producer_version = "weft", __version__
    model.doc_string = f"{predictor.card.model}, exported by weft; the entry `{KEY}` of the metadata describes it"
    del model.metadata_props[:]
    model.metadata_props.add(key=KEY, value=json.dumps(facts, ensure_ascii=False))
    content: bytes = model.SerializeToString()
    return content


def alone(config: NetworkConfig) -> NetworkConfig:
    """The configuration as a file keeps it: an encoder below the network is part of its graph, wherever it lay."""
    if not isinstance(config, TextTokensConfig) or config.encoder is None:
        return config
    return dataclasses.replace(config, encoder=dataclasses.replace(config.encoder, folder=CARRIED))


# ---- What only the run's own source can tell.


def training_rows(run: Path, predictor: Predictor) -> tuple[list[Row], str]:
    """Some batches of the run's training rows, as the network sees them; or why there are none."""
    try:
        folder = open_run(run)
        source, _, _ = chosen(folder, folder.labelled(), predictor, None, None)
        rows = batches(source, "train", min(BATCH, source.count("train")), transform=predictor.transform)
        return [batch.inputs for batch in rows.range(0, min(LOOKED_AT, len(rows)))], ""
    except WeftError as error:
        return [], f"the loss in accuracy is not known: {error}"


def loss_of(run: Path, twin: Predictor, encoder: Path | None) -> Loss:
    """The headline of the run's network on its test split, and that of the file."""
    metric = open_run(run).labelled().objective.metric or HEADLINE[twin.card.task]
    before, after = evaluate_run(run, encoder=encoder), evaluate_run(run, predictor=twin)
    return Loss(metric, before[metric], after[metric], before["rows"])
