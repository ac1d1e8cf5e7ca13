"""Verdicts: what is claimed, what is called preliminary, and what is not claimed at all."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from weft.studies.statistics.rows import Rows
from weft.studies.statistics.verdicts import JudgedCandidate, answer, apart, questions, recommend, shown_worse


def candidate(
    name: str, group, share: float, seeds: int = 5, validation: float | None = None, **more
) -> JudgedCandidate:
    """A candidate that is right on the first `share` of 1,000 examples; seeds differ by one example."""
    scores = np.zeros((seeds, 1000))
    for seed in range(seeds):
        scores[seed, : int(share * 1000) + seed % 2] = 1
    return JudgedCandidate(name, group, scores, share if validation is None else validation, **more)


def test_a_clear_difference_is_claimed_with_its_interval():
    (verdict,) = answer([candidate("vit", "attention", 0.95), candidate("mixer", "mlp", 0.90)], "points", "time")
    assert verdict.shown and not verdict.preliminary
    assert verdict.sentence.startswith("attention: +5.0 points over the best MLP at equal training time (vit against")
    assert "corrected 95 % interval 3." in verdict.sentence


def test_groups_that_one_of_two_candidates_notes_hold_for_both():
    groups = Rows(groups=np.arange(1000) // 100)
    knows, other = candidate("vit", "attention", 0.95, rows=groups), candidate("mixer", "mlp", 0.90)
    widths = [
        apart(first, second).high - apart(first, second).low for first, second in ((knows, other), (other, knows))
    ]
    assert widths[0] == pytest.approx(widths[1]) and widths[0] > 2 * (
        apart(other, other).high - apart(other, other).low
    )


def test_three_seeds_are_preliminary():
    (verdict,) = answer([candidate("vit", "attention", 0.95, 3), candidate("mixer", "mlp", 0.90, 3)], "points", "none")
    assert verdict.shown and verdict.preliminary
    assert "preliminary: 3 seeds, 5 are needed" in verdict.sentence


@pytest.mark.parametrize(("repetitions", "preliminary"), [(1, True), (2, False)])
def test_a_single_repetition_of_folds_is_preliminary(repetitions: int, preliminary: bool):
    pair = [
        candidate("vit", "attention", 0.95, repetitions, rows=Rows(folds=5)),
        candidate("m", "mlp", 0.80, repetitions, rows=Rows(folds=5)),
    ]
    (verdict,) = answer(pair, "points", "none")
    assert verdict.shown and verdict.preliminary == preliminary
    assert ("1 repetition of a cross-validation, 2 are needed" in verdict.sentence) == preliminary


def test_one_seed_speaks_of_two_networks_alone():
    (verdict,) = answer([candidate("vit", "attention", 0.95, 1), candidate("mixer", "mlp", 0.80, 1)], "points", "none")
    assert verdict.adjusted < 0.05 and verdict.alone
    assert not verdict.shown and not verdict.preliminary
    assert "for these two networks alone: +15.0 points" in verdict.sentence
    assert "one seed does not tell how another training would end" in verdict.sentence


def test_one_seed_each_is_a_false_claim_about_families_in_no_study():
    """Seeds that spread by ten points: two trainings of one network differ, and no verdict may say that families do."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        first, second = ((rng.random((1, 500)) < rng.normal(0.8, 0.1)).astype(float) for _ in range(2))
        pair = [JudgedCandidate("vit", "attention", first, 0.8), JudgedCandidate("mlp", "mlp", second, 0.8)]
        assert not any(verdict.shown for verdict in answer(pair, "points", "none"))
        assert "these networks" in recommend(pair)


def test_a_baseline_that_no_seed_changes_may_be_beaten_with_seeds_of_the_other_alone():
    candidates = [candidate("mlp", "mlp", 0.95, 3), candidate("HOG", "classical", 0.8, 1, fixed=True)]
    (verdict,) = answer(candidates, "points", "none")
    assert verdict.shown and not verdict.alone


def test_one_repetition_of_five_folds_is_five_networks():
    pair = [
        candidate("vit", "attention", 0.95, 1, rows=Rows(folds=5)),
        candidate("mlp", "mlp", 0.80, 1, rows=Rows(folds=5)),
    ]
    (verdict,) = answer(pair, "points", "none")
    assert verdict.shown and not verdict.alone


def test_what_was_trained_before_is_asked_about_once_and_kept_out_of_the_rest():
    candidates = [
        candidate("vit_before", "attention", 0.99, pretrained=True, tokens=True),
        candidate("vit", "attention", 0.9, tokens=True),
        candidate("mlp", "mlp", 0.8),
        candidate("HOG", "classical", 0.7, 1, fixed=True),
    ]
    asked = {question: (first.name, second.name) for question, _, first, second in questions(candidates)}
    assert asked == {
        "pre-training": ("vit_before", "vit"),
        "attention": ("vit", "mlp"),
        "a network": ("vit", "HOG"),
    }
    verdict = answer(candidates, "points", "params")[0]
    assert verdict.sentence.startswith(
        "pre-training: +9.0 points over the best network from scratch (vit_before against"
    )
    assert recommend(candidates).startswith("Use vit_before")


def test_where_all_were_trained_before_they_are_asked_about_as_usual():
    candidates = [candidate("vit", "attention", 0.9, pretrained=True), candidate("mlp", "mlp", 0.8, pretrained=True)]
    assert [question for question, *_ in questions(candidates)] == ["attention"]


def test_a_difference_within_noise_is_no_difference_shown():
    (verdict,) = answer([candidate("vit", "attention", 0.951), candidate("mixer", "mlp", 0.95)], "points", "params")
    assert not verdict.shown
    assert verdict.sentence.startswith("attention: no difference shown: +0.1 points over the best MLP at equal para")


def test_who_stands_for_a_group_is_chosen_by_selection_not_by_the_reported_score():
    lucky = candidate("lucky", "mlp", 0.99, validation=0.80)
    chosen = candidate("chosen", "mlp", 0.90, validation=0.95)
    ((_, _, _, second),) = questions([candidate("vit", "attention", 0.95), lucky, chosen])
    assert second.name == "chosen"


def test_every_question_that_the_candidates_can_answer_is_asked_once():
    candidates = [
        candidate("vit", "attention", 0.9, tokens=True),
        candidate("resnet", "convolution", 0.9),
        candidate("mlp", "mlp", 0.9),
        candidate("nothing", "control", 0.8, tokens=True, mixer="identity"),
        candidate("control_random", "control", 0.8, tokens=True, mixer="random"),
        candidate("HOG", "classical", 0.7, 1, fixed=True),
    ]
    asked = [question for question, *_ in questions(candidates)]
    assert asked == ["attention", "convolution", "token mixing", "learned mixing", "a network"]


def test_a_baseline_without_seeds_does_not_make_a_claim_preliminary():
    candidates = [candidate("mlp", "mlp", 0.95), candidate("HOG", "classical", 0.8, 1, fixed=True)]
    (verdict,) = answer(candidates, "points", "none")
    assert verdict.shown and not verdict.preliminary


@pytest.mark.parametrize("shares, said", [((0.95, 0.80), "shown to be better"), ((0.951, 0.95), "Use small")])
def test_the_recommendation_is_the_cheapest_that_is_not_shown_to_be_worse(shares, said: str):
    candidates = [candidate("large", "attention", shares[0], cost=9.0), candidate("small", "mlp", shares[1], cost=1.0)]
    assert said in recommend(candidates)


def test_of_equal_costs_the_better_one_is_advised():
    """A probe and the fine-tuned network take the same in use, but for what measuring adds."""
    probe, tuned = (
        candidate("probe", "convolution", 0.95, cost=1.0),
        candidate("tuned", "convolution", 0.951, cost=1.04),
    )
    said = "Use tuned: the best of the cheapest of those that none leads by more than a standard error (probe)"
    for order in ([probe, tuned], [tuned, probe]):
        assert recommend(order).startswith(said)


def test_controls_are_compared_and_not_advised():
    control = candidate("control_random", "control", 0.952, tokens=True, mixer="random", cost=0.1)
    mixer = candidate("mixer", "mlp", 0.95, tokens=True, cost=1.0)
    assert recommend([control, mixer, candidate("vit", "attention", 0.6)]).startswith("Use mixer")
    assert recommend([control, candidate("nothing", "control", 0.9, mixer="identity")]).startswith("Use control_random")


def test_nothing_is_advised_that_is_shown_to_be_worse_than_another():
    """The validation split may put first what the test split shows to be worse; ties go to no one there."""
    candidates = [
        candidate("mixer", "mlp", 0.69, validation=0.9, cost=1.0),
        candidate("mlp", "mlp", 0.70, validation=0.8, cost=2.0),
        candidate("resnet", "convolution", 0.95, validation=0.9, cost=3.0),
    ]
    assert recommend(candidates).startswith("Use resnet:")


def test_a_candidate_far_behind_is_not_advised_because_its_seeds_scatter():
    """Three seeds that are 8 points apart show nothing against 21 pairs, and 25 points below the best is no advice."""
    rng = np.random.default_rng(0)
    scattered = np.stack([(rng.random(1000) < share).astype(float) for share in (0.63, 0.71, 0.79)])
    others = [candidate(f"other{number}", "hybrid", 0.90, 3, cost=5.0) for number in range(5)]
    steady = candidate("rcnn", "convolution", 0.966, 3, cost=2.0)
    candidates = [steady, JudgedCandidate("mixer", "mlp", scattered, 0.7, cost=1.0), *others]
    assert "mixer" not in shown_worse(candidates)
    said = recommend(candidates)
    assert said.startswith("Use rcnn: the only one that none leads by more than a standard error; ") and "mixer" in said


def test_advice_does_not_contradict_a_verdict_that_is_corrected_over_fewer_questions():
    """Two questions, 21 pairs: what the verdict shows to be worse is not advised as the cheapest of equals."""
    shares = {"one": 0.958, "two": 0.957, "three": 0.957, "four": 0.956, "five": 0.956}
    candidates = [
        candidate("resnet", "convolution", 0.961, cost=9.0, validation=0.99),
        candidate("mlp", "mlp", 0.953, cost=1.0, validation=0.98),
        *(
            candidate(name, "hybrid" if name != "vit" else "attention", share, cost=5.0)
            for name, share in shares.items()
        ),
    ]
    verdicts = answer(candidates, "points", "none")
    (convolution,) = (verdict for verdict in verdicts if verdict.question == "convolution")
    assert convolution.shown and convolution.second == "mlp"
    assert "mlp" not in shown_worse(candidates), "all pairs show nothing of it"
    assert not recommend(candidates, verdicts).startswith("Use mlp")
    assert "mlp" not in recommend(candidates, verdicts).split("Use ")[1].split(".")[0]


def test_the_only_one_that_learnt_is_advised_and_nothing_else_is():
    candidates = [
        candidate("vit", "attention", 0.9),
        candidate("mlp", "mlp", 0.5),
        candidate("cnn", "convolution", 0.5),
    ]
    said = "Use vit: the only candidate that is better than a guess in every run."
    assert recommend(candidates, guessing={"mlp", "cnn"}) == said
    assert recommend(candidates, guessing={"vit", "mlp", "cnn"}).startswith("No recommendation: no candidate")
    assert recommend(candidates[:1]) == recommend([]) == ""


def test_nothing_is_advised_that_is_worse_than_one_with_a_run_that_learnt_nothing():
    candidates = [candidate("vit", "attention", 0.9), candidate("mlp", "mlp", 0.5)]
    assert recommend(candidates, guessing={"vit"}) == (
        "No recommendation: each candidate that may be advised is shown to be worse than another. "
        "Ahead of the best of them, and never advised: vit (no better than a guess in some run)."
    )


def test_where_a_control_beats_all_that_may_be_advised_it_is_named():
    control = candidate("control_random", "control", 0.9, tokens=True, mixer="random")
    said = recommend([control, candidate("mixer", "mlp", 0.8, tokens=True), candidate("vit", "attention", 0.7)])
    assert said == (
        "No recommendation: each candidate that may be advised is shown to be worse than another. "
        "Ahead of the best of them, and never advised: control_random (a control)."
    )


def test_the_classical_baseline_is_not_said_to_be_of_equal_size():
    candidates = [candidate("mlp", "mlp", 0.95), candidate("HOG", "classical", 0.8, 1, fixed=True)]
    (verdict,) = answer(candidates, "points", "params")
    assert "at equal" not in verdict.sentence


def scattered(name: str, group, shares: tuple[float, ...], **more) -> JudgedCandidate:
    """A candidate whose seeds are right on different shares of 1,000 examples."""
    rng = np.random.default_rng(len(name))
    scores = np.stack([(rng.random(1000) < share).astype(float) for share in shares])
    return JudgedCandidate(name, group, scores, float(np.mean(shares)), **more)


def test_a_control_that_is_ahead_of_what_is_advised_is_named():
    candidates = [
        scattered("control_random", "control", (0.83, 0.86, 0.89), tokens=True, mixer="random"),
        scattered("mixer", "mlp", (0.79, 0.82, 0.85), tokens=True),
        scattered("vit", "attention", (0.70, 0.77, 0.84)),
    ]
    said = recommend(candidates)
    assert said.startswith("Use mixer: of the candidates that are no control, the only one that none leads by more")
    assert " Ahead of it, and never advised: control_random (a control)." in said
    said = recommend([*candidates[1:], scattered("resnet", "convolution", (0.83, 0.86, 0.89))], guessing={"resnet"})
    assert "of the candidates that are better than a guess in every run, the only one" in said
    assert "resnet (no better than a guess in some run)" in said


def test_the_only_one_beside_controls_is_not_said_to_be_the_only_one_that_learnt():
    control = candidate("control_random", "control", 0.80, tokens=True, mixer="random")
    said = recommend([control, candidate("mixer", "mlp", 0.80, tokens=True)])
    assert said == "Use mixer: the only candidate that is no control."
    guess = recommend([control, candidate("mixer", "mlp", 0.5, tokens=True)], guessing={"mixer"})
    assert guess.startswith("No recommendation: no candidate but a control")


def test_a_single_seed_shows_nobody_to_be_worse_where_others_have_several():
    candidates = [
        candidate("vit", "attention", 0.95, seeds=1),
        candidate("resnet", "convolution", 0.90),
        candidate("mlp", "mlp", 0.90),
    ]
    verdicts = answer(candidates, "points", "time")
    assert shown_worse(candidates) == set()
    said = recommend(candidates, verdicts)
    assert said.startswith(
        "Use vit: the best of the cheapest of those that none of several seeds leads by more than a standard error (mlp"
    )
    assert said.endswith(" One seed of vit: another training of it may end elsewhere.")
    cheap = [replace(each, cost=1.0 if each.name == "mlp" else 5.0) for each in candidates]
    assert recommend(cheap, verdicts).startswith("Use mlp: the cheapest"), "a single seed may be a lucky one"
    alone = [candidate("vit", "attention", 0.95, seeds=1), candidate("mlp", "mlp", 0.6, seeds=1)]
    assert shown_worse(alone) == {"mlp"} and recommend(alone).endswith("not about how another training would end.")


def test_a_single_seed_that_is_far_ahead_is_named_and_not_among_the_equals():
    candidates = [
        scattered("mlp", "mlp", (0.68, 0.72), cost=1.0),
        scattered("vit", "attention", (0.68, 0.72), cost=5.0),
        scattered("resnet", "convolution", (0.69, 0.71), cost=5.0),
        candidate("effnet+finetune", "convolution", 0.90, seeds=1, cost=9.0, pretrained=True),
    ]
    said = recommend(candidates, answer(candidates, "points", "time"))
    assert said.startswith(
        "Use mlp: the cheapest of those that none of several seeds leads by more than a standard error (resnet, vit). "
        "Ahead of it, with one seed: effnet+finetune. "
    )
    said = recommend([candidates[0], candidates[-1]])
    assert said.startswith("Use mlp: the cheapest of those that none of several seeds leads by more than a standard er")
    assert "ror. Ahead of it, with one seed: effnet+finetune." in said


def test_a_single_seed_far_behind_is_not_advised_where_a_control_beats_the_others():
    candidates = [
        candidate("control_random", "control", 0.9, tokens=True, mixer="random"),
        candidate("mixer", "mlp", 0.8, tokens=True, cost=5.0),
        candidate("lucky", "mlp", 0.5, seeds=1, cost=1.0),
    ]
    assert shown_worse(candidates) == {"mixer", "lucky"}
    assert recommend(candidates, answer(candidates, "points", "time")).startswith("No recommendation")


def test_a_control_with_one_seed_that_is_ahead_is_named_with_it():
    control = candidate("control_random", "control", 0.95, seeds=1, tokens=True, mixer="random")
    said = recommend([control, candidate("mixer", "mlp", 0.8, tokens=True), candidate("vit", "attention", 0.7)])
    assert said.startswith("Use mixer: of the candidates that are no control, the only one that none is shown to be be")
    assert "Ahead of it, and never advised: control_random (a control, with one seed)." in said


def uneven(rng: np.random.Generator) -> list[JudgedCandidate]:
    """A study whose candidates have one seed or several, and cost what comes."""
    made = []
    for number, kind in enumerate(["mlp", "mlp", "attention", "convolution", "hybrid", "control"]):
        shares = rng.normal(rng.uniform(0.6, 0.9), 0.02, (rng.choice([1, 2, 5]), 1))
        scores = (rng.random((len(shares), 200)) < shares).astype(float)
        cost, mixer = float(rng.uniform(1, 9)), "random" if kind == "control" else ""
        made.append(JudgedCandidate(f"c{number}", kind, scores, float(shares.mean()), cost, kind != "mlp", mixer=mixer))
    return made


def test_advice_with_uneven_seeds_never_contradicts_what_the_same_page_shows():
    """What a verdict shows to be worse is not advised, unless what is better has a single seed, and then it is named;
    none that is called an equal of the advised one leads it."""
    rng, named = np.random.default_rng(0), 0
    for _ in range(300):
        candidates = uneven(rng)
        known, verdicts = {each.name: each for each in candidates}, answer(candidates, "points", "time")
        said = recommend(candidates, verdicts)
        if said.startswith("No recommendation"):
            assert "never advised: c5 (a control" in said
            continue
        advised = said.removeprefix("Use ").partition(":")[0]
        ahead = re.findall(r"\bc\d", " ".join(re.findall(r"Ahead of it[^.]*", said)))
        equals = re.findall(r"\bc\d", " ".join(re.findall(r"standard error \(([^)]*)\)", said)))
        for verdict in verdicts:
            better, worse = (verdict.first, verdict.second)[:: 1 if verdict.estimate.mean > 0 else -1]
            if worse == advised and verdict.adjusted < 0.05:
                assert len(known[better].scores) == 1 and better in ahead, said
                named += 1
        for name in equals:
            found = apart(known[name], known[advised])
            assert found.mean <= found.error, said
    assert named > 10, "such studies are among them"


def test_repetitions_of_two_folds_need_three():
    pair = [
        candidate("vit", "attention", 0.95, 2, rows=Rows(folds=2)),
        candidate("m", "mlp", 0.80, 2, rows=Rows(folds=2)),
    ]
    (verdict,) = answer(pair, "points", "none")
    assert "preliminary: 2 repetitions of a cross-validation, 3 are needed" in verdict.sentence
