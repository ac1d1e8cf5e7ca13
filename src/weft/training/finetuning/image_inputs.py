"""What the inputs of an image network from elsewhere need: its side, and the colours that it was trained with."""

from __future__ import annotations

from pathlib import Path

from weft.data.transform import transforms
from weft.data.transform.transforms import ImageTransform
from weft.disk import Damaged, read_object
from weft.networks.config import ImageConfig
from weft.networks.weights.files import NAMES

Colours = tuple[tuple[float, ...], tuple[float, ...]]
IMAGENET: Colours = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
HALF: Colours = ((0.5, 0.5, 0.5), (0.5, 0.5, 0.5))
CENTRED = ("vit", "hybrid", "mixer", "gmlp", "bit")  # families whose published weights take inputs from -1 to 1


def image_inputs(path: Path, config: ImageConfig) -> tuple[ImageTransform, tuple[str, ...]]:
    """What the inputs of a foreign image network need, as the files beside it say or as its kind usually has it."""
    if path.is_dir() or path.name in NAMES:  # what lies beside a file of this name belongs to it
        stated = stated_inputs(path if path.is_dir() else path.parent, config)
        if stated is not None:
            return stated, ()
    found = HALF if config.family in CENTRED else IMAGENET
    if config.in_chans != 3:
        found = (0.5,) * config.in_chans, (0.5,) * config.in_chans
    shown = "/".join(f"{value:g}" for value in found[0])
    note = f"colours are centred at {shown}, as usual for networks of its kind: {path.name} does not say"
    return ImageTransform(config.img_size[0], config.in_chans, *found), (note,)


def stated_inputs(folder: Path, config: ImageConfig) -> ImageTransform | None:
    """The inputs of a network with the mean and deviation of colours that a folder of timm or Hugging Face states."""
    for name, section, mean, std in (
        (transforms.FILE, "", "image_mean", "image_std"),
        ("config.json", "pretrained_cfg", "mean", "std"),
    ):
        try:
            stored = read_object(folder / name)
        except Damaged:
            continue
        stored = stored.get(section) or {} if section else stored
        if isinstance(stored, dict) and isinstance(stored.get(mean), list) and isinstance(stored.get(std), list):
            size, channels = config.img_size[0], config.in_chans
            fields = {"kind": "image", "size": size, "channels": channels, "mean": stored[mean], "std": stored[std]}
            made = transforms.described(fields, folder / name)
            assert isinstance(made, ImageTransform)
            return made
    return None
