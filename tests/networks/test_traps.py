"""The known traps of public code, one test or more for each, on whole networks."""

from __future__ import annotations

import re

import pytest
import torch
from torch import nn

from networks.small import SMALL, batch, shaken, small
from weft.networks.config import ImageTokensConfig, TokenConfig
from weft.networks.gmlp import SpatialGate
from weft.networks.registry import REGISTRY, create_model
from weft.nn.noise import DropPath


@pytest.mark.parametrize("name", ["tmlp_nano_p4_32", "tmlp2d_nano_p4_32", "tmlp_text_tiny"])
def test_every_token_of_a_tmlp_sees_both_sides(name: str) -> None:
    """A "circulant" lower-triangular W sees the left only. In a tMLP the first token must depend on the
    last and the last on the first, and training must move both corners on their own."""
    network = shaken(small(name, depth=1)).double().eval()
    gate = network.blocks[0].gate
    z = torch.randn(1, network.layout.tokens, 24, dtype=torch.float64, requires_grad=True)
    for reader, source in ((0, -1), (-1, 0)):
        (gradient,) = torch.autograd.grad(gate(z)[0, reader].sum(), z)
        assert gradient[0, source].abs().sum() > 0, f"token {reader} does not see token {source}"
    tokens = network.layout.tokens
    before = gate.spatial.matrix(tokens).detach().clone()
    gate.spatial.matrix(tokens)[0, -1].backward()
    with torch.no_grad():
        gate.spatial.weight -= gate.spatial.weight.grad
    moved = gate.spatial.matrix(tokens) - before
    assert moved[0, -1].item() == pytest.approx(-1) and moved[-1, 0].item() == 0


def test_the_widths_of_a_mixer_are_not_swapped() -> None:
    """S = 64, D_S = 96, C = 128, D_C = 512, all different, each where it belongs."""
    block = create_model("mixer_nano_p4_32", depth=1, token_dim=96).blocks[0]
    assert block.mixer.fc1.weight.shape == (96, 64) and block.mixer.fc2.weight.shape == (64, 96)
    assert block.channels.fc1.weight.shape == (512, 128) and block.channels.fc2.weight.shape == (128, 512)


def test_named_mixers_have_the_widths_of_the_paper() -> None:
    """(C, D_C, D_S, L) of table 1; D_S = C/2 and D_C = 4C."""
    shapes = {"s": (512, 2048, 256, 8), "b": (768, 3072, 384, 12), "l": (1024, 4096, 512, 24)}
    for size, shape in shapes.items():
        for patch in (16, 32):
            config = REGISTRY[f"mixer_{size}{patch}_224"]
            assert isinstance(config, ImageTokensConfig)
            assert (config.dim, config.hidden_dim, config.token_dim, config.depth) == shape


CANCELLED = {  # what the norm after it, or a difference, takes away again: connected, but without effect
    "mlp": r"layers\.[04]\.bias",  # a bias before batch norm
    "mixer_nano_p4_32": r"blocks\.\d\.mixer\.fc2\.bias",  # one value for all channels of a token, before layer norm
    "mixer_text_tiny": r"blocks\.\d\.mixer\.fc2\.bias",
    "control_pooling_p4_32": r"blocks\.\d\.norm1\.bias",  # the mean of the neighbours less the token
    "control_pooling_text_tiny": r"blocks\.\d\.norm1\.bias",
    # the end of a block is linear and meets the batch norm of the next one
    "efficientnet_nano_32": r"trunk\.blocks\.(0\.0\.bn2|1\.\d\.bn3)\.bias",
    "efficientnet_lite_nano_32": r"trunk\.blocks\.(0\.0\.bn2|1\.\d\.bn3)\.bias",
}


@pytest.mark.parametrize("name", SMALL)
def test_every_parameter_is_registered_and_trained(name: str) -> None:
    """Every tensor that the network computes with is registered, and gets a gradient."""
    network = shaken(small(name)).double().train()
    inputs = batch(network)
    inputs = {key: value.double() if value.is_floating_point() else value for key, value in inputs.items()}
    direction = torch.randn(6, 3, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    (network(**inputs) * direction).sum().backward()
    for key, parameter in network.named_parameters():
        assert parameter.grad is not None, f"{key} is not connected"
        trained = parameter.grad.abs().max().item() > 1e-9
        assert trained or re.fullmatch(CANCELLED.get(name, ""), key), f"{key} has no gradient"


@pytest.mark.parametrize("name", SMALL)
def test_no_layer_hides_outside_the_module_tree(name: str) -> None:
    """No attribute of any module is a plain list, tuple or dict that holds modules or parameters."""
    for path, module in small(name).named_modules():
        for key, value in vars(module).items():
            if not key.startswith("_") and isinstance(value, list | tuple | dict):
                held = value.values() if isinstance(value, dict) else value
                assert not any(isinstance(item, nn.Module | torch.Tensor) for item in held), f"{path}.{key}"


@pytest.mark.parametrize("name", [name for name in SMALL if "depth" in SMALL[name] and name != "lstm_text"])
def test_depth_is_the_number_of_blocks_in_the_state_dict(name: str) -> None:
    """As many numbered blocks as the configuration says, each with weights of its own."""
    network = small(name, depth=3)
    numbers = {key.split(".")[1] for key in network.state_dict() if key.startswith("blocks.")}
    assert numbers == {"0", "1", "2"}
    assert len({id(block) for block in network.blocks}) == 3
    assert len({parameter.data_ptr() for parameter in network.parameters()}) == len(list(network.parameters()))


@pytest.mark.parametrize("name", [name for name, config in REGISTRY.items() if isinstance(config, TokenConfig)])
def test_norms_have_the_epsilon_of_the_published_code(name: str) -> None:
    """1e-12 in BERT, 1e-6 elsewhere as in flax; the norm in the gate alone has 1e-5, as its public weights."""
    with torch.device("meta"):
        network = create_model(name, depth=1)
    gates = {module.norm for module in network.modules() if isinstance(module, SpatialGate)}
    expected = 1e-12 if name.startswith(("bert", "minilm")) else 1e-6
    for module in network.modules():
        if isinstance(module, nn.LayerNorm):
            assert module.eps == (1e-5 if module in gates else expected)


@pytest.mark.parametrize("name", ["mixer_nano_p4_32", "vit_nano_p4_32", "gmlp_nano_p4_32", "bert_tiny"])
def test_gelu_and_epsilon_are_settings_that_reach_every_layer(name: str) -> None:
    """Weights from JAX need the tanh form; it must replace the erf form everywhere, not in half the places."""
    erf, tanh = (small(name, act=act).eval() for act in ("gelu", "gelu_tanh"))
    forms = [[m.approximate for m in net.modules() if isinstance(m, nn.GELU)] for net in (erf, tanh)]
    assert set(forms[0]) == {"none"} and set(forms[1]) == {"tanh"}
    shaken(erf), shaken(tanh)
    gap = (erf(**batch(erf)) - tanh(**batch(tanh))).abs().max().item()
    assert 1e-6 < gap < 0.05
    other = small(name, norm_eps=1e-3)
    gates = {m.norm for m in other.modules() if isinstance(m, SpatialGate)}
    assert {m.eps for m in other.modules() if isinstance(m, nn.LayerNorm) and m not in gates} == {1e-3}


def test_the_class_token_is_a_setting_and_not_a_guess() -> None:
    """196 patches are a perfect square with and without a class token; the configuration decides."""
    with torch.device("meta"):
        bare = create_model("vit_tiny_patch16_224", class_token=False, pool="mean")
        with_token = create_model("vit_tiny_patch16_224")
    assert bare.layout.tokens == 196 and bare.positions.table.shape[0] == 196
    assert with_token.layout.tokens == 197 and with_token.positions.table.shape[0] == 197
    assert not hasattr(bare, "class_token")
    square_with_token = small("vit_nano_p4_32", img_size=(12, 20), patch_size=4)  # 15 patches and a token make 16
    assert square_with_token.forward_features(torch.zeros(1, 3, 12, 20)).shape == (1, 16, 16)


def test_dropping_the_class_token_drops_one_position_and_one_vector() -> None:
    """The two networks differ by exactly the token and its position."""
    with_token, bare = small("vit_nano_p4_32"), small("vit_nano_p4_32", class_token=False, pool="mean")
    counts = [sum(p.numel() for p in net.parameters()) for net in (with_token, bare)]
    assert counts[0] - counts[1] == 2 * 16


def test_drop_path_rises_with_depth() -> None:
    """0 in the first block, the full rate in the last, evenly between, the same in both branches."""
    for name, branches in (("vit_nano_p4_32", 2), ("mixer_text_tiny", 2), ("gmlp_nano_p4_32", 1), ("bert_tiny", 2)):
        network = small(name, depth=5, drop_path_rate=0.4)
        rates = [[m.rate for m in block.modules() if isinstance(m, DropPath)] for block in network.blocks]
        assert [rate for block in rates for rate in block] == pytest.approx(
            [rate for rate in (0, 0.1, 0.2, 0.3, 0.4) for _ in range(branches)]
        )
