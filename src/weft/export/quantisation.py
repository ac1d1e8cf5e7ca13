"""Weights of eight bits: a quarter of the size, and products of whole numbers where the processor is fast at them.

Products (also those of the recurrence) keep their weights as whole numbers and find the range of their inputs as they
run. Convolutions are slow that way. Where rows to look at are given, the ranges inside of a network with convolutions
are therefore measured on them beforehand.

Signed weights use seven of their eight bits: processors without instructions for such products add pairs of them in 16
bits, where full ones would overflow and be cut without a word. Convolutions without rows use unsigned ones, of eight.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch import Tensor

from weft.disk import brief
from weft.errors import WeftError
from weft.export.graph import quiet

if TYPE_CHECKING:
    import onnx

Row = dict[str, Tensor]


def has_convolutions(model: onnx.ModelProto) -> bool:
    return any(node.op_type == "Conv" for node in model.graph.node)


def int8(model: onnx.ModelProto, rows: Sequence[Row] = ()) -> onnx.ModelProto:
    """The same graph with weights of eight bits; `rows` are inputs, batches of them, whose ranges stand for all."""
    import onnx
    import onnxruntime

    onnxruntime.set_default_logger_severity(4)  # the library's own remarks on threads of its own
    with quiet(), tempfile.TemporaryDirectory(prefix="weft-") as folder:
        target = Path(folder) / "int8.onnx"
        try:
            if rows and has_convolutions(model):
                measured(model, rows, target)
            else:
                as_they_run(model, target)
        except Exception as error:  # whatever the library has not foreseen in a graph
            raise WeftError(f"weights of eight bits cannot be made ({brief(error)}); leave out --int8") from error
        found = onnx.load(target)
    del found.graph.value_info[:]
    return found


def as_they_run(model: onnx.ModelProto, target: Path) -> None:
    """Write the graph with ranges of inputs that are found with every batch."""
    from onnxruntime.quantization import QuantType, quantize_dynamic

    if has_convolutions(model):
        quantize_dynamic(model, target, weight_type=QuantType.QUInt8)
    else:
        quantize_dynamic(model, target, weight_type=QuantType.QInt8, reduce_range=True, per_channel=True)


def measured(model: onnx.ModelProto, rows: Sequence[Row], target: Path) -> None:
    """Write the graph with ranges that were seen on the rows."""
    from onnxruntime.quantization import CalibrationDataReader, QuantType, quantize_static

    class Rows(CalibrationDataReader):
        def __init__(self) -> None:
            self.left = iter(rows)

        def get_next(self) -> dict[str, Any] | None:
            row = next(self.left, None)
            return None if row is None else {name: value.numpy() for name, value in row.items()}

    kinds = {"activation_type": QuantType.QUInt8, "weight_type": QuantType.QInt8}
    quantize_static(model, target, Rows(), reduce_range=True, per_channel=True, **kinds)
