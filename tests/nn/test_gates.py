"""M3, M5, M6: the spatial gate in four forms × three matrices × (with, without tiny attention), against plain loops."""

from __future__ import annotations

import math
from itertools import product

import pytest
import torch
from torch import Tensor

from weft.networks.gmlp import GatedBlock, SpatialGate
from weft.nn.attention import TinyAttention
from weft.nn.blocks import Layout

FORMS = ("linear", "additive", "multiplicative", "split")
WEIGHTS = ("dense", "toeplitz", "toeplitz2d")
TOKENS, WIDTH, CHANNELS = 6, 8, 5
EPS = 1e-6


def make(form: str, weight: str, *, eps: float = EPS) -> SpatialGate:
    """A gate over 2×3 tokens with every value random."""
    torch.manual_seed(0)
    gate = SpatialGate(WIDTH, Layout((2, 3)), form=form, weight=weight, eps=eps).double()  # type: ignore[arg-type]
    for parameter in gate.parameters():
        torch.nn.init.normal_(parameter)
    return gate


def entry(gate: SpatialGate, i: int, j: int) -> float:
    """W[i, j] from the free values, by what M5 says."""
    weight = gate.spatial.weight
    if weight.ndim == 1:
        return weight[j - i + TOKENS - 1].item()
    if weight.shape == (TOKENS, TOKENS):
        return weight[i, j].item()
    return weight[j // 3 - i // 3 + 1, j % 3 - i % 3 + 2].item()


def normed(gate: SpatialGate, vector: list[float]) -> list[float]:
    mean = sum(vector) / len(vector)
    variance = sum((value - mean) ** 2 for value in vector) / len(vector)
    scaled = [(value - mean) / math.sqrt(variance + gate.norm.eps) for value in vector]
    pairs = zip(scaled, gate.norm.weight.tolist(), gate.norm.bias.tolist(), strict=True)
    return [value * scale + shift for value, scale, shift in pairs]


def by_loop(gate: SpatialGate, z: Tensor, mask: Tensor | None, attended: Tensor | None) -> Tensor:
    """s(Z), token by token and channel by channel."""
    width = gate.outputs
    result = torch.zeros(*z.shape[:2], width, dtype=z.dtype)
    for b, i in product(range(z.shape[0]), range(TOKENS)):
        for c in range(width):
            f = gate.bias[i].item()
            for j in range(TOKENS):
                if mask is None or mask[b, j]:
                    f += entry(gate, i, j) * normed(gate, z[b, j, -width:].tolist())[c]
            f += 0.0 if attended is None else attended[b, i, c].item()
            kept = z[b, i, c].item()
            result[b, i, c] = {"linear": f, "additive": kept + f}.get(gate.form, kept * f)
    return result


@pytest.mark.parametrize("tiny", [False, True], ids=["plain", "tiny"])
@pytest.mark.parametrize("weight", WEIGHTS)
@pytest.mark.parametrize("form", FORMS)
def test_a_gate_is_the_loop_over_tokens(form: str, weight: str, tiny: bool) -> None:
    """M3: linear f(Z), additive Z + f(Z), multiplicative Z ⊙ f(Z), split Z₁ ⊙ f(Z₂), each over the matrices of M5 and
    with the attention of M6 added inside; padded tokens count for nothing."""
    gate = make(form, weight)
    z = torch.randn(2, TOKENS, WIDTH, dtype=torch.float64)
    attended = torch.randn(2, TOKENS, gate.outputs, dtype=torch.float64) if tiny else None
    mask = torch.tensor([[True] * 6, [True, True, True, True, False, False]])
    for argument in (None, mask):
        torch.testing.assert_close(gate(z, argument, attended), by_loop(gate, z, argument, attended))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("tiny", [False, True], ids=["plain", "tiny"])
def test_a_gated_block_is_gmlps_equations(form: str, tiny: bool) -> None:
    """M2, M6: Z = GELU(norm(X) U), Y = s(Z) V + X; the tiny attention reads norm(X)."""
    gate = make(form, "dense")
    attention = TinyAttention(CHANNELS, 4, gate.outputs) if tiny else None
    block = GatedBlock(CHANNELS, WIDTH, gate, tiny=attention).double()
    x = torch.randn(2, TOKENS, CHANNELS, dtype=torch.float64)
    inner = torch.nn.functional.layer_norm(x, (CHANNELS,), eps=1e-6)
    z = inner @ block.fc1.weight.T + block.fc1.bias
    z = 0.5 * z * (1 + torch.erf(z / math.sqrt(2)))
    attended = None if attention is None else attention(inner)
    expected = x + by_loop(gate, z, None, attended) @ block.fc2.weight.T + block.fc2.bias
    torch.testing.assert_close(block(x), expected)


@pytest.mark.parametrize("weight", WEIGHTS)
@pytest.mark.parametrize(
    ("form", "start"), [("linear", 0.0), ("additive", 0.0), ("multiplicative", 1.0), ("split", 1.0)]
)
def test_how_a_gate_starts(form: str, start: float, weight: str) -> None:
    """M3: W ≈ 0 with b = 1 where it multiplies and b = 0 where it adds; an ordinary W for the linear gate."""
    torch.manual_seed(0)
    layout = Layout((8, 8))
    gate = SpatialGate(WIDTH, layout, form=form, weight=weight)  # type: ignore[arg-type]
    assert (gate.bias == start).all()
    deviation = gate.spatial.weight.std().item()
    if form == "linear":
        assert deviation == pytest.approx(layout.tokens**-0.5, rel=0.15)
    else:
        assert 0 < deviation < 1e-5


@pytest.mark.parametrize("weight", WEIGHTS)
def test_a_multiplying_or_adding_gate_begins_as_a_channel_mlp(weight: str) -> None:
    """M3: at the start multiplicative and additive gates pass Z on, and split passes Z₁ on."""
    z = torch.randn(2, 6, WIDTH)
    for form in ("additive", "multiplicative", "split"):
        gate = SpatialGate(WIDTH, Layout((2, 3)), form=form, weight=weight)  # type: ignore[arg-type]
        torch.testing.assert_close(gate(z), z[..., : gate.outputs], atol=1e-4, rtol=1e-4)


def test_a_linear_gate_does_not_begin_as_a_constant() -> None:
    """M3: with W ≈ 0 and b = 1 the linear gate would forget its input."""
    torch.manual_seed(0)
    gate = SpatialGate(WIDTH, Layout((2, 3)), form="linear")
    one, other = gate(torch.randn(1, 6, WIDTH)), gate(torch.randn(1, 6, WIDTH))
    assert (one - other).std() > 0.1


@pytest.mark.parametrize("weight", WEIGHTS)
@pytest.mark.parametrize("form", FORMS)
def test_every_parameter_of_a_gate_is_trained(form: str, weight: str) -> None:
    """M3, M5: W and b of every form get a gradient from the first step on."""
    torch.manual_seed(0)
    gate = SpatialGate(WIDTH, Layout((2, 3)), form=form, weight=weight)  # type: ignore[arg-type]
    z, direction = torch.randn(2, 6, WIDTH), torch.randn(2, 6, gate.outputs)
    (gate(z) * direction).sum().backward()
    assert (gate.spatial.weight.grad.abs() > 0).all()
    assert (gate.bias.grad.abs() > 0).all()


def test_only_the_split_gate_halves_the_width() -> None:
    """M3: the norm stands before f, over what f reads."""
    for form in FORMS:
        gate = SpatialGate(WIDTH, Layout((2, 3)), form=form)  # type: ignore[arg-type]
        expected = WIDTH // 2 if form == "split" else WIDTH
        assert gate(torch.zeros(1, 6, WIDTH)).shape == (1, 6, expected)
        assert gate.norm.normalized_shape == (expected,)
