"""C8: the recurrent convolution layer in both forms against a hand-written unrolling."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from weft.networks.rcnn import RecurrentConv2d
from weft.nn.norm import BatchNorm2d


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_two_kernels_as_liang_and_hu_wrote_it(steps: int) -> None:
    """C8: x_t = act(W_f∗u + W_r∗x_{t−1} + b), from x_0 = act(W_f∗u + b)."""
    torch.manual_seed(0)
    layer = RecurrentConv2d(4, steps=steps, norm=False, bias=True).double()
    torch.nn.init.normal_(layer.forward_conv.bias)
    u = torch.randn(2, 4, 6, 5, dtype=torch.float64)
    driven = F.conv2d(u, layer.forward_conv.weight, layer.forward_conv.bias, padding=1)
    x = driven.relu()
    for _ in range(steps):
        x = (driven + F.conv2d(x, layer.recurrent_conv.weight, padding=1)).relu()
    torch.testing.assert_close(layer(u), x)


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_one_kernel_as_the_primer_wrote_it(steps: int) -> None:
    """C8: o_1 = act(k∗u), o_t = act(k∗(o_1 + o_{t−1})), one shared kernel."""
    torch.manual_seed(0)
    layer = RecurrentConv2d(4, steps=steps, form="one_kernel", norm=False).double()
    u = torch.randn(2, 4, 6, 5, dtype=torch.float64)
    kernel = layer.forward_conv.weight
    outputs = [F.conv2d(u, kernel, padding=1).relu()]
    for _ in range(steps):
        outputs.append(F.conv2d(outputs[0] + outputs[-1], kernel, padding=1).relu())
    torch.testing.assert_close(layer(u), outputs[-1])
    assert sum(p.numel() for p in layer.parameters()) == 9 * 4 * 4


@pytest.mark.parametrize("form", ["two_kernels", "one_kernel"])
def test_more_steps_need_no_more_kernels(form: str) -> None:
    """C8: weights are shared over time; only the norm is a step's own."""
    few, many = (RecurrentConv2d(4, steps=steps, form=form, norm=False) for steps in (1, 5))  # type: ignore[arg-type]
    assert [p.shape for p in few.parameters()] == [p.shape for p in many.parameters()]
    normed = RecurrentConv2d(4, steps=5, form=form)  # type: ignore[arg-type]
    assert len({id(norm) for norm in normed.norms if isinstance(norm, BatchNorm2d)}) == 6


def test_the_gradient_of_a_shared_kernel_is_the_sum_over_steps() -> None:
    """C8: unrolled with a copy of the kernel for each step, the copies' gradients add up to the shared one's."""
    torch.manual_seed(0)
    layer = RecurrentConv2d(3, steps=2, form="one_kernel", norm=False).double()
    u = torch.randn(2, 3, 5, 5, dtype=torch.float64)
    layer(u).square().sum().backward()
    copies = [layer.forward_conv.weight.detach().clone().requires_grad_() for _ in range(3)]
    first = x = F.conv2d(u, copies[0], padding=1).relu()
    for copy in copies[1:]:
        x = F.conv2d(first + x, copy, padding=1).relu()
    x.square().sum().backward()
    torch.testing.assert_close(layer.forward_conv.weight.grad, sum(copy.grad for copy in copies))  # type: ignore[misc]


@pytest.mark.parametrize("form", ["two_kernels", "one_kernel"])
def test_each_step_is_normalised_by_its_own_statistics(form: str) -> None:
    """C8: with the norm the first step alone feeds the first norm's running mean."""
    torch.manual_seed(0)
    layer, u = RecurrentConv2d(3, steps=2, form=form), torch.randn(4, 3, 6, 6) + 3  # type: ignore[arg-type]
    layer(u)
    driven = layer.forward_conv(u)
    torch.testing.assert_close(layer.norms[0].running_mean, 0.1 * driven.mean((0, 2, 3)))
    assert not torch.allclose(layer.norms[0].running_mean, layer.norms[1].running_mean)
