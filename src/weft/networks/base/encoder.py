"""A trained encoder below another network: frozen, read from its own folder, and no part of what stands on it.

The contextual embeddings of a text do not change while the network above is trained, so they are computed once and
kept as float16. They are rounded to that here, so that a network sees the same numbers in training and in use.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from weft.errors import WeftError
from weft.networks.config import EncoderConfig, TextTokensConfig
from weft.nn.initialisation import seeded

if TYPE_CHECKING:
    from weft.networks.base.backbone import TextTokens


class TrainedEncoder:
    """Ids to contextual embeddings. Deliberately no module: its weights are neither trained nor saved with others."""

    def __init__(self, config: EncoderConfig) -> None:
        self.config = config

    @cached_property
    def network(self) -> TextTokens:
        """The encoder itself, read when it is first needed."""
        folder, wanted = Path(self.config.folder), self.config.digest
        if not folder.is_dir():
            raise WeftError(
                f"the network stands on the encoder in {folder}, which is not there; put it back, or give the folder "
                f"of the same one (digest {wanted}) with --encoder"
            )
        if (found := folder_digest(folder)) != wanted:
            raise WeftError(
                f"the encoder in {folder} is not the one that the network above was trained on (digest {found}, not "
                f"{wanted}); restore that one, or give its folder with --encoder"
            )
        return read_encoder(folder)

    @torch.no_grad()
    def __call__(self, ids: Tensor, mask: Tensor | None = None, segments: Tensor | None = None) -> Tensor:
        """Ids (batch, tokens) → embeddings (batch, tokens, channels), rounded as the cache keeps them."""
        network = self.network.to(ids.device)
        return features_at(network, self.config.layers, ids, mask, segments).half().float()


def read_encoder(folder: Path) -> TextTokens:
    """The text network of a folder, without its head, for evaluation."""
    from weft.networks.base.backbone import TextTokens
    from weft.networks.registry import build
    from weft.networks.weights.build import stored_config
    from weft.networks.weights.files import PICKLES, read, weight_files
    from weft.networks.weights.load import LeftOut, load_checkpoint

    if any(path.suffix in PICKLES for path in weight_files(folder)):
        raise WeftError(
            f"{folder} has its weights in a pickle, and a network that stands on a frozen encoder reads it again and "
            "again; convert it to model.safetensors, or leave out --frozen"
        )
    checkpoint = read(folder)
    config = stored_config(checkpoint)
    if not isinstance(config, TextTokensConfig) or config.encoder is not None:
        raise WeftError(f"{folder} holds a {config.family} network; what is needed is an encoder of text such as BERT")
    with seeded(0):  # the draws of weights that are about to be replaced are nobody else's
        network = build(config.replaced(num_classes=0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LeftOut)  # heads, which is what is wanted
        load_checkpoint(network, checkpoint)
    assert isinstance(network, TextTokens)
    return network.eval().requires_grad_(False)


def features_at(
    network: TextTokens,
    layers: Sequence[int],
    ids: Tensor,
    mask: Tensor | None = None,
    segments: Tensor | None = None,
) -> Tensor:
    """The outputs of some blocks (counted from 1) side by side: (batch, tokens, layers · channels)."""
    found: dict[int, Tensor] = {}
    network.run_blocks(network.embed_tokens(ids, mask, segments), mask, last=max(layers), collect=found)
    return torch.cat([found[number] for number in layers], dim=-1)


def folder_digest(folder: Path) -> str:
    """32 hex digits of the configuration and all weights in a folder."""
    from weft.networks.weights.files import weight_files

    state = blake2b(digest_size=16)
    for path in [folder / "config.json", *sorted({*folder.glob("model*.safetensors"), *weight_files(folder)})]:
        try:
            with path.open("rb") as file:
                while data := file.read(1 << 20):
                    state.update(data)
        except OSError as error:
            raise WeftError(f"cannot read {path}: {error.strerror}; give the folder of a trained encoder") from error
    return state.hexdigest()
