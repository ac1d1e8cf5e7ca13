"""How weights start, one function a school; parts with a rule of their own have a method `initialise`.

Biases start at zero and norms at one everywhere but in an LSTM, which keeps torch's uniform ±1/√hidden. The head of
a pre-norm image network starts at zero, as in the published ViT and Mixer code, so that training begins from uniform
predictions.
"""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor, nn


def xavier(weight: Tensor) -> None:
    """Glorot & Bengio 2010, uniform: the published ViT code (and timm's gMLP)."""
    nn.init.xavier_uniform_(weight)


def lecun(weight: Tensor) -> None:
    """Truncated normal of variance 1 / fan-in: flax's default, and so the published Mixer code."""
    fan_in = weight[0].numel()
    # 0.8796 is the deviation of a standard normal cut at two deviations.
    std = fan_in**-0.5 / 0.87962566103423978
    nn.init.trunc_normal_(weight, std=std, a=-2 * std, b=2 * std)


def bert(weight: Tensor) -> None:
    """Truncated normal of deviation 0.02 (Devlin et al. 2018)."""
    nn.init.trunc_normal_(weight, std=0.02, a=-0.04, b=0.04)


def he(weight: Tensor) -> None:
    """He et al. 2015: variance 2 / fan-in for linear layers, 2 / fan-out for convolutions, as in the ResNets."""
    nn.init.kaiming_normal_(weight, mode="fan_in" if weight.ndim == 2 else "fan_out", nonlinearity="relu")


SCHOOLS: dict[str, Callable[[Tensor], None]] = {"xavier": xavier, "lecun": lecun, "bert": bert, "he": he}


def initialise(network: nn.Module, school: str) -> None:
    """Set every parameter below `network`: its linear and convolution layers after `school`."""
    for module in network.modules():
        if isinstance(module, nn.Linear | nn.Conv1d | nn.Conv2d):
            SCHOOLS[school](module.weight)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
        elif isinstance(module, nn.Embedding):
            nn.init.trunc_normal_(module.weight, std=0.02, a=-0.04, b=0.04)
        elif callable(own := getattr(module, "initialise", None)) and module is not network:
            own()
