"""An AugmentConfig applied to a batch: each step draws from its own stream, keyed by (seed, step, index)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from weft import imported
from weft.data.augment import colour
from weft.data.augment.geometry import crop_boxes, flip, padded_crop, resized_crop
from weft.data.augment.mixing import Mix, draw_mix, erase
from weft.data.augment.policy import rand_augment, trivial_augment
from weft.data.batch import noise
from weft.data.config import AugmentConfig
from weft.errors import WeftError

Index = NDArray[np.int64]
Draws = NDArray[np.float64]


@dataclass(frozen=True)
class Augmenter:
    """What training does to images: `pixels` before normalisation, `erase` and `mix` after it."""

    config: AugmentConfig
    seed: int

    def __post_init__(self) -> None:
        if self.config.augmentation is not None:
            imported.function(self.config.augmentation, "augmentation")  # refused now, rather than at the first batch

    def draws(self, name: str, step: int, index: Index, count: int) -> Draws:
        """(batch, count) uniform numbers of the stream `name` for the examples of a step."""
        return noise.uniform(noise.key(self.seed, "augment", name, step), index, count)

    def boxes(self, step: int, index: Index) -> Draws | None:
        """(batch, 4) random-resized crops, for those who can cut them while decoding."""
        if self.config.resized_crop is None:
            return None
        return crop_boxes(self.draws("resized_crop", step, index, 4), self.config.resized_crop)

    def pixels(self, images: Tensor, step: int, index: Index, cropped: bool = False) -> Tensor:
        """(batch, channels, height, width) uint8, changed; `cropped` images have had their random-resized crop."""
        config = self.config
        boxes = None if cropped else self.boxes(step, index)
        if boxes is not None:
            images = resized_crop(images, boxes)
        if config.crop_padding:
            images = padded_crop(images, self.draws("crop", step, index, 2), config.crop_padding)
        if config.flip:
            images = flip(images, self.draws("flip", step, index, 1))
        if config.color_jitter:
            images = self._jitter(images, self.draws("jitter", step, index, 3))
        if config.policy == "trivial":
            images = trivial_augment(images, self.draws("trivial", step, index, 3))
        elif config.policy == "rand":
            draws = self.draws("rand", step, index, 2 * config.rand_layers)
            images = rand_augment(images, draws, config.rand_layers, config.rand_magnitude)
        return images if config.augmentation is None else self._own(images, step, index, config.augmentation)

    def _own(self, images: Tensor, step: int, index: Index, name: str) -> Tensor:
        """The user's function applied; what it returns must be images of the same form."""
        function = imported.function(name, "augmentation")
        try:
            changed = function(images, Noise(self, step, index))
        except WeftError:
            raise
        except Exception as error:  # a user's function may raise anything
            raise WeftError(f"augmentation {name} failed: {type(error).__name__}: {error}") from error
        if not isinstance(changed, Tensor):
            raise WeftError(f"augmentation {name} returned a {type(changed).__name__}; let it return a tensor")
        if changed.shape != images.shape or changed.dtype != images.dtype:
            made, of = (f"{tuple(tensor.shape)} {tensor.dtype}" for tensor in (changed, images))
            raise WeftError(f"augmentation {name} made {made} of {of}; let it return images of the same shape and type")
        return changed

    def erase(self, images: Tensor, step: int, index: Index, centred: bool = True) -> Tensor:
        """Normalised images, some with a rectangle replaced by the mean.

        That of the training split is 0 where images are `centred`; elsewhere a picture's own mean stands for it.
        """
        if not self.config.reprob:
            return images
        fill = None if centred else images.mean((2, 3), keepdim=True)
        return erase(images, self.draws("erasing", step, index, 5), self.config.reprob, fill)

    def mix(self, step: int, index: Index, like: Tensor) -> Mix:
        """How each example is mixed with its partner."""
        config = self.config
        draws = self.draws("mix", step, index, 5)
        return draw_mix(draws, like.shape, config.mixup, config.cutmix, config.mix_probability)

    def _jitter(self, images: Tensor, draws: Draws) -> Tensor:
        factors = 1 + (draws * 2 - 1) * self.config.color_jitter
        images = colour.brightness(images, factors[:, 0])
        images = colour.contrast(images, factors[:, 1])
        return colour.saturation(images, factors[:, 2])


class Noise:
    """Random numbers for an augmentation of the user's own: functions of (seed, step, example) alone.

    Each call draws anew. As they do not depend on who asks, or on the other examples, a batch is the same whichever
    process makes it, and whatever was made before.
    """

    def __init__(self, augmenter: Augmenter, step: int, index: Index) -> None:
        self._augmenter, self._step, self._index = augmenter, step, index
        self._calls = 0

    def uniform(self, count: int = 1) -> Tensor:
        """(batch, count) float32 in [0, 1)."""
        self._calls += 1
        draws = self._augmenter.draws(f"own {self._calls}", self._step, self._index, count)
        return torch.from_numpy(draws.astype(np.float32))

    def normal(self, count: int = 1) -> Tensor:
        """(batch, count) float32 of mean 0 and deviation 1."""
        first, second = self.uniform(count), self.uniform(count)
        return torch.sqrt(-2 * torch.log1p(-first)) * torch.cos(2 * torch.pi * second)
