"""E4, E5, E6 and E7 as tables: shapes and counts at every scale, published figures, equal parameters."""

from __future__ import annotations

import pytest

from weft.errors import WeftError
from weft.networks.measure.cost import total_parameters
from weft.studies.experiments.registry import find_scale
from weft.studies.experiments.text_tables.design import equal_width, pretraining_parameters
from weft.studies.experiments.text_tables.forecast import needs, plan_lines
from weft.studies.experiments.text_tables.scales import SCALES
from weft.studies.experiments.text_tables.tables import EXPERIMENTS, TABLE_6, TABLE_7, gates, gmlp

PAPER = SCALES["paper"]


def counts(name: str, scale: str) -> dict[str, int]:
    made = EXPERIMENTS[name].candidates(SCALES[scale])
    return {e.name: total_parameters(e.config(SCALES[scale])) for e in made if e.deep}


def test_e4_has_the_published_counts_at_paper_scale():
    assert counts("e4", "paper") == {
        "linear": 92_172_764, "additive": 92_172_764, "multiplicative": 92_172_764, "split": 101_609_948
    }  # fmt: skip


@pytest.mark.parametrize("scale", ["smoke", "cpu"])
def test_e4_gates_have_equal_parameters_within_three_percent(scale: str):
    found = counts("e4", scale)
    assert list(found) == list(TABLE_6)
    assert max(found.values()) <= 1.03 * min(found.values())
    without_words = {name: count - SCALES[scale].vocabulary * SCALES[scale].wide(512) for name, count in found.items()}
    assert max(without_words.values()) <= 1.03 * min(without_words.values())  # the blocks alone are equal too


def test_e5_has_the_published_counts_at_paper_scale():
    found = counts("e5", "paper")
    assert [found[f"gmlp-{depth}"] for depth in (18, 36, 72, 144)] == [
        58_997_486, 101_609_948, 186_834_872, 357_284_720
    ]  # fmt: skip
    for name, figures in TABLE_7.items():  # BERT's are published with a vocabulary of 30,522 words and 512 positions
        assert abs(found[name] / 1e6 - figures["parameters"]) < 1.0


@pytest.mark.parametrize("name", ["e4", "e5", "e6", "e7"])
@pytest.mark.parametrize("scale", ["smoke", "cpu", "paper"])
def test_e4_e5_e6_e7_rows_can_be_built_and_their_pairs_are_rows(name: str, scale: str):
    experiment = EXPERIMENTS[name]
    rows = {candidate.name: candidate for candidate in experiment.candidates(SCALES[scale])}
    assert all(first in rows and second in rows for first, second in experiment.pairs(SCALES[scale]))
    for candidate in rows.values():
        if candidate.deep:
            assert pretraining_parameters(candidate.config(SCALES[scale])) > 0


def test_e6_rows_differ_in_gate_matrix_and_start():
    rows = {candidate.name: candidate for candidate in EXPERIMENTS["e6"].candidates(SCALES["cpu"])}
    assert rows["gmlp"].network == rows["gmlp on trained"].network
    assert (rows["gmlp"].start, rows["gmlp on trained"].start) == ("scratch", "embeddings")
    made = {name: candidate.config(SCALES["cpu"]) for name, candidate in rows.items() if candidate.deep}
    form = {name: (config.gate, config.gate_weight) for name, config in made.items()}
    assert form["gmlp on trained"] == ("multiplicative", "dense")
    assert form["split on trained"] == ("split", "dense")
    assert form["toeplitz on trained"] == ("split", "toeplitz")
    assert {"identity on trained", "linear probe on trained", "attention on trained"} <= set(rows)


def test_e7_rows_differ_in_the_tiny_attention_alone():
    rows = {candidate.name: candidate for candidate in EXPERIMENTS["e7"].candidates(PAPER)}
    difference = dict(rows["amlp"].network.items() - rows["gmlp"].network.items())
    assert difference == {"tiny_attention": 64}


def test_e4_at_paper_scale_says_its_plan_and_what_it_needs_without_building_anything():
    lines = plan_lines(EXPERIMENTS["e4"], PAPER)
    assert "split: 36 layers, 101,905,628 parameters" in lines[-1] and "125,000 steps of 2048 × 128" in lines[-1]
    assert "hours of an A100 for 5 seeds" in needs(EXPERIMENTS["e4"], PAPER, 5)


def test_a_width_that_cannot_be_equal_is_refused():
    split = gmlp(SCALES["smoke"], "split", 36, "pretrained").config(SCALES["smoke"])
    with pytest.raises(WeftError, match="1,000 parameters"):
        equal_width(split, 1000)


def test_an_unknown_scale_is_answered_with_the_known_ones():
    with pytest.raises(WeftError, match=r"'cpus'.* cpu"):
        find_scale(SCALES, "cpus")


def test_gates_differ_in_nothing_but_gate_and_width():
    first, *others = gates(SCALES["cpu"])
    for other in others:
        changed = {key for key in first.network if first.network[key] != other.network[key]}
        assert changed <= {"gate", "hidden_dim"}
