"""Every registered name is built and run on the meta device: shapes and counts without a byte of weights."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
import torch

from weft.networks.registry import REGISTRY, create_model

# Depth is checked by the counts; here a few blocks of each are enough.
SHALLOW: dict[str, Any] = {"depth": 2}


@pytest.mark.parametrize("name", REGISTRY)
def test_every_name_is_built_and_run_without_allocating(name: str) -> None:
    """All families, the largest sizes too: logits have the shape that the configuration promises."""
    shallow = SHALLOW if hasattr(REGISTRY[name], "depth") else {}
    with torch.device("meta"):
        network = create_model(name, **shallow).eval()
        config: Any = network.config
        if config.input == "text":
            outputs = network(torch.zeros(2, config.max_length, dtype=torch.long))
        else:
            outputs = network(torch.zeros(2, config.in_chans, *config.img_size))
    for tensor in (*network.parameters(), *network.buffers()):
        assert tensor.is_meta
    if config.family == "filternet":
        assert outputs.shape == (2, config.out_chans, *config.img_size)
    else:
        assert outputs.shape == (2, config.num_classes)


OUTLINED = (
    "import sys; from weft.networks.registry import REGISTRY, configured;"
    "from weft.networks.weights.outline import outline;"
    "one = {config.family: name for name, config in REGISTRY.items()};"
    "[outline(configured(name)) for name in one.values()];"
    "print(len(one) > 15, 'torch._dynamo' in sys.modules, 'sympy' in sys.modules)"
)


def test_an_outline_of_any_family_loads_no_compiler() -> None:
    """Which takes a second and a half, whenever a trained network is read."""
    done = subprocess.run([sys.executable, "-c", OUTLINED], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "False", "False"]


@pytest.mark.parametrize("name", ["mixer_h14_224", "vit_huge_patch14_224"])
def test_the_largest_networks_run_at_full_depth(name: str) -> None:
    """432 and 632 million parameters, none of them allocated."""
    with torch.device("meta"):
        network = create_model(name)
        assert network(torch.zeros(1, 3, 224, 224)).shape == (1, 1000)
    assert all(parameter.is_meta for parameter in network.parameters())
