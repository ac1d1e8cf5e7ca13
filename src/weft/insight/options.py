"""What can be asked of each lens. The first line of a docstring is the lens's help; nothing here loads torch."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic.dataclasses import dataclass
from tyro.conf import arg

from weft.training.config import STRICT, Count


@dataclass(frozen=True, kw_only=True, config=STRICT)
class AllOptions:
    """Every lens that fits, on one page."""


@dataclass(frozen=True, kw_only=True, config=STRICT)
class ActivationsOptions:
    """The activations and their derivatives; how many units of each layer are dead or saturated."""

    examples: Count = 256
    """Examples that the units are watched on."""


@dataclass(frozen=True, kw_only=True, config=STRICT)
class BackpropOptions:
    """Back-propagation value by value and what it costs; the gradient's size at each layer."""

    examples: Count = 64
    """Examples whose loss is differentiated."""
    depth: Count = 64
    """Layers up to which the recursion is timed against the naive way."""


@dataclass(frozen=True, kw_only=True, config=STRICT)
class FiltersOptions:
    """Hand-made filters on a picture; learned filters or patch embeddings; feature maps of a layer."""

    picture: Path | None = None
    """A picture file to show them on; by default one of the source."""
    layer: str | None = None
    """Layer whose feature maps are shown; by default the first convolution or block."""
    maps: Count = 32
    """Feature maps, and learned filters, to show at most."""


@dataclass(frozen=True, kw_only=True, config=STRICT)
class FieldOptions:
    """Receptive field in theory and as measured; how it grows through depth and training."""

    examples: Count = 64
    """Examples that the field is averaged over."""


@dataclass(frozen=True, kw_only=True, config=STRICT)
class ShiftOptions:
    """How predictions change as images move by 1…8 pixels, or texts by padding."""

    examples: Count = 256
    """Examples that are moved."""
    largest: Count = 8
    """Largest shift, in pixels or tokens; at most half of the image or text."""
    others: Annotated[tuple[Path, ...], arg(name="with", metavar="RUN …")] = ()
    """Further runs for the same chart."""


@dataclass(frozen=True, kw_only=True, config=STRICT)
class PositionsOptions:
    """The sinusoidal table and its rotation; learned positions and how similar they are."""


@dataclass(frozen=True, kw_only=True, config=STRICT)
class AttentionOptions:
    """Maps of every head: where they look, how far, how evenly, and what reaches the output."""

    examples: Count = 256
    """Examples that maps and figures are averaged over."""
    shown: Count = 8
    """Examples that are drawn."""


@dataclass(frozen=True, kw_only=True, config=STRICT)
class GatesOptions:
    """Matrices over tokens of all families: how Toeplitz, how local, and what projecting them costs."""

    examples: Count = 256
    """Examples that attention's maps and a token MLP's slopes are averaged over, and that --project measures."""
    project: bool = False
    """Replace each gate by its nearest Toeplitz matrix and measure the change in loss."""
    others: Annotated[tuple[Path, ...], arg(name="with", metavar="RUN …")] = ()
    """Further runs for the same chart."""


@dataclass(frozen=True, kw_only=True, config=STRICT)
class SaliencyOptions:
    """What an answer is due to: integrated gradients and occlusion, and whether they are true to the network."""

    examples: Count = 16
    """Examples that are explained; each takes hundreds of passes."""
    steps: Count = 24
    """Steps of the integral of the gradients."""
    shown: Count = 6
    """Examples that are drawn."""


@dataclass(frozen=True, kw_only=True, config=STRICT)
class MistakesOptions:
    """The most confident errors, confusions, calibration, and the features in two dimensions."""

    examples: Count = 1000
    """Examples that are answered, spread over the split."""
    shown: Count = 12
    """Errors that are shown."""
    points: Count = 500
    """Examples whose features are drawn."""
