"""The graph of every family answers as its network does, for batches and lengths that tracing never saw."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import weft
from networks.small import shaken, small
from weft.errors import WeftError
from weft.export import graph
from weft.export.graph import made_up_inputs, onnx_graph
from weft.networks.base.encoder import folder_digest
from weft.networks.base.network import Network
from weft.networks.config import EncoderConfig
from weft.networks.registry import REGISTRY
from weft.networks.weights import save_weights
from weft.training.inference.onnx_file import started

onnx = pytest.importorskip("onnx", reason="no onnx: pip install 'weft[onnx]'")
pytest.importorskip("onnxruntime", reason="no onnxruntime: pip install 'weft[onnx]'")
pytest.importorskip("onnxscript", reason="no onnxscript: pip install 'weft[onnx]'")

# One network of each family, with one block: `python benchmarks/export.py parity` has every name. The recurrence has a
# form of its own. Networks of one group are traced together, which takes a fraction of the time.
GROUPS = {
    "patches": [
        "vit_nano_p4_32",
        "deit_pico_distilled_p4_32",
        "vit_nano_resnet20_32",
        "mixer_nano_p4_32",
        "tmlp2d_nano_p4_32",
        "control_pooling_p4_32",
    ],
    "convolutions": [
        "mlp",
        "lenet5_local",
        "rcnn_96",
        "resnet20_cifar",
        "efficientnet_lite_nano_32",
        "nfnet_nano_32",
        "bit_nano_32",
        "halonet_nano_32",
    ],
    "texts": [
        "bert_tiny",
        "mixer_text_tiny",
        "tmlp_text_tiny",
        "amlp_text_tiny",
        "control_depthwise_text_tiny",
        "conv_text",
    ],
}


class Several(Network):
    """Networks side by side on the same inputs, their answers one after the other."""

    def __init__(self, networks: list[Network]) -> None:
        super().__init__(networks[0].config)
        self.networks = nn.ModuleList(networks)

    def forward(self, x: Tensor, **others: Tensor) -> Tensor:
        if not others:
            return torch.cat([network(x) for network in self.networks], dim=1)
        return torch.cat([network(x, others["mask"], others["segments"]) for network in self.networks], dim=1)


class SeveralTexts(Several):
    def forward(self, x: Tensor, mask: Tensor, segments: Tensor) -> Tensor:  # type: ignore[override]
        return super().forward(x, mask=mask, segments=segments)


def shallow(name: str) -> Network:
    """The small network of a name, with one block where it has blocks, three channels, and no weight at its start."""
    changes: dict[str, Any] = {"depth": 1} if hasattr(REGISTRY[name], "depth") else {}
    if name not in GROUPS["texts"]:
        changes["in_chans"] = 3
    return shaken(small(name, **changes)).eval()


def answers(network: Network, given: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
    """Those of the network, and those of its graph."""
    with torch.no_grad():
        own = network(**given)
    (found,) = network.session.run(None, {name: value.numpy() for name, value in given.items()})
    return own, torch.from_numpy(found)


def exported(network: Network) -> Network:
    network.session = started(onnx_graph(network).SerializeToString(), Path("graph.onnx"), 1)
    return network


def trials(network: Network) -> list[dict[str, Tensor]]:
    """Batches of one and five; texts as long as may be, of one word, and in between."""
    config: Any = network.config
    if config.input == "text":
        sizes = [(1, config.max_length), (5, 9), (2, 1)]
        return [made_up_inputs(config, batch, length, seed=1) for batch, length in sizes]
    return [made_up_inputs(config, batch, seed=1) for batch in (1, 5)]


def furthest(found: Tensor, own: Tensor) -> float:
    """The largest difference, as a share of the largest answer or of 1."""
    return float((found - own).abs().max() / own.abs().max().clamp(min=1))


def assert_same(network: Network, tolerance: float = 1e-5) -> None:
    for given in trials(network):
        own, found = answers(network, given)
        assert furthest(found, own) < tolerance


@pytest.mark.parametrize("group", GROUPS)
def test_every_family_answers_alike(group: str) -> None:
    names = GROUPS[group]
    kind = SeveralTexts if group == "texts" else Several
    together = exported(kind([shallow(name) for name in names]))
    for given in trials(together):
        own, found = (part.chunk(len(names), dim=1) for part in answers(together, given))
        for name, expected, computed in zip(names, own, found, strict=True):
            assert furthest(computed, expected) < 1e-5, name


def test_no_family_of_the_registry_is_left_out() -> None:
    traced = {REGISTRY[name].family for names in GROUPS.values() for name in names}
    assert traced | {"lstm", "filternet"} == {config.family for config in REGISTRY.values()}


@pytest.fixture(scope="module")
def recurrent() -> Network:
    """Two layers, both directions."""
    return exported(shaken(small("lstm_text", depth=2)).eval())


def test_the_recurrence_stops_where_a_text_ends(recurrent: Network) -> None:
    """What reads backwards begins at the last real token."""
    assert_same(recurrent)


def test_padding_may_stand_anywhere(recurrent: Network) -> None:
    given = made_up_inputs(recurrent.config, 2, 8)
    given["mask"] = torch.tensor([[False] * 3 + [True] * 5, [True, False, True, True, False, True, False, False]])
    own, found = answers(recurrent, given)
    assert furthest(found, own) < 1e-5


def test_images_to_images() -> None:
    network = exported(shaken(weft.create_model("filternet", img_size=12)).eval())
    assert_same(network)


def test_a_pool_takes_the_zeros_around_an_image_into_account() -> None:
    """Values before a norm are negative more often than not, and the borders are a large part of a small image."""
    shape = {"layers": (1, 1, 1, 1), "widths": (8, 8, 8, 8), "img_size": 64, "num_classes": 5}
    assert_same(exported(shaken(weft.create_model("resnetv2_50x1_bit", **shape)).eval()))


def test_an_encoder_below_becomes_part_of_the_graph(tmp_path: Path) -> None:
    torch.manual_seed(0)
    shape = {"vocab_size": 40, "dim": 16, "heads": 2, "hidden_dim": 16, "depth": 1, "max_length": 10}
    save_weights(weft.create_model("bert_tiny", **shape), tmp_path, layout="huggingface")
    below = EncoderConfig(folder=str(tmp_path), digest=folder_digest(tmp_path), dim=16, layers=(1,))
    network = exported(shaken(small("gmlp_text_tiny", encoder=below, depth=1)).eval())
    assert_same(network, tolerance=2e-3)  # embeddings are rounded to float16, and may fall to either side


def test_products_take_a_matrix_without_repeating_it_for_each_example() -> None:
    """Where anything else uses what was repeated, it stays."""
    node, number = onnx.helper.make_node, onnx.TensorProto.FLOAT
    weight = onnx.helper.make_tensor("w", number, (1, 1), [2.0])
    nodes = [
        node("Expand", ["w", "shape"], ["many"]),
        node("MatMul", ["many", "x"], ["y"]),
        node("Expand", ["w", "shape"], ["kept"]),
        node("Add", ["kept", "y"], ["z"]),
    ]
    model = onnx.helper.make_model(onnx.helper.make_graph(nodes, "small", [], [], [weight]))
    graph.without_expansion(model)
    assert [(one.op_type, list(one.input)) for one in model.graph.node] == [
        ("MatMul", ["w", "x"]),
        ("Expand", ["w", "shape"]),
        ("Add", ["kept", "y"]),
    ]


class Branching(nn.Module):
    """What it does depends on the values of its input, which no graph can hold."""

    def __init__(self, num_classes: int, in_chans: int = 3) -> None:
        super().__init__()
        self.head = nn.Linear(in_chans, num_classes)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(x.mean((2, 3))) if float(x.sum()) > 0 else self.head(x.amax((2, 3)))


def test_a_network_that_cannot_be_traced_is_refused_by_name() -> None:
    network = weft.create_model(f"{__name__}:Branching", num_classes=2, img_size=8)
    with pytest.raises(WeftError, match=r"Branching cannot be exported: .*; ") as refused:
        onnx_graph(network)
    assert "\n" not in str(refused.value)


def test_a_network_that_one_file_cannot_hold_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph, "LIMIT", graph.ROOM + 1000)
    with pytest.raises(WeftError, match="GiB of weights"):
        onnx_graph(shallow("mlp"))
