"""A trained network as a folder of the Hugging Face Hub, where transformers or timm has its architecture.

BERT and ViT go to transformers, with the tokenizer or the image processor; the named sizes of the other image families
go to timm. What outputs mean is put into the head, so that other libraries need to know nothing of weft: one logit for
two classes becomes two, and numbers come out in their own unit.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from weft.data.transform.transforms import FILE, ImageTransform, Transform
from weft.disk import is_output, read_object, require_own, write_json
from weft.errors import WeftError
from weft.networks.base.network import Network, make_head
from weft.networks.weights.rules import NoPlace
from weft.networks.weights.save import CONFIGS, LayoutName, foreign_tensors, save_weights
from weft.training.inference.network_folder import NetworkMetadata
from weft.training.inference.predictor import load

LIBRARIES: dict[LayoutName, str] = {"huggingface": "transformers", "timm": "timm"}


@dataclass(frozen=True)
class HubFolder:
    """A folder that was written, the library that reads it, and the call that does."""

    path: Path
    library: str
    call: str


def write_hub_folder(run: Path, folder: Path) -> HubFolder:
    """Write the network of a run into a folder, which must be new or weft's own, and no run."""
    predictor = load(run)
    predictor.card.objective()  # refuses a network that has learnt no answers
    if is_output(folder) or folder.resolve() == run.resolve():
        raise WeftError(f"{folder} holds a run or a study, whose files would be replaced; choose another --output")
    network = answering(predictor.card, predictor.network)
    layout = layout_of(network)
    if isinstance(predictor.transform, ImageTransform):
        require_own(folder / "model.safetensors", folder / FILE)
    try:
        save_weights(network, folder, layout)
        predictor.transform.save(folder)
    except OSError as error:
        raise WeftError(f"cannot write to {folder}: {error.strerror}; choose another --output") from error
    labels = labels_of(predictor.card)
    content = read_object(folder / "config.json")
    about = for_timm if layout == "timm" else for_transformers
    write_json(folder / "config.json", about(content, labels, predictor.transform))
    return HubFolder(folder, LIBRARIES[layout], call_of(layout, content, folder))


def layout_of(network: Network) -> LayoutName:
    """The layout that has a place for the network and computes the same with it."""
    refused = []
    for layout, library in LIBRARIES.items():
        try:
            foreign_tensors(network, layout)
            CONFIGS[layout](network.config)
            return layout
        except NoPlace as error:
            refused.append(f"{library}: {error.reason}")
    raise WeftError(f"neither library has this network ({', '.join(refused)}); weft export --onnx takes every one")


def labels_of(card: NetworkMetadata) -> list[str]:
    """A name for each output; a number has none."""
    return card.classes if card.task != "regression" else []


def for_transformers(content: dict[str, Any], labels: list[str], transform: Transform) -> dict[str, Any]:
    """A config.json with the names of the outputs."""
    if not labels:
        return {**content, "problem_type": "regression"}
    numbered = {str(number): label for number, label in enumerate(labels)}
    return {**content, "id2label": numbered, "label2id": {label: int(number) for number, label in numbered.items()}}


def for_timm(content: dict[str, Any], labels: list[str], transform: Transform) -> dict[str, Any]:
    """A config.json with the names of the outputs and what is done to pictures."""
    assert isinstance(transform, ImageTransform)
    pictures = {
        "mean": list(transform.mean),
        "std": list(transform.std),
        "interpolation": "bilinear",
        "crop_pct": transform.crop,
    }
    stored = {**content["pretrained_cfg"], **pictures}
    return {**content, "pretrained_cfg": stored, **({"label_names": labels} if labels else {})}


def call_of(layout: LayoutName, content: dict[str, Any], folder: Path) -> str:
    if layout == "timm":
        return f'timm.create_model("local-dir:{folder}", pretrained=True)'
    return f'transformers.{content["architectures"][0]}.from_pretrained("{folder}")'


# ---- What outputs mean, put into the head.


@torch.no_grad()
def answering(card: NetworkMetadata, network: Network) -> Network:
    """A copy whose outputs are a logit a class, or the number itself."""
    twin = deepcopy(network)
    if card.task == "classes":
        return twin
    heads = {name: deepcopy(head) for name, head in twin.named_children() if name in ("head", "head_dist")}
    if card.task == "binary":
        twin.config = twin.config.replaced(num_classes=2)
    for name, head in heads.items():
        assert isinstance(head, nn.Linear)
        setattr(twin, name, two_logits(head) if card.task == "binary" else scaled(head, card))
    return twin


def two_logits(head: nn.Linear) -> nn.Module:
    """Of one logit z the two (0, z): their softmax has the logistic function of z for the second class."""
    twin = make_head(head.in_features, 2, zero=True)
    assert isinstance(twin, nn.Linear)
    twin.weight[1], twin.bias[1] = head.weight[0], head.bias[0]
    return twin


def scaled(head: nn.Linear, card: NetworkMetadata) -> nn.Module:
    """Numbers in the unit of the targets, where the network learnt them with mean 0 and deviation 1."""
    head.weight.mul_(card.scale)
    head.bias.mul_(card.scale).add_(card.centre)
    return head
