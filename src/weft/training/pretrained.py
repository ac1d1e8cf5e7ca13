"""A trained network on disk in the Hugging Face layout, and back: config.json, model.safetensors, preprocessing."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors.torch
from safetensors import SafetensorError
from torch import Tensor

from weft.atomic import write_bytes, write_json
from weft.data import preprocess
from weft.data.preprocess import TextTransform, Transform
from weft.data.tokens import FILES as TOKENIZER
from weft.errors import WeftError
from weft.networks.config import CARRIED, NetworkConfig, TextTokensConfig
from weft.networks.network import Network
from weft.networks.registry import build, config_from_dict
from weft.networks.weights.files import WRITTEN, require_own
from weft.nn.losses import Task
from weft.nn.seeding import seeded
from weft.training.embeddings.carried import carry
from weft.training.objective import Objective

FORMAT = 1
PRETRAINED: Any = "words"  # in the place of a task: an encoder that answers nothing before it is fine-tuned


@dataclass(frozen=True)
class Card:
    """What config.json says beside the network's own configuration: what outputs mean."""

    model: str
    task: Task
    classes: list[str]
    centre: float = 0.0
    scale: float = 1.0
    pairs: bool = False
    """whether its inputs are pairs of texts"""

    def objective(self) -> Objective:
        """The objective, for turning outputs into answers."""
        if self.task == PRETRAINED:
            raise WeftError(f"{self.model} has been pre-trained only and knows no classes; use `weft finetune` first")
        return Objective(self.task, centre=self.centre, scale=self.scale)


def write_network(
    folder: Path, card: Card, network: NetworkConfig, weights: dict[str, Tensor], transform: Transform
) -> None:
    """Write a network into `folder`; the weights last, so that a folder with weights is whole."""
    inputs = TOKENIZER if isinstance(transform, TextTransform) else (preprocess.FILE,)
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
        "weft": {"format": FORMAT, **dataclasses.asdict(card), "network": dataclasses.asdict(network)},
    }
    write_json(folder / "config.json", content)
    write_bytes(folder / "model.safetensors", safetensors.torch.save(weights, metadata=WRITTEN))


def with_encoder(network: NetworkConfig, folder: Path) -> NetworkConfig:
    """The configuration as it is kept, after the encoder that the network stands on, if any, was put beside it."""
    if not isinstance(network, TextTokensConfig) or network.encoder is None:
        return network
    carry(Path(network.encoder.folder), folder)
    return dataclasses.replace(network, encoder=dataclasses.replace(network.encoder, folder=CARRIED))


def read_card(folder: Path, encoder: Path | None = None) -> tuple[Card, NetworkConfig]:
    """What config.json describes; `encoder` is where the encoder lies that the network stands on, if it was moved."""
    path = folder / "config.json"
    try:
        stored: dict[str, Any] = dict(json.loads(path.read_text(encoding="utf-8"))["weft"])
        version = stored.pop("format", None)
        if not isinstance(version, int) or version > FORMAT:
            raise WeftError(f"{path} has format {version}, this weft knows {FORMAT}; upgrade weft")
        network = config_from_dict(dict(stored.pop("network")))
        if isinstance(network, TextTokensConfig) and network.encoder is not None:
            network = dataclasses.replace(network, encoder=network.encoder.below(folder, encoder))
        elif encoder is not None:
            raise WeftError(f"the network in {folder} stands on no encoder; leave out --encoder")
        return Card(**stored), network
    except FileNotFoundError as error:
        raise WeftError(f"{folder} holds no trained network yet: it has no config.json") from error
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise WeftError(f"{path} was not written by weft, or is damaged: {error}") from error


def read_network(folder: Path, encoder: Path | None = None) -> tuple[Card, Network, Transform]:
    """A network with its weights, and the transform that its inputs need."""
    card, config = read_card(folder, encoder)
    with seeded(0):  # the draws of weights that are about to be replaced are nobody else's
        net = build(config)
    path = folder / "model.safetensors"
    try:
        weights = safetensors.torch.load(path.read_bytes())
    except (OSError, SafetensorError) as error:
        raise WeftError(f"cannot read the weights {path}: {error}") from error
    own = {name: value.shape for name, value in net.state_dict().items()}
    if own != {name: value.shape for name, value in weights.items()}:
        raise WeftError(f"{path} does not hold the weights of the network in {folder / 'config.json'}")
    net.load_state_dict(weights)
    return card, net.eval(), preprocess.load(folder)
