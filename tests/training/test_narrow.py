"""Narrow number formats: what is computed in them, and what is not."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from training.runs import train
from weft import machine
from weft.data.config import TransformConfig
from weft.training.config import DurationConfig, ExecutionConfig, OptimisationConfig, RunConfig
from weft.training.run import rehearsal
from weft.training.run.narrow import autocast

BF16 = torch.bfloat16


@pytest.mark.parametrize(
    ("kernel", "stride", "side", "expected"),
    [
        (3, 2, (1, 1), torch.float32),
        (3, 2, (9, 2), torch.float32),
        (2, 4, (3, 9), torch.float32),
        (3, 2, (4, 4), BF16),
        (3, 1, (1, 1), BF16),
        (4, 4, (8, 8), BF16),
    ],
)
def test_convolutions_with_a_stride_stay_wide_on_small_maps(
    kernel: int, stride: int, side: tuple[int, int], expected: torch.dtype
) -> None:
    conv = nn.Conv2d(2, 2, kernel, stride=stride, padding=1)
    with autocast("cpu", BF16):
        assert conv(torch.ones(1, 2, *side)).dtype == expected
        assert conv(torch.ones(1, 2, *side, dtype=BF16)).dtype == expected, "what comes from a narrow layer, too"
    with autocast("cpu", None):
        assert conv(torch.ones(1, 2, *side)).dtype == torch.float32


def test_their_gradients_are_those_of_float32() -> None:
    """On some processors part of them was what happened to lie in memory."""
    torch.manual_seed(0)
    conv, x = nn.Conv2d(16, 16, 3, stride=2, padding=1, bias=False), torch.randn(4, 16, 1, 1)

    def gradient(kind: torch.dtype | None) -> Tensor:
        conv.zero_grad()
        with autocast("cpu", kind):
            y = conv(x)
        y.float().square().sum().backward()
        assert conv.weight.grad is not None
        return conv.weight.grad.clone()

    machine.spoil_fresh_memory()
    try:
        torch.testing.assert_close(gradient(BF16), gradient(None), rtol=0.05, atol=0.05)
    finally:
        machine.leave_fresh_memory()


def test_a_network_that_ends_on_one_pixel_learns_in_bf16(tmp_path: Path) -> None:
    if not (answer := rehearsal.try_format("bf16")).works:
        pytest.skip(f"this machine cannot compute in bf16: {answer.why}")
    config = RunConfig(
        source="digits",
        model="resnet8_cifar",
        transform=TransformConfig(img_size=8),
        network={"widths": [8, 8, 8, 8, 8], "layers": [1, 1, 1, 1, 1]},
        optimisation=OptimisationConfig(batch_size=32, lr=1e-2),
        duration=DurationConfig(steps=60),
        execution=ExecutionConfig(precision="bf16", compile=False, threads=1),
    )
    record = train(config, tmp_path / "run")
    assert record["metrics"]["accuracy"] > 0.2


def test_attention_stays_wide_and_products_do_not() -> None:
    x, mask = torch.ones(1, 2, 4, 8, dtype=BF16), torch.ones(4, 4, dtype=torch.bool)
    with autocast("cpu", BF16):
        assert F.scaled_dot_product_attention(x, x, x, attn_mask=mask).dtype == torch.float32
        assert nn.Linear(8, 8)(x).dtype == BF16
