"""The settings of the data side, as they are written into run.yaml. This module must not import torch."""

from __future__ import annotations

import re
import reprlib
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field
from pydantic.dataclasses import dataclass
from tyro.constructors import PrimitiveConstructorSpec

from weft.errors import WeftError

EMBEDDED = ("digits", "breast_cancer", "diabetes", "pydocs")  # sets that come with weft, by name
OnBad = Literal["fail", "skip"]
Task = Literal["binary", "classes", "regression", "none"]
Modality = Literal["image", "text", "pair", "vector"]


def byte_count(value: Any, name: str = "--memory") -> int:
    """A number of bytes, perhaps with K, M, G or T behind it for the powers of 1,024: 512M, 2G or 1.5G."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([KMGT]?)(?:I?B)?", str(value).upper().replace(" ", ""))
    if found is None:
        raise WeftError(f"{name} is {reprlib.repr(value)}; give a number of bytes, or one such as 500M or 2G")
    return int(float(found[1]) * 1024 ** " KMGT".index(found[2] or " "))


def byte_text(count: int) -> str:
    """The same number as people write it."""
    power = max(power for power in range(5) if count % 1024**power == 0)
    return f"{count // 1024**power}{' KMGT'[power].strip()}"


Bytes = Annotated[
    int,
    BeforeValidator(byte_count),
    PrimitiveConstructorSpec(
        nargs=1,
        metavar="BYTES",
        instance_from_str=lambda words: byte_count(words[0]),
        is_instance=lambda value: isinstance(value, int),
        str_from_instance=lambda value: [byte_text(value)],
    ),
]


@dataclass(frozen=True)
class SourceConfig:
    """How a source is read: what is the target, what is done with bad rows, what is held out."""

    split_seed: int = 0
    """Decides which rows are held out; apart from --seed, so that runs of several seeds share their splits."""
    target: str | None = None
    """Column to predict; needed only where it cannot be told from the columns' names and types."""
    inputs: tuple[str, ...] | None = None
    """Column, or the two columns of a text pair, to predict from; needed only where they cannot be told."""
    task: Task | None = None
    """What is predicted; guessed from the target's values."""
    on_bad: OnBad = "fail"
    """fail: stop at the first bad row, naming it; skip: leave bad rows out and count them."""
    val_fraction: float = Field(default=0.1, gt=0.0, lt=1.0)
    """Share of the training rows held out for choosing (rates, best step) where the source has no labelled validation
    split beside its test split."""
    test_fraction: float = Field(default=0.2, gt=0.0, lt=1.0)
    """Share of the rows held out for the final figures where the source has no labelled test or validation split."""
    folds: int | None = Field(default=None, ge=2)
    """Cross-validation: the rows are cut into so many folds by --split-seed, instead of --test-fraction."""
    fold: int = Field(default=0, ge=0)
    """Which of the folds is the test split, from 0 on."""
    group: str | None = None
    """Column whose equal values must stay in one split (a patient, a document)."""
    stream: bool | None = None
    """Read shards as they are needed; by default where they are larger than --memory."""
    memory: Bytes = Field(default=2 << 30, gt=0)
    """Memory that a source's rows, or its decoded images, may take, such as 512M or 2G."""


@dataclass(frozen=True)
class TransformConfig:
    """What happens to an input before the network sees it: the same in evaluation and in serving."""

    img_size: int | None = Field(default=None, gt=0, le=4096)
    """Side of the square image; by default that of the source's images, at most 128, and in fine-tuning the side of the
    network's training."""
    channels: Literal[1, 3] | None = None
    """1 grey, 3 RGB; by default what the source has."""
    crop: float = Field(default=1.0, gt=0.0, le=1.0)
    """Share of the resized image's side that the centre crop keeps."""
    normalize: Literal["zscore", "unit"] = "zscore"
    """zscore: minus the training rows' mean, over their deviation; unit: images to [0, 1], vectors as they are."""
    max_pixels: int = Field(default=50_000_000, gt=0)
    """Images that declare more pixels are refused before they are decoded."""
    max_length: int | None = Field(default=None, ge=8)
    """Tokens of a text, the markers [CLS] and [SEP] included; longer texts are cut. By default 95 % of the training
    texts fit, up to 256 tokens."""
    vocab_size: int = Field(default=8192, ge=64)
    """Words and word pieces of a vocabulary that is trained."""
    lowercase: bool = True
    """Fold case and accents, as uncased BERT does, in a vocabulary that is trained."""


@dataclass(frozen=True)
class AugmentConfig:
    """What training does to a batch of images, in the order of these fields.

    None does nothing; `weft train` and `compare` decide it by the data first.
    """

    resized_crop: tuple[float, float] | None = None
    """Random-resized crop: smallest and largest share of the image's area, 0.35 1.0 for instance."""
    crop_padding: int | None = Field(default=None, ge=0)
    """Padded crop: shift by up to this many pixels each way, black coming in; by default what suits the images."""
    flip: bool | None = None
    """Mirror half of the images; by default photographs (no digits or letters), unless that is seen to hurt."""
    color_jitter: float = Field(default=0.0, ge=0.0, le=1.0)
    """Brightness, contrast and saturation change by up to this share."""
    policy: Literal["none", "trivial", "rand"] = "none"
    """TrivialAugment (one random operation of random strength) or RandAugment."""
    rand_layers: int = Field(default=2, ge=1)
    """Operations that RandAugment applies one after the other."""
    rand_magnitude: float = Field(default=9.0, ge=0.0, le=30.0)
    """RandAugment's strength, of 30."""
    reprob: float = Field(default=0.0, ge=0.0, le=1.0)
    """Random erasing: probability that a rectangle is replaced by the training mean (by the picture's own with
    --normalize unit)."""
    mixup: float = Field(default=0.0, ge=0.0)
    """Mixup's alpha, 0 for none; with CutMix also on, each pair gets one of the two."""
    cutmix: float = Field(default=0.0, ge=0.0)
    """CutMix's alpha, 0 for none."""
    mix_probability: float = Field(default=1.0, ge=0.0, le=1.0)
    """Share of the examples that Mixup or CutMix changes."""
    augmentation: str | None = None
    """A function of your own, package.module:function, on uint8 images (batch, channels, height, width) and a Noise,
    after the built-in changes of pixels and before erasing and mixing."""

    @property
    def mixes(self) -> bool:
        """Whether images are mixed with one another."""
        return (self.mixup > 0 or self.cutmix > 0) and self.mix_probability > 0

    @property
    def random(self) -> bool:
        """Whether an image differs from one epoch to the next."""
        changed = (self.resized_crop, self.crop_padding, self.flip, self.color_jitter, self.reprob, self.augmentation)
        return self.mixes or any(changed) or self.policy != "none"
