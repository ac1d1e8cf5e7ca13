"""An .onnx file of weft's: the graph of a trained network, and in its metadata all that using it needs.

The metadata has one entry, `weft`, in JSON: task and classes, the network's configuration, the preprocessing (for text
the whole tokenizer), the number format of the weights, and a digest of the graph. So the file is used alone:
`weft predict FILE.onnx …`, `weft.load("FILE.onnx")`.

Such a file may come from anywhere. It is bounded in size, its metadata are checked against a schema, and a graph that
refers to other files, to code from elsewhere or to graphs within it is refused before anything of it is computed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from torch import Tensor

from weft.data.transform import transforms
from weft.data.transform.transforms import Transform
from weft.disk import Damaged, brief, parse_object, read_bytes, validated
from weft.errors import WeftError
from weft.networks.base.network import Network, check_image, check_text
from weft.networks.config import ImageConfig, NetworkConfig, TextConfig
from weft.training.inference.network_folder import (
    NetworkMetadata,
    own_section,
    require_inputs,
    stored_metadata,
    stored_network,
)

if TYPE_CHECKING:
    import onnx
    import onnxruntime

KEY = "weft"  # of the entry in the metadata
LIMIT = (2 << 30) - 1  # bytes that a file of this format can have
DOMAINS = ("", "ai.onnx", "com.microsoft")  # operators that onnxruntime brings itself
INPUTS = ("x", "mask", "segments")  # as the networks call their arguments
OUTPUT = "y"
PROVIDERS = ["CPUExecutionProvider"]

Precision = Literal["float32", "int8"]
Contents = tuple[NetworkMetadata, "OnnxNetwork", Transform]


@dataclass(frozen=True)
class _Facts:
    """What the metadata say beside the network's own section."""

    transform: dict[str, Any]
    precision: Precision
    digest: str


def require_extra() -> None:
    """Refuse where the packages that read and compute such files are missing."""
    try:
        import onnx  # noqa: F401
        import onnxruntime  # noqa: F401
    except ImportError as error:
        raise WeftError(f".onnx files need an extra ({error}): pip install 'weft[onnx]'") from error


def read_onnx(path: Path) -> Contents:
    """What outputs mean, the network, and the transform that its inputs need."""
    require_extra()
    return opened(read_bytes(path, LIMIT), path)


def opened(content: bytes, path: Path) -> Contents:
    """The same of bytes that stand in the file `path`."""
    model = parsed(content, path)
    require_plain(model, path)
    stored = own_section(metadata(model, path), path)
    facts = validated(_Facts, stored, path)
    if digest(model) != facts.digest:
        raise Damaged(f"{path} is damaged: its graph is not the one that was written; export it anew")
    config = stored_network(stored.pop("network"), path, for_building=False)  # all code that it needs is the graph
    card = stored_metadata(stored, config, path)
    transform = transforms.described(facts.transform, path)
    require_inputs(config, transform, path)
    return card, OnnxNetwork(config, content, path), transform


def parsed(content: bytes, path: Path) -> onnx.ModelProto:
    """The content as the library sees it; what it refers to outside of the file is not read."""
    import onnx

    try:
        return onnx.load_model_from_string(content)
    except Exception as error:  # protobuf's own class, or almost anything
        raise Damaged(f"{path} is damaged, or no .onnx file ({brief(error)}); export it anew") from error


def metadata(model: onnx.ModelProto, path: Path) -> dict[str, Any]:
    """The entry of weft's."""
    found = [entry.value for entry in model.metadata_props if entry.key == KEY]
    if len(found) != 1:
        raise WeftError(f"{path} was not written by weft: its metadata have no entry `{KEY}`; use weft export --onnx")
    return parse_object(found[0], path)


def is_own_file(path: Path) -> bool:
    """Whether weft wrote an .onnx file, for overwriting it."""
    try:
        metadata(parsed(read_bytes(path, LIMIT), path), path)
    except WeftError:
        return False
    return True


def require_plain(model: onnx.ModelProto, path: Path) -> None:
    """Refuse what a graph of weft's has not: other files, code from elsewhere, graphs and functions within it."""
    import onnx

    foreign = next((node.domain for node in model.graph.node if node.domain not in DOMAINS), None)
    if foreign is not None:
        raise Damaged(f"{path} asks for operators of {brief(ValueError(foreign))!r}, which weft does not use; refused")
    within = any(part.HasField("g") or part.graphs for node in model.graph.node for part in node.attribute)
    if within or model.functions or model.training_info or model.graph.sparse_initializer:
        raise Damaged(f"{path} has graphs or functions within its graph, which weft does not use; refused")
    if any(tensor.data_location == onnx.TensorProto.EXTERNAL for tensor in tensors(model)):
        raise Damaged(f"{path} refers to other files, which weft does not read; export it anew")


def tensors(model: onnx.ModelProto) -> Iterator[onnx.TensorProto]:
    """All constants of a graph: weights, and those inside of its nodes."""
    yield from model.graph.initializer
    for node in model.graph.node:
        for attribute in node.attribute:
            yield from [attribute.t] if attribute.HasField("t") else []
            yield from attribute.tensors


def digest(model: onnx.ModelProto) -> str:
    """32 hex digits of all weights and nodes: the format itself does not notice a flipped bit."""
    state = blake2b(digest_size=16)
    for part in (*model.graph.initializer, *model.graph.node, *model.graph.input, *model.graph.output):
        state.update(part.SerializeToString(deterministic=True))
    return state.hexdigest()


class OnnxNetwork(Network):
    """A network whose `forward` is computed by onnxruntime. It answers and nothing else: it has no parameters."""

    def __init__(self, config: NetworkConfig, content: bytes, path: Path) -> None:
        super().__init__(config)
        self.path, self.content = path, content
        self._sessions: dict[int, onnxruntime.InferenceSession] = {}
        self.names = [one.name for one in self.session.get_inputs()]
        if not {"x"} <= set(self.names) <= set(INPUTS) or len(self.session.get_outputs()) != 1:
            raise Damaged(f"{path} takes {', '.join(self.names)[:80]}, which no graph of weft's does; export it anew")

    @property
    def session(self) -> onnxruntime.InferenceSession:
        """What computes the graph on as many threads as torch has at the moment."""
        threads = torch.get_num_threads()
        if threads not in self._sessions:
            self._sessions[threads] = started(self.content, self.path, threads)
        return self._sessions[threads]

    def forward(self, x: Tensor, mask: Tensor | None = None, segments: Tensor | None = None) -> Tensor:
        """As that of the network that was exported: (batch, classes)."""
        given = {"x": x}
        if isinstance(self.config, TextConfig):
            check_text(x, mask, self.config.max_length, self.config.vocab_size)
            given["mask"] = torch.ones_like(x, dtype=torch.bool) if mask is None else mask
            given["segments"] = torch.zeros_like(x) if segments is None else segments
        elif isinstance(self.config, ImageConfig) and x.ndim != 2:
            check_image(x, self.config.in_chans, self.config.img_size)
        return torch.from_numpy(self.computed({name: given[name].numpy() for name in self.names}))

    def computed(self, given: dict[str, np.ndarray[Any, Any]]) -> np.ndarray[Any, Any]:
        try:
            (found,) = self.session.run(None, given)
        except Exception as error:  # the library has classes of its own, one for each of its status codes
            raise Damaged(f"{self.path} cannot be computed ({brief(error)}); export it anew") from error
        if found.shape[1:] != (self.config.num_classes,) and self.config.num_classes:
            raise Damaged(f"{self.path} gives {found.shape}, not {self.config.num_classes} outputs; export it anew")
        result: np.ndarray[Any, Any] = found
        return result

    def forward_features(self, x: Tensor) -> Tensor:
        raise WeftError(f"{self.path} has outputs alone and no features; use the run that it was made of")

    def state_dict(self, *_: Any, **__: Any) -> Any:
        raise WeftError(f"{self.path} is a graph, whose weights cannot be trained or saved; use the run it was made of")


def started(content: bytes, path: Path, threads: int) -> onnxruntime.InferenceSession:
    """What computes a graph, with so many threads; messages of the library itself are left out."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = threads, 4
    try:
        return onnxruntime.InferenceSession(content, options, providers=PROVIDERS)
    except Exception as error:  # the library has classes of its own, one for each of its status codes
        raise Damaged(f"{path} has no graph that can be computed ({brief(error)}); export it anew") from error
