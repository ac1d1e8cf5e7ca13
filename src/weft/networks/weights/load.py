"""Loading a checkpoint into a network: recognise its layout, translate, resize, check, and only then copy.

Nothing is loaded in part. What a file lacks, has too much, or has in another shape is an error that names it. The one
exception is the head, which stays fresh where the numbers of classes differ, and a warning says so.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from torch import Tensor

from weft.disk import brief, complaint
from weft.errors import WeftError
from weft.networks.base.backbone import TokenNetwork
from weft.networks.base.network import Network, uncompiled
from weft.networks.config import NetworkConfig
from weft.networks.weights import cifar, efficientnet_pytorch, google, huggingface, timm
from weft.networks.weights.files import Checkpoint, first_line, read
from weft.networks.weights.own import OWN, is_own
from weft.networks.weights.packages import Package
from weft.networks.weights.resizing import resized, stored_layout
from weft.networks.weights.rules import Adapter, Rule
from weft.nn.blocks import Layout
from weft.terminal import brief_list

FOREIGN = (  # the first whose marks are found
    *cifar.ADAPTERS,
    *timm.ADAPTERS,
    *efficientnet_pytorch.ADAPTERS,
    *google.ADAPTERS,
    *huggingface.ADAPTERS,
)

# What may differ between a checkpoint and a network: sizes that are resized, and what matters in training alone.
RESIZED = ("num_classes", "img_size", "max_length")
TRAINING_ONLY = ("drop_rate", "drop_path_rate", "head_drop_rate", "init", "zero_head", "zero_init_last")


class StartsFresh(UserWarning):
    """A part of the network that a checkpoint has no weights for."""


class LeftOut(UserWarning):
    """A part of a checkpoint that the network has no place for, as was expected."""


def load_weights(
    network: Network,
    source: str | Path | Mapping[str, Tensor],
    *,
    unsafe_pickle: bool = False,
    grid: tuple[int, int] | None = None,
) -> None:
    """Load a checkpoint of weft, timm, Google, Hugging Face or the CIFAR ResNets, resizing what depends on the tokens.

    `source` is a .safetensors or .npz file, a folder with config.json and model.safetensors, a Hub name or a state
    dict. A pickle needs `unsafe_pickle=True`. `grid`, rows and columns of patches, is needed for a checkpoint of
    another image size that is not square and does not say so itself.
    """
    load_checkpoint(network, read(source, unsafe_pickle=unsafe_pickle), grid)


def load_package(network: Network, package: Package) -> None:
    """Load the weights of an installed package: of a folder in the Hugging Face layout, or a pickle that is known."""
    path = package.path()
    known = path.suffix != ".safetensors"  # its digest was compared, and it is read as weights alone
    load_weights(network, path if known else path.parent, unsafe_pickle=known)


def load_checkpoint(network: Network, checkpoint: Checkpoint, grid: tuple[int, int] | None = None) -> None:
    """Load what `files.read` gave."""
    network = uncompiled(network)
    if any(tensor.is_meta for tensor in network.state_dict().values()):
        raise WeftError("a network on the meta device has no memory to load weights into; build it on another device")
    adapter, checkpoint = recognised(checkpoint, network)
    known = stated(adapter, checkpoint)
    check_settings(network.config, known, checkpoint.origin)
    doubt_settings(network.config, {name: value for name, value in adapter.usual.items() if name not in known}, adapter)
    try:
        tensors = translated(adapter, checkpoint, network)
        if isinstance(network, TokenNetwork):
            tensors = fitted(network, tensors, stored_layout(network, tensors, known, grid), checkpoint.origin)
    except (RuntimeError, IndexError) as error:
        raise WeftError(f"{checkpoint.origin} has tensors of strange shapes ({first_line(error)})") from None
    own = network.state_dict()
    check_shapes(tensors, own, checkpoint.origin)
    network.load_state_dict({**own, **tensors})


def recognised(checkpoint: Checkpoint, network: Network) -> tuple[Adapter, Checkpoint]:
    """The adapter whose marks the checkpoint bears, and the checkpoint with that layout's plain names."""
    adapter = layout_of(checkpoint)
    if adapter is None and not checkpoint.tensors.keys() & network.state_dict().keys():
        raise WeftError(
            f"{checkpoint.origin} is in no layout that weft knows (it begins with "
            f"{brief_list(sorted(checkpoint.tensors), 3)}); "
            f"it reads its own and {', '.join(map(str, FOREIGN))}"
        )
    if adapter is None:
        return OWN, checkpoint
    if not adapter.fits(network.config):
        raise WeftError(
            f"{checkpoint.origin} holds a {adapter}, which a {network.config.family} network of this configuration "
            "cannot take; build the network that the checkpoint was made for"
        )
    return adapter, plainly_named(checkpoint, adapter)


def layout_of(checkpoint: Checkpoint) -> Adapter | None:
    """The foreign layout of a checkpoint, or None for weft's own and for what is in none."""
    if is_own(checkpoint.config):
        return None
    for adapter in FOREIGN:
        if adapter.marks <= {adapter.rename(name) for name in checkpoint.tensors}:
            return adapter
    return None


def plainly_named(checkpoint: Checkpoint, adapter: Adapter) -> Checkpoint:
    return replace(checkpoint, tensors={adapter.rename(name): tensor for name, tensor in checkpoint.tensors.items()})


def stated(adapter: Adapter, checkpoint: Checkpoint) -> dict[str, Any]:
    """The fields of weft's configuration that a checkpoint tells."""
    with legible(checkpoint.origin):
        return adapter.known(checkpoint)


@contextmanager
def legible(origin: str) -> Iterator[None]:
    """Whatever goes wrong while the config.json of a checkpoint is read, as a sentence."""
    file = f"the config.json of {origin}"
    try:
        yield
    except KeyError as error:
        raise WeftError(f"{file} lacks {error}, or names what weft has not; fetch it again, or use another") from None
    except IndexError as error:
        raise WeftError(f"{origin} has tensors of strange shapes ({first_line(error)})") from None
    except ValidationError as error:
        raise WeftError(f"{file}: {complaint(error)}; fetch it again") from None
    except (TypeError, ValueError, AttributeError) as error:
        raise WeftError(f"{file} is damaged ({brief(error)}); fetch it again") from None


def check_settings(config: NetworkConfig, known: dict[str, Any], origin: str) -> None:
    """Refuse a network that would compute something else with the same weights, however well the shapes fit."""
    stored = {
        name: value for name, value in known.items() if name not in (*RESIZED, *TRAINING_ONLY) and hasattr(config, name)
    }
    wrong = {name: value for name, value in stored.items() if getattr(config, name) != value}
    if wrong:
        theirs = ", ".join(f"{name}={value!r}" for name, value in wrong.items())
        ours = ", ".join(f"{name}={getattr(config, name)!r}" for name in wrong)
        raise WeftError(f"{origin} was made with {theirs} but the network has {ours}; build it with {theirs}")


def doubt_settings(config: NetworkConfig, usual: dict[str, Any], adapter: Adapter) -> None:
    """Warn where a checkpoint does not tell a setting and the network's is not the usual one."""
    for name, value in usual.items():
        if getattr(config, name) != value:
            warn(f"most checkpoints of a {adapter} have {name}={value!r}, the network has {getattr(config, name)!r}")


def classes_of(adapter: Adapter, checkpoint: Checkpoint) -> int:
    """The number of classes of a checkpoint, 0 without a head."""
    weight, bias = (checkpoint.tensors.get(name) for name in adapter.head[:2])
    if weight is None and bias is None:
        return 0
    if weight is None or bias is None:
        lost = adapter.head[0] if weight is None else adapter.head[1]
        raise WeftError(f"{checkpoint.origin} has only half a head: it lacks {lost}; fetch it again")
    return bias.numel()


def translated(adapter: Adapter, checkpoint: Checkpoint, network: Network) -> dict[str, Tensor]:
    """The checkpoint's tensors by weft's names, each used exactly once; without the head where the classes differ."""
    stored, own = dict(checkpoint.tensors), network.state_dict()
    wanted = list(own)
    theirs, ours = classes_of(adapter, checkpoint), own["head.bias"].numel() if "head.bias" in own else 0
    if theirs != ours:
        stored = {name: tensor for name, tensor in stored.items() if name not in adapter.head}
        wanted = [name for name in wanted if not name.startswith(("head.", "head_dist."))]
        state, kind = ("its head starts fresh", StartsFresh) if ours else ("the head is left out", LeftOut)
        warn(f"{checkpoint.origin} has {theirs or 'no'} classes and the network {ours or 'none'}: {state}", kind)
    rules = list(adapter.rules(wanted))
    check_names(adapter, rules, stored, checkpoint.origin)
    return {
        rule.weft: rule.form.load([stored[name] for name in rule.foreign])
        for rule in rules
        if all(name in stored for name in rule.foreign)
    }


def check_names(adapter: Adapter, rules: list[Rule], stored: Mapping[str, Tensor], origin: str) -> None:
    """Refuse a checkpoint that lacks a tensor or has one too many; say what of it is left out on purpose."""
    used = {name for rule in rules for name in rule.foreign}
    absent = [name for rule in rules for name in rule.foreign if name not in stored and not rule.optional]
    unused = {name: adapter.extra(name) for name in stored if name not in used}
    surplus = [name for name, kind in unused.items() if kind is None]
    if absent or surplus:
        lacks = f"lacks {brief_list(absent, 3)}, which the network needs" if absent else ""
        has = f"has {brief_list(surplus, 3)}, which the network has no place for" if surplus else ""
        raise WeftError(
            f"{origin} {' and '.join(filter(None, (lacks, has)))}; nothing was loaded: build the network with the "
            "depth and options of the checkpoint, or take another file"
        )
    kinds = sorted({kind for kind in unused.values() if kind})
    if kinds:
        warn(f"left out of {origin}: {', '.join(kinds)}", LeftOut)


def fitted(network: TokenNetwork, tensors: dict[str, Tensor], old: Layout, origin: str) -> dict[str, Tensor]:
    """The tensors, resized from the layout `old`; texts longer than the checkpoint knew meet untrained weights."""
    moved = resized(network, tensors, old)
    if len(old.grid) == 1 and network.layout.tokens > old.tokens:
        longer = "what the network has for longer ones starts fresh"
        warn(f"{origin} knows texts of at most {old.tokens} tokens: {longer}", StartsFresh)
    return moved


def check_shapes(tensors: dict[str, Tensor], own: Mapping[str, Tensor], origin: str) -> None:
    """Refuse tensors of other shapes, and whole numbers, which are quantised weights, for real ones."""
    wrong = [
        f"{name} {tuple(tensor.shape)} where the network has {tuple(own[name].shape)}"
        for name, tensor in tensors.items()
        if tensor.shape != own[name].shape
    ] + [
        f"{name} in {tensor.dtype} where the network has {own[name].dtype}"
        for name, tensor in tensors.items()
        if own[name].is_floating_point() and not tensor.is_floating_point()
    ]
    if wrong:
        raise WeftError(
            f"{origin} has {brief_list(wrong, 3)}; nothing was loaded: build the network with the checkpoint's sizes"
        )


def warn(sentence: str, kind: type[UserWarning] = UserWarning) -> None:
    warnings.warn(sentence, kind, stacklevel=5)
