"""The CIFAR ResNets of Yerlan Idelbayev (pytorch_resnet_cifar10): He et al. 2015, §4.2, with option A's shortcuts."""

from __future__ import annotations

from weft.networks.config import NetworkConfig, ResNetConfig
from weft.networks.weights.rules import Adapter, row


def is_cifar_resnet(config: NetworkConfig) -> bool:
    return isinstance(config, ResNetConfig) and config.padded and config.stem == "cifar"


RESNET = Adapter(
    layout="CIFAR",
    holds="ResNet",
    marks=frozenset({"conv1.weight", "layer1.0.conv1.weight", "linear.weight"}),
    fits=is_cifar_resnet,
    head=("linear.weight", "linear.bias"),
    table=(row("trunk.{rest}", "{rest}"), row("head.{p}", "linear.{p}")),
)

ADAPTERS = (RESNET,)
