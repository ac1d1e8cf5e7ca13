"""Gradient clipping: by the common norm, and adaptively by units, which is timm's to the last bit but for the order."""

from __future__ import annotations

import copy

import pytest
import torch

from networks.small import batch, shaken, small
from oracles import import_timm
from weft.training.config import OptimisationConfig
from weft.training.optim.optimisers import clip_gradients


def with_gradients(name: str, scale: float = 1.0) -> torch.nn.Module:
    network = shaken(small(name)).double()
    inputs = {key: value.double() for key, value in batch(network).items()}
    (scale * network(**inputs).square().sum()).backward()
    return network


@pytest.mark.parametrize("name", ["nfnet_nano_32", "vit_nano_p4_32", "resnet18"])
def test_adaptive_clipping_equals_timm(name: str) -> None:
    """T2: filters, matrices, vectors and single numbers; the head is left out, as timm's training script does."""
    import_timm()
    from timm.utils.agc import adaptive_clip_grad

    ours = with_gradients(name)
    theirs = copy.deepcopy(ours)
    for one, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        other.grad = one.grad.clone() if one.grad is not None else None
    head = {id(parameter) for parameter in theirs.head.parameters()}
    adaptive_clip_grad([p for p in theirs.parameters() if id(p) not in head], clip_factor=0.02)
    before = torch.nn.utils.get_total_norm([p.grad for p in ours.parameters() if p.grad is not None])
    torch.testing.assert_close(clip_gradients(ours, "agc", 0.02), before)
    for (key, one), other in zip(ours.named_parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(one.grad, other.grad, rtol=1e-12, atol=1e-15, msg=key)


def test_small_gradients_stay_and_zero_clips_nothing() -> None:
    for mode, limit, scale in (("agc", None, 1e-9), ("agc", 0.0, 1e6), ("norm", 0.0, 1e6), ("norm", None, 1e-9)):
        network = with_gradients("nfnet_nano_32", scale)
        before = [p.grad.clone() for p in network.parameters()]
        clip_gradients(network, mode, limit)  # type: ignore[arg-type]
        assert all(torch.equal(p.grad, b) for p, b in zip(network.parameters(), before, strict=True))


def test_the_common_norm_is_one_by_default() -> None:
    network = with_gradients("resnet18", 1e6)
    asked = OptimisationConfig()
    assert clip_gradients(network, asked.clip_mode, asked.clip_grad) > 1
    assert torch.nn.utils.get_total_norm([p.grad for p in network.parameters()]) == pytest.approx(1, abs=1e-6)
