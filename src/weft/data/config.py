"""The settings of the data side, as they are written into run.yaml. This module must not import torch."""

from __future__ import annotations

from typing import Literal

from pydantic import Field
from pydantic.dataclasses import dataclass

EMBEDDED = ("digits", "breast_cancer", "diabetes", "pydocs")  # sets that come with weft, by name
OnBad = Literal["fail", "skip"]
Task = Literal["binary", "classes", "regression", "none"]
Modality = Literal["image", "text", "pair", "vector"]


@dataclass(frozen=True)
class SourceConfig:
    """How a source is read: what is the target, what is done with bad rows, what is held out."""

    seed: int = 0
    """decides which rows are held out for reporting and held out for validation"""
    target: str | None = None
    """the column to predict; needed only where it cannot be told from the columns' names and types"""
    inputs: tuple[str, ...] | None = None
    """the column, or the two columns of a text pair, to predict from; needed only where they cannot be told"""
    task: Task | None = None
    """binary, classes, regression or none; guessed from the target's values"""
    on_bad: OnBad = "fail"
    """fail: stop at the first bad row, naming it; skip: leave bad rows out and count them"""
    val_fraction: float = Field(default=0.1, gt=0.0, lt=1.0)
    """share of the training rows held out for tuning and the best checkpoint (and when `finetune` stops early)"""
    test_fraction: float = Field(default=0.2, gt=0.0, lt=1.0)
    """share of the rows held out for reporting when the source has no test or validation split"""
    group: str | None = None
    """column whose equal values must stay on one side of a cut (a patient, a document)"""
    stream: bool | None = None
    """read shards as they are needed; by default when they are larger than `memory`"""
    memory: int = Field(default=2 << 30, gt=0)
    """bytes that a source's rows, or its decoded images, may take in memory"""


@dataclass(frozen=True)
class TransformConfig:
    """What happens to an input before the network sees it: the same in evaluation and in serving."""

    size: int | None = Field(default=None, gt=0, le=4096)
    """side of the square image; by default the source's own, or 224 when its images differ in size"""
    channels: Literal[1, 3] | None = None
    """1 grey, 3 RGB; by default what the source has"""
    crop: float = Field(default=1.0, gt=0.0, le=1.0)
    """share of the resized image's side that the centre crop keeps"""
    normalize: Literal["zscore", "unit"] = "zscore"
    """zscore: minus the training rows' mean, over their deviation; unit: images to [0, 1], vectors as they are"""
    max_pixels: int = Field(default=50_000_000, gt=0)
    """images that declare more pixels are refused before they are decoded"""
    max_length: int = Field(default=128, ge=8)
    """tokens of a text, the markers [CLS] and [SEP] included; longer texts are cut"""
    vocab_size: int = Field(default=8192, ge=64)
    """words and word pieces of a tokeniser trained on the training split"""
    lowercase: bool = True
    """fold case and accents before cutting text into word pieces, as uncased BERT does"""


@dataclass(frozen=True)
class AugmentConfig:
    """What training does to a batch of images, in the order of these fields. The default does nothing."""

    resized_crop: tuple[float, float] | None = None
    """random-resized crop: smallest and largest share of the image's area, (0.35, 1.0) for instance"""
    crop_padding: int = Field(default=0, ge=0)
    """padded crop: shift by up to this many pixels each way, black coming in"""
    flip: bool = False
    """mirror half of the images"""
    jitter: float = Field(default=0.0, ge=0.0, le=1.0)
    """colour jitter: brightness, contrast and saturation change by up to this share"""
    policy: Literal["none", "trivial", "rand"] = "none"
    """TrivialAugment (one random operation of random strength) or RandAugment"""
    rand_layers: int = Field(default=2, ge=1)
    """operations that RandAugment applies one after the other"""
    rand_magnitude: float = Field(default=9.0, ge=0.0, le=30.0)
    """RandAugment's strength, of 30"""
    erasing: float = Field(default=0.0, ge=0.0, le=1.0)
    """probability that a rectangle is replaced by the training mean"""
    mixup: float = Field(default=0.0, ge=0.0)
    """Mixup's alpha, 0 for none; with CutMix also on, each pair gets one of the two"""
    cutmix: float = Field(default=0.0, ge=0.0)
    """CutMix's alpha, 0 for none"""
    mix_probability: float = Field(default=1.0, ge=0.0, le=1.0)
    """share of the examples that Mixup or CutMix changes"""
    augmentation: str | None = None
    """a function of your own, package.module:function, on uint8 images (batch, channels, height, width) and a Noise,
    after the built-in changes of pixels and before erasing and mixing"""
