"""A3, A4, M1: patches and word vectors."""

from __future__ import annotations

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from weft.nn.embeddings import NormAndDrop, PatchEmbed, WordEmbed


@settings(deadline=None, max_examples=15)
@given(patch=st.integers(1, 4), rows=st.integers(1, 3), columns=st.integers(1, 4), chans=st.integers(1, 3))
def test_patches_are_a_strided_convolution(patch: int, rows: int, columns: int, chans: int) -> None:
    """A3, M1: tokens in reading order, each the linear image of one patch, for any rectangle."""
    torch.manual_seed(0)
    embed = PatchEmbed(chans, 5, patch).double()
    torch.nn.init.normal_(embed.bias)
    x = torch.randn(2, chans, rows * patch, columns * patch, dtype=torch.float64)
    expected = F.conv2d(x, embed.weight, embed.bias, stride=patch).flatten(2).transpose(1, 2)
    assert embed(x).shape == (2, rows * columns, 5)
    torch.testing.assert_close(embed(x), expected)


def test_patches_do_not_overlap() -> None:
    """M1, erratum: one pixel is part of one token."""
    embed = PatchEmbed(1, 4, 4)
    x = torch.randn(1, 1, 8, 8)
    y = x.clone()
    y[0, 0, 3, 4] += 1  # the last row of the upper right patch, its first column
    changed = (embed(x) - embed(y)).abs().sum(-1)[0] > 0
    assert changed.tolist() == [False, True, False, False]


def test_word_vectors_take_segments_when_there_are_any() -> None:
    """A4: words plus segments; segment 0 when none is given; text networks without segments ignore them."""
    torch.manual_seed(0)
    ids, segments = torch.tensor([[3, 1, 4]]), torch.tensor([[0, 1, 1]])
    embed = WordEmbed(10, 6, segments=2)
    words, parts = embed.words.weight, embed.segments.weight
    torch.testing.assert_close(embed(ids, segments), (words[ids] + parts[segments]))
    torch.testing.assert_close(embed(ids), words[ids] + parts[0])
    plain = WordEmbed(10, 6)
    assert plain.segments is None
    assert torch.equal(plain(ids, segments), plain.words.weight[ids])


def test_norm_and_drop_is_a_norm_when_not_training() -> None:
    """A4: BERT's norm over the sum of the embeddings, with its own ε."""
    layer = NormAndDrop(6, 1e-12, 0.5).eval()
    x = torch.randn(2, 3, 6)
    assert layer.norm.eps == 1e-12
    torch.testing.assert_close(layer(x), F.layer_norm(x, (6,), eps=1e-12))
