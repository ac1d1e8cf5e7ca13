"""The cross entropy over a vocabulary is torch's, in value and gradient, at less memory."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from weft.nn import word_loss
from weft.nn.word_loss import word_losses


def problem(positions: int, words: int, kind: torch.dtype = torch.float64) -> tuple[list[Tensor], Tensor]:
    generator = torch.Generator().manual_seed(0)
    shapes = ((positions, 12), (words, 12), (words,))
    leaves = [torch.randn(shape, generator=generator, dtype=kind).requires_grad_() for shape in shapes]
    return leaves, torch.randint(words, (positions,), generator=generator)


def gradients(loss: Tensor, leaves: list[Tensor]) -> list[Tensor]:
    return list(torch.autograd.grad(loss, leaves))


@pytest.mark.parametrize("weights", ["mean", "sum", "uneven"])
@pytest.mark.parametrize("chunk", [7 * 50, 1 << 24])
def test_losses_hits_and_gradients_are_the_plain_ones(
    weights: str, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(word_loss, "CHUNK", chunk)
    leaves, answers = problem(33, 50, torch.float32)
    losses, hits = word_losses(*leaves, answers)
    logits = F.linear(leaves[0], leaves[1], leaves[2])
    plain = F.cross_entropy(logits, answers, reduction="none")
    torch.testing.assert_close(losses, plain)
    assert torch.equal(hits, logits.argmax(1) == answers)
    factor = {"mean": torch.full((33,), 1 / 33), "sum": torch.ones(33), "uneven": torch.rand(33)}[weights]
    for mine, theirs in zip(
        gradients((losses * factor).sum(), leaves), gradients((plain * factor).sum(), leaves), strict=True
    ):
        torch.testing.assert_close(mine, theirs, rtol=1e-5, atol=1e-6)


def test_without_gradients_and_without_positions() -> None:
    leaves, answers = problem(9, 20, torch.float32)
    with torch.no_grad():
        torch.testing.assert_close(word_losses(*leaves, answers)[0], word_losses(*leaves, answers)[0])
        losses = word_losses(*leaves, answers)[0]
    torch.testing.assert_close(losses, word_losses(*leaves, answers)[0].detach())
    nothing, _ = word_losses(leaves[0][:0], leaves[1], leaves[2], answers[:0])
    assert all(float(gradient.abs().sum()) == 0 for gradient in gradients(nothing.sum(), leaves))


def test_autocast_changes_nothing() -> None:
    leaves, answers = problem(9, 20, torch.float32)
    plain = word_losses(*leaves, answers)[0]
    with torch.autocast("cpu", torch.bfloat16):
        cast = word_losses(*leaves, answers)[0]
        gradients(cast.sum(), leaves)
    assert torch.equal(cast, plain)


def test_hopeless_guesses_have_a_finite_loss() -> None:
    """A probability that underflows would make the loss infinite if it were taken from the probability."""
    features, words = torch.tensor([[300.0]]).requires_grad_(), torch.tensor([[1.0], [-1.0]])
    losses, _ = word_losses(features, words, torch.zeros(2), torch.tensor([1]))
    assert losses.item() == pytest.approx(600)


def largest_kept(work: object) -> int:
    """Bytes of the largest tensor that autograd keeps or that is made on the way."""
    sizes = [0]

    class DivergenceMonitor(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, operator: object, types: object, args: tuple = (), kwargs: dict | None = None):  # type: ignore[type-arg, no-untyped-def]
            made = operator(*args, **(kwargs or {}))  # type: ignore[operator]
            for tensor in made if isinstance(made, tuple | list) else [made]:
                if isinstance(tensor, Tensor):
                    sizes.append(tensor.numel() * tensor.element_size())
            return made

    with DivergenceMonitor():
        work()  # type: ignore[operator]
    return max(sizes)


def test_the_logits_are_never_alive_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(word_loss, "CHUNK", 50 * 4000)
    leaves, answers = problem(400, 4000, torch.float32)
    whole = 400 * 4000 * 4
    assert largest_kept(lambda: F.cross_entropy(F.linear(*leaves), answers).backward()) >= whole
    assert largest_kept(lambda: word_losses(*leaves, answers)[0].mean().backward()) <= whole // 8
