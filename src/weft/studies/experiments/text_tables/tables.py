"""Who stands in tables 6 to 9, at any scale: the published shapes with their widths and depths shrunk.

gMLP has 512 channels expanded to 3072, BERT 768 channels; gMLP has Toeplitz gates and no positions, with which alone
the published counts are met. The figures are as printed: perplexities of masked-language modelling on C4 (Liu et al.
2021), accuracies in percent on SST-2 and on MNLI's matched validation set, parameters in millions. Table 6's candidates
but `split` are met with an expanded width of 2048 only, so the published gates are not of equal size (92 M against
102 M).
"""

from __future__ import annotations

import itertools
from typing import Any

from weft.networks.measure.cost import total_parameters
from weft.studies.experiments.text_tables.design import ENCODER, Experiment, Figures, Start, TableCandidate, equal_width
from weft.studies.experiments.text_tables.scales import ExperimentScale

UNSPLIT = 2048  # expanded width of table 6's gates that do not split, as published
CONTROLS = ("attention on trained", "identity on trained", "linear probe on trained")


def printed(parameters: float | None, perplexity: float | None, sst2: float | None, mnli: float | None) -> Figures:
    """A line of a table; what it leaves out is left out here."""
    named = {"parameters": parameters, "perplexity": perplexity, "sst2": sst2, "mnli": mnli}
    return {name: value for name, value in named.items() if value is not None}


def gmlp(
    scale: ExperimentScale, name: str, layers: int, start: Start, published: Figures | None = None, **changes: Any
) -> TableCandidate:
    """A text gMLP of so many published layers."""
    shape = {"dim": scale.wide(512), "hidden_dim": scale.wide(3072), "depth": scale.layers(layers)}
    return TableCandidate(name, "gmlp_text_l36", {**shape, **changes}, start, published or {})


def bert(scale: ExperimentScale, name: str, layers: int, start: Start, published: Figures) -> TableCandidate:
    """A BERT of so many published layers, 768 channels wide before the scale; no dropout, as gMLP has none."""
    dim = scale.wide(768)
    heads = 12 if scale.name == "paper" else 3
    shape = {"dim": dim, "hidden_dim": 4 * dim, "heads": heads, "depth": scale.layers(layers), "drop_rate": 0.0}
    return TableCandidate(name, "bert_base", shape, start, published)


# ---- table 6

TABLE_6: dict[str, Figures] = {
    "linear": printed(92, 5.14, None, None),
    "additive": printed(92, 4.97, None, None),
    "multiplicative": printed(92, 4.53, None, None),
    "split": printed(102, 4.35, None, None),
}


def gates(scale: ExperimentScale) -> list[TableCandidate]:
    """The four gates: the split one as published, the others with the width that gives them its parameters."""
    split = gmlp(scale, "split", 36, "pretrained", TABLE_6["split"]).config(scale)
    found = []
    for gate, figures in TABLE_6.items():
        candidate = gmlp(scale, gate, 36, "pretrained", figures, gate=gate)
        width = split.hidden_dim
        if gate != "split":
            equal = equal_width(candidate.config(scale), total_parameters(split))
            width = UNSPLIT if scale.name == "paper" else equal.hidden_dim
        found.append(gmlp(scale, gate, 36, "pretrained", figures, gate=gate, hidden_dim=width))
    return found


def gate_pairs(scale: ExperimentScale) -> list[tuple[str, str]]:
    """Neighbours of the published order, and its two ends."""
    return [*itertools.pairwise(TABLE_6), ("linear", "split")]


# ---- table 7

TABLE_7: dict[str, Figures] = {
    "bert-6": printed(67, 4.91, 90.4, 81.5),
    "bert-12": printed(110, 4.26, 91.3, 83.3),
    "bert-24": printed(195, 3.83, 92.1, 85.2),
    "bert-48": printed(365, 3.47, 92.8, 86.3),
    "gmlp-18": printed(59, 5.25, 91.2, 77.7),
    "gmlp-36": printed(102, 4.35, 92.3, 80.9),
    "gmlp-72": printed(187, 3.79, 93.5, 82.8),
    "gmlp-144": printed(357, 3.43, 95.1, 84.6),
}


def family_names(family: str, scale: ExperimentScale) -> list[str]:
    return [name for name in TABLE_7 if name.startswith(family)][: scale.depths]


def depths(scale: ExperimentScale) -> list[TableCandidate]:
    """BERT and gMLP, each at growing depth; named after the published number of layers."""
    found = []
    for name in [*family_names("bert", scale), *family_names("gmlp", scale)]:
        make = bert if name.startswith("bert") else gmlp
        found.append(make(scale, name, int(name.partition("-")[2]), "pretrained", TABLE_7[name]))
    return found


def depth_pairs(scale: ExperimentScale) -> list[tuple[str, str]]:
    """Each depth against the next, and gMLP against the BERT of about its size."""
    berts, gmlps = family_names("bert", scale), family_names("gmlp", scale)
    return [*itertools.pairwise(berts), *itertools.pairwise(gmlps), *zip(berts, gmlps, strict=True)]


# ---- tables 8 and 9

TABLE_8: dict[str, Figures] = {  # the course work's own; `on trained` is on the embeddings of BERT
    "gmlp": printed(None, None, 80.4, 65.1),
    "gmlp on trained": printed(None, None, 88.1, 74.6),
    "split on trained": printed(None, None, 88.6, 75.2),
    "toeplitz on trained": printed(None, None, 89.8, 75.5),
}

TABLE_9: dict[str, Figures] = {  # the first two are the course work's, the others are Liu et al.'s and table 7's
    "gmlp on trained": printed(None, None, 89.8, 75.5),
    "amlp on trained": printed(None, None, 90.7, 77.1),
    "gmlp": printed(59, None, 91.2, 77.7),
    "amlp": printed(None, None, 91.9, 82.4),
    "bert": printed(67, None, 90.4, 81.5),
}


def encoder(scale: ExperimentScale) -> TableCandidate:
    """A BERT to stand on, where no trained one is at hand."""
    return bert(scale, ENCODER, 12, "pretrained", {})


def controls(scale: ExperimentScale) -> list[TableCandidate]:
    """What the encoder's embeddings give with another mixer, with none, and with no network at all."""
    dim = scale.wide(512)
    shape = {"dim": dim, "hidden_dim": 4 * dim, "depth": scale.layers(18)}
    mixed = {**shape, "mixer": "attention", "heads": 4}
    return [
        TableCandidate("attention on trained", "control_identity_text_tiny", mixed, "embeddings"),
        TableCandidate("identity on trained", "control_identity_text_tiny", shape, "embeddings"),
        TableCandidate("linear probe on trained", "control_identity_text_tiny", {**shape, "depth": 0}, "embeddings"),
    ]


def on_trained(scale: ExperimentScale) -> list[TableCandidate]:
    """gMLP from scratch, and three gates on a trained encoder's embeddings; not split means multiplicative here."""
    whole = {"gate": "multiplicative", "gate_weight": "dense"}
    return [
        gmlp(scale, "gmlp", 18, "scratch", TABLE_8["gmlp"], **whole),
        gmlp(scale, "gmlp on trained", 18, "embeddings", TABLE_8["gmlp on trained"], **whole),
        gmlp(scale, "split on trained", 18, "embeddings", TABLE_8["split on trained"], gate_weight="dense"),
        gmlp(scale, "toeplitz on trained", 18, "embeddings", TABLE_8["toeplitz on trained"]),
        *controls(scale),
    ]


def on_trained_pairs(scale: ExperimentScale) -> list[tuple[str, str]]:
    names = list(TABLE_8)
    return [*itertools.pairwise(names), *((control, "toeplitz on trained") for control in CONTROLS)]


def tiny_attention(scale: ExperimentScale) -> list[TableCandidate]:
    """gMLP with and without a tiny attention, on a trained encoder's embeddings and pre-trained themselves; BERT."""
    tiny = {"tiny_attention": max(16, scale.wide(64))}
    return [
        gmlp(scale, "gmlp on trained", 18, "embeddings", TABLE_9["gmlp on trained"]),
        gmlp(scale, "amlp on trained", 18, "embeddings", TABLE_9["amlp on trained"], **tiny),
        gmlp(scale, "gmlp", 18, "pretrained", TABLE_9["gmlp"]),
        gmlp(scale, "amlp", 18, "pretrained", TABLE_9["amlp"], **tiny),
        bert(scale, "bert", 6, "pretrained", TABLE_9["bert"]),
        *controls(scale),
    ]


def tiny_attention_pairs(scale: ExperimentScale) -> list[tuple[str, str]]:
    published = [("gmlp on trained", "amlp on trained"), ("gmlp", "amlp"), ("gmlp", "bert"), ("bert", "amlp")]
    return [*published, *((control, "amlp on trained") for control in CONTROLS)]


ENCODER_NOTE = (
    "The encoder attends already: what a network on its embeddings adds is its lead over the identity mixer and the "
    "linear probe, not its accuracy."
)

EXPERIMENTS: dict[str, Experiment] = {
    "e4": Experiment(
        "e4",
        6,
        "which gate? perplexity of linear, additive, multiplicative and split at equal parameters",
        gates,
        gate_pairs,
        tasks=False,
        time="20m",
        notes=("The published gates are not of equal size: 92 M parameters, the split one 102 M.",),
    ),
    "e5": Experiment(
        "e5",
        7,
        "BERT against gMLP as depth grows: perplexity, SST-2 and MNLI",
        depths,
        depth_pairs,
        tasks=True,
    ),
    "e6": Experiment(
        "e6",
        8,
        "gMLP from scratch and on a trained encoder's embeddings: not split, split, Toeplitz",
        on_trained,
        on_trained_pairs,
        tasks=True,
        encoder=encoder,
        reference={"Liu et al.'s split gMLP": TABLE_7["gmlp-18"], "BERT": TABLE_7["bert-6"]},
        notes=(ENCODER_NOTE,),
    ),
    "e7": Experiment(
        "e7",
        9,
        "is a tiny attention enough? aMLP against gMLP and BERT",
        tiny_attention,
        tiny_attention_pairs,
        tasks=True,
        encoder=encoder,
        notes=(ENCODER_NOTE,),
    ),
}
