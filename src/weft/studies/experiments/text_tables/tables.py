"""Who stands in tables 6 to 9, at any scale: the published shapes with their widths and depths shrunk.

gMLP has 512 channels expanded to 3072, BERT 768 channels; gMLP has Toeplitz gates and no positions, with which alone
the published counts are met.
"""

from __future__ import annotations

import itertools
from typing import Any

from weft.networks.cost import total_parameters
from weft.studies.experiments.text_tables.design import ENCODER, Entrant, Experiment, Start, equal_width
from weft.studies.experiments.text_tables.published import TABLE_6, TABLE_7, TABLE_8, TABLE_9, Figures
from weft.studies.experiments.text_tables.scales import Scale

UNSPLIT = 2048  # expanded width of table 6's gates that do not split, as published
CONTROLS = ("attention on trained", "identity on trained", "linear probe on trained")


def gmlp(
    scale: Scale, name: str, layers: int, start: Start, published: Figures | None = None, **changes: Any
) -> Entrant:
    """A text gMLP of so many published layers."""
    shape = {"dim": scale.wide(512), "hidden_dim": scale.wide(3072), "depth": scale.layers(layers)}
    return Entrant(name, "gmlp_text_l36", {**shape, **changes}, start, published or {})


def bert(scale: Scale, name: str, layers: int, start: Start, published: Figures) -> Entrant:
    """A BERT of so many published layers, 768 channels wide before the scale; no dropout, as gMLP has none."""
    dim = scale.wide(768)
    heads = 12 if scale.name == "paper" else 3
    shape = {"dim": dim, "hidden_dim": 4 * dim, "heads": heads, "depth": scale.layers(layers), "drop_rate": 0.0}
    return Entrant(name, "bert_base", shape, start, published)


# ---- table 6


def gates(scale: Scale) -> list[Entrant]:
    """The four gates: the split one as published, the others with the width that gives them its parameters."""
    split = gmlp(scale, "split", 36, "pretrained", TABLE_6["split"]).config(scale)
    found = []
    for gate, figures in TABLE_6.items():
        entrant = gmlp(scale, gate, 36, "pretrained", figures, gate=gate)
        width = split.hidden_dim
        if gate != "split":
            equal = equal_width(entrant.config(scale), total_parameters(split))
            width = UNSPLIT if scale.name == "paper" else equal.hidden_dim
        found.append(gmlp(scale, gate, 36, "pretrained", figures, gate=gate, hidden_dim=width))
    return found


def gate_pairs(scale: Scale) -> list[tuple[str, str]]:
    """Neighbours of the published order, and its two ends."""
    return [*itertools.pairwise(TABLE_6), ("linear", "split")]


# ---- table 7


def rows_of(family: str, scale: Scale) -> list[str]:
    return [name for name in TABLE_7 if name.startswith(family)][: scale.depths]


def depths(scale: Scale) -> list[Entrant]:
    """BERT and gMLP, each at growing depth; rows are named after the published number of layers."""
    found = []
    for name in [*rows_of("bert", scale), *rows_of("gmlp", scale)]:
        make = bert if name.startswith("bert") else gmlp
        found.append(make(scale, name, int(name.partition("-")[2]), "pretrained", TABLE_7[name]))
    return found


def depth_pairs(scale: Scale) -> list[tuple[str, str]]:
    """Each depth against the next, and gMLP against the BERT of about its size."""
    berts, gmlps = rows_of("bert", scale), rows_of("gmlp", scale)
    return [*itertools.pairwise(berts), *itertools.pairwise(gmlps), *zip(berts, gmlps, strict=True)]


# ---- tables 8 and 9


def encoder(scale: Scale) -> Entrant:
    """A BERT to stand on, where no trained one is at hand."""
    return bert(scale, ENCODER, 12, "pretrained", {})


def controls(scale: Scale) -> list[Entrant]:
    """What the encoder's embeddings give with another mixer, with none, and with no network at all."""
    dim = scale.wide(512)
    shape = {"dim": dim, "hidden_dim": 4 * dim, "depth": scale.layers(18)}
    mixed = {**shape, "mixer": "attention", "heads": 4}
    return [
        Entrant("attention on trained", "control_identity_text_tiny", mixed, "embeddings"),
        Entrant("identity on trained", "control_identity_text_tiny", shape, "embeddings"),
        Entrant("linear probe on trained", "control_identity_text_tiny", {**shape, "depth": 0}, "embeddings"),
    ]


def on_trained(scale: Scale) -> list[Entrant]:
    """gMLP from scratch, and three gates on a trained encoder's embeddings; not split means multiplicative here."""
    whole = {"gate": "multiplicative", "gate_weight": "dense"}
    return [
        gmlp(scale, "gmlp", 18, "scratch", TABLE_8["gmlp"], **whole),
        gmlp(scale, "gmlp on trained", 18, "embeddings", TABLE_8["gmlp on trained"], **whole),
        gmlp(scale, "split on trained", 18, "embeddings", TABLE_8["split on trained"], gate_weight="dense"),
        gmlp(scale, "toeplitz on trained", 18, "embeddings", TABLE_8["toeplitz on trained"]),
        *controls(scale),
    ]


def on_trained_pairs(scale: Scale) -> list[tuple[str, str]]:
    names = list(TABLE_8)
    return [*itertools.pairwise(names), *((control, "toeplitz on trained") for control in CONTROLS)]


def tiny_attention(scale: Scale) -> list[Entrant]:
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


def tiny_attention_pairs(scale: Scale) -> list[tuple[str, str]]:
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
