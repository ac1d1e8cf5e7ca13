"""A trained network on disk in the Hugging Face layout, and back: config.json, model.safetensors, preprocessing."""

from __future__ import annotations

import dataclasses
import json
import reprlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import safetensors.torch
from pydantic import Field
from torch import Tensor

from weft.data.transform import transforms
from weft.data.transform.tokenizer import FILES as TOKENIZER
from weft.data.transform.transforms import ImageTransform, TextTransform, Transform
from weft.disk import WRITTEN, Damaged, read_object, require_own, validated, write_bytes, write_json
from weft.errors import WeftError
from weft.imported import Untrusted
from weft.networks.base.network import Network
from weft.networks.config import CARRIED, NetworkConfig, TextConfig, TextTokensConfig
from weft.networks.registry import config_from_dict
from weft.networks.weights.outline import build_stored
from weft.training.embeddings.carried import carry
from weft.training.metrics import Task
from weft.training.objective import Objective, outputs_for

FORMAT = 1
Finite = Annotated[float, Field(allow_inf_nan=False)]
PRETRAINED: Any = "words"  # in the place of a task: an encoder that answers nothing before it is fine-tuned


@dataclass(frozen=True)
class NetworkMetadata:
    """What config.json says beside the network's own configuration: what outputs mean."""

    model: str
    task: Task
    classes: list[str]
    centre: Finite = 0.0
    scale: Finite = 1.0
    pairs: bool = False
    """whether its inputs are pairs of texts"""
    columns: list[str] = field(default_factory=list)
    """of the table that it was trained on, which its inputs are read from; none where inputs had no names"""
    target: str | None = None
    """column of that table with the answers"""

    def objective(self) -> Objective:
        """The objective, for turning outputs into answers."""
        if self.task == PRETRAINED:
            raise WeftError(f"{self.model} has been pre-trained only and knows no classes; use `weft finetune` first")
        return Objective(self.task, centre=self.centre, scale=self.scale)


def write_network(
    folder: Path, card: NetworkMetadata, network: NetworkConfig, weights: dict[str, Tensor], transform: Transform
) -> None:
    """Write a network into `folder`; the weights last, so that a folder with weights is whole."""
    inputs = TOKENIZER if isinstance(transform, TextTransform) else (transforms.FILE,)
    require_own(folder / "model.safetensors", *(folder / name for name in ("config.json", *inputs)))
    transform.save(folder)
    network = with_encoder(network, folder)
    labels = dict(enumerate(card.classes))
    content = {
        "architectures": [card.model],
        "model_type": "weft",
        "num_labels": network.num_classes,
        "id2label": labels,
        "label2id": {label: number for number, label in labels.items()},
        "weft": described(card, network),
    }
    write_json(folder / "config.json", content)
    write_bytes(folder / "model.safetensors", serialized(weights))


def serialized(weights: dict[str, Tensor]) -> bytes:
    """A .safetensors file of weft's. The library writes metadata in another order each time: here it is sorted, so
    that the same weights are the same bytes."""
    content = safetensors.torch.save(weights, metadata=WRITTEN)
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + size])
    text = json.dumps({"__metadata__": dict(sorted(header.pop("__metadata__").items())), **header}).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + content[8 + size :]


def described(card: NetworkMetadata, network: NetworkConfig) -> dict[str, Any]:
    """What a file keeps of a network beside its weights; `own_section` reads it."""
    return {"format": FORMAT, **dataclasses.asdict(card), "network": dataclasses.asdict(network)}


def with_encoder(network: NetworkConfig, folder: Path) -> NetworkConfig:
    """The configuration as it is kept, after the encoder that the network stands on, if any, was put beside it."""
    if not isinstance(network, TextTokensConfig) or network.encoder is None:
        return network
    carry(Path(network.encoder.folder), folder)
    return dataclasses.replace(network, encoder=dataclasses.replace(network.encoder, folder=CARRIED))


def read_metadata(folder: Path, encoder: Path | None = None) -> tuple[NetworkMetadata, NetworkConfig]:
    """What config.json describes; `encoder` is where the encoder lies that the network stands on, if it was moved."""
    path = folder / "config.json"
    if not path.exists():
        raise WeftError(f"{folder} holds no trained network yet: it has no config.json")
    stored = section(path)
    network = stored_network(stored.pop("network"), path)
    if isinstance(network, TextTokensConfig) and network.encoder is not None:
        network = dataclasses.replace(network, encoder=network.encoder.below(folder, encoder))
    elif encoder is not None:
        raise WeftError(f"the network in {folder} stands on no encoder; leave out --encoder")
    return stored_metadata(stored, network, path), network


def section(path: Path) -> dict[str, Any]:
    """What a config.json holds for weft."""
    return own_section(read_object(path).get("weft"), path)


def own_section(stored: Any, path: Path) -> dict[str, Any]:
    """The section `weft` of the file `path`, if it describes a network and is of a format that is known here."""
    if not isinstance(stored, dict) or not isinstance(stored.get("network"), dict):
        raise Damaged(f"{path} was not written by weft, or is damaged: it has no section `weft` with a `network`")
    version = stored.pop("format", None)
    if not isinstance(version, int) or version > FORMAT:
        raise WeftError(f"{path} has format {reprlib.repr(version)}, this weft knows {FORMAT}; upgrade weft")
    return stored


def stored_network(fields: dict[str, Any], path: Path, *, for_building: bool = True) -> NetworkConfig:
    """The configuration of a network, refused with the name of its file."""
    try:
        return config_from_dict(fields, for_building=for_building)
    except Untrusted:
        raise
    except WeftError as error:
        raise Damaged(f"{path}: {error}") from error


def stored_metadata(stored: dict[str, Any], network: NetworkConfig, path: Path) -> NetworkMetadata:
    """The rest of the section, which must fit the network."""
    pretrained = stored.get("task") == PRETRAINED
    card = validated(NetworkMetadata, {**stored, "task": "classes"} if pretrained else stored, path)
    if pretrained:
        return dataclasses.replace(card, task=PRETRAINED)
    two = card.task != "binary" or len(card.classes) == 2
    if network.num_classes != outputs_for(card.task, len(card.classes)) or not two:
        raise Damaged(
            f"{path}: {len(card.classes)} classes ({card.task}) do not fit a network of {network.num_classes} "
            "outputs; restore the file"
        )
    return card


def read_network(folder: Path, encoder: Path | None = None) -> tuple[NetworkMetadata, Network, Transform]:
    """A network with its weights, and the transform that its inputs need."""
    card, config = read_metadata(folder, encoder)
    transform = transforms.load(folder)
    require_inputs(config, transform, folder)
    return card, build_stored(config, folder / "model.safetensors", folder / "config.json").eval(), transform


def require_inputs(network: NetworkConfig, transform: Transform, folder: Path) -> None:
    """Refuse preprocessing that makes other inputs than the network takes."""
    if isinstance(transform, TextTransform):
        made, fits = "texts", isinstance(network, TextConfig) and transform.fits(network.vocab_size, network.max_length)
    elif isinstance(transform, ImageTransform):
        made, sides = f"images of {transform.size} × {transform.size}", (transform.size, transform.size)
        fits = (sides, transform.channels) == (getattr(network, "img_size", None), getattr(network, "in_chans", 0))
    else:
        made = f"rows of {transform.features} numbers"
        fits = network.input == "vector" and getattr(network, "in_features", 0) == transform.features
    if not fits:
        raise Damaged(f"the preprocessing in {folder} makes {made}, which are not what its network takes; restore it")
