"""The data of a study's runs, opened once a worker, and what candidates must know of it before there are any."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from weft import machine
from weft.data.batch import noise
from weft.data.batch.stores import DecodedPixels, undecoded
from weft.data.config import TransformConfig
from weft.data.corpus.config import CorpusConfig, TokenizingConfig
from weft.data.open.source import Source
from weft.data.open.splits import Split
from weft.data.show.cautions import cautions
from weft.data.sources.find import read
from weft.data.transform.fit import fit, image_shapes, own_side
from weft.data.transform.transforms import ImageTransform, TextTransform, VectorTransform
from weft.errors import WeftError
from weft.networks.config import TextTokensConfig
from weft.studies.compare.candidates import Facts
from weft.training.config import ReadingConfig, RunConfig, trained_start
from weft.training.finetuning.config import FinetuneConfig
from weft.training.finetuning.sizing import of_weights
from weft.training.finetuning.start import read_start
from weft.training.objective import outputs_for
from weft.training.pretraining.config import PretrainConfig
from weft.training.run.inputs import Opened, open_inputs, read_source
from weft.training.run.kinds import AnyConfig

KEPT = 4  # sources: a corpus and some tasks
TIMED, AT_ONCE, LONG_ENOUGH = 128, 16, 2.0  # images whose decoding is timed, and the seconds after which fewer will do
LIGHTLY = 4  # images that tell whether it is worth timing more of them
FAR_BELOW = 0.5  # of the time that is allowed: below it a few images are enough to know
CUTS = 16  # of each: five folds, parts of the rows, and of these a second image side or length


class Cuts:
    """A source that was read once, and the latest cuts of its rows into splits, which share images and features."""

    def __init__(self, source: str, reading: ReadingConfig) -> None:
        self.source, self.reading = source, read(source, reading)
        self.cut = lru_cache(maxsize=CUTS)(self._cut)
        self.opened = lru_cache(maxsize=CUTS)(self._opened)

    def _cut(self, reading: ReadingConfig, test_split: str | None) -> Source:
        config = FinetuneConfig(source=self.source, reading=reading, test_split=test_split)
        return read_source(config, self.reading)

    def _opened(self, reading: ReadingConfig, test_split: str | None, transform: TransformConfig) -> Opened:
        found = self.cut(reading, test_split)
        return found, fit(found, transform)


@lru_cache(maxsize=KEPT)
def cuts_of(source: str, uncut: ReadingConfig) -> Cuts:
    """A source as it is read, whatever its rows are cut into."""
    return Cuts(source, uncut)


def uncut(reading: ReadingConfig) -> ReadingConfig:
    """What decides how a source is read: without all that says who gets which rows, and how many of them."""
    usual = ReadingConfig()
    return replace(
        reading,
        split_seed=usual.split_seed,
        val_fraction=usual.val_fraction,
        test_fraction=usual.test_fraction,
        folds=usual.folds,
        fold=usual.fold,
        train_fraction=usual.train_fraction,
        validation_rows=usual.validation_rows,
        test_rows=usual.test_rows,
    )


def source_of(source: str, reading: ReadingConfig, test_split: str | None = None) -> Source:
    """A source alone, for runs that bring their own transform; `test_split` as in fine-tuning."""
    return cuts_of(source, uncut(reading)).cut(reading, test_split)


def opened(source: str, reading: ReadingConfig, transform: TransformConfig, test_split: str | None = None) -> Opened:
    """A source and its fitted transform."""
    return cuts_of(source, uncut(reading)).opened(reading, test_split, transform)


@lru_cache(maxsize=1)
def corpus_of(source: str, reading: CorpusConfig, transform: TokenizingConfig) -> Any:
    """A corpus and its tokeniser."""
    from weft.training.pretraining.prepare import open_data  # loads torch's compiler, a second

    return open_data(PretrainConfig(source=source, reading=reading, transform=transform))


def natural_side(config: RunConfig) -> int | None:
    """The side that a source's images have; None for other data."""
    source = source_of(config.source, config.reading)
    return own_side(image_shapes(source)) if source.modality == "image" else None


def decoding_seconds(config: RunConfig, rows: int = 48) -> float:
    """Seconds that reading and shrinking one image takes, from a few of them."""
    source, transform = opened(config.source, config.reading, config.transform)
    assert isinstance(transform, ImageTransform)
    began = time.perf_counter()
    raws, _ = source.splits["train"].read(np.arange(min(rows, source.count("train"))))
    for raw in raws:
        transform.pixels(raw)
    return (time.perf_counter() - began) / len(raws)


def decoding_ahead(config: RunConfig, allowed: float) -> tuple[int, float]:
    """Images that are decoded before the first run begins, once for all runs, and about the seconds of it, from some.

    Nothing where they are in the cache, are no files, or are decoded batch by batch. A few images tell whether it may
    come near the time that is `allowed`; then more of them are timed.
    """
    source = source_of(config.source, config.reading)
    if source.modality != "image":
        return 0, 0.0
    transform = fit(source, replace(config.transform, normalize="unit"))  # statistics would need all of them
    assert isinstance(transform, ImageTransform)
    count = undecoded(source, transform)
    if not count:
        return 0, 0.0
    roughly = count * image_seconds(source.splits["train"], transform, LIGHTLY)
    if roughly <= FAR_BELOW * allowed:
        return count, roughly
    return count, count * image_seconds(source.splits["train"], transform, TIMED)


def image_seconds(split: Split, transform: ImageTransform, most: int) -> float:
    """Seconds for one image where all cores decode them, from some at random: others may have been read just now."""
    pixels = DecodedPixels(split, transform, machine.cores())
    chosen = split.order(noise.key(0, "decoded ahead"), 0, most)
    pixels.rows(chosen[:2], None)  # the first ones load the decoders
    began, done = time.perf_counter(), 0
    while done < len(chosen) and (done == 0 or time.perf_counter() - began < LONG_ENOUGH):
        done += len(pixels.rows(chosen[done : done + AT_ONCE], None)[1])
    return (time.perf_counter() - began) / done


def data_of(config: AnyConfig) -> Any:
    """What the sessions of a run can be given so that they need not open it."""
    if isinstance(config, PretrainConfig):
        return corpus_of(config.source, config.reading, config.transform)
    if isinstance(config, FinetuneConfig) or trained_start(config.model):  # which bring their own transform
        return source_of(config.source, config.reading, config.reported_on), None
    return opened(config.source, config.reading, config.transform)


def facts_of(config: AnyConfig) -> Facts:
    """What candidates must know of the data that a run reads."""
    if isinstance(config, PretrainConfig):
        return facts_of_corpus(config)
    found = facts_of_labelled(config)
    if isinstance(config, FinetuneConfig):  # other weights to start from make another run
        start = read_start(config.start, of_weights(config), config.unsafe_pickle)
        return replace(found, fingerprint=f"{found.fingerprint}+{start.fingerprint}")
    return found


def facts_of_corpus(config: PretrainConfig) -> Facts:
    """What candidates must know of plain text; `rows` are the sequences to learn from."""
    inputs = open_inputs(config, None, data_of(config))
    network = inputs.network
    assert isinstance(network, TextTokensConfig)
    return Facts(
        name=config.source,
        modality="text",
        task="none",
        outputs=0,
        fingerprint=inputs.fingerprint,
        rows=inputs.batches("train").steps_per_epoch * config.optimisation.batch,
        shape={"vocab_size": network.vocab_size, "max_length": network.max_length},
        notes=inputs.notes,
    )


def facts_of_labelled(config: RunConfig) -> Facts:
    """What candidates must know of a source with targets."""
    source, transform = opened(config.source, config.reading, config.transform, config.reported_on)
    if source.task == "none":
        raise WeftError(f"{source.name} has no targets, so there is nothing to compare on; name them with --target")
    shape: dict[str, Any]
    if isinstance(transform, ImageTransform):
        modality, shape = "image", {"img_size": (transform.size, transform.size), "in_chans": transform.channels}
    elif isinstance(transform, TextTransform):
        modality, shape = "text", {"vocab_size": transform.vocab_size, "max_length": transform.max_length}
    else:
        assert isinstance(transform, VectorTransform)
        modality, shape = "vector", {"in_features": transform.features}
    return Facts(
        name=source.name,
        modality=modality,  # type: ignore[arg-type]
        task=source.task,
        outputs=outputs_for(source.task, len(source.classes)),
        fingerprint=source.fingerprint,
        rows=source.count("train"),
        shape=shape,
        classes=source.classes,
        notes=source.notes,
        held_out=source.held_out,
        cautions=cautions(source),
        test_rows=source.whole.get("test", source.count("test")),
    )
