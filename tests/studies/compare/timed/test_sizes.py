"""How large networks and images are in a comparison by time, and which settings are tried."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from studies.fabricated import facts
from weft.errors import WeftError
from weft.networks.measure.cost import total_parameters
from weft.studies.compare.candidates import fit_to, make_candidates
from weft.studies.compare.config import ComparisonConfig
from weft.studies.compare.run_configs import BATCH, TIMED_BATCH, largest_batch, run_config
from weft.studies.compare.timed import sizes
from weft.studies.compare.timed.sizes import (
    looking_limit,
    other_settings,
    other_side,
    require_time_to_decode,
    usual_setting,
)
from weft.training.config import OptimisationConfig

PHOTOS = replace(facts("photos"), shape={"img_size": (32, 32), "in_chans": 3})
ASKED = ComparisonConfig(source="photos", time="15m", match="time")
CANDIDATES = make_candidates(PHOTOS, "families", "params", 62_500, True, False)


@pytest.mark.parametrize("candidate", CANDIDATES, ids=lambda candidate: candidate.name)
@pytest.mark.parametrize("count", [2, 3, 6, 10])
def test_every_candidate_is_tried_at_as_many_settings_all_different(candidate, count: int):
    for side in (None, 64):
        found = other_settings(ASKED, candidate, PHOTOS, count, side)
        assert len(found) == count - 1 == len({(s.size, s.lr) for s in found})
        assert usual_setting(ASKED, candidate) not in found


@pytest.mark.parametrize("candidate", CANDIDATES, ids=lambda candidate: candidate.name)
def test_photographs_are_tried_at_another_side_in_networks_of_the_same_size(candidate):
    found = other_settings(ASKED, candidate, PHOTOS, 6, 64)
    larger = [setting for setting in found if setting.candidate.img_size == 64]
    assert larger and all(run_config(ASKED, s.candidate, 0, 1000).transform.img_size == 64 for s in larger)
    assert run_config(ASKED, candidate, 0, 1000).transform.img_size is None
    whole = replace(PHOTOS, shape={"img_size": (64, 64), "in_chans": 3})
    network = fit_to(whole, candidate.model, larger[0].candidate.network)
    assert total_parameters(network) == pytest.approx(candidate.count["params"], rel=0.5)
    if candidate.tokens:
        assert network.grid == fit_to(PHOTOS, candidate.model, candidate.network).grid, "as many patches"


def test_a_given_rate_is_the_only_one():
    asked = replace(ASKED, optimisation=OptimisationConfig(lr=0.01))
    assert {setting.lr for setting in other_settings(asked, CANDIDATES[1], PHOTOS, 6, 64)} == {0.01}


def test_the_other_side_leaves_enough_steps_and_is_no_larger_than_the_photographs():
    assert other_side(500, full=100.0, step=0.025) == 96
    assert other_side(500, full=25.0, step=0.025) == 64
    assert other_side(64, full=100.0, step=0.025) == 64
    assert other_side(500, full=5.0, step=0.025) is None and other_side(None, full=100.0, step=0.05) is None


def test_a_time_of_which_more_than_a_third_would_go_into_decoding_is_refused_with_one_that_would_do():
    def told(took: float) -> Any:
        return SimpleNamespace(first=lambda task, config, allowed, within: (200_000, took))

    require_time_to_decode(ASKED, told(299.0))
    with pytest.raises(WeftError, match=r"200,000 images are decoded, which takes about 20 min here.*give --time 66m"):
        require_time_to_decode(ASKED, told(1200.0))
    require_time_to_decode(replace(ASKED, time="66m"), told(1200.0))
    require_time_to_decode(replace(ASKED, time=None, amount="10s"), told(1200.0))


def test_questions_about_the_data_have_half_of_the_time_and_a_minute_at_least():
    assert looking_limit(ASKED) == 450 and looking_limit(replace(ASKED, time="30s")) == 60
    assert looking_limit(replace(ASKED, time=None, amount="10s")) is None


def test_batches_are_smaller_in_a_given_time_but_for_small_inputs():
    tiny = replace(PHOTOS, shape={"img_size": (8, 8), "in_chans": 1})
    vectors = replace(PHOTOS, modality="vector", shape={"in_features": 4})
    texts = replace(PHOTOS, modality="text", shape={"vocab_size": 9, "max_length": 8})
    found = [largest_batch(each, by_time=True) for each in (PHOTOS, texts, tiny, vectors)]
    assert found == [TIMED_BATCH, TIMED_BATCH, BATCH, BATCH] and largest_batch(PHOTOS, by_time=False) == BATCH


def test_in_little_time_a_resnet_has_one_block_a_stage_and_few_channels_at_full_size():
    plain, quick = (make_candidates(PHOTOS, "families", "params", 62_500, False, False, quick=q) for q in (False, True))
    before, found = (next(each for each in made if each.name == "resnet") for made in (plain, quick))
    assert found.network["layers"] == (1, 1, 1) and found.network["widths"][1] > 3 * found.network["widths"][0]
    assert abs(found.count["params"] / 62_500 - 1) < 0.03 and found.count["macs"] < before.count["macs"]
    assert [each for each in plain if each.name != "resnet"] == [each for each in quick if each.name != "resnet"]


@pytest.mark.parametrize(("speed", "amount"), [(1e12, 250_000), (1.0, 62_500)])
def test_networks_are_made_no_smaller_than_all_of_them_can_be(
    speed: float, amount: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """At 15,625 parameters most networks for texts of 128 tokens cannot be built; however slow the machine is."""
    texts = replace(PHOTOS, modality="text", shape={"vocab_size": 8192, "max_length": 128})
    monkeypatch.setattr(sizes, "speed_of", lambda *arguments: speed)
    pool: Any = SimpleNamespace(workers=[None, None])
    assert sizes.fitting_amount(ASKED, texts, pool, tmp_path) == amount
    made = make_candidates(texts, "families", "params", amount, True, False)
    assert {"bert", "mixer", "gmlp", "amlp", "control_random"} <= {candidate.name for candidate in made}


def test_inputs_so_wide_that_no_network_has_the_usual_size_get_larger_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(sizes, "speed_of", lambda *arguments: 1.0)  # so slow that smaller ones are looked for
    pool: Any = SimpleNamespace(workers=[None, None])
    for columns, least in ((20_000, 20_000), (300_000, 300_000)):
        vectors = replace(PHOTOS, modality="vector", shape={"in_features": columns})
        (tmp_path / str(columns)).mkdir()
        amount = sizes.fitting_amount(ASKED, vectors, pool, tmp_path / str(columns))
        assert amount is not None and amount > least
        assert make_candidates(vectors, "families", "params", amount, True, False)
