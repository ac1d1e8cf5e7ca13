"""What each family computes, against its equations; and the few methods that all of them answer."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import erf
from torch import Tensor, nn
from torch.nn import functional as F

from networks.small import CLASSES, IMAGES, SIDE, SMALL, TEXTS, batch, shaken, small
from weft.errors import WeftError
from weft.networks.registry import create_model
from weft.nn.attention import Attention, attention_maps
from weft.nn.convolution import LocallyConnected2d
from weft.training.objective import example_losses


def array(tensor: Tensor) -> np.ndarray:
    return tensor.detach().numpy()


def norm(x: np.ndarray, layer: nn.LayerNorm) -> np.ndarray:
    scaled = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + layer.eps)
    return scaled * array(layer.weight) + array(layer.bias)


def gelu(x: np.ndarray) -> np.ndarray:
    return x * 0.5 * (1 + erf(x / np.sqrt(2)))


def linear(x: np.ndarray, layer: nn.Linear) -> np.ndarray:
    return x @ array(layer.weight).T + array(layer.bias)


def patches(network: nn.Module, image: np.ndarray, side: int) -> np.ndarray:
    """One image → (tokens, channels): non-overlapping squares in reading order, each embedded."""
    weight, bias = array(network.embed.weight), array(network.embed.bias)
    rows = range(0, image.shape[1], side)
    cut = [image[:, i : i + side, j : j + side] for i in rows for j in range(0, image.shape[2], side)]
    return np.stack([(weight * patch).sum((1, 2, 3)) + bias for patch in cut])


def test_mixer_is_its_equations_from_pixels_to_logits() -> None:
    """M1: patches, U = X + W₂ σ(W₁ LN(X)), Y = U + W₄ σ(W₃ LN(U)), norm, mean over tokens, linear head, in NumPy."""
    network = shaken(small("mixer_nano_p4_32")).double()
    x = batch(network)["x"].double()
    found = array(network(x))
    for logits, image in zip(found, array(x), strict=True):
        tokens = patches(network, image, 4)
        for block in network.blocks:
            mixed = gelu(linear(norm(tokens, block.norm1).T, block.mixer.fc1))
            u = tokens + linear(mixed, block.mixer.fc2).T
            tokens = u + linear(gelu(linear(norm(u, block.norm2), block.channels.fc1)), block.channels.fc2)
        np.testing.assert_allclose(logits, linear(norm(tokens, network.norm).mean(0), network.head), atol=1e-10)


def test_gmlp_is_its_equations_from_pixels_to_logits() -> None:
    """M2: Z = σ(LN(X) U), s(Z) = Z₁ ⊙ (W LN(Z₂) + b), Y = s(Z) V + X, norm, mean, head, in NumPy."""
    network = shaken(small("gmlp_nano_p4_32")).double()
    x = batch(network)["x"].double()
    found = array(network(x))
    for logits, image in zip(found, array(x), strict=True):
        tokens = patches(network, image, 4)
        for block in network.blocks:
            z = gelu(linear(norm(tokens, block.norm), block.fc1))
            kept, moved = np.split(z, 2, axis=1)
            gate = array(block.gate.spatial.weight) @ norm(moved, block.gate.norm) + array(block.gate.bias)[:, None]
            tokens = tokens + linear(kept * gate, block.fc2)
        np.testing.assert_allclose(logits, linear(norm(tokens, network.norm).mean(0), network.head), atol=1e-10)


def test_vit_is_its_equations_from_tokens_to_logits() -> None:
    """A3: class token first, learned positions, z′ = MSA(LN(z)) + z, z = MLP(LN(z′)) + z′, y = LN(z⁰)."""
    network = shaken(small("vit_nano_p4_32")).double()
    x = batch(network)["x"].double()
    z = torch.stack([torch.from_numpy(patches(network, image, 4)) for image in array(x)])
    z = torch.cat([network.class_token.expand(len(z), 1, -1), z], dim=1) + network.positions.table
    for block in network.blocks:
        z = block.mixer(block.norm1(z)) + z
        z = block.channels(block.norm2(z)) + z
    torch.testing.assert_close(network(x), network.head(network.norm(z)[:, 0]))


def test_the_order_of_patches_matters_to_a_vit_only_by_its_positions() -> None:
    """A3: without the learned positions a ViT cannot tell where a patch came from."""
    network = shaken(small("vit_nano_p4_32")).double()
    x = batch(network)["x"].double()
    moved = torch.cat([x[..., 8:], x[..., :8]], dim=-1)
    assert not torch.allclose(network(x), network(moved))
    nn.init.zeros_(network.positions.table)
    torch.testing.assert_close(network(x), network(moved))


def test_bert_is_its_equations_from_ids_to_logits() -> None:
    """A4: LN(words + segments + positions), post-norm blocks, tanh pooler on the first token, head."""
    network = shaken(small("bert_tiny")).double().eval()
    inputs = batch(network)
    segments = torch.randint(0, 2, inputs["x"].shape)
    z = network.embed.words.weight[inputs["x"]] + network.embed.segments.weight[segments]
    z = network.embed_norm.norm(z + network.positions.table)
    for block in network.blocks:
        z = block.norm1(z + block.mixer(z, inputs["mask"]))
        z = block.norm2(z + block.channels(z))
    pooled = torch.tanh(z[:, 0] @ network.pooler[0].weight.T + network.pooler[0].bias)
    torch.testing.assert_close(network(**inputs, segments=segments), network.head(pooled))
    assert isinstance(network.norm, nn.Identity), "a post-norm network needs no norm at its end"


def test_bert_tells_its_two_segments_apart() -> None:
    """A4: no segments means that all is the first sentence."""
    network = shaken(small("bert_tiny")).eval()
    inputs = batch(network)
    zeros, ones = torch.zeros_like(inputs["x"]), torch.ones_like(inputs["x"])
    torch.testing.assert_close(network(**inputs), network(**inputs, segments=zeros))
    assert not torch.allclose(network(**inputs), network(**inputs, segments=ones))


def test_the_hybrids_tokens_are_a_resnets_feature_map() -> None:
    """A5: pixels of the last feature map, in reading order, embedded by one linear layer; then a ViT."""
    network = shaken(small("vit_nano_resnet20_32")).eval()
    x = batch(network)["x"]
    features = network.trunk(x)
    assert features.shape == (6, 8, 4, 4) and network.config.grid == (4, 4)
    z = F.linear(features.flatten(2).transpose(1, 2), network.embed.weight[:, :, 0, 0], network.embed.bias)
    z = torch.cat([network.class_token.expand(6, 1, -1), z], dim=1) + network.positions.table
    for block in network.blocks:
        z = block(z)
    torch.testing.assert_close(network(x), network.head(network.norm(z)[:, 0]), atol=1e-5, rtol=1e-5)


def test_attention_maps_of_a_whole_network() -> None:
    """A1: every attention layer of a ViT, a BERT and an aMLP hands out maps whose rows sum to one."""
    for name, heads in (("vit_nano_p4_32", 2), ("bert_tiny", 2), ("amlp_text_tiny", 1)):
        network = small(name).eval()
        inputs = batch(network)
        plain = network(**inputs)
        with attention_maps(network) as maps:
            assert torch.equal(network(**inputs), plain)
        assert len(maps) == 2 and all(values.shape[1] == heads for values in maps.values())
        for values in maps.values():
            torch.testing.assert_close(values.sum(-1), torch.ones_like(values[..., 0]))


def test_an_lstm_reads_both_ways_and_takes_the_maximum() -> None:
    """A6: for each sentence alone, the same as in a padded batch."""
    network = shaken(small("lstm_text"))
    inputs = batch(network)
    for ids, mask, logits in zip(inputs["x"], inputs["mask"], network(**inputs), strict=True):
        states, _ = network.lstm(network.embed.words.weight[ids[mask]][None])
        torch.testing.assert_close(logits, network.head(states[0].amax(0)))


def test_a_convolutional_text_classifier_takes_the_maximum_over_windows() -> None:
    """A6: Kim 2014: each window size slides over the sentence with zeros at its ends; maximum, then a linear head."""
    network = shaken(small("conv_text"))
    inputs = batch(network)
    for ids, mask, logits in zip(inputs["x"], inputs["mask"], network(**inputs), strict=True):
        words = network.embed.words.weight[ids[mask]]
        pooled = []
        for block, kernel in zip(network.convolutions, (3, 4, 5), strict=True):
            line = F.pad(words, (0, 0, kernel - 1, kernel - 1))
            windows = [line[i : i + kernel].T for i in range(len(words) + kernel - 1)]
            responses = torch.stack([(block.conv.weight * w).sum((1, 2)) + block.conv.bias for w in windows])
            pooled.append(responses.relu().amax(0))
        torch.testing.assert_close(logits, network.head(torch.cat(pooled)), atol=1e-5, rtol=1e-5)


def test_a_perceptron_stack_on_vectors() -> None:
    """F1: a = act(W x + b), any depth and width, with a linear output."""
    torch.manual_seed(0)
    network = create_model("mlp", in_features=7, hidden=(5, 6, 4), act="tanh", num_classes=2)
    x = torch.randn(3, 7)
    a = x
    for layer in (m for m in network.layers if isinstance(m, nn.Linear)):
        a = torch.tanh(a @ layer.weight.T + layer.bias)
    torch.testing.assert_close(network(x), a @ network.head.weight.T + network.head.bias)
    assert [m.out_features for m in network.modules() if isinstance(m, nn.Linear)] == [5, 6, 4, 2]


def test_a_perceptron_stack_flattens_images_and_may_go_without_biases() -> None:
    """F1, and the bare linear model with no hidden layer at all."""
    network = create_model("mlp", img_size=(4, 5), in_chans=2, hidden=(), num_classes=3)
    x = torch.randn(2, 2, 4, 5)
    torch.testing.assert_close(network(x), F.linear(x.flatten(1), network.head.weight, network.head.bias))
    plain = create_model("mlp", in_features=4, hidden=(5,), bias=False)
    assert plain.layers[0].bias is None


def test_lenet_is_the_classic_chain() -> None:
    """C3, C4: conv → act → 2×2 max pooling, twice, flatten, fully connected."""
    torch.manual_seed(0)
    network = create_model("lenet5")
    first, second = (m for m in network.convolutions if isinstance(m, nn.Conv2d))
    x = torch.randn(2, 1, 32, 32)
    y = F.max_pool2d(F.conv2d(x, first.weight, first.bias).relu(), 2)
    y = F.max_pool2d(F.conv2d(y, second.weight, second.bias).relu(), 2)
    assert y.shape == (2, 16, 5, 5)
    a = y.flatten(1)
    for layer in (m for m in network.dense if isinstance(m, nn.Linear)):
        a = F.linear(a, layer.weight, layer.bias).relu()
    torch.testing.assert_close(network(x), network.head(a))


def test_the_slides_net_and_the_local_twin() -> None:
    """C4, C5: 1→6→16 channels of 3×3, 16·6·6 → 120 → 84 → 10; the twin shares no weights."""
    slide, local = create_model("lenet_slide"), create_model("lenet5_local")
    assert [m.weight.shape[:2] for m in slide.convolutions if isinstance(m, nn.Conv2d)] == [(6, 1), (16, 6)]
    assert [m.weight.shape for m in slide.dense if isinstance(m, nn.Linear)] == [(120, 576), (84, 120)]
    assert sum(isinstance(m, LocallyConnected2d) for m in local.modules()) == 2
    assert not any(isinstance(m, nn.Conv2d) for m in local.modules())
    x = torch.randn(2, 1, 32, 32)
    assert local.forward_features(x).shape == create_model("lenet5").forward_features(x).shape


@pytest.mark.parametrize("form", ["two_kernels", "one_kernel"])
def test_a_recurrent_convnet_shares_its_kernels_over_time(form: str) -> None:
    """C8: 5×5, pool, two recurrent layers, pool, two more, the maximum over positions."""
    network = small("rcnn_96", form=form).eval()
    x = batch(network)["x"]
    y = network.second(network.pool(network.first(network.stem(x.contiguous()))))
    assert y.shape == (6, 8, 4, 4)
    torch.testing.assert_close(network(x), network.head(y.flatten(2).max(2).values))
    kernels = sum(m.kernel_size == (3, 3) for m in network.modules() if isinstance(m, nn.Conv2d))
    assert kernels == {"two_kernels": 8, "one_kernel": 4}[form]


FILTERS = {
    "edges": [[-1.0, -1, -1], [-1, 8, -1], [-1, -1, -1]],
    "sharpen": [[0.0, -1, 0], [-1, 5, -1], [0, -1, 0]],
    "lopsided": [[0.0, 1, 2], [-1, 0, 1], [-2, -1, 0.5]],  # tells a correlation from a flipped kernel
}


@pytest.mark.parametrize("name", FILTERS)
def test_filternet_learns_a_filter_from_pairs_of_pictures(name: str) -> None:
    """F3, the primer's figure 4: given pictures before and after, the trained kernel *is* the filter."""
    kernel = torch.tensor(FILTERS[name])[None, None]
    torch.manual_seed(0)
    before = torch.rand(8, 1, 16, 16)
    after = F.conv2d(before, kernel, padding=1)
    network = create_model("filternet", img_size=16)
    optimiser = torch.optim.LBFGS(network.parameters(), lr=1, max_iter=60, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimiser.zero_grad()
        loss = example_losses("regression", network(before), after).mean()
        loss.backward()
        return loss

    optimiser.step(closure)
    torch.testing.assert_close(network.head.weight.detach(), kernel, atol=0.02, rtol=0)
    assert closure().item() < 1e-4


def test_filternet_keeps_the_size_of_any_image() -> None:
    """F3: image → image, with hidden layers and several channels too."""
    network = create_model("filternet", in_chans=3, out_chans=2, hidden=(4, 5), kernel=5)
    assert network(torch.zeros(2, 3, 9, 14)).shape == (2, 2, 9, 14)


@pytest.mark.parametrize("name", SMALL)
def test_every_network_answers_the_same_few_methods(name: str) -> None:
    """features → head is forward; pre_logits are what the head reads; the classifier is the head."""
    network = shaken(small(name)).eval()
    inputs = batch(network)
    logits = network(**inputs)
    assert logits.shape == (6, CLASSES)
    features = network.forward_features(**inputs)
    mask = {"mask": inputs["mask"]} if "mask" in inputs else {}
    assert torch.equal(network.forward_head(features, **mask), logits)
    pooled = network.forward_head(features, **mask, pre_logits=True)
    assert pooled.shape == (6, network.head_inputs)
    if network.config.family != "deit":  # which has two heads for two tokens
        assert torch.equal(network.get_classifier()(pooled), logits)


@pytest.mark.parametrize("name", SMALL)
def test_the_head_can_be_replaced(name: str) -> None:
    """The body keeps its weights, the configuration says what the head is, and 0 classes gives features."""
    network = shaken(small(name)).eval()
    inputs = batch(network)
    mask = {"mask": inputs["mask"]} if "mask" in inputs else {}
    pooled = network.forward_head(network.forward_features(**inputs), **mask, pre_logits=True)
    network.reset_classifier(7)
    assert network(**inputs).shape == (6, 7) and network.config.num_classes == 7
    network.reset_classifier(0)
    assert isinstance(network.get_classifier(), nn.Identity) and network.config.num_classes == 0
    assert torch.equal(network(**inputs), pooled)


@pytest.mark.parametrize("name", IMAGES)
def test_a_mirrored_network_answers_with_the_mean_over_both_ways_to_look(name: str) -> None:
    plain = shaken(small(name)).eval()
    both = create_model(name, **SMALL[name], mirrored=True)
    both.load_state_dict(plain.state_dict())
    x = batch(plain)["x"]
    torch.testing.assert_close(both.eval()(x), (plain(x) + plain(x.flip(-1))) / 2)
    torch.testing.assert_close(both(x), both(x.flip(-1)))


def test_a_mirrored_network_trains_as_a_plain_one() -> None:
    plain, both = (small("mixer_nano_p4_32", mirrored=mirrored).train() for mirrored in (False, True))
    both.load_state_dict(plain.state_dict())
    x = batch(plain)["x"]
    assert torch.equal(plain(x), both(x))


def test_what_has_no_mirror_image_is_refused() -> None:
    with pytest.raises(WeftError, match="mirror"):
        create_model("mlp", in_features=4, mirrored=True)
    with pytest.raises(WeftError, match="mirror"):
        create_model("filternet", mirrored=True)


def test_a_replaced_head_starts_as_a_new_one_does_and_stays_in_precision() -> None:
    """A pre-norm image network predicts uniformly at the start, whoever made its head."""
    network = shaken(small("mixer_nano_p4_32")).double()
    network.reset_classifier(5)
    assert network.head.weight.dtype == torch.float64
    assert not network.head.weight.any() and not network.head.bias.any()
    text = small("bert_tiny")
    text.reset_classifier(5)
    assert text.head.weight.any()


@pytest.mark.parametrize("name", SMALL)
def test_weights_survive_saving_and_loading(name: str, tmp_path: object) -> None:
    """Two networks with one state dict give the same bits; every tensor is needed."""
    first, second = shaken(small(name, seed=0)).eval(), small(name, seed=1).eval()
    inputs = batch(first)
    assert not torch.equal(first(**inputs), second(**inputs))
    path = f"{tmp_path}/weights.pt"
    torch.save(first.state_dict(), path)
    second.load_state_dict(torch.load(path, weights_only=True), strict=True)
    assert torch.equal(first(**inputs), second(**inputs))


@pytest.mark.parametrize("name", IMAGES)
@settings(deadline=None, max_examples=4)
@given(rows=st.integers(4, 6), columns=st.integers(4, 6), chans=st.integers(1, 4), classes=st.integers(1, 5))
def test_any_image_shape_channel_count_and_class_count(
    name: str, rows: int, columns: int, chans: int, classes: int
) -> None:
    """C3–C5, A3, M1, M2: rectangles too, as long as the patches fit."""
    size = (4 * rows, 4 * columns)
    network = small(name, img_size=size, in_chans=chans, num_classes=classes).eval()
    assert network(torch.zeros(2, chans, *size)).shape == (2, classes)


@pytest.mark.parametrize("name", TEXTS)
@settings(deadline=None, max_examples=5)
@given(longest=st.integers(1, 9), used=st.integers(1, 9), size=st.integers(1, 3), classes=st.integers(1, 3))
def test_any_length_up_to_the_longest(name: str, longest: int, used: int, size: int, classes: int) -> None:
    """M4, A4, A6: a text may be shorter than the network, with and without a mask."""
    used = min(used, longest)
    network = shaken(small(name, max_length=longest, num_classes=classes)).eval()
    ids = torch.randint(0, 40, (size, used))
    logits = network(ids)
    assert logits.shape == (size, classes)
    torch.testing.assert_close(network(ids, mask=torch.ones_like(ids, dtype=torch.bool)), logits, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("name", SMALL)
def test_one_example_alone_gives_what_it_gives_in_a_batch(name: str) -> None:
    network = shaken(small(name)).eval()
    inputs = batch(network)
    whole = network(**inputs)
    for i in range(3):
        alone = network(**{key: value[i : i + 1] for key, value in inputs.items()})
        torch.testing.assert_close(alone[0], whole[i], atol=1e-4, rtol=1e-4)


def test_the_mixer_is_the_only_difference_between_families() -> None:
    """One backbone: a ViT with its mixer exchanged is a control, on the same number of other parameters."""

    def rest(mixer: str) -> int:
        network = small("mixer_nano_p4_32", mixer=mixer, heads=2)
        inside = sum(p.numel() for block in network.blocks for p in block.mixer.parameters())
        return sum(p.numel() for p in network.parameters()) - inside

    counts = {rest(m) for m in ("attention", "token_mlp", "identity", "random", "pooling", "depthwise")}
    assert len(counts) == 1
    assert sum(isinstance(m, Attention) for m in small("mixer_nano_p4_32", mixer="attention").modules()) == 2
    assert SIDE % 4 == 0


def test_a_swapped_token_mlp_is_half_as_wide_as_the_channels() -> None:
    """A ViT says nothing of `token_dim`; a Mixer in its place gets the published proportion."""
    swapped = create_model("vit_nano_p4_32", mixer="token_mlp", dim=48, depth=1)
    hidden = [p.shape[0] for name, p in swapped.blocks[0].mixer.named_parameters() if p.shape == (24, 65)]
    assert hidden, "no matrix from 65 tokens to 24 hidden units"
    assert create_model("mixer_nano_p4_32", depth=1).config.token_width == 64
