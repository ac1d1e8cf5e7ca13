"""Which candidates a comparison has."""

from __future__ import annotations

import dataclasses
import textwrap
from pathlib import Path

import pytest

from studies.fabricated import facts
from weft.errors import WeftError
from weft.studies.compare.candidates import Facts, make_candidates
from weft.studies.compare.comparison import budget_words
from weft.studies.compare.config import ComparisonConfig

TEXT = Facts("pydocs", "text", "classes", 14, "x", 3000, {"vocab_size": 8192, "max_length": 128})
VECTOR = Facts("cancer", "vector", "binary", 1, "x", 400, {"in_features": 30})


def test_images_are_compared_by_six_families_two_controls_and_hog():
    candidates = make_candidates(facts(), "families", "params", None)
    assert [candidate.name for candidate in candidates] == [
        "mlp", "resnet", "rcnn", "vit", "mixer", "gmlp", "control_identity", "control_random", "hog+logistic",
    ]  # fmt: skip
    assert {candidate.group for candidate in candidates} == {"mlp", "convolution", "attention", "control", "classical"}


def test_text_is_compared_by_six_families_two_controls_and_tfidf():
    names = [candidate.name for candidate in make_candidates(TEXT, "families", "params", None)]
    assert names[:6] == ["lstm", "conv", "bert", "mixer", "gmlp", "amlp"] and names[-1] == "tfidf+logistic"


def test_vectors_have_no_tokens_to_mix():
    assert [candidate.name for candidate in make_candidates(VECTOR, "families", "params", None)] == ["mlp", "logistic"]
    with pytest.raises(WeftError, match="no tokens to mix"):
        make_candidates(VECTOR, "mixers", "params", None)


@pytest.mark.parametrize(("where", "name"), [(VECTOR, "resnet8_cifar"), (TEXT, "mlp"), (facts(), "bert_tiny")])
def test_a_network_for_other_inputs_is_refused_by_what_it_takes(where: Facts, name: str):
    with pytest.raises(WeftError, match=f"{name} takes .* holds {where.modality} inputs; networks for them: "):
        make_candidates(where, name, "none", None)


def test_a_family_is_named_by_its_short_name_too():
    for where, names in ((facts(), "resnet,vit"), (TEXT, "bert,gmlp_text_tiny")):
        made = make_candidates(where, names, "none", None, with_controls=False, classical=False)
        assert [candidate.name for candidate in made] == names.split(",")
    with pytest.raises(WeftError, match="no network or preset 'bert'"):
        make_candidates(facts(), "bert", "none", None)


def test_a_network_of_the_users_own_enters_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    code = """
    import torch
    class Net(torch.nn.Linear):
        def __init__(self, num_classes, in_chans):
            super().__init__(8, num_classes)
        def forward(self, x):
            return super().forward(x.mean((1, 2)))
    """
    (tmp_path / "own_candidate.py").write_text(textwrap.dedent(code))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("WEFT_TRUST_MODULES", "own_candidate")
    notes: list[str] = []
    where = Facts("digits", "image", "classes", 10, "x", 1437, {"img_size": (8, 8), "in_chans": 1})
    made = make_candidates(where, "mlp,own_candidate:Net", "params", None, classical=False, notes=notes)
    counts = {candidate.name: candidate.count["params"] for candidate in made}
    assert counts["own_candidate:Net"] == 90 and counts["mlp"] == pytest.approx(50_000, rel=0.03)
    assert [note for note in notes if "own_candidate" in note] == [
        "own_candidate:Net is not weft's and cannot be sized: it enters as it is, with 90 parameters"
    ]
    assert budget_words(ComparisonConfig(source="digits"), made).endswith("parameters each, within 3 %")
    assert budget_words(ComparisonConfig(source="digits"), made[1:2]) == "each as it is"


@pytest.mark.parametrize("where", [facts(), TEXT], ids=["image", "text"])
@pytest.mark.parametrize("preset", ["families", "mixers", "gates"])
@pytest.mark.parametrize("match", ["params", "macs"])
def test_every_candidate_of_every_preset_meets_the_budget(where: Facts, preset: str, match: str):
    counts = [
        candidate.count[match] for candidate in make_candidates(where, preset, match, None) if not candidate.fixed
    ]
    assert max(counts) <= 1.062 * min(counts)  # each within 3 % of the same number


def test_sizes_are_three_budgets_of_every_family():
    candidates = {
        candidate.name: candidate.count["params"]
        for candidate in make_candidates(facts(), "sizes", "params", 1e5)
        if candidate.count
    }
    assert candidates["vit×4"] == pytest.approx(4e5, rel=0.03) and candidates["vit/4"] == pytest.approx(2.5e4, rel=0.03)


def test_a_candidate_that_cannot_meet_the_budget_is_left_out_and_named():
    notes: list[str] = []
    candidates = make_candidates(facts(), "mlp,rcnn_96", "params", 900, notes=notes)
    assert "rcnn_96" in [candidate.name for candidate in candidates]
    assert any(note.startswith("rcnn_96 has 865 parameters: the nearest to 900") for note in notes)
    left = make_candidates(facts(), "mlp,vit_nano_p4_32", "params", 200, False, False, notes)
    assert [candidate.name for candidate in left] == ["mlp"]
    assert any(note.startswith("left out: vit_nano_p4_32 cannot meet 200") for note in notes)


def test_a_comparison_of_which_no_network_is_left_is_refused():
    with pytest.raises(WeftError, match=r"^vit_nano_p4_32 .* 100 "):
        make_candidates(facts(), "vit_nano_p4_32", "params", 100, with_controls=False)


@pytest.mark.parametrize("side", [1, 7, 8, 16, 33, 96, 128, 224, 500])
@pytest.mark.parametrize("channels", [1, 3])
def test_images_of_any_side_have_candidates(side: int, channels: int):
    where = dataclasses.replace(facts(), shape={"img_size": (side, side), "in_chans": channels})
    candidates = make_candidates(where, "families", "params", None, notes=[])
    assert {"mlp", "hog+logistic"} < {candidate.name for candidate in candidates}


@pytest.mark.parametrize("models, said", [("mixr", "did you mean"), ("mlp,mlp", "different names"), (" , ", "preset")])
def test_names_that_do_not_do_are_answered(models: str, said: str):
    with pytest.raises(WeftError, match=said):
        make_candidates(facts(), models, "params", None)


def test_what_an_candidate_changes_builds_the_same_network_again():
    from weft.networks.measure.cost import total_parameters
    from weft.networks.registry import configured

    for candidate in make_candidates(facts(), "families", "params", None):
        if not candidate.fixed:
            config = configured(candidate.model, **facts().shape, num_classes=10, **candidate.network)
            assert total_parameters(config) == candidate.count["params"]
