"""Saving a network in weft's own layout or in one that timm or transformers reads."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from safetensors.torch import save_file
from torch import Tensor

from weft.disk import METADATA, WRITTEN, require_own, write_bytes
from weft.errors import WeftError
from weft.networks.base.network import Network, uncompiled
from weft.networks.config import NetworkConfig
from weft.networks.weights import cifar, huggingface, own, timm
from weft.networks.weights.files import PICKLES
from weft.networks.weights.rules import Adapter, NoPlace

LayoutName = Literal["weft", "timm", "huggingface", "cifar"]

LAYOUTS: dict[LayoutName, tuple[Adapter, ...]] = {
    "weft": (own.OWN,),
    "timm": timm.ADAPTERS,
    "huggingface": huggingface.ADAPTERS,
    "cifar": cifar.ADAPTERS,
}
CONFIGS: dict[LayoutName, Callable[[NetworkConfig], dict[str, Any]]] = {
    "weft": own.config_json,
    "timm": timm.config_json,
    "huggingface": huggingface.config_json,
}


def save_weights(network: Network, path: str | Path, layout: LayoutName = "weft") -> None:
    """Write a network to a `.safetensors` file, or to a folder as `config.json` and `model.safetensors`.

    A folder in layout `timm` opens with `timm.create_model("local-dir:FOLDER", pretrained=True)`, one in layout
    `huggingface` with `from_pretrained`. A file of weft's own keeps the configuration in its metadata.
    """
    path = Path(path)
    if path.suffix in (".npz", *PICKLES):
        raise WeftError(f"weft writes .safetensors files and folders; {path} is neither")
    network = uncompiled(network)
    tensors = foreign_tensors(network, layout)
    if path.suffix == ".safetensors":
        config = json.dumps(own.config_json(network.config))
        require_own(path)
        write(tensors, path, {METADATA: config} if layout == "weft" else {})
        return
    if layout not in CONFIGS:
        raise WeftError(f"layout {layout!r} is a single file; give a path that ends in .safetensors")
    text = json.dumps(CONFIGS[layout](network.config), indent=2)
    require_own(path / "model.safetensors", path / "config.json")
    write(tensors, path / "model.safetensors", {})
    write_bytes(path / "config.json", f"{text}\n".encode())


def foreign_tensors(network: Network, layout: LayoutName) -> dict[str, Tensor]:
    """All tensors of a network under the names, and in the shapes, of another layout."""
    if layout not in LAYOUTS:
        raise WeftError(f"there is no layout {layout!r}; use one of {', '.join(LAYOUTS)}")
    config = network.config
    adapter = next((one for one in LAYOUTS[layout] if one.fits(config) and one.faithful(config)), None)
    if adapter is None:
        raise NoPlace(
            f"layout {layout!r} has no place for a {config.family} network of this configuration",
            f"it holds {', '.join(adapter.holds for adapter in LAYOUTS[layout])}; use layout='weft'",
        )
    tensors: dict[str, Tensor] = {}
    state = network.state_dict()
    for rule in adapter.rules(list(state)):
        tensors |= dict(zip(rule.foreign, rule.form.save(state[rule.weft]), strict=True))
    if layout == "huggingface" and config.num_classes:
        prefix = adapter.holds.lower()
        tensors = {huggingface.prefixed(name, prefix): tensor for name, tensor in tensors.items()}
    return tensors


def write(tensors: dict[str, Tensor], path: Path, metadata: dict[str, str]) -> None:
    """Write all or nothing: a file that was there before stays whole until the new one is."""
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    plain = {name: tensor.detach().cpu().clone().contiguous() for name, tensor in tensors.items()}
    aside.unlink(missing_ok=True)
    try:
        save_file(plain, aside, metadata={**WRITTEN, **metadata})
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)
