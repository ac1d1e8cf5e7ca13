"""What a run is asked to do: frozen dataclasses, from which the command line and `run.yaml` are derived.

Nothing here loads torch, so that `weft train --help` and `--print-config` answer at once. Sections group what
belongs together; on the command line their fields are plain flags (`--lr`, `--mixup`), in YAML they are nested.
"""

from __future__ import annotations

import dataclasses
import math
import re
import reprlib
from collections.abc import Callable
from dataclasses import field
from functools import cache
from typing import Annotated, Any, ClassVar, Literal, TypeVar, get_type_hints

import yaml
from pydantic import AfterValidator, ConfigDict, ValidationError, ValidationInfo
from pydantic.dataclasses import dataclass
from tyro.conf import Positional
from tyro.constructors import PrimitiveConstructorSpec

from weft.data.config import AugmentConfig, SourceConfig, TransformConfig
from weft.disk import adapter, complaint
from weft.errors import WeftError, nearest

STRICT = ConfigDict(extra="forbid")

OptimiserName = Literal["gd", "sgd", "momentum", "adagrad", "adam", "adamw", "lamb", "muon"]


def _must(hold: Callable[[float], bool], be: str) -> AfterValidator:
    """A check whose complaint is a sentence: `--lr must be above 0, not nan`."""

    def check(value: Any, info: ValidationInfo) -> Any:
        if not hold(value):
            raise WeftError(f"--{str(info.field_name).replace('_', '-')} must be {be}, not {value}")
        return value

    return AfterValidator(check)


Positive = Annotated[float, _must(lambda value: 0 < value < math.inf, "a number above 0")]
NotNegative = Annotated[float, _must(lambda value: 0 <= value < math.inf, "a number of at least 0")]
Fraction = Annotated[float, _must(lambda value: 0 <= value < 1, "at least 0 and below 1")]
Share = Annotated[float, _must(lambda value: 0 < value <= 1, "above 0 and at most 1")]
Count = Annotated[int, _must(lambda value: value >= 1, "a whole number of at least 1")]
Natural = Annotated[int, _must(lambda value: 0 <= value < 2**31, "a whole number of at least 0")]


@dataclass(frozen=True, kw_only=True, config=STRICT)
class ReadingConfig(SourceConfig):
    """Which examples, and which of them are held out."""

    train_fraction: Share = 1.0
    """Share of the training rows to learn from, for learning curves; a smaller share is part of a larger one."""
    validation_rows: Count | None = None
    """Rows of the validation split to evaluate on, at most, drawn by --split-seed; by default all."""
    test_rows: Count | None = None
    """Rows of the test split to evaluate on, at most, drawn by --split-seed; by default all."""


SHORT_RUN_RATE = 3e-3  # of Adam and AdamW in runs of some hundred steps of small networks


MUON_RATE, MUON_SIZE = 1e-2, 2e6  # of Muon in such runs, up to so many parameters; measured to 250,000
SLOWEST_MUON = 1e-3  # of the largest networks: AdamW's usual rate


def muon_rate(model: str, parameters: int | None = None) -> float:
    """Muon's rate in such runs; plain perceptrons learn less at the higher one. Larger networks have less, by the root
    of their size, down to AdamW's usual rate, as steps of Muon are as large as those of AdamW: not measured."""
    if model == "mlp":
        return 3e-3
    return max(SLOWEST_MUON, MUON_RATE * min(1.0, (MUON_SIZE / parameters) ** 0.5)) if parameters else MUON_RATE


def batch_for(rows: int, steps: int, smallest: int, largest: int) -> int:
    """The power of two that gives about so many steps an epoch or more, within bounds; never more than the rows."""
    return min(rows, max(smallest, min(largest, 2 ** int(math.log2(max(1, rows / steps))))))


@dataclass(frozen=True, kw_only=True, config=STRICT)
class OptimisationConfig:
    """How the weights are moved."""

    batch_size: Count | None = None
    """Examples per step, over all processes; by default 8 to 128, about 50 steps an epoch; fine-tuning 4 to 32."""
    opt: OptimiserName | None = "adamw"
    """Optimiser; by default adamw, but muon for networks that learn labels from scratch where no rate is given."""
    lr: Positive | Literal["auto"] | None = None
    """Peak learning rate; auto searches it; by default one that suits the optimiser, and in fine-tuning a tenth."""
    weight_decay: NotNegative = 0.05
    """Decay of weight matrices and kernels; norms, biases, positions and tokens have none."""
    sched: Literal["cosine", "linear", "onecycle", "constant"] = "cosine"
    """Shape of the rate after warm-up."""
    warmup_epochs: NotNegative | None = None
    """Epochs of linear warm-up; by default a twentieth of the run."""
    clip_mode: Literal["norm", "agc"] = "norm"
    """Clip all gradients by their common norm, or each unit's by the norm of its weights (as NFNet does)."""
    clip_grad: NotNegative | None = None
    """Largest norm, by default 1; for agc largest share of the weights' norm, by default 0.01; 0 switches it off."""
    grad_accum_steps: Count = 1
    """Micro-batches that each batch is cut into: less memory, the same gradient (but batch norm sees a micro-batch)."""
    model_ema_decay: Fraction | None = None
    """Decay of the moving average of the weights that is evaluated and kept, 0 for none; by default none, but where
    image networks are fine-tuned."""

    def __post_init__(self) -> None:
        if self.batch_size is not None and self.grad_accum_steps > self.batch_size:
            raise WeftError(
                f"--grad-accum-steps {self.grad_accum_steps} would cut a batch of {self.batch_size} into empty parts"
            )

    @property
    def optimiser(self) -> OptimiserName:
        """The optimiser: AdamW where it is left open and nothing has settled it."""
        return self.opt or "adamw"

    @property
    def batch(self) -> int:
        """Examples per step, once that is settled."""
        if self.batch_size is None:
            raise WeftError("the batch size follows the data, which have not been opened yet; give --batch-size")
        return self.batch_size


@dataclass(frozen=True, kw_only=True, config=STRICT)
class ObjectiveConfig:
    """What is minimised."""

    smoothing: Fraction | None = None
    """Label smoothing; by default 0.1 in runs of a time or of no given length on at most 20,000 rows, else none."""
    class_weights: Literal["balanced"] | tuple[Positive, ...] | None = None
    """Weight of each class in the loss: one number a class, or balanced (inverse frequency)."""
    metric: str | None = None
    """Chooses the best step, higher being better: balanced_accuracy, macro_f1, matthews, auroc, negative_mae,
    negative_rmse, or package.module:function of targets and predictions; by default accuracy or R²."""

    judged_on: Literal["test", "validation"] = "test"
    """Split of the final figures; validation leaves the test split unread, as trials of settings should."""


@dataclass(frozen=True, kw_only=True, config=STRICT)
class TeachingConfig:
    """What else is learnt from: the answers of a trained network."""

    teacher: str | None = None
    """Run, or folder of a trained network, whose answers to the training rows are learnt beside their labels."""
    distill: Literal["soft", "hard"] = "soft"
    """soft: the teacher's probabilities; hard: the class that it answers with."""
    distill_temperature: Positive = 3.0
    """Divides the outputs of both networks before soft probabilities are made of them (DeiT's)."""
    distill_weight: Share | None = None
    """Share of the teacher in the loss, the labels having the rest; by default DeiT's, 0.1 for soft, 0.5 for hard."""
    pseudo_labels: str | None = None
    """Run, or folder of a trained network, that labels the rows of --unlabelled; they join the training rows."""
    unlabelled: str | None = None
    """Split of the source, or another source, for --pseudo-labels; by default the source's split without labels."""
    pseudo_threshold: Share = 0.9
    """Smallest probability of an answer that becomes a label."""

    def __post_init__(self) -> None:
        if self.unlabelled is not None and self.pseudo_labels is None:
            named = reprlib.repr(self.unlabelled)
            raise WeftError(f"--unlabelled {named} needs a network that labels it: add --pseudo-labels RUN")

    @property
    def weight(self) -> float:
        """Share of the teacher in the loss."""
        return self.distill_weight or {"soft": 0.1, "hard": 0.5}[self.distill]


@dataclass(frozen=True, kw_only=True, config=STRICT)
class DurationConfig:
    """How long. At most one of the three; by default 10 epochs, or more on small sets (3 for finetune on text)."""

    epochs: Positive | None = None
    """Passes over the training split."""
    steps: Count | None = None
    """Batches."""
    time: str | None = None
    """Wall time of the whole command, such as 90s, 30m or 2h; the probe turns it into a number of steps."""

    def __post_init__(self) -> None:
        given = [name for name in ("epochs", "steps", "time") if getattr(self, name) is not None]
        if len(given) > 1:
            raise WeftError(f"--{' and --'.join(given)} contradict each other; give one of them")
        if self.time is not None:
            seconds(self.time)


Precision = Literal["float32", "bf16", "fp16"]
AskedPrecision = Literal["auto", "float32", "bf16", "fp16"]


@dataclass(frozen=True, kw_only=True, config=STRICT)
class ExecutionConfig:
    """Where and how it is computed and reported; changes results by float rounding at most."""

    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Where to compute."""
    strategy: Literal["auto", "ddp", "fsdp"] = "auto"
    """How several processes share the work."""
    workers: Natural | None = None
    """Processes or threads that prepare batches; by default the loader chooses. Never changes a batch."""
    threads: Count | None = None
    """Threads of the machine to use, over all processes; by default every core."""
    precision: AskedPrecision = "auto"
    """Number format of the forward pass; auto uses bf16 or fp16 only where the probe finds it faster."""
    compile: bool | None = None
    """torch.compile; by default where the saving expected exceeds the time it takes, both measured."""
    log_every: Count | None = None
    """Steps between lines of metrics.jsonl; by default a thousand lines a run, at least ten steps apart."""
    eval_every: Count | None = None
    """Steps between evaluations on the validation split; by default an epoch."""
    checkpoint_every: Count | None = None
    """Steps between checkpoints; by default about a minute, and at most half a percent of the time."""
    price_per_hour: NotNegative = 0.1
    """Price of this machine per hour, for the cost columns."""
    tensorboard: bool = False
    """Write TensorBoard events into the run folder (extra `tensorboard`)."""


def _read_overrides(words: list[str]) -> dict[str, Any]:
    """`depth=4 hidden=[64,64]` as a dictionary; values are read as YAML."""
    pairs = [word.partition("=") for word in words]
    if not all(equals and key for key, equals, _ in pairs):
        raise WeftError(f"--network takes KEY=VALUE pairs such as depth=4, not {' '.join(words)!r}")
    try:
        return {key: yaml.safe_load(value) for key, _, value in pairs}
    except yaml.YAMLError as error:
        raise WeftError(f"--network cannot read {' '.join(words)!r}; write depth=12 or hidden=[64,64]") from error


Overrides = Annotated[
    dict[str, Any],
    PrimitiveConstructorSpec(
        nargs="*",
        metavar="KEY=VALUE",
        instance_from_str=_read_overrides,
        is_instance=lambda value: isinstance(value, dict),
        str_from_instance=lambda value: [f"{key}={setting}" for key, setting in value.items()],
    ),
]


@dataclass(frozen=True, kw_only=True, config=STRICT)
class RunConfig:
    """One run: a network trained on a source."""

    kind: ClassVar[str] = "train"

    source: Positional[str] = ""
    """Name of an embedded source (digits, pydocs, …), a path, or hub:NAME."""
    model: str = ""
    """Name of a network (`weft models` lists them); by default a small one that suits the kind of data, and in
    fine-tuning the one that is started from."""
    network: Overrides = field(default_factory=dict)
    """Changes to that network's configuration, as pairs: --network depth=4 drop_rate=0.1"""
    seed: Natural = 0
    """Decides initial weights, order, augmentation and noise."""
    reading: ReadingConfig = ReadingConfig()
    transform: TransformConfig = TransformConfig()
    augment: AugmentConfig = AugmentConfig()
    optimisation: OptimisationConfig = OptimisationConfig(opt=None)
    objective: ObjectiveConfig = ObjectiveConfig()
    teaching: TeachingConfig = TeachingConfig()
    duration: DurationConfig = DurationConfig()
    patience: Natural | None = None
    """Stop after so many evaluations without a better one on the validation split, 0 for never; by default never where
    a length is given, else by the size of the set."""
    execution: ExecutionConfig = ExecutionConfig()

    @property
    def reported_on(self) -> str | None:
        """The split on disk that is asked for as test split; by default the one that is called so."""
        return None


FITTED = "logistic"  # ends the names of models that are fitted and not trained step by step: hog+logistic
CLASSICAL_FEATURES = ("hog", "tfidf")
FITTED_ROWS = 50_000  # training rows; beyond that a classical baseline takes an evenly spread sample


def is_fitted(model: str) -> bool:
    """Whether a name is that of a model here, and not of a network that is trained step by step."""
    return model.endswith(FITTED)


def trained_start(model: str) -> str:
    """The trained network whose features a model reads: efficientnet_lite0 of efficientnet_lite0+logistic; "" for the
    classical ones."""
    name = model.removesuffix(f"+{FITTED}")
    return "" if name == model or name in CLASSICAL_FEATURES else name


UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def seconds(duration: str) -> float:
    """Seconds in a duration such as `90s`, `30m`, `1h30m` or `2.5h`."""
    parts = re.findall(r"(\d+(?:\.\d+)?)([smhd])", duration)
    total = math.fsum(float(number) * UNITS[unit] for number, unit in parts)
    if "".join(number + unit for number, unit in parts) != duration or not total > 0:
        raise WeftError(f"{duration!r} is not a duration; write for instance 90s, 30m or 1h30m")
    return total


# ---- A configuration as plain values, and back; an unknown key is answered with the nearest known one.

T = TypeVar("T")


def to_dict(config: Any) -> dict[str, Any]:
    """A configuration as plain dictionaries, lists, numbers and strings."""
    plain: dict[str, Any] = adapter(type(config)).dump_python(config, mode="json")
    return plain


def from_dict(kind: type[T], values: dict[str, Any], where: str = "") -> T:
    """The configuration of class `kind` with `values`; keys left out have their defaults."""
    check_keys(kind, values, where)
    try:
        found: T = adapter(kind).validate_python(over_defaults(kind, values))
        return found
    except ValidationError as error:
        raise WeftError(where + complaint(error)) from error
    except (WeftError, OverflowError, RecursionError) as error:
        raise WeftError(f"{where}{error}") from error


def over_defaults(kind: Any, values: dict[str, Any]) -> dict[str, Any]:
    """The values, sections of them over the defaults that `kind` has for them: these may differ from those of the
    section's own class, and a value given beside them must not undo that."""
    found = dict(values)
    for section in dataclasses.fields(kind):
        given, usual = values.get(section.name), section.default
        if isinstance(given, dict) and dataclasses.is_dataclass(usual):
            found[section.name] = to_dict(usual) | over_defaults(type(usual), given)
    return found


@cache
def _types(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


def check_keys(kind: Any, values: Any, where: str = "") -> None:
    """Raise if `values` has a key, at any depth, that the dataclass `kind` has not."""
    if not isinstance(values, dict):
        raise WeftError(f"{where}expected a mapping of keys to values, not {type(values).__name__}")
    types = _types(kind)
    known = [field.name for field in dataclasses.fields(kind)]
    for key, value in values.items():
        if key not in known:
            raise WeftError(f"{where}unknown key {key!r}; {nearest(str(key), known) or 'known: ' + ', '.join(known)}")
        if dataclasses.is_dataclass(types[key]) and value is not None:
            check_keys(types[key], value, f"{where}{key}: ")


def difference(before: Any, after: Any, prefix: str = "") -> list[str]:
    """Fields in which two configurations of one class differ, as `lr: 0.001 -> 0.1`."""
    if not dataclasses.is_dataclass(before):
        return [] if before == after else [f"{prefix}: {before} -> {after}"]
    lines: list[str] = []
    for one in dataclasses.fields(before):
        lines += difference(getattr(before, one.name), getattr(after, one.name), one.name)
    return lines
