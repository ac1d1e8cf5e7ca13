"""CIFAR-10: 60,000 colour images of 32 × 32 pixels in ten classes.

Those called quick take minutes and show that a family learns; the others reach what it can.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from weft.data.config import AugmentConfig
from weft.training.config import DurationConfig, ObjectiveConfig, OptimisationConfig, OptimiserName, RunConfig

RECIPES = (
    "lenet",
    "rcnn",
    "resnet",
    "mixer",
    "gmlp",
    "mlp_quick",
    "lenet_quick",
    "resnet_quick",
    "rcnn_quick",
    "vit_quick",
    "mixer_quick",
    "gmlp_quick",
)


def run(
    model: str, network: dict[str, Any] | None = None, epochs: float = 3, lr: float = 1e-3, opt: OptimiserName = "adamw"
) -> RunConfig:
    """What some share: crop and flip, batches of 128, label smoothing."""
    return RunConfig(
        source="hub:uoft-cs/cifar10",
        model=model,
        network=network or {},
        augment=AugmentConfig(crop_padding=4, flip=True),
        optimisation=OptimisationConfig(batch_size=128, opt=opt, lr=lr, weight_decay=0.05),
        objective=ObjectiveConfig(smoothing=0.1),
        duration=DurationConfig(epochs=epochs),
    )


def short(model: str, steps: int, lr: float) -> RunConfig:
    """Four minutes of one core, as in the comparison of docs/compare.md: crop and flip, batches of 64, nothing else."""
    return RunConfig(
        source="hub:uoft-cs/cifar10",
        model=model,
        augment=AugmentConfig(crop_padding=4, flip=True),
        optimisation=OptimisationConfig(batch_size=64, lr=lr, weight_decay=0.05),
        duration=DurationConfig(steps=steps),
    )


def thorough(model: str, epochs: float, lr: float, network: dict[str, Any] | None = None, **augment: Any) -> RunConfig:
    """What the long ones share: Muon, flips, and an average of the weights over the last steps."""
    return RunConfig(
        source="hub:uoft-cs/cifar10",
        model=model,
        network=network or {},
        augment=AugmentConfig(flip=True, **augment),
        optimisation=OptimisationConfig(batch_size=128, opt="muon", lr=lr, weight_decay=0.05, model_ema_decay=0.998),
        duration=DurationConfig(epochs=epochs),
    )


def longer(config: RunConfig) -> RunConfig:
    """The same on nearly all rows, as a run whose settings are known has little to choose, with smoothed labels."""
    objective = replace(config.objective, smoothing=0.1)
    return replace(config, reading=replace(config.reading, val_fraction=0.02), objective=objective)


def lenet() -> RunConfig:
    """LeNet-5 on colour images, until it learns no more.

    weft train CIFAR10_FOLDER --recipe cifar10/lenet
    Expect 76.7 % ± 0.4 (three seeds), 62,006 parameters,
    666 CPU seconds of training on one AVX2 core.
    """
    return thorough("lenet5", epochs=60, lr=5e-3, crop_padding=2)


def rcnn() -> RunConfig:
    """A recurrent ConvNet of 96 channels, to its end. Not measured yet.

    weft train CIFAR10_FOLDER --recipe cifar10/rcnn
    """
    return longer(thorough("rcnn_96", epochs=14, lr=1e-2, network={"mirrored": True}, crop_padding=4))


def resnet() -> RunConfig:
    """A short, wide ResNet, to its end.

    weft train CIFAR10_FOLDER --recipe cifar10/resnet
    Expect 93.0 % (92.5 – 93.5 over examples, one seed), 2,273,322 parameters,
    2,665 CPU seconds of training on one core with AVX-512, in bf16.
    """
    shape = {"layers": (1, 1, 1, 1), "widths": (32, 128, 256, 256), "mirrored": True}
    return longer(thorough("resnet8_cifar", epochs=18, lr=1e-2, network=shape, crop_padding=4))


def mixer() -> RunConfig:
    """MLP-Mixer, to its end.

    weft train CIFAR10_FOLDER --recipe cifar10/mixer
    Expect 86.2 % (85.5 – 86.8 over examples, one seed), 1,132,170 parameters,
    2,584 CPU seconds of training on one core with AVX-512, in bf16.
    """
    mixed = thorough("mixer_nano_p4_32", 24, 1e-2, {"mirrored": True}, crop_padding=4, cutmix=1.0, mix_probability=0.5)
    return longer(mixed)


def gmlp() -> RunConfig:
    """gMLP, to its end. Not measured yet.

    weft train CIFAR10_FOLDER --recipe cifar10/gmlp
    """
    shape = {"depth": 8, "mirrored": True}
    return longer(thorough("gmlp_nano_p4_32", 22, 1e-2, shape, crop_padding=4, cutmix=1.0, mix_probability=0.5))


def mlp_quick() -> RunConfig:
    """Perceptron stack on flattened images.

    weft train CIFAR10_FOLDER --recipe cifar10/mlp_quick
    Expect 44.4 % (43.4 – 45.4 over examples, one seed), 1,841,162 parameters,
    29 CPU seconds of training on two AVX2 cores.
    """
    return run("mlp", {"hidden": [512, 512], "drop_rate": 0.1})


def lenet_quick() -> RunConfig:
    """LeNet-5 on colour images.

    weft train CIFAR10_FOLDER --recipe cifar10/lenet_quick
    Expect 55.3 % (54.3 – 56.2 over examples, one seed), 62,006 parameters,
    54 CPU seconds of training on two AVX2 cores.
    """
    return run("lenet5", lr=2e-3)


def resnet_quick() -> RunConfig:
    """ResNet-8, the smallest of the CIFAR ResNets.

    weft train CIFAR10_FOLDER --recipe cifar10/resnet_quick
    Expect 63.5 % (62.6 – 64.1 over three seeds of 1,642 to 1,714 steps), 75,290 parameters,
    190 CPU seconds of training on one AVX2 core.
    """
    return short("resnet8_cifar", steps=1714, lr=3e-3)


def rcnn_quick() -> RunConfig:
    """A narrow recurrent ConvNet.

    weft train CIFAR10_FOLDER --recipe cifar10/rcnn_quick
    Expect 50.4 % (49.4 – 51.4 over examples, one seed), 77,546 parameters,
    151 CPU seconds of training on one AVX2 core.
    """
    return run("rcnn_96", {"width": 32}, epochs=1, lr=2e-3)


def vit_quick() -> RunConfig:
    """A small plain ViT, P4 C64 L5: attention needs more than minutes.

    weft train CIFAR10_FOLDER --recipe cifar10/vit_quick
    Expect 45.4 % (42.6 – 45.4 over three seeds of 1,144 to 1,527 steps), 216,778 parameters,
    241 CPU seconds of training on one AVX2 core.
    """
    return short("vit_pico_p4_32", steps=1527, lr=3e-3)


def mixer_quick() -> RunConfig:
    """A small MLP-Mixer, P4 C64 D_C256 L4.

    weft train CIFAR10_FOLDER --recipe cifar10/mixer_quick
    Expect 60.1 % (59.3 – 61.1 over three seeds of 2,187 to 2,498 steps), 170,570 parameters,
    227 CPU seconds of training on one AVX2 core.
    """
    return short("mixer_pico_p4_32", steps=2187, lr=9.49e-3)


def gmlp_quick() -> RunConfig:
    """A small gMLP, P4 C64 E256 L6.

    weft train CIFAR10_FOLDER --recipe cifar10/gmlp_quick
    Expect 57.5 % (54.1 – 57.5 over three seeds of 1,276 to 1,710 steps), 180,554 parameters,
    227 CPU seconds of training on one AVX2 core.
    """
    return short("gmlp_pico_p4_32", steps=1710, lr=9.49e-3)
