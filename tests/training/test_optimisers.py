"""Optimisers by name, the hand-written ones against their papers' formulas (F5)."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch
from torch import nn

import formats
from weft.errors import WeftError
from weft.training.config import OptimisationConfig
from weft.training.optim.optimisers import USUAL_RATE, Lamb, Muon, create_optimiser, orthogonalise, split_for_muon
from weft.training.run.narrow import autocast

NAMES = list(USUAL_RATE)


class Tiny(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.hidden, self.twin = nn.Linear(4, 6), nn.Linear(6, 6), nn.Linear(6, 6)
        self.head = nn.Linear(6, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(torch.tanh(self.twin(torch.tanh(self.hidden(torch.tanh(self.first(x)))))))

    def groups(self, decay: float) -> list[dict]:
        matrices = [p for p in self.parameters() if p.ndim > 1]
        vectors = [p for p in self.parameters() if p.ndim == 1]
        return [{"params": matrices, "weight_decay": decay}, {"params": vectors, "weight_decay": 0.0}]


def backward(net: nn.Module, seed: int = 0) -> float:
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(64, 4, generator=generator)
    net.zero_grad()
    loss = (net(x) - x[:, :2].sin()).square().mean()
    loss.backward()
    return loss.item()


def test_no_optimiser_imports_the_compiler() -> None:
    """It takes as long as torch itself, and few runs compile anything."""
    code = (
        "import sys, torch; from weft.training.optim.optimisers import USUAL_RATE, create_optimiser\n"
        "for name in USUAL_RATE:\n"
        "    net = torch.nn.Sequential(*(torch.nn.Linear(3, 3) for _ in range(3)))\n"
        "    optimiser = create_optimiser(name, [{'params': list(net.parameters())}], 0.1, net)\n"
        "    net(torch.ones(2, 3)).sum().backward(); optimiser.step(); optimiser.zero_grad()\n"
        "    optimiser.load_state_dict(optimiser.state_dict())\n"
        "print('torch._dynamo' in sys.modules)"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == "False"


@pytest.mark.parametrize(
    ("name", "own"),
    [
        ("sgd", torch.optim.SGD),
        ("adagrad", torch.optim.Adagrad),
        ("adam", torch.optim.Adam),
        ("adamw", torch.optim.AdamW),
    ],
)
def test_torch_optimisers_keep_their_bits(name: str, own: type[torch.optim.Optimizer]) -> None:
    weft, torchs = Tiny(), Tiny()
    optimisers = create_optimiser(name, weft.groups(0.1), 0.01), own(torchs.groups(0.1), lr=0.01, fused=True)
    for seed in range(5):
        for net, optimiser in zip((weft, torchs), optimisers, strict=True):
            backward(net, seed)
            optimiser.step()
    assert all(map(torch.equal, weft.parameters(), torchs.parameters()))
    assert optimisers[0].state_dict().keys() == optimisers[1].state_dict().keys()


@pytest.mark.parametrize("name", NAMES)
def test_every_optimiser_lowers_the_loss(name: str) -> None:
    net = Tiny()
    optimiser = create_optimiser(name, net.groups(0.0), USUAL_RATE[name], net)
    first = backward(net)
    for _ in range(200):
        backward(net)
        optimiser.step()
    assert backward(net) < 0.7 * first


@pytest.mark.parametrize("name", NAMES)
def test_decay_spares_norms_and_biases(name: str) -> None:
    """With a zero gradient only decay moves a weight: matrices shrink, vectors stay."""
    net = Tiny()
    with torch.no_grad():
        for p in net.parameters():
            p.fill_(1.0)
            p.grad = torch.zeros_like(p)
    create_optimiser(name, net.groups(0.1), 0.01, net).step()
    assert all((p < 1).all() for p in net.parameters() if p.ndim > 1)
    assert all((p == 1).all() for p in net.parameters() if p.ndim == 1)


def test_names_of_the_configuration_are_those_that_can_be_made() -> None:
    for name in NAMES:
        OptimisationConfig(opt=name)
    with pytest.raises(WeftError, match="no optimiser 'sdg'"):
        create_optimiser("sdg", Tiny().groups(0), 0.1)


def test_lamb_follows_algorithm_2_of_its_paper() -> None:
    """You et al. 2020, written out per tensor in float64."""
    torch.manual_seed(1)
    weight = nn.Parameter(torch.randn(3, 5, dtype=torch.float64))
    expected, m, v = weight.detach().clone(), torch.zeros(3, 5), torch.zeros(3, 5)
    optimiser = Lamb([{"params": [weight], "weight_decay": 0.1}], lr=0.02)
    for step in range(1, 6):
        gradient = torch.randn(3, 5, dtype=torch.float64)
        weight.grad = gradient.clone()
        optimiser.step()
        m, v = 0.9 * m + 0.1 * gradient, 0.999 * v + 0.001 * gradient**2
        r = (m / (1 - 0.9**step)) / ((v / (1 - 0.999**step)).sqrt() + 1e-6) + 0.1 * expected
        expected = expected - 0.02 * (expected.norm() / r.norm()) * r
    torch.testing.assert_close(weight.detach(), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("shape", [(1, 8, 8), (3, 4, 16), (2, 16, 4)])
def test_orthogonalised_matrices_have_singular_values_near_one(shape: tuple[int, int, int]) -> None:
    torch.manual_seed(0)
    values = torch.linalg.svdvals(orthogonalise(torch.randn(shape)))
    assert values.min() > 0.5 and values.max() < 1.3


def test_in_a_narrow_run_products_of_muon_are_narrow_and_its_moves_are_not() -> None:
    formats.require("bf16")
    torch.manual_seed(0)
    matrices = torch.randn(3, 16, 64)
    with autocast("cpu", torch.bfloat16):
        turned = orthogonalise(matrices)
    values, exact = torch.linalg.svdvals(turned), orthogonalise(matrices)
    assert turned.dtype == torch.float32 and values.min() > 0.5 and values.max() < 1.3
    assert 0 < (turned - exact).norm() < 0.05 * exact.norm()


def test_orthogonalising_keeps_singular_vectors() -> None:
    """U f(S) Vᵀ: the result turned back by U and V is diagonal."""
    torch.manual_seed(0)
    matrix = torch.randn(6, 9, dtype=torch.float64)
    u, _, vt = torch.linalg.svd(matrix, full_matrices=False)
    turned = u.T @ orthogonalise(matrix[None])[0] @ vt.T
    torch.testing.assert_close(turned, torch.diag(turned.diagonal()), atol=1e-9, rtol=0)


def test_muon_moves_as_torchs_own_does() -> None:
    """torch.optim.Muon with the same scaling, momentum and decay computes in bf16: equal to that precision."""
    formats.require("bf16")
    torch.manual_seed(0)
    ours, theirs = (nn.Parameter(torch.ones(8, 16)) for _ in range(2))
    one = Muon([{"params": [ours], "weight_decay": 0.1, "muon": True}], lr=0.1)
    other = torch.optim.Muon([theirs], lr=0.1, weight_decay=0.1, momentum=0.95, adjust_lr_fn="match_rms_adamw")
    for _ in range(4):
        gradient = torch.randn(8, 16)
        ours.grad, theirs.grad = gradient.clone(), gradient.clone()
        one.step()
        other.step()
    moved = (theirs.detach() - 1).norm()
    assert (ours - theirs).norm() < 0.03 * moved


def test_matrices_updated_together_move_as_if_alone() -> None:
    torch.manual_seed(0)
    together = [nn.Parameter(torch.randn(5, 7)) for _ in range(3)]
    alone = [nn.Parameter(p.detach().clone()) for p in together]
    optimisers = [Muon([{"params": together, "muon": True}], lr=0.1)]
    optimisers += [Muon([{"params": [p], "muon": True}], lr=0.1) for p in alone]
    for one, other in zip(together, alone, strict=True):
        one.grad = torch.randn(5, 7)
        other.grad = one.grad.clone()
    for optimiser in optimisers:
        optimiser.step()
    for one, other in zip(together, alone, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)


def test_muon_takes_hidden_matrices_and_leaves_the_edges_to_adamw() -> None:
    net = Tiny()
    taken = {id(p) for group in split_for_muon(net.groups(0.1), net) if group["muon"] for p in group["params"]}
    names = {name for name, p in net.named_parameters() if id(p) in taken}
    assert names == {"hidden.weight", "twin.weight"}


@pytest.mark.parametrize("name", NAMES)
def test_a_restored_optimiser_goes_on_bit_for_bit(name: str) -> None:
    from weft.training.loop.progress import Progress, capture, restore
    from weft.training.storage.checkpoints import Checkpoint

    net, copy = Tiny(), Tiny()
    one = create_optimiser(name, net.groups(0.1), 0.01, net)
    for seed in range(3):
        backward(net, seed)
        one.step()
    kept: Checkpoint = capture(Progress(), net, one, None)
    other = create_optimiser(name, copy.groups(0.1), 0.01, copy)
    restore(kept, copy, other, None)
    for seed in range(3, 6):
        for network, optimiser in ((net, one), (copy, other)):
            backward(network, seed)
            optimiser.step()
    assert all(torch.equal(a, b) for a, b in zip(net.parameters(), copy.parameters(), strict=True))
