"""A network of somebody else's: any `nn.Module` that makes (batch, classes) of images, named `package.module:Class`.

Its constructor is given `num_classes`, which it must take, `img_size` and `in_chans` if it takes them, and what the
user adds. What is not known of it, its receptive field and how to size it, is left out. Its noise is its own: layers
from `weft.nn.noise` make a resumed run drop what the first one did, torch's dropout does not.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from weft import disk
from weft.errors import WeftError
from weft.imported import module_class
from weft.networks.base.network import Network, check_image
from weft.networks.config import ForeignConfig
from weft.networks.measure.cost import counted
from weft.nn.initialisation import seeded
from weft.nn.noise import number_streams


class Foreign(Network):
    """The module, `net`, behind weft's methods. Its output is all there is: no features, and no head to exchange."""

    config: ForeignConfig

    def __init__(self, config: ForeignConfig) -> None:
        super().__init__(config)
        self.net = construct(config)
        if not any(parameter.requires_grad for parameter in self.net.parameters()):
            raise WeftError(f"{config.model} has no parameter that could learn; give it a layer")
        number_streams(self)

    def answer(self, x: Tensor) -> Tensor:
        """Images (batch, channels, height, width) → (batch, classes)."""
        check_image(x, self.config.in_chans, self.config.img_size)
        y = self.net(x)
        wanted = (x.shape[0], self.config.num_classes)
        if not isinstance(y, Tensor) or tuple(y.shape) != wanted:
            found = str(tuple(y.shape)) if isinstance(y, Tensor) else f"a {type(y).__name__}"
            raise WeftError(
                f"{self.config.model} gives {found} for {x.shape[0]} images; the task needs (batch, classes), {wanted}"
            )
        return y

    def forward_features(self, x: Tensor) -> Tensor:
        raise WeftError(f"{self.config.model} is not weft's, so its features are not known; use its outputs")

    def reset_classifier(self, num_classes: int) -> None:
        raise WeftError(f"{self.config.model} is not weft's, so its head is not known; build it with num_classes=…")

    @property
    def head_inputs(self) -> int:
        raise WeftError(f"{self.config.model} is not weft's, so its head is not known")


def construct(config: ForeignConfig) -> nn.Module:
    """An instance of the class, with what its constructor takes."""
    kind = module_class(config.model)
    wanted = inspect.signature(kind).parameters
    anything = any(argument.kind is argument.VAR_KEYWORD for argument in wanted.values())
    if "num_classes" not in wanted and not anything:
        raise WeftError(f"the constructor of {config.model} must take num_classes, the number of its outputs")
    side: Any = config.img_size[0] if config.img_size[0] == config.img_size[1] else config.img_size
    given = {"num_classes": config.num_classes, "img_size": side, "in_chans": config.in_chans}
    given = {name: value for name, value in given.items() if name in wanted or name == "num_classes"}
    try:
        net: nn.Module = kind(**{**given, **config.arguments})
    except WeftError:
        raise
    except Exception as error:
        raise WeftError(f"{config.model} cannot be made: {type(error).__name__}: {error}") from error
    if any(is_lazy(parameter) for parameter in net.parameters()):
        settle_sizes(net, config)
    return net


def settle_sizes(net: nn.Module, config: ForeignConfig) -> None:
    """Lazy layers of torch learn their sizes from the first images that they see: here from black ones."""
    training = net.training
    with torch.no_grad(), understood(config):
        net.eval()(torch.zeros(2, config.in_chans, *config.img_size))
    net.train(training)


@contextmanager
def understood(config: ForeignConfig) -> Iterator[None]:
    """What a network raises for images of its size is a sentence."""
    try:
        yield
    except (WeftError, MemoryError):
        raise
    except Exception as error:
        size = " × ".join(map(str, (config.in_chans, *config.img_size)))
        raise WeftError(
            f"{config.model} fails on images of {size}: {type(error).__name__}: {disk.brief(error)}; mend its forward"
        ) from error


@cache
def count(config: ForeignConfig) -> tuple[int, int]:
    """Parameters and multiply-adds as torch counts them; on the CPU where the meta device will not do."""
    shape = (config.in_chans, *config.img_size)
    try:
        return counted(lambda: construct(config), shape)
    except WeftError:
        raise
    except Exception:
        with seeded(0), understood(config):  # nobody else's draws
            return counted(lambda: construct(config), shape, device="cpu")
