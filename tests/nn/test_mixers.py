"""Token mixers made from one mixer context: what each computes, and that padding never reaches a real token."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from weft.networks.controls import RandomMixer
from weft.networks.gmlp import SpatialGate
from weft.networks.registry import MIXERS, load_families
from weft.nn.blocks import Layout, MixerContext, make_mixer, takes_mask

CHANNELS, LONGEST = 6, 10
load_families()
MASKED = [name for name in MIXERS if takes_mask(MIXERS[name])]  # the others are for images alone


def make(name: str, layout: Layout, seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    if name.startswith("gate_"):
        _, form, weight = name.split("_")
        mixer: nn.Module = SpatialGate(CHANNELS, layout, form=form, weight=weight)  # type: ignore[arg-type]
    else:
        mixer = make_mixer(MIXERS[name], MixerContext(layout, CHANNELS, heads=2, token_dim=7))
    for parameter in mixer.parameters():
        nn.init.normal_(parameter)
    return mixer.double()


GATES = [
    f"gate_{form}_{w}" for form in ("linear", "additive", "multiplicative", "split") for w in ("dense", "toeplitz")
]


def padded(x: Tensor, length: int, total: int, content: float) -> tuple[Tensor, Tensor]:
    """The first `length` tokens of x, then padding of some content up to `total` tokens; and the mask."""
    filler = content * torch.randn(x.shape[0], total - length, CHANNELS, dtype=x.dtype)
    mask = (torch.arange(total) < length).expand(x.shape[0], -1)
    return torch.cat([x[:, :length], filler], dim=1), mask


@pytest.mark.parametrize("name", [*MASKED, *GATES])
@settings(deadline=None, max_examples=12)
@given(
    length=st.integers(1, LONGEST),
    less=st.integers(0, LONGEST),
    more=st.integers(0, LONGEST),
    content=st.sampled_from([0.0, 1.0, 1000.0]),
)
def test_padding_never_reaches_a_real_token(name: str, length: int, less: int, more: int, content: float) -> None:
    """Neither what stands in the padding nor how much of it there is changes a real token."""
    mixer = make(name, Layout((LONGEST,)))
    x = torch.randn(2, length, CHANNELS, dtype=torch.float64)
    alone = mixer(x)
    for total in (less, more):
        filled, mask = padded(x, length, max(total, length), content)
        torch.testing.assert_close(mixer(filled, mask)[:, :length], alone, atol=1e-9, rtol=1e-9)


@pytest.mark.parametrize("name", [*MASKED, *GATES])
def test_padding_may_stand_anywhere(name: str) -> None:
    """A masked token in the middle or at the front has no influence either."""
    mixer = make(name, Layout((LONGEST,)))
    mask = torch.tensor([[False, True, True, False, True, False, True, True, True, False]])
    x = torch.randn(1, LONGEST, CHANNELS, dtype=torch.float64)
    y = torch.where(mask[..., None], x, torch.full_like(x, 7.0))
    torch.testing.assert_close(mixer(x, mask)[mask], mixer(y, mask)[mask])


@pytest.mark.parametrize("name", MIXERS)
@settings(deadline=None, max_examples=8)
@given(rows=st.integers(1, 4), columns=st.integers(1, 4), batch=st.integers(1, 3))
def test_every_mixer_keeps_the_shape_of_images(name: str, rows: int, columns: int, batch: int) -> None:
    """(batch, tokens, channels) in and out on any grid; an all-true mask changes nothing."""
    mixer = make(name, Layout((rows, columns)))
    x = torch.randn(batch, rows * columns, CHANNELS, dtype=torch.float64)
    y = mixer(x)
    assert y.shape == x.shape
    if name in MASKED:
        torch.testing.assert_close(mixer(x, torch.ones(batch, rows * columns, dtype=torch.bool)), y)


@pytest.mark.parametrize(
    ("name", "mixes", "trained"),
    [
        ("identity", False, False),
        ("random", True, False),
        ("pooling", True, False),
        ("depthwise", True, True),
        ("token_mlp", True, True),
        ("attention", True, True),
        ("halo", True, True),
    ],
)
def test_which_mixers_mix_and_which_learn(name: str, mixes: bool, trained: bool) -> None:
    """The controls: identity mixes nothing; identity, random and pooling learn nothing."""
    mixer = make(name, Layout((3, 3)))
    x = torch.randn(1, 9, CHANNELS, dtype=torch.float64)
    y = x.clone()
    y[0, 4] += 1
    others = [token for token in range(9) if token != 4]
    assert ((mixer(x) - mixer(y))[0, others].abs().max() > 1e-6).item() is mixes
    assert any(p.requires_grad for p in mixer.parameters()) is trained


def test_pooling_is_the_mean_of_the_neighbours_less_the_token() -> None:
    """PoolFormer's mixer on a grid, where the border has fewer neighbours."""
    mixer = make("pooling", Layout((3, 4)))
    x = torch.randn(1, 12, 1, dtype=torch.float64)
    image, found = x.view(3, 4), mixer(x).view(3, 4)
    for i in range(3):
        for j in range(4):
            window = image[max(i - 1, 0) : i + 2, max(j - 1, 0) : j + 2]
            assert found[i, j].item() == pytest.approx((window.mean() - image[i, j]).item())


def test_depthwise_has_one_seven_by_seven_filter_a_channel() -> None:
    mixer = make("depthwise", Layout((4, 5)))
    x = torch.randn(2, 20, CHANNELS, dtype=torch.float64)
    image = x.transpose(1, 2).reshape(2, CHANNELS, 4, 5)
    for channel in range(CHANNELS):
        alone = nn.functional.conv2d(
            image[:, channel : channel + 1],
            mixer.conv.weight[channel : channel + 1],
            mixer.conv.bias[channel : channel + 1],
            padding=3,
        )
        torch.testing.assert_close(mixer(x)[..., channel], alone.flatten(1))


def test_the_random_matrix_is_fixed_and_kept_with_the_weights() -> None:
    """A fixed random mixer is part of the network: saved, loaded, never trained; its rows sum to one."""
    torch.manual_seed(0)
    first, second = RandomMixer(5), RandomMixer(5)
    torch.testing.assert_close(first.weight.sum(-1), torch.ones(5))
    second.load_state_dict(first.state_dict())
    x = torch.randn(2, 5, 3)
    assert torch.equal(first(x), second(x))
    assert not list(first.parameters())
