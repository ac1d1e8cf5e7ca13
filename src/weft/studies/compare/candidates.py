"""Which networks stand side by side: presets, the two controls and the classical baseline, sized to the data.

No torch here: a candidate is a name in the registry with changes to its configuration; budgets are met by formula.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from weft.errors import WeftError, nearest
from weft.imported import is_import_string
from weft.networks.config import (
    BiTConfig,
    EfficientNetConfig,
    ForeignConfig,
    HaloNetConfig,
    ImageTokensConfig,
    LeNetConfig,
    LSTMConfig,
    NetworkConfig,
    NFNetConfig,
    RCNNConfig,
    ResNetConfig,
    TextConvConfig,
    TokenConfig,
)
from weft.networks.registry import REGISTRY, configured
from weft.studies.compare.budget_matching import MEASURES, TOLERANCE, Unmatched, solve
from weft.studies.statistics.verdicts import Group
from weft.training.config import is_fitted

Preset = Literal["families", "mixers", "gates", "sizes"]
Changes = dict[str, Any]

ATTENTIONS = ("attention", "halo")  # mixers that attend
CONVOLUTIONAL = (LeNetConfig, ResNetConfig, EfficientNetConfig, NFNetConfig, BiTConfig, RCNNConfig, TextConvConfig)

CLASSICAL = {"image": "hog+logistic", "text": "tfidf+logistic", "vector": "logistic"}
BUDGETS = {"params": {16: 5e4, 64: 1e6, 224: 5e6}, "macs": {16: 1e6, 64: 5e7, 224: 1e9}}  # by the image's side
TEXT_BUDGETS = {"params": 2.5e5, "macs": 5e6}


@dataclass(frozen=True)
class Facts:
    """What a comparison has to know of its source."""

    name: str
    modality: Literal["image", "text", "vector"]
    task: str
    outputs: int
    fingerprint: str
    rows: int  # of the training split
    shape: Changes  # img_size and in_chans, or vocab_size and max_length, or in_features
    classes: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    held_out: bool = False  # whether its test rows were held out by seed, for want of a split of their own
    cautions: list[str] = field(default_factory=list)  # what a reader of its scores has to know first
    test_rows: int = 0  # that it has, of which runs may be judged by fewer; 0 where nobody counted them

    @property
    def side(self) -> int:
        return int(self.shape["img_size"][0])


@dataclass(frozen=True)
class Candidate:
    """What stands side by side with others: a named network with changes, or a classical baseline."""

    name: str
    model: str
    group: Group
    network: Changes = field(default_factory=dict)
    tokens: bool = False
    count: dict[str, int] = field(default_factory=dict)  # parameters and multiply-adds, by formula
    start: str = ""  # the trained network that it starts from, or whose features it reads
    img_size: int | None = None  # where it is not the comparison's
    max_length: int | None = None  # of texts in tokens, likewise
    share: float = 1.0  # of the training rows that it learns from
    weights: str = ""  # digest of those that it starts from: others make another run
    layers: tuple[int, ...] = ()  # of `start`, which stays as it is, where it reads their embeddings of texts

    @property
    def fixed(self) -> bool:
        """Whether no seed changes it."""
        return is_fitted(self.model)

    @property
    def mixer(self) -> str:
        """What mixes its tokens, where it has any."""
        return str(self.network.get("mixer") or getattr(REGISTRY.get(self.model), "mixer", ""))


def families(facts: Facts) -> Iterator[tuple[str, str, Changes]]:
    """(name, model, changes): one member of each family that fits the data."""
    if facts.modality == "vector":
        yield "mlp", "mlp", {}
    elif facts.modality == "image":
        yield "mlp", "mlp", {}
        yield "resnet", "resnet20_cifar" if facts.side <= 64 else "resnet18", {}
        yield "rcnn", "rcnn_96", {}
        yield "vit", "vit_nano_p4_32", {}
        yield "mixer", "mixer_nano_p4_32", {}
        yield "gmlp", "gmlp_nano_p4_32", {}
    else:
        yield "lstm", "lstm_text", {}
        yield "conv", "conv_text", {}
        yield "bert", "bert_tiny", {}
        yield "mixer", "mixer_text_tiny", {}
        yield "gmlp", "gmlp_text_tiny", {}
        yield "amlp", "amlp_text_tiny", {}


def mixers(facts: Facts) -> Iterator[tuple[str, str, Changes]]:
    """One token backbone, six ways to mix its tokens."""
    suffix = "_text_tiny" if facts.modality == "text" else "_nano_p4_32"
    yield "attention", f"mixer{suffix}", {"mixer": "attention", "heads": 2, "positions": "learned"}
    yield "token_mlp", f"mixer{suffix}", {}
    for name in ("pooling", "depthwise"):
        yield name, f"control_{name}{'_text_tiny' if facts.modality == 'text' else '_p4_32'}", {}


def gates(facts: Facts) -> Iterator[tuple[str, str, Changes]]:
    """gMLP with each of its gates, the Toeplitz one, and aMLP."""
    suffix = "_text_tiny" if facts.modality == "text" else "_nano_p4_32"
    for gate in ("linear", "additive", "multiplicative", "split"):
        yield gate, f"gmlp{suffix}", {"gate": gate}
    yield "toeplitz", f"tmlp{suffix}" if facts.modality == "text" else f"tmlp2d{suffix}", {}
    yield "amlp", f"amlp{suffix}", {}


PRESETS = {"families": families, "sizes": families, "mixers": mixers, "gates": gates}


QUICK = {"resnet20_cifar": {"layers": (1, 1, 1), "widths": (8, 28, 64)}}
"""Proportions that learn more in the same seconds: of CIFAR ResNets with 60 k parameters, one block a stage and few
channels at full size take half the time of a step, and have 41 in place of 32 % of CIFAR-10 after 17 s of a core."""


def in_little_time(wanted: list[tuple[str, str, Changes]]) -> list[tuple[str, str, Changes]]:
    """The same networks in proportions that suit short runs."""
    return [(name, model, {**QUICK.get(model, {}), **changes}) for name, model, changes in wanted]


def chosen(facts: Facts, models: str) -> list[tuple[str, str, Changes]]:
    """The networks that a preset or a list of names stands for."""
    if models in PRESETS:
        if facts.modality == "vector" and models in ("mixers", "gates"):
            raise WeftError(f"{facts.name} holds vectors, which have no tokens to mix; use --models families")
        return list(PRESETS[models](facts))
    names = [name.strip() for name in models.split(",") if name.strip()]
    members = {name: (name, model, changes) for name, model, changes in families(facts)}
    for name in names:
        if name not in REGISTRY and name not in members and not is_import_string(name):
            known = [*PRESETS, *members, *REGISTRY]
            raise WeftError(f"there is no network or preset {name!r}; {nearest(name, known)} `weft models` lists all")
        taken = facts.modality if name in members else configured(name).input
        if taken != facts.modality:
            fitting = ", ".join(model for _, model, _ in members.values())
            raise WeftError(
                f"{name} takes {taken} inputs, but {facts.name} holds {facts.modality} inputs; "
                f"networks for them: {fitting}"
            )
    if not names or len(set(names)) < len(names):
        raise WeftError(f"--models takes different names separated by commas, or a preset, not {models!r}")
    return [members.get(name, (name, name, {})) for name in names]


def controls(facts: Facts) -> list[tuple[str, str, Changes]]:
    """The same backbone with no mixing, and with fixed random mixing."""
    if facts.modality == "vector":
        return []
    suffix = "_text_tiny" if facts.modality == "text" else "_p4_32"
    return [(f"control_{name}", f"control_{name}{suffix}", {}) for name in ("identity", "random")]


def make_candidates(
    facts: Facts,
    models: str,
    match: str,
    budget: float | None,
    with_controls: bool = True,
    classical: bool = True,
    notes: list[str] | None = None,
    quick: bool = False,
) -> list[Candidate]:
    """All candidates of a comparison, each at the budget, `quick` in proportions for short runs.

    One that cannot be built for these data or meets the budget from afar alone is told of in `notes`; refused only
    where no network is left.
    """
    wanted = chosen(facts, models) + (controls(facts) if with_controls else [])
    wanted = in_little_time(wanted) if quick and match in MEASURES and models in PRESETS else wanted
    shares = {"": 1.0} if models != "sizes" else {"/4": 0.25, "": 1.0, "×4": 4.0}
    if budget is None and match in MEASURES:
        budget = default_budget(facts, match)
    candidates, told, refusals = [], [] if notes is None else notes, []
    for name, model, changes in wanted:
        for mark, share in shares.items() if not name.startswith("control") else [("", 1.0)]:
            amount = budget * share if budget else None
            try:
                made = make_candidate(facts, name + mark, model, changes, match, amount)
            except WeftError as error:
                refusals.append(error)
                told.append(f"left out: {error}")
                continue
            candidates.append(made)
            if match in MEASURES and is_import_string(model):
                words = f"{made.count[match]:,} {MEASURES[match][1]}"
                told.append(f"{made.name} is not weft's and cannot be sized: it enters as it is, with {words}")
            elif amount and match in MEASURES and abs(made.count[match] / amount - 1) > TOLERANCE:
                told.append(f"{made.name} has {made.count[match]:,} {MEASURES[match][1]}: the nearest to {amount:,.0f}")
    if refusals and not any(candidate.group != "control" for candidate in candidates):
        raise refusals[0]
    if classical:
        candidates.append(Candidate(CLASSICAL[facts.modality], CLASSICAL[facts.modality], "classical"))
    return candidates


def make_candidate(
    facts: Facts, name: str, model: str, changes: Changes, match: str, budget: float | None
) -> Candidate:
    """One network, sized to the data and to the budget; `network` holds what differs from the named size."""
    try:
        named = fit_to(facts, model, changes)
        sized = match in MEASURES and budget and not isinstance(named, ForeignConfig)
        config = solve(named, match, budget) if sized and budget else named
    except Unmatched as error:
        raise WeftError(f"{name} {error}") from error
    except WeftError as error:
        raise WeftError(f"{name}: {error}") from error
    base = dataclasses.asdict(configured(model, **facts.shape, num_classes=facts.outputs, **patch(facts, model)))
    different = {key: value for key, value in dataclasses.asdict(config).items() if value != base[key]}
    count = {key: measure(config) for key, (measure, _) in MEASURES.items()}
    return Candidate(
        name, model, group_of(config), patch(facts, model) | different, isinstance(config, TokenConfig), count
    )


def resized_to(candidate: Candidate, share: float, facts: Facts, side: int | None = None) -> Candidate | None:
    """The candidate with a share of its parameters, or for images of another side, cut into as many patches; None
    where it cannot be had."""
    budget, changes = share * candidate.count["params"], dict(candidate.network)
    if side is not None:
        config = fit_to(facts, candidate.model, changes)
        if isinstance(config, ImageTokensConfig):
            changes["patch_size"] = config.patch_size * side // facts.side
        facts = dataclasses.replace(facts, shape={**facts.shape, "img_size": (side, side)})
    try:
        found = make_candidate(facts, candidate.name, candidate.model, changes, "params", budget)
    except WeftError:
        return None
    found = dataclasses.replace(found, img_size=side)
    return found if side is not None or found.count["params"] < candidate.count["params"] else None


def fit_to(facts: Facts, model: str, changes: Changes) -> NetworkConfig:
    """The named network with inputs and outputs of the source, and a patch that suits its images."""
    return configured(model, **facts.shape, num_classes=facts.outputs, **{**patch(facts, model), **changes})


def patch(facts: Facts, model: str) -> Changes:
    """For another image side than the named one, the divisor that gives about √(2·side) tokens a row: 8 → 2, 32 → 4."""
    config = configured(model)
    if not isinstance(config, ImageTokensConfig) or config.hybrid or config.img_size[0] == facts.side:
        return {}
    divisors = [p for p in range(1, facts.side + 1) if facts.side % p == 0]
    wanted = (facts.side / 2) ** 0.5
    return {"patch_size": min(divisors, key=lambda p: max(p / wanted, wanted / p))}


def default_budget(facts: Facts, match: str) -> float:
    """A budget that suits the inputs' size: small networks for small images."""
    if facts.modality == "text":
        return TEXT_BUDGETS[match]
    if facts.modality == "vector":
        return BUDGETS[match][16]
    return next((budget for side, budget in BUDGETS[match].items() if facts.side <= side), BUDGETS[match][224])


def group_of(config: NetworkConfig) -> Group:
    """Which answer a candidate stands for."""
    if config.family in ("control", "text_control"):
        return "convolution" if getattr(config, "mixer", "") == "depthwise" else "control"
    if config.hybrid or isinstance(config, HaloNetConfig | ForeignConfig):  # which may be of any kind
        return "hybrid"
    if isinstance(config, TokenConfig):
        attends = config.tiny_attention > 0 or (config.block == "mixed" and config.mixer in ATTENTIONS)
        return "attention" if attends else "mlp"
    if isinstance(config, CONVOLUTIONAL):
        return "convolution"
    return "recurrent" if isinstance(config, LSTMConfig) else "mlp"
