"""A perceptron stack with shortcuts is the same stack, but for the sums (F1)."""

from __future__ import annotations

import torch

from weft import create_model


def test_layers_of_equal_width_are_added_to_their_input() -> None:
    sizes = {"in_features": 6, "hidden": (8, 8, 8, 5), "num_classes": 3, "norm": True, "act": "tanh"}
    torch.manual_seed(0)
    plain = create_model("mlp", img_size=None, **sizes).eval()
    net = create_model("mlp", img_size=None, residual=True, **sizes).eval()
    net.load_state_dict(plain.state_dict())  # the same parameters under the same names
    x = torch.randn(4, 6)
    expected = x
    for number, layer in enumerate(plain.layers[first : first + 4] for first in range(0, 16, 4)):
        expected = layer(expected) + (expected if number in (1, 2) else 0)
    torch.testing.assert_close(net(x), plain.head(expected))
    assert not torch.allclose(net(x), plain(x))


def test_a_stack_without_hidden_layers_has_nothing_to_add() -> None:
    net = create_model("mlp", img_size=None, in_features=6, hidden=(), num_classes=3, residual=True)
    assert net(torch.zeros(2, 6)).shape == (2, 3)
