"""A1, M6: maps of whole networks, and what the lens `attention` says of them, against closed forms."""

from __future__ import annotations

from math import log2

import pytest
import torch
from torch import Tensor

from insight.small import subject_of
from weft.errors import WeftError
from weft.insight import look, registry
from weft.insight.drawing.highlight import texts
from weft.insight.finding import Unfit
from weft.insight.lenses.attention import map_statistics
from weft.insight.lenses.attention.head_statistics import watch_heads
from weft.insight.lenses.attention.lens import words_alone
from weft.insight.toeplitz import distances
from weft.networks.gmlp import GatedBlock
from weft.nn.attention import Attention, attention_maps
from weft.nn.blocks import Block, Layout


def rebuilt(block: Block | GatedBlock, x: Tensor, mask: Tensor | None, seen: Tensor) -> Tensor:
    """A block's output from its input and maps: map × values in place of what the fused kernel computes."""
    layer = block.mixer if isinstance(block, Block) else block.tiny
    entering = x if not block.norm_first else (block.norm1 if isinstance(block, Block) else block.norm)(x)
    attended = layer.out((seen @ layer.project(entering)[2]).transpose(1, 2).flatten(2))
    if isinstance(block, GatedBlock):
        y = block.fc2(block.gate(block.act(block.fc1(entering)), mask, attended))
        return x + y if block.norm_first else block.norm(x + y)
    if block.norm_first:
        x = x + attended
        return x + block.channels(block.norm2(x))
    x = block.norm1(x + attended)
    return block.norm2(x + block.channels(x))


@torch.no_grad()
@pytest.mark.parametrize("name", ["vit_pico_p4_32", "bert_tiny", "amlp_text_tiny"])
def test_rows_sum_to_one_and_maps_times_values_are_the_block(name: str) -> None:
    """A1, M6: norm before (ViT), norm after (BERT), inside the gate (aMLP); padding gets nothing."""
    subject = subject_of(name)
    batch = subject.examples(5)
    mask = batch.inputs.get("mask")
    passed: list[tuple[Tensor, Tensor]] = []
    handles = [
        block.register_forward_hook(lambda block, inputs, output: passed.append((inputs[0], output)))
        for block in subject.network.blocks
    ]
    with attention_maps(subject.network) as seen:
        watched = subject.network(**batch.inputs)
    for handle in handles:
        handle.remove()
    assert torch.equal(watched, subject.network(**batch.inputs)), "watching changes nothing"
    assert len(seen) == len(passed) == 2
    for block, each, (x, y) in zip(subject.network.blocks, seen.values(), passed, strict=True):
        torch.testing.assert_close(each.sum(-1), torch.ones_like(each[..., 0]))
        torch.testing.assert_close(rebuilt(block, x, mask, each), y, atol=1e-5, rtol=1e-4)
        if mask is not None:
            assert each.masked_select(~mask[:, None, None, :].expand_as(each)).eq(0).all()


def test_distance_and_entropy_of_known_maps() -> None:
    """A1: a head that looks at itself, at its right neighbour, or at all alike; the class token does not count."""
    layout = Layout((3, 4), extra=1)
    even = torch.full((2, 1, 13, 13), 1 / 13)
    itself = torch.eye(13).expand(2, 1, 13, 13)
    assert map_statistics.mean_distance(even, layout).flatten().tolist() == pytest.approx(
        [float(distances((3, 4)).mean())] * 2
    )
    assert map_statistics.mean_distance(itself, layout).abs().max() == 0
    assert map_statistics.entropy(even)[0, 0].item() == pytest.approx(log2(13))
    assert map_statistics.entropy(itself)[0, 0].item() == 0
    right = torch.roll(torch.eye(6), 1, dims=1).expand(1, 1, 6, 6)  # the last looks at the first, five away
    assert map_statistics.mean_distance(right, Layout((6,)))[0, 0].item() == pytest.approx((5 * 1 + 5) / 6)
    mask = torch.tensor([[True] * 5 + [False]])
    assert map_statistics.mean_distance(right, Layout((6,)), mask)[0, 0].item() == pytest.approx(1)


def test_rollout_of_known_maps() -> None:
    """Abnar & Zuidema: (A + I)/2 of each layer, multiplied; L layers that look at the first token alone leave 2⁻ᴸ."""
    first = torch.zeros(1, 2, 4, 4)
    first[..., 0] = 1
    flow = map_statistics.rollout([first] * 3)
    torch.testing.assert_close(flow.sum(-1), torch.ones(1, 4))
    assert flow[0, 2].tolist() == pytest.approx([1 - 2**-3, 0, 2**-3, 0])
    assert map_statistics.read_by_output(flow, None, "token")[0].tolist() == pytest.approx([1, 0, 0, 0])
    mask = torch.tensor([[False, False, True, True]])
    assert map_statistics.read_by_output(flow, mask, "token")[0].tolist() == pytest.approx(flow[0, 2].tolist())
    assert map_statistics.read_by_output(flow, mask, "mean")[0].tolist() == pytest.approx(flow[0, 2:].mean(0).tolist())


def test_a_head_that_ignores_its_input_is_fixed() -> None:
    """A1: without queries and keys all tokens are alike for every input: fixed is 1, and distance and entropy even."""
    subject = subject_of("vit_pico_p4_32", depth=1)
    layers = {name: layer for name, layer in subject.network.named_modules() if isinstance(layer, Attention)}
    with torch.no_grad():
        for layer in layers.values():
            layer.qkv.weight[: 2 * layer.width] = 0
            layer.qkv.bias[: 2 * layer.width] = 0
    heads, _ = watch_heads(subject, layers, 20)
    assert [head.fixed for head in heads] == pytest.approx([1, 1], abs=1e-5)
    assert [head.entropy for head in heads] == pytest.approx([log2(17)] * 2, abs=1e-4)
    assert [head.distance for head in heads] == pytest.approx([float(distances((4, 4)).mean())] * 2, abs=1e-4)


def test_figures_do_not_depend_on_the_size_of_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Means are sums over all examples, texts of different lengths included."""
    subject = subject_of("bert_tiny")
    layers = {name: layer for name, layer in subject.network.named_modules() if isinstance(layer, Attention)}
    whole, _ = watch_heads(subject, layers, 30)
    monkeypatch.setattr("weft.insight.lenses.gates.token_matrices.batch_size", lambda subject: 7)
    parts, _ = watch_heads(subject, layers, 30)
    assert [head.distance for head in parts] == pytest.approx([head.distance for head in whole], rel=1e-5)
    assert [head.entropy for head in parts] == pytest.approx([head.entropy for head in whole], rel=1e-5)


@pytest.mark.parametrize("name", ["vit_pico_p4_32", "bert_tiny", "amlp_text_tiny"])
def test_the_lens_shows_every_head(name: str) -> None:
    finding = registry.look(subject_of(name), "attention", examples=12, shown=3)
    heads = 1 if "amlp" in name else 2
    assert len(finding.table.rows) == 2 * heads
    assert list(finding.pictures) == ["distance", "entropy", "examples", "maps"]
    assert finding.pictures["maps"].content.count("<image") == 2 * heads + 1  # type: ignore[union-attr]  # with the key


def test_a_network_without_attention_is_told_where_to_look() -> None:
    with pytest.raises(WeftError, match=r"has no attention; .* the lens gates shows"):
        registry.look(subject_of("mixer_pico_p4_32"), "attention")


def test_special_tokens_take_no_colour_from_the_words() -> None:
    title, words, weights = words_alone(1, ["[CLS]", "good", "film", "[SEP]"], [0.7, 0.1, 0.05, 0.15])
    assert weights == [None, 0.1, 0.05, None] and "hold 85 %" in title
    drawn = texts([(title, words, weights)], "said", "caption").page
    assert 'style="--s:0.55" title="good: 0.1"' in drawn and '<span class="aside">[CLS]</span>' in drawn


def test_attention_in_blocks_is_not_called_none() -> None:
    with pytest.raises(Unfit, match="attends within blocks and their halo"):
        look(subject_of("halonet_nano_32"), "attention")
    with pytest.raises(Unfit, match="nfnet_nano_32 has no attention"):
        look(subject_of("nfnet_nano_32"), "attention")
