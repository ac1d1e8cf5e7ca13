"""From a configuration to the things a run works with: source, transform, batches, network, objective.

`open_inputs` serves every kind of run and returns `RunInputs`; `LabelledInputs` is that of a supervised run, and
others (pre-training, fine-tuning) bring or derive their own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, Self, overload

import torch
from torch import Tensor

from weft.data.batch import noise
from weft.data.batch.loader import Batches, batches
from weft.data.open.source import Source, cut_source
from weft.data.open.splits import drawn, spread
from weft.data.sources.find import read
from weft.data.sources.table import Reading
from weft.data.transform import transforms
from weft.data.transform.fit import fit, remarks
from weft.data.transform.transforms import ImageTransform, Transform, VectorTransform
from weft.disk import RUN
from weft.errors import WeftError
from weft.networks.base.network import Network
from weft.networks.config import MLPConfig, NetworkConfig, SideMismatch
from weft.networks.measure.cost import total_macs
from weft.networks.registry import REGISTRY, build, configured, list_models, named
from weft.networks.vit import DistilledViT
from weft.training.config import ObjectiveConfig, RunConfig
from weft.training.finetuning.config import FinetuneConfig
from weft.training.inference.network_folder import NetworkMetadata, write_network
from weft.training.learnt import Learnt, judge_answers, never_answered
from weft.training.metrics import Metrics, measure, try_metric
from weft.training.objective import Goal, Objective, create_objective, outputs_for
from weft.training.optim.optimisers import Groups
from weft.training.pretraining.config import PretrainConfig
from weft.training.run.kinds import AnyConfig
from weft.training.run.settings import settle, settle_network, settle_optimiser
from weft.training.storage.record import COUNTED, predictions, tested_rows, write_predictions
from weft.training.storage.run_folder import RunFolder
from weft.training.teaching.lessons import Lessons
from weft.training.teaching.pseudo_labels import PseudoLabels, label_rows
from weft.training.teaching.teacher import read_teacher

TRIED = 1000  # targets that a metric is tried on before anything is trained
INPUT = {"image": "image", "text": "text", "pair": "text", "vector": "vector"}  # modality of a source -> of a network


class RunInputs(Protocol):
    """What the life of a run asks of the things that a run works with, whatever its kind."""

    @property
    def config(self) -> Any:
        """What was asked, with what follows the data settled."""

    @property
    def network(self) -> NetworkConfig:
        """Of the network that the folder will hold."""

    @property
    def objective(self) -> Goal:
        """What is minimised."""

    @property
    def notes(self) -> list[str]:
        """Sentences about what was decided on the way."""

    @property
    def fingerprint(self) -> str:
        """A digest of the data; a resumed run must find the same."""

    def require(self, fingerprint: str) -> None:
        """Refuse to go on when what the run was started with has changed."""

    def create(self) -> torch.nn.Module:
        """What is trained, with its initial weights."""

    def groups(self, core: Any) -> Groups:
        """Its parameters for the optimiser. A group may hold `share`, a factor on the rate of the plan."""

    def batches(self, role: str, rank: int = 0, world: int = 1) -> Batches:
        """The batches of train, validation or test."""

    @property
    def macs(self) -> int:
        """Multiply-adds of one example in use."""

    def save_transform(self, folder: Path) -> None:
        """Write what turns raw inputs into tensors, before the first step."""

    def measure(self, outputs: Tensor, targets: Tensor) -> Metrics:
        """All metrics of a split."""

    def judge(self, outputs: Tensor, targets: Tensor) -> Learnt:
        """Whether anything was learnt, from what is said of the validation split."""

    def described(self) -> dict[str, Any]:
        """The data, for the record."""

    def keep(self, folder: Path, weights: dict[str, Tensor] | None, outputs: Tensor, targets: Tensor) -> None:
        """Write the trained network, if there is one, and what it says of the test split."""


@dataclass(frozen=True)
class LabelledInputs:
    """What the configuration of a supervised run names, opened and made."""

    config: RunConfig
    source: Source
    transform: Transform
    network: NetworkConfig
    objective: Objective
    reasons: tuple[str, ...] = ()
    """of what was settled by the data"""
    lessons: Lessons | None = None
    """of a teacher"""
    added: PseudoLabels | None = None
    """rows that another network has labelled"""

    @property
    def notes(self) -> list[str]:
        taught = [part.note for part in (self.lessons, self.added) if part is not None]
        return [*self.source.notes, *taught, *self.reasons]

    @property
    def fingerprint(self) -> str:
        return self.source.fingerprint + self.besides

    @property
    def besides(self) -> str:
        """What a teacher and pseudo-labels add to the fingerprint."""
        teacher = "" if self.lessons is None else f"+teacher {self.lessons.teacher.digest}"
        return teacher + ("" if self.added is None else f"+labels {self.added.digest}")

    def require(self, fingerprint: str) -> None:
        if not fingerprint.endswith(self.besides):
            asked = self.config.teaching
            folders = " or ".join(filter(None, (asked.teacher, asked.pseudo_labels, asked.unlabelled)))
            raise WeftError(f"{folders} has changed since the run began; restore it or start a new run")
        self.source.require(fingerprint.removesuffix(self.besides))

    def create(self) -> Network:
        return self.to_be_taught(build(self.network, self.config.seed))

    def to_be_taught(self, network: Network) -> Network:
        """The network, told to answer a teacher with its second head, if it has both."""
        if self.lessons is not None and isinstance(network, DistilledViT):
            network.apart = True
        return network

    def groups(self, core: Network) -> Groups:
        return core.parameter_groups(self.config.optimisation.weight_decay)

    def batches(self, role: str, rank: int = 0, world: int = 1) -> Batches:
        """Shuffled and augmented for `train`, else every example once in order."""
        return self.taught(
            role,
            batches(
                self.rows,
                role,
                batch_size=self.config.optimisation.batch,
                seed=self.config.seed,
                transform=self.transform,
                augment=self.config.augment,
                rank=rank,
                world=world,
                workers=self.config.execution.workers,
            ),
        )

    @property
    def macs(self) -> int:
        return total_macs(self.network)

    @property
    def judged_split(self) -> str:
        """The split of the source that the final figures are on."""
        return self.config.objective.judged_on

    @property
    def rows(self) -> Source:
        """The source with the training rows that are learnt from."""
        return self.source if self.added is None else self.added.joined(self.source)

    def taught(self, role: str, batches: Batches) -> Batches:
        """Training batches with the teacher's answers, if there is one."""
        return batches if self.lessons is None or role != "train" else self.lessons.of(batches, self.rows)

    def with_lessons(self) -> Self:
        """The same with the teacher that was asked for."""
        folder = self.config.teaching.teacher
        if folder is None:
            return self
        lessons = Lessons(read_teacher(folder, "--teacher", self.source), self.config, self.transform)
        lessons.require_same_pixels()
        found = replace(self, lessons=lessons)
        return replace(found, objective=lessons.objective(self.objective, found.batches("train")))

    def save_transform(self, folder: Path) -> None:
        self.transform.save(folder)

    def measure(self, outputs: Tensor, targets: Tensor) -> Metrics:
        found = measure(self.objective.task, self.objective.answers(outputs), targets, len(self.source.classes))
        if self.source.classes:
            found["never_answered"] = never_answered(found["confusion"], self.source.classes)
            if len(self.source.classes) > COUNTED:
                del found["confusion"]
        if self.objective.chosen is not None:
            found[self.objective.chosen] = self.objective.headline(outputs, targets)
        return found

    def judge(self, outputs: Tensor, targets: Tensor) -> Learnt:
        objective = self.objective
        return judge_answers(objective.task, objective.answers(outputs), targets, self.source.classes, objective.centre)

    def described(self) -> dict[str, Any]:
        source = self.source
        found: dict[str, Any] = {"name": source.name, "fingerprint": source.fingerprint, "notes": source.notes}
        if self.lessons is not None:
            found["teacher"] = self.lessons.described()
        return found if self.added is None else {**found, "pseudo_labels": self.added.facts}

    def keep(self, folder: Path, weights: dict[str, Tensor] | None, outputs: Tensor, targets: Tensor) -> None:
        objective = self.objective
        found = predictions(objective.task, objective.answers(outputs), targets)
        write_predictions(folder, found | tested_rows(self.source))
        if weights is not None:
            source, pairs = self.source, self.source.modality == "pair"
            told = (self.config.model, objective.task, source.classes, objective.centre, objective.scale, pairs)
            card = NetworkMetadata(*told, columns=source.columns, target=source.target)
            write_network(folder, card, self.network, weights, self.transform)


Opened = tuple[Source, Transform]


def open_data(config: RunConfig) -> Opened:
    """The source that a configuration names, and the transform fitted to its training rows."""
    source = read_source(config)
    return source, fit(source, config.transform)


def read_source(config: RunConfig, known: Reading | None = None) -> Source:
    """The source that a configuration names, with as many rows of each split as are to be learnt from or judged by;
    what is `known` of it need not be read."""
    reading = config.reading
    found = known or read(config.source, reading)
    source = cut_source(found, config.source, reading, config.reported_on)
    if reading.train_fraction < 1:
        source = thinned(source, "train", max(2, round(reading.train_fraction * source.count("train"))))
    source = thinned(source, "validation", reading.validation_rows)
    return thinned(source, "test", reading.test_rows)


def thinned(source: Source, role: str, count: int | None) -> Source:
    """The source with so many rows of a split at most; fewer of them are part of more."""
    if count is None or count >= source.count(role):
        return source
    learnt = role == "train" and source.task in ("classes", "binary")
    less = drawn(source.splits[role], noise.key(source.config.split_seed, "share"), count, every_class=learnt)
    whole = {**source.whole, role: source.count(role)}
    return replace(source, splits={**source.splits, role: less}, whole=whole)


@overload
def open_inputs(config: RunConfig, folder: Path | None = None, opened: Opened | None = None) -> LabelledInputs: ...
@overload
def open_inputs(config: AnyConfig, folder: Path | None = None, opened: Any = None) -> RunInputs: ...
def open_inputs(config: AnyConfig, folder: Path | None = None, opened: Any = None) -> Any:
    """What a run of any kind works with; what is stored in `folder` is used again, and `opened` need not be opened."""
    if isinstance(config, PretrainConfig):
        from weft.training.pretraining.prepare import open_pretraining

        return open_pretraining(config, folder, opened)
    if isinstance(config, FinetuneConfig):
        from weft.training.finetuning.prepare import open_finetuning

        return open_finetuning(config, folder, opened)
    return open_labelled(config, folder, opened)


def open_labelled(config: RunConfig, folder: Path | None = None, opened: Opened | None = None) -> LabelledInputs:
    """Open the source, fit the transform (or load the one in `folder`) and size the network to both."""
    check_names(config)
    source = opened[0] if opened else read_source(config)
    config, chosen = settle_network(config, source)
    check_source(config, source)
    stored = folder is not None and any((folder / name).exists() for name in (transforms.FILE, "tokenizer.json"))
    if stored and folder is not None:
        transform = transforms.load(folder)
    else:
        transform = opened[1] if opened else fit(source, config.transform)
    about = remarks(source, config.transform, transform)
    added = None if config.teaching.pseudo_labels is None else label_rows(config, source)
    rows = source if added is None else added.joined(source)
    config, reasons = settle(config, rows, transform, planned=is_planned(folder))
    objective = objective_of(rows, config.objective)
    network = size_network(config, source, transform)
    config, moved = settle_optimiser(config, network, source, is_planned(folder))
    told = (*chosen, *moved, *about, *reasons)
    return LabelledInputs(config, source, transform, network, objective, told, added=added).with_lessons()


def is_planned(folder: Path | None) -> bool:
    """Whether a run in this folder has been planned, its settings decided."""
    return folder is not None and (folder / RUN).is_file() and RunFolder(folder).plan() is not None


def objective_of(source: Source, asked: ObjectiveConfig) -> Objective:
    """The objective of a source's task, as asked for."""
    targets = source.splits["train"].targets
    found = create_objective(source.task, targets, len(source.classes), asked.smoothing or 0.0, asked.class_weights)
    if asked.metric is not None:
        some = spread(len(targets), TRIED)
        try_metric(asked.metric, found.task, torch.from_numpy(targets[some]), len(source.classes))
    return replace(found, chosen=asked.metric)


def check_names(config: RunConfig) -> None:
    """Refuse a configuration without source, or with a network that does not exist."""
    if not config.source:
        raise WeftError("say what to train on: weft train SOURCE (digits, for instance, or a folder)")
    if config.model:
        named(config.model)


def check_source(config: RunConfig, source: Source) -> None:
    """Refuse a network for another kind of input, and a batch larger than the set."""
    if source.task == "none":
        columns = f": {', '.join(source.spare)}" if source.spare else ""
        raise WeftError(f"{config.source} has no target to learn; name its column with --target{columns}")
    wanted = INPUT[source.modality]
    entry = named(config.model)
    if entry.input != wanted and not (isinstance(entry, MLPConfig) and wanted != "text"):
        fitting = [name for name in list_models() if REGISTRY[name].input == wanted]
        fitting = ["mlp"] if wanted == "vector" else fitting
        raise WeftError(
            f"{config.model} takes {plural(entry.input)}, but {config.source} holds {plural(wanted)}; "
            f"networks for {plural(wanted)}: {', '.join(fitting[:6])}"
        )
    if entry.family == "filternet":
        raise WeftError(
            f"{config.model} makes images of images; to tell classes apart use lenet5 or resnet18 for instance"
        )
    size, rows = config.optimisation.batch_size, source.count("train")
    if size is not None and size > rows:
        raise WeftError(
            f"a batch of {size} is larger than the training split ({rows}); use --batch-size {rows} or less"
        )


def plural(modality: str) -> str:
    return {"image": "images", "text": "text", "vector": "vectors"}[modality]


def size_network(config: RunConfig, source: Source, transform: Transform) -> NetworkConfig:
    """The named network's configuration with inputs and outputs that fit the source."""
    shape: dict[str, Any] = {"num_classes": outputs_for(source.task, len(source.classes))}  # type: ignore[arg-type]
    if isinstance(transform, ImageTransform):
        shape |= {"img_size": (transform.size, transform.size), "in_chans": transform.channels}
    elif isinstance(transform, VectorTransform):
        shape |= {"in_features": transform.features}
    else:
        shape |= {"vocab_size": transform.vocab_size, "max_length": transform.max_length}
    try:
        return configured(config.model, **{**shape, **config.network})
    except SideMismatch as error:
        raise WeftError(f"{error} (--img-size sets the side, --network patch_size=… the patch)") from error
