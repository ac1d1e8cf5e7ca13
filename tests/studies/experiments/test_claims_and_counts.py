"""E1: counts beside the published ones. E11: claims whose sides differ as they say."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from studies.fabricated import facts
from weft.networks.registry import configured
from weft.studies.experiments import e11_training_issues
from weft.studies.experiments.e1_counts import specifications
from weft.studies.experiments.e11_training_issues import CLAIMS
from weft.studies.results.load import Result
from weft.studies.results.summary import on_most_rows
from weft.studies.statistics.intervals import difference


def test_e1_every_published_count_is_met_and_the_exact_ones_are_the_oracles():
    found = {line.name: line for line in specifications()}
    assert all(line.agrees is not False for line in found.values())
    assert found["mixer_b16_224"].parameters == 59_880_472
    assert found["gmlp_s16_224"].parameters == 19_422_656
    assert (found["mixer_s32_224"].token_hidden, found["mixer_s32_224"].hidden) == (256, 2048)


def test_e11_sides_of_one_name_are_one_configuration():
    sides: dict[str, object] = {}
    for claim in CLAIMS:
        for side in (claim.first, claim.second):
            assert sides.setdefault(side.name, side) == side
            assert configured("mlp", img_size=8, in_chans=1, num_classes=10, **side.network)
    assert len(CLAIMS) >= 11


def test_e11_verdicts_are_confirmed_refuted_or_not_shown():
    rng = np.random.default_rng(0)
    good, bad = rng.random((5, 200)) < 0.9, rng.random((5, 200)) < 0.5
    study = e11_training_issues.plan_claims(Path("x"), facts(), "digits", 5, 10, "")
    up, down = difference(good * 1.0, bad * 1.0), difference(bad * 1.0, good * 1.0)
    claim = CLAIMS[0]
    assert "confirmed" in e11_training_issues.in_words(claim, up, up.p, study)["sentence"]
    assert "refuted" in e11_training_issues.in_words(claim, down, down.p, study)["sentence"]
    assert "not shown" in e11_training_issues.in_words(claim, up, 0.5, study)["sentence"]
    assert "no verdict" in e11_training_issues.in_words(claim, None, 1.0, study)["sentence"]


def test_e11_shows_the_figures_of_a_candidate_that_is_trained_on_few_rows():
    """Its share of the training rows is a tenth by design: that is all it has, and not a point of a learning curve."""
    few = [Result("few rows", seed, 0.1, Path("x")) for seed in range(2)]
    curve = [Result("mlp", 0, share, Path("x")) for share in (0.1, 1.0)]
    assert on_most_rows(few) == few and on_most_rows(curve) == curve[1:]
