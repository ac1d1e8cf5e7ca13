"""The configuration of each family: frozen, checked when made, and free of torch, so that listings stay fast.

A network is built from its configuration alone, and the configuration is what `config.json` keeps.
"""

from __future__ import annotations

import dataclasses
import reprlib
from math import prod
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field
from pydantic.dataclasses import dataclass

from weft.errors import WeftError
from weft.imported import IMPORT_STRING

LARGEST = 1 << 24  # of any number of channels, words or pixels in a row; a stored configuration can ask for anything


class TooNarrow(WeftError):
    """A width below what a family can be built with."""


class SideMismatch(WeftError):
    """An image whose side is no multiple of the patch's."""


Positive = Annotated[int, Field(ge=1, le=LARGEST)]
Depth = Annotated[int, Field(ge=1, le=10_000)]
Count = Annotated[int, Field(ge=0, le=LARGEST)]
Widths = Annotated[tuple[Positive, ...], Field(min_length=1)]
Depths = Annotated[tuple[Depth, ...], Field(min_length=1)]
Stride = Literal[1, 2]
Rate = Annotated[float, Field(ge=0, lt=1)]
Rectifier = Literal["relu", "relu6", "prelu", "elu", "softplus", "silu", "gelu", "gelu_tanh"]
Act = Literal["identity", "step", "logistic", "tanh", "arctan", Rectifier]
Gate = Literal["linear", "additive", "multiplicative", "split"]
GateWeight = Literal["dense", "toeplitz", "toeplitz2d"]


def both_sides(side: Any) -> Any:
    """One side stands for height and width."""
    sides = (side, side) if isinstance(side, int) else side
    if not isinstance(sides, tuple | list) or len(sides) != 2 or not all(map(is_side, sides)):
        raise WeftError(f"img_size is a side in pixels, or height and width, not {reprlib.repr(side)}")
    return tuple(sides)


def is_side(side: Any) -> bool:
    return isinstance(side, int) and 0 < side <= 1 << 15


Side = Annotated[tuple[int, int], BeforeValidator(both_sides)]
CARRIED = "encoder"  # below the folder of a network: the trained encoder that it stands on
STRICT = ConfigDict(extra="forbid", arbitrary_types_allowed=False)


@dataclass(frozen=True, kw_only=True, config=STRICT)
class NetworkConfig:
    """What every network has: a number of outputs (0: none, the features are the result) and dropout."""

    family: str = ""
    num_classes: Count = 1000
    drop_rate: Rate = 0.0

    @property
    def input(self) -> Literal["image", "text", "vector"]:
        """What the network reads."""
        return "vector"

    @property
    def hybrid(self) -> bool:
        """Whether the tokens are the pixels of a ResNet's feature map: a network of both kinds."""
        return False

    def replaced(self, **changes: Any) -> Any:
        """The same configuration with some fields changed, checked again."""
        return dataclasses.replace(self, **changes)


@dataclass(frozen=True, kw_only=True, config=STRICT)
class ImageConfig(NetworkConfig):
    """A network for images of one size; a `mirrored` one answers, in use, with the mean over an image and its mirror
    image, which takes twice as long."""

    img_size: Side = (224, 224)
    in_chans: Positive = 3
    mirrored: bool = False

    @property
    def input(self) -> Literal["image", "text", "vector"]:
        return "image"


@dataclass(frozen=True, kw_only=True, config=STRICT)
class TextConfig(NetworkConfig):
    """A network for sequences of word ids of at most `max_length`."""

    vocab_size: Positive = 30522
    max_length: Positive = 128

    @property
    def input(self) -> Literal["image", "text", "vector"]:
        return "text"


@dataclass(frozen=True, kw_only=True, config=STRICT)
class MLPConfig(NetworkConfig):
    """Perceptron stack on vectors of `in_features`, or on flattened images when `img_size` is set."""

    family: Literal["mlp"] = "mlp"
    in_features: Count = 0
    img_size: Side | None = None
    in_chans: Positive = 3
    hidden: tuple[Positive, ...] = (256, 256)
    act: Act = "relu"
    norm: bool = False
    bias: bool = True
    residual: bool = False  # add a layer's input to its output where their widths agree
    mirrored: bool = False  # as in ImageConfig

    def __post_init__(self) -> None:
        if self.mirrored and self.img_size is None:
            raise WeftError("vectors have no mirror image; leave out mirrored")
        if self.img_size is None and not self.in_features:
            raise WeftError("a perceptron stack needs `in_features` for vectors or `img_size` for images")
        if self.img_size is not None and self.in_features:
            raise WeftError("a perceptron stack reads vectors or images; give `in_features` or `img_size`, not both")

    @property
    def input(self) -> Literal["image", "text", "vector"]:
        return "vector" if self.img_size is None else "image"

    @property
    def inputs(self) -> int:
        """Length of the vector that enters."""
        return self.in_features if self.img_size is None else self.in_chans * self.img_size[0] * self.img_size[1]


@dataclass(frozen=True, kw_only=True, config=STRICT)
class LeNetConfig(ImageConfig):
    """conv → pool → conv → pool → flatten → fully connected (LeCun et al. 1998); `local` shares no weights."""

    family: Literal["lenet"] = "lenet"
    img_size: Side = (32, 32)
    in_chans: Positive = 1
    num_classes: Count = 10
    channels: Widths = (6, 16)
    kernel: Positive = 5
    fc: tuple[Positive, ...] = (120, 84)
    act: Act = "relu"
    pool: Literal["max", "mean"] = "max"
    local: bool = False

    def sides(self) -> list[tuple[int, int]]:
        """Height and width after each convolution and its pooling."""
        sides, side = [], self.img_size
        for _ in self.channels:
            side = ((side[0] - self.kernel + 1) // 2, (side[1] - self.kernel + 1) // 2)
            sides.append(side)
        return sides

    def __post_init__(self) -> None:
        if min(min(side) for side in self.sides()) < 1:
            least = 1
            for _ in self.channels:
                least = 2 * least + self.kernel - 1
            raise WeftError(
                f"an image of {self.img_size[0]}×{self.img_size[1]} is too small for {len(self.channels)} convolutions "
                f"of {self.kernel}×{self.kernel} with pooling; use a side of at least {least}"
            )


def check_projections(widths: tuple[int, ...]) -> None:
    """Refuse what crashes: oneDNN, in torch 2.13, corrupts memory in the backward of a strided 1×1 convolution with
    fewer than 8 channels in channels-last order."""
    if min(widths) < 8:
        raise TooNarrow(f"a width of {min(widths)} is too small for projection shortcuts; use at least 8")


@dataclass(frozen=True, kw_only=True, config=STRICT)
class ResNetConfig(ImageConfig):
    """ResNet: `stem` 7×7 with pooling for large images or 3×3 for small ones; `padded` shortcuts (option A)."""

    family: Literal["resnet"] = "resnet"
    block: Literal["basic", "bottleneck"] = "basic"
    layers: Depths = (2, 2, 2, 2)
    widths: Widths = (64, 128, 256, 512)
    stem: Literal["imagenet", "cifar"] = "imagenet"
    padded: bool = False
    zero_init_last: bool = True

    def __post_init__(self) -> None:
        if len(self.layers) != len(self.widths):
            raise WeftError(f"{len(self.layers)} stages but {len(self.widths)} widths; give one width a stage")
        if not self.padded:
            check_projections(self.widths)


def check_side(img_size: tuple[int, int], stride: int, small: str) -> None:
    """Refuse an image that is smaller than the square of pixels for which one value of the last feature map stands."""
    if min(img_size) < stride:
        raise WeftError(
            f"image side {min(img_size)} is below the {stride} pixels that the network makes one value of; use a side "
            f"of at least {stride}, or a network for small images such as {small}"
        )


def check_stages(**fields: tuple[Any, ...]) -> None:
    """Refuse settings that are not one a stage."""
    counts = {name: len(values) for name, values in fields.items()}
    if len(set(counts.values())) > 1:
        found = ", ".join(f"{count} {name}" for name, count in counts.items())
        raise WeftError(f"{found}: give one of each for every stage")


@dataclass(frozen=True, kw_only=True, config=STRICT)
class EfficientNetConfig(ImageConfig):
    """EfficientNet: stages of inverted bottlenecks, a tuple a setting; `squeeze=0` and `act="relu6"` make it Lite.

    `squeeze` is the width of squeeze-and-excitation in terms of a block's inputs. `padding="same"` is TensorFlow's,
    with which the published weights were trained (and `norm_eps=1e-3`).
    """

    family: Literal["efficientnet"] = "efficientnet"
    layers: Depths = (1, 2, 2, 3, 3, 4, 1)
    widths: Widths = (16, 24, 40, 80, 112, 192, 320)
    kernels: Widths = (3, 3, 5, 3, 5, 5, 3)
    strides: tuple[Stride, ...] = (1, 2, 2, 2, 1, 2, 1)
    expansions: Widths = (1, 6, 6, 6, 6, 6, 6)
    stem_width: Positive = 32
    stem_stride: Stride = 2
    head_width: Positive = 1280
    squeeze: Annotated[float, Field(ge=0, le=1)] = 0.25
    act: Act = "silu"
    padding: Literal["both", "same"] = "both"
    norm_eps: Annotated[float, Field(gt=0, lt=1)] = 1e-5
    drop_path_rate: Rate = 0.0

    @property
    def stride(self) -> int:
        """Side of the square of pixels that one value of the last feature map stands for."""
        return self.stem_stride * prod(self.strides)

    def __post_init__(self) -> None:
        check_stages(
            layers=self.layers,
            widths=self.widths,
            kernels=self.kernels,
            strides=self.strides,
            expansions=self.expansions,
        )
        if even := [kernel for kernel in self.kernels if kernel % 2 == 0]:
            raise WeftError(f"the kernels must have odd sides; {even[0]} is even")
        check_side(self.img_size, self.stride, "efficientnet_nano_32")


@dataclass(frozen=True, kw_only=True, config=STRICT)
class NFNetConfig(ImageConfig):
    """NFNet: residual blocks without norms. 3×3 convolutions are cut into groups of `group_size` channels; `alpha` is
    how much a block adds; `stem="cifar"` keeps the side of small images, where the other makes it a quarter."""

    family: Literal["nfnet"] = "nfnet"
    layers: Depths = (1, 2, 6, 3)
    widths: Widths = (256, 512, 1536, 1536)
    stem: Literal["imagenet", "cifar"] = "imagenet"
    stem_width: Annotated[int, Field(ge=8, le=LARGEST)] = 128
    head_width: Positive = 3072
    group_size: Positive = 128
    alpha: Annotated[float, Field(gt=0, le=1)] = 0.2
    drop_path_rate: Rate = 0.0

    @property
    def stem_widths(self) -> tuple[int, ...]:
        return tuple(self.stem_width // part for part in (8, 4, 2, 1))

    @property
    def stem_strides(self) -> tuple[int, ...]:
        return (2, 1, 1, 2) if self.stem == "imagenet" else (1, 1, 1, 1)

    def __post_init__(self) -> None:
        check_stages(layers=self.layers, widths=self.widths)
        if min(self.widths) < 2:
            raise WeftError("a block halves its width; use widths of at least 2")
        check_side(self.img_size, prod(self.stem_strides) * 2 ** (len(self.layers) - 1), "nfnet_nano_32")


@dataclass(frozen=True, kw_only=True, config=STRICT)
class BiTConfig(ImageConfig):
    """BiT: a ResNet of bottlenecks with the norm first, group norm and standardised filters; `stem` as in ResNet."""

    family: Literal["bit"] = "bit"
    layers: Depths = (3, 4, 6, 3)
    widths: Widths = (64, 128, 256, 512)
    stem: Literal["imagenet", "cifar"] = "imagenet"
    drop_path_rate: Rate = 0.0

    def __post_init__(self) -> None:
        check_stages(layers=self.layers, widths=self.widths)
        check_projections(self.widths)
        check_side(self.img_size, (4 if self.stem == "imagenet" else 1) * 2 ** (len(self.layers) - 1), "bit_nano_32")


@dataclass(frozen=True, kw_only=True, config=STRICT)
class HaloNetConfig(ImageConfig):
    """HaloNet: `stages` has a letter a block, c for convolution and a for attention in blocks of `block` pixels with a
    halo of `halo`; `heads` is one number a stage. `stem="cifar"` keeps the side of small images."""

    family: Literal["halonet"] = "halonet"
    img_size: Side = (256, 256)
    stages: Annotated[tuple[Annotated[str, Field(pattern="^[ca]+$")], ...], Field(min_length=1)] = (
        "cc",
        "cc",
        "ca",
        "aa",
    )
    widths: Widths = (64, 128, 256, 512)
    heads: Widths = (8, 8, 8, 8)
    block: Positive = 8
    halo: Count = 2
    stem: Literal["imagenet", "cifar"] = "imagenet"
    act: Act = "relu"
    drop_path_rate: Rate = 0.0
    zero_init_last: bool = True

    @property
    def stem_widths(self) -> tuple[int, ...]:
        return 3 * self.widths[0] // 8, self.widths[0] // 2, self.widths[0]

    @property
    def multiple(self) -> int:
        """Sides must be multiples of this, so that every map that is attended to is cut into whole blocks."""
        stride, largest = 4 if self.stem == "imagenet" else 1, 1
        for number, kinds in enumerate(self.stages):
            for index, kind in enumerate(kinds):
                largest = max(largest, stride * self.block) if kind == "a" else largest
                stride *= 2 if number and not index else 1
        return largest

    def __post_init__(self) -> None:
        check_stages(stages=self.stages, widths=self.widths, heads=self.heads)
        check_projections(self.widths)
        for width, heads in zip(self.widths, self.heads, strict=True):
            if width % heads:
                raise WeftError(f"{width} channels cannot be shared by {heads} heads; use a divisor of {width}")
        if self.block % 2 and any(kinds.startswith("a") for kinds in self.stages[1:]):
            raise WeftError(f"attention that halves the side needs blocks of an even side; {self.block} is odd")
        check_side(
            self.img_size, (4 if self.stem == "imagenet" else 1) * 2 ** (len(self.stages) - 1), "halonet_nano_32"
        )
        for side in self.img_size:
            if side % self.multiple:
                below, above = side // self.multiple * self.multiple, (side // self.multiple + 1) * self.multiple
                fits = f"{below} or {above}" if below else f"{above}"
                raise SideMismatch(
                    f"image side {side} is not a multiple of {self.multiple}, which cuts every map of the network into "
                    f"whole blocks of {self.block} pixels; use {fits}, or another block"
                )


@dataclass(frozen=True, kw_only=True, config=STRICT)
class RCNNConfig(ImageConfig):
    """Recurrent ConvNet of Liang & Hu 2015: a 5×5 convolution and four recurrent layers of `width` channels."""

    family: Literal["rcnn"] = "rcnn"
    img_size: Side = (32, 32)
    num_classes: Count = 10
    width: Positive = 96
    steps: Depth = 3
    form: Literal["two_kernels", "one_kernel"] = "two_kernels"
    norm: bool = True

    def __post_init__(self) -> None:
        if min(self.img_size) < 4:
            raise WeftError("a recurrent ConvNet halves the image twice; use a side of at least 4")


@dataclass(frozen=True, kw_only=True, config=STRICT)
class FilterNetConfig(ImageConfig):
    """A small image → image ConvNet, which learns a filter from pairs of pictures. `num_classes` is not used."""

    family: Literal["filternet"] = "filternet"
    num_classes: Annotated[int, Field(ge=0, le=0)] = 0
    out_chans: Positive = 1
    in_chans: Positive = 1
    hidden: tuple[Positive, ...] = ()
    kernel: Positive = 3
    act: Act = "relu"

    def __post_init__(self) -> None:
        if self.kernel % 2 == 0:
            raise WeftError(f"the kernel side must be odd for an output of the image's size; {self.kernel} is not")
        if self.mirrored:
            raise WeftError("answers that are pictures cannot be averaged over mirror images; leave out mirrored")


@dataclass(frozen=True, kw_only=True, config=STRICT)
class TokenConfig(NetworkConfig):
    """The token backbone, images and text alike: embed → blocks → norm → pool → head.

    A block is a mixer with a channel MLP of width `hidden_dim`; or, for `block="gated"`, gMLP's, whose expanded width
    is `hidden_dim`. `tiny_attention` is the width of aMLP's attention, 0 for none.
    """

    dim: Positive = 192
    depth: Depth = 12
    hidden_dim: Positive = 768
    block: Literal["mixed", "gated"] = "mixed"
    mixer: str = "attention"
    heads: Positive = 1
    token_dim: Positive | None = None
    gate: Gate = "split"
    gate_weight: GateWeight = "dense"
    tiny_attention: Count = 0
    positions: Literal["none", "learned", "sinusoidal"] = "none"
    pool: Literal["token", "mean"] = "mean"
    norm_first: bool = True
    norm_eps: Annotated[float, Field(gt=0, lt=1)] = 1e-6
    act: Act = "gelu"
    drop_path_rate: Rate = 0.0
    head_drop_rate: Rate = 0.0
    init: Literal["xavier", "lecun", "bert"] = "xavier"
    zero_head: bool = True

    @property
    def token_width(self) -> int:
        """Hidden width of a token-mixing MLP: `token_dim`, or half the channels, as in the published Mixers."""
        return self.token_dim or max(1, self.dim // 2)

    def mixer_reach(self) -> int | None:
        """How many tokens in a row one token sees in a block; None: all. Refuses a mixer that does not exist."""
        from weft.networks.registry import mixer_reach  # which knows the configurations

        reach = mixer_reach(self.mixer)
        return None if self.block == "gated" else reach

    def check_tokens(self) -> None:
        """What is wrong in any modality."""
        self.mixer_reach()
        if self.block == "gated" and self.mixer != "attention":  # which is the default
            raise WeftError(f"a gated block has a gate over tokens and no mixer; leave out mixer={self.mixer!r}")
        if self.block == "mixed" and self.mixer in ("attention", "halo") and self.dim % self.heads:
            raise WeftError(f"{self.dim} channels cannot be shared by {self.heads} heads; use a divisor of {self.dim}")
        if self.block == "gated" and self.gate == "split" and self.hidden_dim % 2:
            raise WeftError(f"a split gate halves the expanded width; {self.hidden_dim} is odd")
        if self.positions == "sinusoidal" and self.dim % 2:
            raise WeftError(f"sinusoidal positions need an even number of channels; {self.dim} is odd")


@dataclass(frozen=True, kw_only=True, config=STRICT)
class ImageTokensConfig(TokenConfig, ImageConfig):
    """A token network on patches of images: ViT, Mixer, gMLP, tMLP, aMLP, the controls and the hybrid (`stem_layers`).

    The hybrid's tokens are the pixels of a ResNet's last feature map; its stages are `stem_layers`, `stem_widths`.
    """

    family: Literal["vit", "deit", "mixer", "gmlp", "control", "hybrid"] = "vit"
    patch_size: Positive = 16
    class_token: bool = False
    stem_layers: tuple[Depth, ...] = ()
    stem_widths: Widths = (64, 128, 256, 512)
    stem: Literal["imagenet", "cifar"] = "imagenet"

    @property
    def hybrid(self) -> bool:
        return self.family == "hybrid"

    @property
    def extra(self) -> int:
        """Tokens before those of the patches: the class token, and the one that DeiT learns from its teacher with."""
        return int(self.class_token) + int(self.family == "deit")

    @property
    def grid(self) -> tuple[int, int]:
        """Rows and columns of tokens."""
        return self.img_size[0] // self.stride, self.img_size[1] // self.stride

    @property
    def stride(self) -> int:
        """Side of the square of pixels that one token stands for."""
        if not self.hybrid:
            return self.patch_size
        first = 4 if self.stem == "imagenet" else 1
        return first * 2 ** (len(self.stem_layers) - 1)

    def __post_init__(self) -> None:
        self.check_tokens()
        for side in self.img_size:
            if side % self.stride or side < self.stride:
                below, above = side // self.stride * self.stride, (side // self.stride + 1) * self.stride
                fits = f"{below} or {above}" if below else f"{above}"
                raise SideMismatch(
                    f"image side {side} is not a multiple of the patch side {self.stride}; "
                    f"use {fits}, or another patch_size"
                )
        if self.hybrid and not 1 <= len(self.stem_layers) <= len(self.stem_widths):
            raise WeftError("a hybrid needs stem_layers, one number a stage, with as many stem_widths")
        if self.hybrid:
            check_projections(self.stem_widths)
        if self.pool == "token" and not self.class_token:
            raise WeftError("pool='token' needs class_token=True; use pool='mean' without one")
        if self.family == "deit" and self.pool != "token":
            raise WeftError("a distilled network is read at its two tokens; use class_token=True, pool='token'")
        if self.class_token and self.mixer_reach() is not None:
            raise WeftError(f"mixer {self.mixer!r} shows the class token nothing; use class_token=False, pool='mean'")
        if self.class_token and self.block == "gated" and self.gate_weight == "toeplitz2d":
            raise WeftError("a 2-D Toeplitz gate has no place for a class token; use class_token=False, pool='mean'")


@dataclass(frozen=True, kw_only=True, config=STRICT)
class EncoderConfig:
    """A trained encoder that a network stands on: where it lies, a digest of its weights, what is taken of it.

    The encoder is no part of the network: its weights stay in `folder`, and must still have the same `digest`. On the
    disk a relative `folder` is meant from the folder of the network.
    """

    folder: str
    digest: str
    dim: Positive
    """channels of what is taken, over all layers"""
    layers: Annotated[tuple[Positive, ...], Field(min_length=1)]
    """blocks whose outputs are taken, side by side, counted from 1"""

    def below(self, network: Path, given: Path | None = None) -> EncoderConfig:
        """The same, found from the folder of the network: the encoder `given`, the one carried along, or as stored."""
        carried = network / CARRIED
        found = given or (carried if carried.is_dir() else network / self.folder)  # an absolute folder stays as it is
        return dataclasses.replace(self, folder=str(found))


@dataclass(frozen=True, kw_only=True, config=STRICT)
class TextTokensConfig(TokenConfig, TextConfig):
    """A token network on WordPiece ids: BERT, text gMLP, tMLP, aMLP, Mixer and the controls.

    `pool="token"` reads the first token, [CLS]. `pooler` is BERT's tanh layer before the head, `embed_norm` its norm
    over the embeddings; `final_norm` closes pre-norm networks. With an `encoder`, its contextual embeddings take the
    place of word vectors; `depth=0` then is a linear probe.
    """

    family: Literal["bert", "text_gmlp", "text_mixer", "text_control"] = "bert"
    depth: Annotated[int, Field(ge=0, le=10_000)] = 12
    encoder: EncoderConfig | None = None
    segments: Count = 0
    embed_norm: bool = False
    final_norm: bool = True
    pooler: bool = False
    init: Literal["xavier", "lecun", "bert"] = "bert"
    zero_head: bool = False

    def __post_init__(self) -> None:
        self.check_tokens()
        if self.gate_weight == "toeplitz2d":
            raise WeftError("text has no second dimension; use gate_weight='toeplitz'")
        if self.depth == 0 and self.encoder is None:
            raise WeftError(
                "depth=0 needs an `encoder`: a network without blocks has nothing that relates words to each other"
            )


@dataclass(frozen=True, kw_only=True, config=STRICT)
class LSTMConfig(TextConfig):
    """Bidirectional LSTM text classifier."""

    family: Literal["lstm"] = "lstm"
    dim: Positive = 128
    hidden_dim: Positive = 128
    depth: Depth = 1


@dataclass(frozen=True, kw_only=True, config=STRICT)
class TextConvConfig(TextConfig):
    """Convolutional text classifier of Kim 2014: several window sizes, maximum over time."""

    family: Literal["textconv"] = "textconv"
    dim: Positive = 128
    channels: Positive = 100
    kernels: Widths = (3, 4, 5)


@dataclass(frozen=True, kw_only=True, config=STRICT)
class ForeignConfig(ImageConfig):
    """A network of somebody else's: any `nn.Module` class that makes (batch, num_classes) of images.

    `model` is where it is, `package.module:Class`; `arguments` are keyword arguments of its constructor, which also
    gets `num_classes` and, if it takes them, `img_size` and `in_chans`.
    """

    family: Literal["foreign"] = "foreign"
    model: Annotated[str, Field(pattern=f"^{IMPORT_STRING.pattern}$")] = ""
    num_classes: Count = 10
    img_size: Side = (32, 32)
    arguments: dict[str, Any] = Field(default_factory=dict)

    def __hash__(self) -> int:
        return hash((self.model, self.num_classes, self.img_size, self.in_chans, tuple(self.arguments)))
