"""What would settle it: is the number of seeds, or of rows, that is asked for the one that does?"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from weft.studies.statistics.intervals import Part, difference
from weft.studies.statistics.settling import MARGIN, POWER, Pace, enough_rows, further_seeds, power, settling
from weft.studies.statistics.verdicts import JudgedCandidate, answer

GAP = 0.03


def study(rng: np.random.Generator, seeds: int, rows: int, spread: float, gap: float = GAP) -> list[np.ndarray]:
    """Two candidates whose answers are numbers: an example's part, a seed's, and a rest."""
    return [
        shift + 0.5 * rng.normal(0, 0.3, rows) + rng.normal(0, spread, (seeds, 1)) + rng.normal(0, 0.2, (seeds, rows))
        for shift in (gap, 0.0)
    ]


def typical(seeds: int, rows: int, spread: float):
    """An estimate with the parts that it has on average, and the true gap for its mean."""
    found = difference(*study(np.random.default_rng(0), seeds, rows, spread))
    own = (spread**2 + 0.04 / rows) / seeds
    parts = (Part(2 * 0.15**2 / rows, rows - 1, count=rows), *(Part(own, seeds - 1, own, seeds) for _ in range(2)))
    return replace(found, mean=GAP, parts=parts)


def share_shown(seeds: int, rows: int, spread: float, studies: int = 300) -> float:
    rng = np.random.default_rng(1)
    return float(np.mean([difference(*study(rng, seeds, rows, spread)).p < 0.05 for _ in range(studies)]))


@pytest.mark.parametrize("spread", [0.02, 0.04])
def test_so_many_further_seeds_show_the_difference_in_about_80_percent_of_studies(spread: float):
    more = further_seeds(typical(3, 1000, spread), 0.05)
    assert more is not None and more > 1
    assert 0.7 < share_shown(3 + more, 1000, spread) < 0.92
    assert share_shown(3, 1000, spread) < 0.7


def test_where_test_rows_are_the_limit_so_many_rows_show_it():
    few = typical(5, 60, 0.005)
    assert further_seeds(few, 0.05) is None
    found = enough_rows(few, 0.05)
    assert found is not None and found[0] > 60
    rows, _ = found
    assert 0.7 < share_shown(5, rows, 0.005) < 0.95
    assert share_shown(200, 60, 0.005, studies=100) < 0.7


def test_power_grows_with_seeds_and_rows_and_falls_with_the_level():
    found = typical(3, 300, 0.02)
    assert power(found, 0.05) < power(found, 0.05, more=4) < power(found, 0.05, more=4, rows=3000)
    assert power(found, 0.01, more=4) < power(found, 0.05, more=4)


def judged(name: str, group, scores: np.ndarray, **more) -> JudgedCandidate:
    return JudgedCandidate(name, group, scores, float(scores.mean()), **more)


def test_every_open_question_gets_a_sentence_with_its_minutes():
    first, second = study(np.random.default_rng(2), 3, 1000, 0.03)
    candidates = [judged("vit", "attention", first), judged("mlp", "mlp", second)]
    (needed,) = settling(answer(candidates, "value", "none"), candidates, Pace({"vit": 90.0, "mlp": 30.0}))
    assert needed.seeds is not None and needed.minutes == pytest.approx(2 * needed.seeds)
    assert needed.sentence.startswith(f"attention: {needed.seeds} further seeds would probably decide it (about ")
    assert needed.sentence.endswith("min)")


def test_minutes_are_those_of_all_candidates_on_all_workers_and_the_command_is_named():
    """The command adds a seed of every candidate, not of the two in question alone."""
    first, second = study(np.random.default_rng(2), 3, 1000, 0.03)
    candidates = [judged("vit", "attention", first), judged("mlp", "mlp", second), judged("rnn", "recurrent", second)]
    candidates.append(judged("hog", "classical", second[:1] - 1, fixed=True))
    seconds = {"vit": 90.0, "mlp": 30.0, "rnn": 120.0, "hog": 999.0}
    verdicts = answer(candidates, "value", "none")
    needed = settling(verdicts, candidates, Pace(seconds, workers=2, share=0.8, spent=600.0, asked=True))[0]
    assert needed.seeds is not None and needed.minutes == pytest.approx(needed.seeds * 240 / 60 / 2 / 0.8)
    assert needed.sentence.endswith(f": --seeds {3 + needed.seeds} --time {math.ceil(10 + MARGIN * needed.minutes)}m")
    curved = settling(verdicts, candidates, Pace(seconds, curve=3, workers=2, share=0.8))[0]
    assert curved.minutes == pytest.approx(3 * needed.minutes), "a learning curve has runs of its own for every seed"
    needed = settling(verdicts, candidates, Pace(seconds, asked=True))[0]
    assert needed.sentence.endswith(f": --seeds {3 + needed.seeds}")


def test_a_question_of_unequal_training_makes_the_others_no_easier_than_holm_does():
    first, second = study(np.random.default_rng(2), 3, 1000, 0.03)
    pair = [judged("vit", "attention", first, trained=10.0), judged("mlp", "mlp", second, trained=10.0)]
    longer = judged("cnn", "convolution", second.copy(), trained=99.0)
    (alone,) = settling(answer(pair, "value", "none"), pair)
    (beside,) = settling(answer([*pair, longer], "value", "none"), [*pair, longer])
    assert alone.seeds is not None and beside.seeds is not None and beside.seeds > alone.seeds


def test_what_is_shown_or_trained_unequally_needs_no_seeds():
    first, second = study(np.random.default_rng(0), 5, 1000, 0.01, gap=0.5)
    assert (
        settling(answer(c := [judged("a", "attention", first), judged("b", "mlp", second)], "value", "none"), c) == []
    )
    first, second = study(np.random.default_rng(0), 5, 1000, 0.01, gap=0.0)
    c = [judged("a", "attention", first, trained=10.0), judged("b", "mlp", second, trained=99.0)]
    assert settling(answer(c, "value", "none"), c) == []


def test_one_seed_asks_for_five():
    first, second = study(np.random.default_rng(0), 1, 1000, 0.01)
    c = [judged("a", "attention", first), judged("b", "mlp", second)]
    (needed,) = settling(answer(c, "value", "none"), c)
    assert needed.seeds == 4 and "one seed tells nothing of others" in needed.sentence


@pytest.mark.parametrize(
    ("known", "flags"),
    [
        (Pace(asked=True, test_rows=5000), ": --test-rows {rows}"),
        (Pace(asked=True, test_rows=61), ", and the source has 61: --test-rows 61"),
        (
            Pace(asked=True, test_rows=5000, spent=610.0),
            ": --test-rows {rows} --time 11m, or more, trains everything anew",
        ),
        (Pace(asked=True, test_rows=60), ""),
        (Pace(test_rows=5000), ""),
    ],
)
def test_where_the_source_has_more_test_rows_than_were_judged_the_flag_for_them_is_named(known: Pace, flags: str):
    first, second = study(np.random.default_rng(0), 5, 60, 0.005, gap=0.05)
    candidates = [judged("vit", "attention", first), judged("mlp", "mlp", second)]
    (needed,) = settling(answer(candidates, "value", "none"), candidates, known)
    assert needed.rows is not None and needed.rows > 61
    assert "as 60 test rows are too few; about " in needed.sentence
    assert needed.sentence.endswith(" would" + flags.format(rows=needed.rows))


def test_no_difference_at_all_is_settled_by_nothing():
    same = np.ones((3, 50))
    c = [judged("a", "attention", same), judged("b", "mlp", same.copy())]
    (needed,) = settling(answer(c, "points", "none"), c)
    assert (needed.seeds, needed.rows, needed.minutes) == (None, None, None) and POWER == 0.8


def test_rows_are_told_with_the_seeds_that_they_need_beside_them():
    """Seeds that scatter by as much as the gap: no number of rows helps three of them."""
    scattered = typical(3, 300, 0.04)
    assert further_seeds(replace(scattered, mean=0.02), 0.05) is None
    found = enough_rows(replace(scattered, mean=0.02), 0.05)
    if found is not None:
        rows, more = found
        assert power(scattered, 0.05, more, rows) >= POWER and more > 2
    hopeless = replace(typical(3, 300, 0.2), mean=0.01)
    assert enough_rows(hopeless, 0.05) is None, "two hundred further seeds are no remedy"
