"""Every registered name is built and run on the meta device: shapes and counts without a byte of weights."""

from __future__ import annotations

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


@pytest.mark.parametrize("name", ["mixer_h14_224", "vit_huge_patch14_224"])
def test_the_largest_networks_run_at_full_depth(name: str) -> None:
    """432 and 632 million parameters, none of them allocated."""
    with torch.device("meta"):
        network = create_model(name)
        assert network(torch.zeros(1, 3, 224, 224)).shape == (1, 1000)
    assert all(parameter.is_meta for parameter in network.parameters())
