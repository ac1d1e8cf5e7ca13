"""A network is an ordinary torch module: it can be copied, pickled, cast, traced, and given an empty or odd batch."""

from __future__ import annotations

import copy
import pickle

import pytest
import torch
from torch import Tensor

import formats
from networks.small import SMALL, TEXTS, batch, shaken, small
from weft.networks.base.network import Network
from weft.training.run.rehearsal import overlaps


def network_and_batch(name: str) -> tuple[Network, dict[str, Tensor]]:
    network = shaken(small(name)).eval()
    return network, batch(network)


@pytest.mark.parametrize("name", SMALL)
def test_copies_and_pickles_compute_the_same(name: str) -> None:
    network, inputs = network_and_batch(name)
    expected = network(**inputs)
    assert torch.equal(copy.deepcopy(network)(**inputs), expected)
    assert torch.equal(pickle.loads(pickle.dumps(network))(**inputs), expected)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16], ids=["float64", "bfloat16"])
@pytest.mark.parametrize("name", SMALL)
def test_other_precisions_train(name: str, dtype: torch.dtype) -> None:
    network, inputs = network_and_batch(name)
    if dtype == torch.bfloat16:
        formats.require("bf16", network)
    expected = network(**inputs)
    network = network.to(dtype)
    inputs = {key: x.to(dtype) if x.is_floating_point() else x for key, x in inputs.items()}
    logits = network(**inputs)
    assert logits.dtype == dtype
    if dtype == torch.float64:
        torch.testing.assert_close(logits.float(), expected, rtol=1e-4, atol=1e-4)
    network.train()(**inputs).sum().backward()
    if dtype == torch.bfloat16 and any(map(overlaps, network.modules())):
        return  # some CPUs get gradients of strides on maps of one pixel wrong; in training these stay in float32
    assert all(p.grad is not None and p.grad.isfinite().all() for p in network.parameters())


@pytest.mark.parametrize("name", SMALL)
def test_a_batch_may_be_empty_or_strided(name: str) -> None:
    """A process may be left without an example; how a batch lies in memory changes nothing."""
    network, inputs = network_and_batch(name)
    expected = network(**inputs)
    assert network(**{key: x[:0] for key, x in inputs.items()}).shape == (0, *expected.shape[1:])
    strided = {key: x.transpose(0, 1).contiguous().transpose(0, 1) for key, x in inputs.items()}
    torch.testing.assert_close(network(**strided), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", [name for name in SMALL if name != "lstm_text"])  # packing depends on the lengths
def test_torch_can_trace_the_whole_network(name: str) -> None:
    """Checks of values are left out of the graph, so that exporting and compiling see no branch on them."""
    network, inputs = network_and_batch(name)
    traced = torch.export.export(network, (), kwargs=inputs, strict=False).module()
    torch.testing.assert_close(traced(**inputs), network(**inputs), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["bert_tiny", "amlp_text_tiny", "mixer_nano_p4_32"])
def test_compiling_makes_one_graph(name: str) -> None:
    network, inputs = network_and_batch(name)
    compiled = torch.compile(network, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(**inputs), network(**inputs), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", TEXTS)
def test_a_single_word_is_a_text(name: str) -> None:
    network, inputs = network_and_batch(name)
    assert network(inputs["x"][:, :1]).isfinite().all()
