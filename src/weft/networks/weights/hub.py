"""Checkpoints by Hub name: `google-bert/bert-base-uncased`, or with the prefix `hub:` or timm's `hf-hub:`."""

from __future__ import annotations

import re
from pathlib import Path

from weft.errors import WeftError

WEIGHTS = ("config.json", "*.safetensors", "*.safetensors.index.json", "*.npz")  # never a pickle
INPUTS = ("preprocessor_config.json", "tokenizer.json", "tokenizer_config.json", "vocab.txt")
CARD = ("1_Pooling/config.json", "README.md")  # how sentence encoders are read, and what they were trained on
PATTERNS = [*WEIGHTS, *INPUTS, *CARD]
NAME = re.compile(r"(?:hub:|hf-hub:)?(?P<name>[\w.-]+/[\w.-]+)(?:@(?P<revision>[\w./-]+))?")
FILE = re.compile(r"\.(safetensors|npz|bin|pth?|th|ckpt|json)$")


def download(source: str) -> Path:
    """The local copy of a Hub repository, `owner/name` or `owner/name@revision`; fetched once, then kept."""
    found = NAME.fullmatch(source)
    if not found or FILE.search(source):
        raise WeftError(f"there is no file or folder {source}; a name on the Hub looks like owner/name")
    try:
        from huggingface_hub import snapshot_download
    except ImportError:
        raise WeftError(f"there is no file or folder {source}; to fetch it from the Hub install weft[hub]") from None
    try:
        return Path(snapshot_download(found["name"], revision=found["revision"], allow_patterns=PATTERNS))
    except Exception as error:  # the client raises its own errors, httpx's and the system's
        first = str(error).strip().partition("\n")[0]
        raise WeftError(
            f"there is no file or folder {source}, and the Hub did not give it ({type(error).__name__}: {first}); "
            "check the name and the network, or download the folder by hand and give its path"
        ) from None
