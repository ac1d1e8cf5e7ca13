"""What a fine-tuning run is asked to do: a supervised run that starts from trained weights. Loads no torch."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from pydantic.dataclasses import dataclass
from tyro.conf import Suppress

from weft.training.config import STRICT, Count, NotNegative, OptimisationConfig, RunConfig, Share

USUAL_EPOCHS = 3  # Devlin et al. 2018 use 2 to 4
LINEAR = "linear probe"  # what is put on a frozen encoder when no network is named
PROBE_EPOCHS, PROBE_RATE = 5, 1e-4  # of a linear probe on features of images: it starts from logistic regression
IMAGE_EPOCHS = 8  # of a whole image network
PROBED_ROWS = 20_000  # training images of which the head of one starts from a linear probe; to look at more takes long
USUAL_BATCH = 32  # of published recipes; sets of some dozen rows get a smaller one
RATE_SHARE = 0.1  # of an optimiser's usual rate: a trained network must keep what it knows


@dataclass(frozen=True, kw_only=True, config=STRICT)
class ThawingConfig:
    """What of the trained network moves, and how fast."""

    frozen: bool = False
    """Leave the trained network as it is, compute its features once and train a linear probe on them; on the embeddings
    of text, --model where it is given."""
    layers: tuple[Count, ...] = ()
    """With --frozen: blocks whose outputs are taken, side by side, counted from 1; by default the last."""
    layer_decay: Share = 0.9
    """Rate of each block over that of the block above it; 1 moves all alike."""
    thaw_epochs: NotNegative = 0.0
    """Gradual thawing: epochs until the next block below starts to move, the head first; 0 moves all from the start."""


@dataclass(frozen=True, kw_only=True, config=STRICT)
class FinetuneConfig(RunConfig):
    """One fine-tuning run: a trained network taught the targets of a source."""

    kind: ClassVar[str] = "finetune"

    start: Suppress[str] = ""
    """Run folder of weft, folder or file of weights, hub:NAME, or name of a trained network, to start from."""
    unsafe_pickle: bool = False
    """Open weights that are a pickle (.pth, .bin), as weights alone, if you trust where they come from."""
    thawing: ThawingConfig = ThawingConfig()
    optimisation: OptimisationConfig = OptimisationConfig(weight_decay=0.01, sched="linear")
    test_split: str | None = None
    """Split for the final figures; by default the labelled test split. GLUE's published figures are on `validation`:
    choices are then made on rows held out of training."""

    @property
    def reported_on(self) -> str | None:
        return self.test_split


def name_of(config: FinetuneConfig) -> str:
    """How the network of a run is called: what is put on the encoder, or what is started from."""
    if config.model:
        return config.model
    return LINEAR if config.thawing.frozen else Path(config.start).resolve().name
