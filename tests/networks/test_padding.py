"""A sentence's result depends neither on what stands in its padding nor on how much of it there is."""

from __future__ import annotations

from contextlib import nullcontext
from functools import cache
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from networks.small import LENGTH, TEXTS, WORDS, lengths_to_mask, shaken, small
from weft.networks.base.network import Network
from weft.nn.noise import example_noise

GATES = [
    (form, weight) for form in ("linear", "additive", "multiplicative", "split") for weight in ("dense", "toeplitz")
]

VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    **{name: (name, {}) for name in TEXTS},
    **{f"gate {form} {weight}": ("gmlp_text_tiny", {"gate": form, "gate_weight": weight}) for form, weight in GATES},
    "tiny attention, toeplitz": ("amlp_text_tiny", {"gate_weight": "toeplitz", "gate": "additive"}),
    "first token pooled": ("mixer_text_tiny", {"pool": "token"}),
    "norm after": ("mixer_text_tiny", {"norm_first": False}),
    "gated, norm after": ("gmlp_text_tiny", {"norm_first": False}),
    "sinusoidal positions": ("bert_tiny", {"positions": "sinusoidal"}),
}


@cache
def network(variant: str) -> Network:
    """Strong noise everywhere that the family knows it."""
    name, changes = VARIANTS[variant]
    rates = {"drop_rate": 0.3}
    if name not in ("lstm_text", "conv_text"):
        rates |= {"drop_path_rate": 0.4, "head_drop_rate": 0.2}
    return shaken(small(name, **changes, **rates)).double()


def predict(net: Network, ids: Tensor, mask: Tensor, training: bool) -> Tensor:
    net.train(training)
    context = example_noise(3, 5, torch.arange(100, 100 + len(ids))) if training else nullcontext()
    with context:
        return net(ids, mask=mask)


@pytest.mark.parametrize("training", [False, True], ids=["evaluating", "training"])
@pytest.mark.parametrize("variant", VARIANTS)
@settings(deadline=None, max_examples=6)
@given(
    lengths=st.lists(st.integers(1, LENGTH), min_size=1, max_size=3),
    room=st.integers(0, LENGTH),
    seed=st.integers(0, 9),
)
def test_padding_never_changes_a_prediction(
    variant: str, training: bool, lengths: list[int], room: int, seed: int
) -> None:
    """Other words in the padding, and more of it, give the same logits, with noise keyed by example too."""
    net = network(variant)
    generator = torch.Generator().manual_seed(seed)
    longest = max(lengths)
    wide = min(longest + room, LENGTH)
    ids = torch.randint(0, WORDS, (len(lengths), wide), generator=generator)
    mask = lengths_to_mask(torch.tensor(lengths), wide)
    other_words = torch.where(mask, ids, (ids + 7) % WORDS)
    expected = predict(net, ids, mask, training)
    torch.testing.assert_close(predict(net, other_words, mask, training), expected)
    torch.testing.assert_close(predict(net, ids[:, :longest], mask[:, :longest], training), expected)


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_sentence_alone_without_a_mask_is_the_same_sentence(variant: str) -> None:
    """No padding and no mask is the reference that padding must reproduce."""
    net = network(variant)
    ids = torch.randint(0, WORDS, (4, LENGTH), generator=torch.Generator().manual_seed(0))
    lengths = torch.tensor([1, 4, 7, LENGTH])
    padded = predict(net, ids, lengths_to_mask(lengths, LENGTH), training=False)
    for row, length, logits in zip(ids, lengths, padded, strict=True):
        torch.testing.assert_close(net(row[None, :length])[0], logits)


@pytest.mark.parametrize("variant", VARIANTS)
def test_padding_gets_no_gradient(variant: str) -> None:
    """Words that stand only in the padding are not trained."""
    net = network(variant).train()
    net.zero_grad()
    ids = torch.full((3, LENGTH), 1)
    ids[:, 4:] = 2
    mask = lengths_to_mask(torch.tensor([4, 4, 4]), LENGTH)
    with example_noise(0, 0, torch.arange(3)):
        net(ids, mask=mask).square().sum().backward()
    gradient = net.embed.words.weight.grad.abs().sum(1)
    assert gradient[1] > 0
    assert gradient[2] == 0


@pytest.mark.parametrize("variant", VARIANTS)
def test_padding_may_stand_anywhere(variant: str) -> None:
    """Whatever the mask hides is hidden, on the left and in the middle too."""
    net = network(variant)
    mask = torch.tensor([[1, 0, 1, 1, 0, 1, 0, 0, 1, 0], [0, 0, 1, 0, 1, 1, 1, 1, 1, 1]], dtype=torch.bool)
    ids = torch.randint(0, WORDS, (2, LENGTH), generator=torch.Generator().manual_seed(0))
    other = torch.where(mask, ids, (ids + 7) % WORDS)
    torch.testing.assert_close(predict(net, ids, mask, False), predict(net, other, mask, False))
