"""A1 and M6: attention against the softmax formula, and its maps."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.nn.attention import Attention, TinyAttention, attention_maps
from weft.nn.blocks import Block, ChannelMLP


@torch.no_grad()
def by_formula(layer: Attention, x: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
    """softmax(Q Kᵀ / √n) V, one example, head and token at a time, over real tokens only."""
    size = layer.width // layer.heads
    q, k, v = layer.qkv(x).split(layer.width, dim=-1)
    joined = torch.zeros_like(q)
    for b in range(x.shape[0]):
        real = torch.arange(x.shape[1]) if mask is None else mask[b].nonzero()[:, 0]
        for head in range(layer.heads):
            part = slice(head * size, (head + 1) * size)
            for i in range(x.shape[1]):
                scores = torch.stack([(q[b, i, part] * k[b, j, part]).sum() for j in real]) / size**0.5
                weights = scores.exp() / scores.exp().sum()
                joined[b, i, part] = (weights[:, None] * v[b, real, part]).sum(0)
    return layer.out(joined)


@settings(deadline=None, max_examples=12)
@given(tokens=st.integers(1, 5), heads=st.integers(1, 3), masked=st.booleans(), seed=st.integers(0, 99))
def test_attention_is_its_formula(tokens: int, heads: int, masked: bool, seed: int) -> None:
    """A1: softmax(Q Kᵀ / √n) V with the transpose that the primer forgot; n is the width of a head."""
    torch.manual_seed(seed)
    layer = Attention(6, heads, width=4 * heads).double()
    x = torch.randn(2, tokens, 6, dtype=torch.float64)
    mask = torch.rand(2, tokens) < 0.6
    mask[:, 0] = True
    argument = mask if masked else None
    torch.testing.assert_close(layer(x, argument), by_formula(layer, x, argument))


@settings(deadline=None, max_examples=12)
@given(tokens=st.integers(1, 6), heads=st.integers(1, 3), masked=st.booleans(), seed=st.integers(0, 99))
def test_maps_sum_to_one_and_reproduce_the_output(tokens: int, heads: int, masked: bool, seed: int) -> None:
    """A1: the maps handed out on request are the ones that made the output."""
    torch.manual_seed(seed)
    layer = Attention(6, heads, width=2 * heads).double()
    x = torch.randn(3, tokens, 6, dtype=torch.float64)
    mask = torch.arange(tokens) < torch.randint(1, tokens + 1, (3, 1)) if masked else None
    maps = layer.maps(x, mask)
    assert maps.shape == (3, heads, tokens, tokens)
    torch.testing.assert_close(maps.sum(-1), torch.ones_like(maps[..., 0]))
    if mask is not None:
        assert maps.masked_select(~mask[:, None, None, :].expand_as(maps)).eq(0).all()
    values = layer.project(x)[2]
    torch.testing.assert_close(layer.out((maps @ values).transpose(1, 2).flatten(2)), layer(x, mask))


def test_maps_of_a_whole_network_are_collected_without_changing_it() -> None:
    """A1: one forward pass under `attention_maps` gives every layer's maps, the same output, and leaves no hook."""
    torch.manual_seed(0)
    network = torch.nn.ModuleList(Block(6, Attention(6, 2), ChannelMLP(6, 12)) for _ in range(3))
    x, mask = torch.randn(2, 4, 6), torch.tensor([[True] * 4, [True, True, False, False]])

    def run() -> torch.Tensor:
        y = x
        for block in network:
            y = block(y, mask)
        return y

    plain = run()
    with attention_maps(network) as maps:
        watched = run()
    assert torch.equal(plain, watched)
    assert list(maps) == ["0.mixer", "1.mixer", "2.mixer"]
    torch.testing.assert_close(maps["0.mixer"], network[0].mixer.maps(network[0].norm1(x), mask))
    maps.clear()
    run()
    assert not maps, "a hook was left behind"


def test_tiny_attention_has_one_head_and_the_width_of_the_gate() -> None:
    """M6: one head of width 64 from C channels to E/2; (C·3a+3a) + (a·E/2+E/2) parameters."""
    channels, width, gate = 128, 64, 384
    tiny = TinyAttention(channels, width, gate)
    assert tiny.heads == 1
    assert tiny(torch.zeros(1, 5, channels)).shape == (1, 5, gate)
    assert sum(p.numel() for p in tiny.parameters()) == (channels * 3 * width + 3 * width) + (width * gate + gate)


def test_a_width_that_the_heads_cannot_share_is_refused() -> None:
    with pytest.raises(ValueError, match="10 is not a multiple of 3 heads"):
        Attention(10, 3)


def test_attention_does_not_know_the_order_of_tokens() -> None:
    """A1: permuting the tokens permutes the result, which is why A2 and A3 add positions."""
    torch.manual_seed(0)
    layer, x, order = Attention(8, 2).double(), torch.randn(1, 6, 8, dtype=torch.float64), torch.randperm(6)
    torch.testing.assert_close(layer(x[:, order]), layer(x)[:, order])
