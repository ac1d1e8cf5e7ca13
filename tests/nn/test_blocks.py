"""M1, A1: the residual block against NumPy, with the norm before or after the branch."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.special import erf

from weft.networks.gmlp import GatedBlock, SpatialGate
from weft.networks.mixer import TokenMLP
from weft.nn.attention import Attention
from weft.nn.blocks import Block, ChannelMLP, Layout
from weft.nn.noise import DropPath

TOKENS, CHANNELS, TOKEN_WIDTH, CHANNEL_WIDTH = 4, 5, 7, 9  # all different, so that no two can be swapped


def gelu(x: np.ndarray) -> np.ndarray:
    return x * 0.5 * (1 + erf(x / np.sqrt(2)))


def norm(x: np.ndarray, layer: torch.nn.LayerNorm) -> np.ndarray:
    """Over channels: eq. 15 with the library's √(σ² + ε)."""
    mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return (x - mean) / np.sqrt(variance + layer.eps) * array(layer.weight) + array(layer.bias)


def array(tensor: torch.Tensor) -> np.ndarray:
    return tensor.detach().numpy()


def randomised(module: torch.nn.Module) -> torch.nn.Module:
    torch.manual_seed(0)
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return module.double()


def test_a_mixer_block_is_the_two_equations_of_the_paper() -> None:
    """M1: U = X + W₂ σ(W₁ LN(X)) over tokens, Y = U + W₄ σ(W₃ LN(U)) over channels, with biases everywhere."""
    mixer, channels = TokenMLP(TOKENS, TOKEN_WIDTH), ChannelMLP(CHANNELS, CHANNEL_WIDTH)
    block = randomised(Block(CHANNELS, mixer, channels))
    x = torch.randn(2, TOKENS, CHANNELS, dtype=torch.float64)
    for found, given in zip(array(block(x)), array(x), strict=True):
        hidden = gelu(array(mixer.fc1.weight) @ norm(given, block.norm1) + array(mixer.fc1.bias)[:, None])
        u = given + array(mixer.fc2.weight) @ hidden + array(mixer.fc2.bias)[:, None]
        hidden = gelu(norm(u, block.norm2) @ array(channels.fc1.weight).T + array(channels.fc1.bias))
        np.testing.assert_allclose(
            found, u + hidden @ array(channels.fc2.weight).T + array(channels.fc2.bias), atol=1e-12
        )


def test_mixers_two_widths_are_where_they_belong() -> None:
    """D_S is the width over tokens and D_C the width over channels."""
    mixer, channels = TokenMLP(TOKENS, TOKEN_WIDTH), ChannelMLP(CHANNELS, CHANNEL_WIDTH)
    assert mixer.fc1.weight.shape == (TOKEN_WIDTH, TOKENS) and mixer.fc2.weight.shape == (TOKENS, TOKEN_WIDTH)
    assert channels.fc1.weight.shape == (CHANNEL_WIDTH, CHANNELS)
    assert channels.fc2.weight.shape == (CHANNELS, CHANNEL_WIDTH)


def test_norm_before_or_after_the_branch_is_an_argument() -> None:
    """A1: z′ = z + MSA(LN(z)) in a ViT, z′ = LN(z + MSA(z)) in BERT."""
    x = torch.randn(2, TOKENS, 6, dtype=torch.float64)
    mask = torch.tensor([[True] * 4, [True, True, False, False]])
    before, after = (
        randomised(Block(6, Attention(6, 2), ChannelMLP(6, 8), norm_first=first)) for first in (True, False)
    )
    u = x + before.mixer(before.norm1(x), mask)
    torch.testing.assert_close(before(x, mask), u + before.channels(before.norm2(u)))
    u = after.norm1(x + after.mixer(x, mask))
    torch.testing.assert_close(after(x, mask), after.norm2(u + after.channels(u)))


def test_a_gated_block_takes_the_norm_after_the_sum_too() -> None:
    """A1, M2: norm(X + s(act(X U)) V)."""
    block = randomised(GatedBlock(6, 8, SpatialGate(8, Layout((TOKENS,))), norm_first=False))
    x = torch.randn(2, TOKENS, 6, dtype=torch.float64)
    torch.testing.assert_close(block(x), block.norm(x + block.branch(x, None)))


@pytest.mark.parametrize("eps", [1e-6, 1e-12, 1e-3])
def test_every_norm_of_a_block_has_the_epsilon_asked_for(eps: float) -> None:
    """1e-6 after flax, 1e-12 in BERT; never torch's default by accident."""
    mixed = Block(6, Attention(6, 2), ChannelMLP(6, 8), eps=eps)
    gated = GatedBlock(6, 8, SpatialGate(8, Layout((TOKENS,)), eps=eps), eps=eps)
    norms = [m for block in (mixed, gated) for m in block.modules() if isinstance(m, torch.nn.LayerNorm)]
    assert [layer.eps for layer in norms] == [eps] * 4


def test_both_branches_are_dropped_and_never_the_shortcut() -> None:
    """Drop path: with both branches dropped a block is the identity."""
    torch.manual_seed(0)
    block = Block(6, Attention(6, 2), ChannelMLP(6, 8), drop_path=0.5).train()
    assert sum(isinstance(layer, DropPath) for layer in block.modules()) == 2
    x = torch.randn(200, TOKENS, 6)
    untouched = (block(x) == x).all(2).all(1).float().mean().item()
    assert untouched == pytest.approx(0.25, abs=0.1)
