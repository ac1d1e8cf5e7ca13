"""A network of torch as an ONNX graph: any number of inputs at once, texts of any length up to the network's.

Traced by torch's own exporter. Every family of the registry goes through it; what a class from outside does in its
`forward` may not.
"""

from __future__ import annotations

import io
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.export import Dim

from weft.disk import Damaged, brief
from weft.errors import WeftError
from weft.export.recurrence import OnnxLSTM
from weft.networks.base.backbone import TextTokens
from weft.networks.base.network import Network, uncompiled
from weft.networks.config import NetworkConfig
from weft.networks.text_baselines import LSTM
from weft.training.inference.onnx_file import LIMIT, OUTPUT, require_extra, require_plain

if TYPE_CHECKING:
    import onnx

Inputs = dict[str, Tensor]
ROOM = 64 << 20  # bytes of a file that are no weights, at most


def require_exporter() -> None:
    """Refuse where the packages that write graphs are missing."""
    require_extra()
    try:
        import onnxscript  # noqa: F401
    except ImportError as error:
        raise WeftError(f"exporting needs an extra ({error}): pip install 'weft[onnx]'") from error


def onnx_graph(network: Network) -> onnx.ModelProto:
    """The graph of a network in evaluation; its arguments and its one output are called as in onnx_file.py."""
    network = uncompiled(network)
    require_size(network)
    example = made_up_inputs(network.config, batch=2)
    axes = {0: Dim.DYNAMIC, 1: Dim.DYNAMIC} if network.config.input == "text" else {0: Dim.DYNAMIC}
    try:
        with quiet(), torch.no_grad():
            found = torch.onnx.export(
                traceable(network).eval(),
                kwargs=example,
                dynamo=True,
                dynamic_shapes=dict.fromkeys(example, axes),
                input_names=list(example),
                output_names=[OUTPUT],
                verbose=False,
            )
        assert found is not None
        model = found.model_proto
        require_plain(model, Path("the graph"))
    except Damaged as error:
        raise unfit(network.config, str(error)) from error
    except Exception as error:  # torch's exporter wraps whatever tracing ran into
        raise unfit(network.config, brief(error.__cause__ or error)) from error
    without_expansion(model)
    with_zeros_beside_pools(model)
    del model.graph.value_info[:]  # shapes that were inferred; what changes the graph would have to keep them true
    return model


def unfit(config: NetworkConfig, why: str) -> WeftError:
    what = getattr(config, "model", config.family)
    return WeftError(f"{what} cannot be exported: {why}; its forward must be made of what torch.export can trace")


def require_size(network: Network) -> None:
    """Refuse what one file cannot hold."""
    size = sum(value.numel() * value.element_size() for value in network.state_dict().values())
    if size > LIMIT - ROOM:
        raise WeftError(
            f"the network has {size / 2**30:.1f} GiB of weights, and an .onnx file holds 2; use the run folder itself"
        )


@contextmanager
def quiet() -> Iterator[None]:
    """Without what the exporter and its libraries print of themselves."""
    before = logging.root.manager.disable
    logging.disable(logging.ERROR)
    try:
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


# ---- What the exporter is given.


class OnEncoder(nn.Module):
    """A network on a trained encoder, together with the encoder: tracing wants all weights below one module."""

    def __init__(self, network: TextTokens) -> None:
        super().__init__()
        self.network, self.below = network, network.encoder.network

    def forward(self, x: Tensor, mask: Tensor, segments: Tensor) -> Tensor:
        return self.network(x, mask, segments)


def traceable(network: Network) -> nn.Module:
    """The network in the form that can be traced, with its weights."""
    if isinstance(network, LSTM):
        twin = OnnxLSTM(network.config)
        twin.load_state_dict(network.state_dict())
        return twin
    if isinstance(network, TextTokens) and network.config.encoder is not None:
        return OnEncoder(network)
    return network


def made_up_inputs(config: Any, batch: int, length: int | None = None, seed: int = 0) -> Inputs:
    """Arguments of a network: normal noise, or random words, of which each text has some fewer than the one before."""
    chance = torch.Generator().manual_seed(seed)
    if config.input == "image":
        return {"x": torch.randn(batch, config.in_chans, *config.img_size, generator=chance)}
    if config.input == "vector":
        return {"x": torch.randn(batch, config.in_features, generator=chance)}
    length = max(2, min(config.max_length - 1, 24)) if length is None else length  # the greatest is a case of its own
    x = torch.randint(0, config.vocab_size, (batch, length), generator=chance)
    lengths = length - torch.arange(batch)[:, None] % length
    segments = (torch.arange(length) >= length // 2).long().expand(batch, -1)
    return {"x": x, "mask": torch.arange(length) < lengths, "segments": segments.contiguous()}


# ---- What is done to the graph.


def without_expansion(model: onnx.ModelProto) -> None:
    """Let products take a matrix as it is, where torch's graph repeats it for every example of a batch first."""
    weights = {tensor.name for tensor in model.graph.initializer}
    for node in [node for node in model.graph.node if node.op_type == "Expand" and node.input[0] in weights]:
        users = [user for user in model.graph.node if node.output[0] in user.input]
        if users and all(user.op_type == "MatMul" for user in users):
            for user in users:
                kept = [node.input[0] if name == node.output[0] else name for name in user.input]
                del user.input[:]
                user.input.extend(kept)
            model.graph.node.remove(node)


def with_zeros_beside_pools(model: onnx.ModelProto) -> None:
    """Let a pool take its maximum with the zeros around an image, as BiT's does.

    onnxruntime merges zeros around a pool's input into the pool, which has minus infinity there instead (its issue
    24737). It leaves alone what is not exactly zero: the least positive number of float32 in its place.
    """
    from onnx import numpy_helper

    pooled = {user.input[0] for user in model.graph.node if user.op_type == "MaxPool"}
    zeros = {tensor.name for tensor in model.graph.initializer if is_zero(tensor)}
    for node in model.graph.node:
        if node.op_type == "Pad" and node.output[0] in pooled and node.input[2] in zeros:
            node.input[2] = f"{node.output[0]}_value"
            least = np.array(np.finfo(np.float32).tiny, np.float32)
            model.graph.initializer.append(numpy_helper.from_array(least, node.input[2]))


def is_zero(tensor: onnx.TensorProto) -> bool:
    from onnx import numpy_helper

    return not tensor.dims and not numpy_helper.to_array(tensor)
