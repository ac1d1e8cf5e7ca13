"""Reading checkpoints: `.safetensors` and `.npz` files, folders in the Hugging Face layout, and Hub names.

Nothing here runs code from a checkpoint. A pickle is read only when the caller says so, and then as weights alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from weft.disk import METADATA, parse_object, read_object, require_plain
from weft.errors import WeftError
from weft.networks.weights.hub import download
from weft.terminal import brief_list

PICKLES = (".bin", ".pt", ".pth", ".th", ".ckpt")
INDEX = "model.safetensors.index.json"
NAMES = ("model.safetensors", "pytorch_model.bin")  # what a folder may hold, the preferred first
WRAPPERS = ("module.", "_orig_mod.")  # of torch's DataParallel and of torch.compile


class TooLarge(WeftError):
    """A file of weights for which there is no memory."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"{path} is too large for the memory of this machine; restore it, or use a larger machine")


@dataclass(frozen=True)
class Checkpoint:
    """Tensors by their foreign names, and the configuration that came with them (empty if none did)."""

    tensors: dict[str, Tensor]
    config: dict[str, Any] = field(default_factory=dict)
    origin: str = "the checkpoint"


def read(source: str | Path | Mapping[str, Tensor], *, unsafe_pickle: bool = False) -> Checkpoint:
    """Read a file, a folder, a Hub name, or take a state dict as it is."""
    if isinstance(source, Mapping):
        return Checkpoint(named_tensors(dict(source), "the state dict"), origin="the state dict")
    path = Path(source) if Path(source).exists() else download(str(source))
    return read_folder(path, unsafe_pickle) if path.is_dir() else read_file(path, unsafe_pickle)


def read_folder(folder: Path, unsafe_pickle: bool = False) -> Checkpoint:
    """A folder with config.json and model.safetensors, whole or in shards with an index; else with a single .npz."""
    config = read_object(folder / "config.json") if (folder / "config.json").is_file() else {}
    if (folder / INDEX).is_file():
        return Checkpoint(read_shards(folder), config, str(folder))
    if files := weight_files(folder):
        return Checkpoint(read_file(files[0], unsafe_pickle).tensors, config, str(folder))
    raise WeftError(f"{folder} holds no {NAMES[0]} and no {INDEX}; name the file of weights itself")


def weight_files(folder: Path) -> list[Path]:
    """The files that the weights of a folder are read from; none where it has no weights, or many to choose from."""
    if (folder / INDEX).is_file():
        return [folder / shard for shard in sorted(set(shards(folder).values()))]
    named = [folder / name for name in NAMES if (folder / name).is_file()]
    arrays = list(folder.glob("*.npz"))
    return named[:1] or (arrays if len(arrays) == 1 else [])


def shards(folder: Path) -> dict[str, str]:
    """The file of each tensor that the index names, all of which are beside it."""
    where = read_object(folder / INDEX).get("weight_map")
    if not isinstance(where, dict) or not all(isinstance(shard, str) for shard in where.values()):
        raise WeftError(f"{folder / INDEX} has no `weight_map`; download the folder again")
    for shard in sorted(set(where.values())):
        if Path(shard).name != shard or not (folder / shard).is_file():
            raise WeftError(f"{folder / INDEX} names {shard}, which is not beside it; download the folder again")
    return where


def read_shards(folder: Path) -> dict[str, Tensor]:
    """All tensors that the index names, from the files beside it."""
    where = shards(folder)
    tensors: dict[str, Tensor] = {}
    for shard in sorted(set(where.values())):
        tensors |= read_safetensors(folder / shard)[0]
    lost = sorted(set(where) - set(tensors))
    if lost:
        raise WeftError(f"the shards in {folder} lack {brief_list(lost, 3)}; download the folder again")
    return tensors


def read_file(path: Path, unsafe_pickle: bool = False) -> Checkpoint:
    """One file; a config.json beside `model.safetensors` belongs to it."""
    if path.suffix == ".safetensors":
        tensors, metadata = read_safetensors(path)
        beside = path.parent / "config.json"
        config = parse_object(metadata[METADATA], path) if METADATA in metadata else {}
        if not config and path.name in NAMES and beside.is_file():
            config = read_object(beside)
        return Checkpoint(named_tensors(tensors, str(path)), config, str(path))
    if path.suffix == ".npz":
        return Checkpoint(read_npz(path), origin=str(path))
    if path.suffix in PICKLES:
        return Checkpoint(read_pickle(path, unsafe_pickle), origin=str(path))
    kinds = ", ".join((".safetensors", ".npz", *PICKLES))
    raise WeftError(f"{path} is no file of weights that weft knows; use one of {kinds}, or a folder")


def read_safetensors(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    require_plain(path)
    try:
        with safe_open(path, framework="pt") as file:
            return {name: file.get_tensor(name) for name in file.keys()}, file.metadata() or {}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise WeftError(f"{path} is truncated or no .safetensors file ({first_line(error)}); copy it again") from None
    except MemoryError as error:
        raise TooLarge(path) from error


def read_npz(path: Path) -> dict[str, Tensor]:
    try:
        with np.load(path, allow_pickle=False) as file:
            return {name: torch.from_numpy(np.ascontiguousarray(file[name])) for name in file.files}
    except Exception:  # a damaged zip can raise anything; numpy advises pickles
        raise WeftError(f"{path} is truncated or no .npz file of plain arrays; copy it again") from None


def read_pickle(path: Path, unsafe_pickle: bool) -> dict[str, Tensor]:
    """A pickle, with torch's restricted reader; tensors may stand below `state_dict` or `model`."""
    if not unsafe_pickle:
        raise WeftError(
            f"{path} is a pickle, which weft does not open by itself; use a .safetensors file, or say "
            "unsafe_pickle=True (--unsafe-pickle) if you trust where it comes from"
        )
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # a damaged pickle can raise anything
        raise WeftError(f"{path} cannot be read as weights alone ({first_line(error)}); use .safetensors") from None
    for key in ("state_dict", "model"):
        content = content.get(key, content) if isinstance(content, dict) else content
    return named_tensors(content, str(path))


def named_tensors(content: Any, origin: str) -> dict[str, Tensor]:
    """A state dict, without what torch's wrappers put before all names."""
    if not isinstance(content, dict) or not all(isinstance(value, Tensor) for value in content.values()):
        raise WeftError(f"{origin} holds something else than tensors by name; convert it to .safetensors")
    for wrapper in WRAPPERS:
        if content and all(name.startswith(wrapper) for name in content):
            content = {name.removeprefix(wrapper): tensor for name, tensor in content.items()}
    return content


def first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]
