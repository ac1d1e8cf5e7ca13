"""What fine-tuning starts from: a run folder of weft, a folder or file of weights as timm, torchvision, Google or
Hugging Face lay them out, a name on the Hub, or the name of a trained network that pip brings."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from weft.data.read.cache import digest, digest_files
from weft.data.transform import transforms
from weft.data.transform.tokenizer import Tokenizer
from weft.data.transform.transforms import ImageTransform, TextTransform, Transform
from weft.disk import Damaged, mark, read_object, read_text
from weft.errors import WeftError
from weft.networks.base.encoder import folder_digest
from weft.networks.base.network import Network
from weft.networks.config import ImageConfig, NetworkConfig, TextConfig, TextTokensConfig
from weft.networks.listing import cache_file
from weft.networks.registry import create_model
from weft.networks.weights.build import describes_itself, stored_config
from weft.networks.weights.files import NAMES, PICKLES, Checkpoint, read, read_safetensors, weight_files
from weft.networks.weights.hub import download
from weft.networks.weights.load import LeftOut, StartsFresh, load_checkpoint
from weft.networks.weights.packages import PACKAGES, package_of
from weft.networks.weights.recognise import recognised_config
from weft.training.finetuning.image_inputs import image_inputs
from weft.training.inference.network_folder import NetworkMetadata, read_metadata, write_network
from weft.training.storage.run_folder import RunFolder

INFERENCE = ("snli", "multi_nli", "xnli", "anli")  # sets of natural-language inference, as cards call them
HUB_PREFIXES = ("hub:", "hf-hub:")
PADDED = 128  # vocabularies are rounded up to multiples of at most this by some, for speed


@dataclass(frozen=True)
class Start:
    """A trained network in a folder or file: its configuration, its weights, and what its inputs need."""

    folder: Path
    network: NetworkConfig
    transform: Transform
    notes: tuple[str, ...] = ()
    """what was told by the weights alone"""
    pickled: bool = False
    """whether a pickle may be opened"""

    @property
    def name(self) -> str:
        return self.folder.resolve().name

    @cached_property
    def digest(self) -> str:
        return folder_digest(self.folder) if is_described(self.folder) else weights_digest(self.folder)

    @property
    def fingerprint(self) -> str:
        """The weights and, where there is one, the tokenizer."""
        words = self.transform.tokenizer.content() if isinstance(self.transform, TextTransform) else ""
        return f"{self.digest}+{digest(words)}" if words else self.digest

    def seen(self, modality: str) -> str | None:
        """A sentence for pairs of texts whose kind the encoder's own card names among its training data."""
        try:
            card = read_text(self.folder / "README.md").split("---")[1]
        except (Damaged, IndexError):
            return None
        named = [name for name in INFERENCE if name in card]
        if modality != "pair" or not named:
            return None
        return f"the card of {self.name} names {' and '.join(named)}: it has seen natural-language inference data"

    def fill(self, network: Network) -> None:
        """Load the weights into a network of the same shape, whose head, length or image size may differ."""
        with warnings.catch_warnings():
            # a fresh head is the point of it, and what else is left out (poolers, heads of pre-training) is expected
            warnings.simplefilter("ignore", StartsFresh)
            warnings.simplefilter("ignore", LeftOut)
            load_checkpoint(network, self._checkpoint())

    def _checkpoint(self) -> Checkpoint:
        if is_run(self.folder):
            return Checkpoint(read_safetensors(self.folder / NAMES[0])[0], origin=str(self.folder))
        return read(self.folder, unsafe_pickle=self.pickled)


def read_start(path: str, model: str = "", pickled: bool = False) -> Start:
    """What lies in `path`, or the sentence why it cannot be started from.

    `model` names the network of weights that come without a description; by default their tensors tell it.
    """
    folder = Path(path)
    if path in PACKAGES and not folder.exists():
        return read_start(str(packaged(path)), model)
    if not path:
        raise WeftError("say what to start from: weft finetune RUN_OR_FOLDER DATA")
    if path.startswith(HUB_PREFIXES):
        return read_start(str(download(path)), model, pickled)
    if not folder.exists():
        raise WeftError(
            f"there is no file or folder {path}; give a run of weft, a folder or file of weights, hub:OWNER/NAME, or a "
            f"name that pip brings trained: {', '.join(PACKAGES)}"
        )
    if folder.name == NAMES[0] and folder.is_file() and is_run(folder.parent):
        return read_start(str(folder.parent), model)
    if is_run(folder):
        refuse_model(folder, model)
        if not (folder / NAMES[0]).is_file():
            raise no_weights(folder)
        start = Start(folder, read_metadata(folder)[1], transforms.load(folder))
        if isinstance(start.network, TextConfig) and isinstance(start.transform, TextTransform):
            check_vocabulary(folder, start.transform.tokenizer, start.network)
        return start
    if (folder / "run.yaml").is_file():
        raise WeftError(f"the run in {folder} has no trained network yet; finish it: {RunFolder(folder).resuming()}")
    return foreign_start(folder, model, pickled)


def foreign_start(path: Path, model: str, pickled: bool) -> Start:
    """Weights that somebody else laid out: a file, or a folder with or without a description."""
    if path.is_dir():
        check_weights(path, pickled)
    config, notes = told_network(path, read(path, unsafe_pickle=pickled), model)
    if isinstance(config, ImageConfig):
        transform, more = image_inputs(path, config)
        return Start(path, config, transform, (*notes, *more), pickled)
    if not is_described(path):
        raise WeftError(
            f"{path} holds weights of a {config.family} network alone; text needs its own tokenizer and config.json "
            "beside them: give the folder of the whole model"
        )
    if not isinstance(config, TextConfig):
        raise WeftError(f"{path} holds a {config.family} network, which cannot be fine-tuned; start from another")
    return Start(path, pooled_as_trained(path, config), read_tokenizer(path, config), notes, pickled)


def told_network(path: Path, checkpoint: Checkpoint, model: str) -> tuple[NetworkConfig, tuple[str, ...]]:
    """The network of weights as their description or else their tensors tell it, and how the latter was told."""
    if describes_itself(checkpoint):
        refuse_model(path, model)
        return stored_config(checkpoint), ()
    found = recognised_config(checkpoint, model)
    if model:
        return found.config, ()
    note = f"{path.name} holds the weights of {found.name}, by the names and shapes of its tensors"
    doubt = f"; it fits {' and '.join(found.others)} as well (--model)" if found.others else ""
    return found.config, (note + doubt,)


def is_described(folder: Path) -> bool:
    """Whether a folder says what network its weights are of."""
    return folder.is_dir() and any((folder / name).is_file() for name in ("config.json", "run.yaml"))


def refuse_model(path: Path, model: str) -> None:
    if model:
        raise WeftError(f"{path} says itself which network it holds; leave out --model {model}")


def weights_digest(path: Path) -> str:
    """32 hex digits of a file of weights, or of those in a folder without a description."""
    files = [path] if path.is_file() else weight_files(path)
    return digest(*digest_files(files, path.parent, whole=True).values())


def packaged(name: str) -> Path:
    """The folder of a trained network that pip brought: its own, or one written from it into weft's cache."""
    package = package_of(name)
    path = package.path()
    if path.suffix == ".safetensors":
        return path.parent
    folder = cache_file().parent / "pretrained" / f"{name}-{package.digest[:12]}"
    if not (folder / NAMES[0]).is_file():
        network = create_model(name, pretrained=True)
        config = network.config
        assert isinstance(config, ImageConfig)
        card = NetworkMetadata(name, "classes", [str(number) for number in range(config.num_classes)])
        side, channels = config.img_size[0], config.in_chans
        mark(folder)  # so that another process, or the next after a kill, may write the same again
        transform = ImageTransform(side, channels, package.mean, package.std)
        write_network(folder, card, config, dict(network.state_dict()), transform)
    return folder


def pooled_as_trained(folder: Path, config: TextConfig) -> TextConfig:
    """Encoders of sentence-transformers were trained to be read by the mean over tokens; a file beside them says so."""
    try:
        mean = bool(read_object(folder / "1_Pooling" / "config.json").get("pooling_mode_mean_tokens"))
    except Damaged:
        return config
    return replace(config, pool="mean", pooler=False) if mean and isinstance(config, TextTokensConfig) else config


def is_run(folder: Path) -> bool:
    """Whether weft wrote the network in a folder."""
    try:
        return "weft" in read_object(folder / "config.json")
    except Damaged:
        return False


def no_weights(folder: Path) -> WeftError:
    return WeftError(f"{folder} holds no weights: there is no {NAMES[0]} in it")


def check_weights(folder: Path, pickled: bool) -> None:
    """Refuse a folder without weights, or with a pickle in their place unless that may be opened."""
    files = weight_files(folder)
    if not files:
        raise no_weights(folder)
    if files[0].suffix in PICKLES and not pickled:
        raise WeftError(
            f"{folder} has its weights in {files[0].name} alone, a pickle, which weft does not open by itself; get the "
            f"{NAMES[0]} of the same model, or add --unsafe-pickle if you trust where it comes from"
        )


def read_tokenizer(folder: Path, config: TextConfig) -> TextTransform:
    """The tokenizer of a folder, which must be that of its network."""
    if not any((folder / name).is_file() for name in ("tokenizer.json", "vocab.txt")):
        raise WeftError(f"{folder} has weights but no tokenizer.json or vocab.txt; put the model's own beside them")
    tokenizer, longest = Tokenizer.load(folder)
    check_vocabulary(folder, tokenizer, config)
    return TextTransform(tokenizer, min(longest, config.max_length))


def check_vocabulary(folder: Path, tokenizer: Tokenizer, config: TextConfig) -> None:
    """Refuse a tokenizer that has other words than the network has vectors, but for a table rounded up."""
    if not 0 <= config.vocab_size - tokenizer.vocab_size < PADDED:
        raise WeftError(
            f"the tokenizer in {folder} knows {tokenizer.vocab_size:,} words and the network {config.vocab_size:,}; "
            "they do not belong together: fetch the tokenizer that the network was trained with"
        )
