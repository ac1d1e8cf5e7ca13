"""Integrated gradients and occlusion by closed forms, and whether deletion and insertion tell good orders from bad."""

from __future__ import annotations

import builtins
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from insight.small import subject_of
from weft.errors import WeftError
from weft.insight import registry
from weft.insight.finding import Unfit
from weft.insight.lenses.saliency.attribution import explained, integrated_gradients, occlusion
from weft.insight.lenses.saliency.faithfulness import Curves, area, ordered, random_order
from weft.insight.subject import open_subject

pytest.importorskip("captum")


@torch.no_grad()
def test_a_linear_network_is_explained_completely() -> None:
    """F1: attributions of w·x + b are w ⊙ (x − x₀), by unit; they sum to the difference of the outputs exactly."""
    subject = subject_of("mlp", hidden=())
    batch = explained(subject, subject.examples(6))
    change = (batch.outputs(batch.x) - batch.outputs(batch.base)).gather(1, batch.target[:, None])[:, 0]
    weight = subject.network.head.weight[batch.target].reshape(6, 1, 8, 8)
    exact = batch.by_unit(weight * batch.x)
    for values in (integrated_gradients(batch, steps=2), occlusion(batch)):
        torch.testing.assert_close(values.float(), exact, atol=1e-4, rtol=1e-4)
        torch.testing.assert_close(values.sum(1).float(), change, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("name", ["vit_pico_p4_32", "resnet8_cifar", "bert_tiny", "gmlp_text_tiny"])
def test_integrated_gradients_are_complete(name: str) -> None:
    """Sundararajan et al.: with enough steps, they sum to the difference of the outputs for any network, texts too."""
    subject = subject_of(name)
    batch = explained(subject, subject.examples(4))
    with torch.no_grad():
        change = (batch.outputs(batch.x) - batch.outputs(batch.base)).gather(1, batch.output[:, None])[
            :, 0
        ] * batch.sign
    total = integrated_gradients(batch, steps=200).sum(1).float()
    assert float((total - change).abs().max()) < 0.03 * float(change.abs().max())


@torch.no_grad()
def test_occlusion_is_the_fall_of_the_output() -> None:
    """Against taking each unit away by hand; words that are markers or padding have no share."""
    for name in ("mixer_pico_p4_32", "mixer_text_tiny"):
        subject = subject_of(name)
        batch = explained(subject, subject.examples(3))
        found = occlusion(batch)
        full = batch.outputs(batch.x).gather(1, batch.output[:, None])[:, 0]
        for unit in range(batch.real.shape[1]):
            kept = torch.ones_like(batch.real)
            kept[:, unit] = False
            fall = full - batch.outputs(batch.with_units(kept)).gather(1, batch.output[:, None])[:, 0]
            torch.testing.assert_close(found[:, unit].float(), fall * batch.real[:, unit], atol=1e-4, rtol=1e-3)
        assert found[~batch.real].eq(0).all()


@torch.no_grad()
def test_the_right_order_beats_chance_and_the_opposite_loses() -> None:
    """Deletion by falling attribution lies below random order, by rising attribution above; insertion the reverse."""
    subject = subject_of("mlp", hidden=())
    batch = explained(subject, subject.examples(32))
    values = occlusion(batch)
    areas = {}
    for name, order in (
        ("good", ordered(values, batch.real)),
        ("bad", ordered(-values, batch.real)),
        ("random", random_order(batch.real, 0)),
    ):
        curves = Curves.empty()
        curves.add(batch, order)
        areas[name] = curves.areas()
        deletion, insertion = curves.means()
        assert deletion[0] == pytest.approx(insertion[-1]) and deletion[-1] == pytest.approx(insertion[0])
    assert areas["good"][0] < areas["random"][0] < areas["bad"][0]
    assert areas["good"][1] > areas["random"][1] > areas["bad"][1]


def test_areas_and_orders_of_known_values() -> None:
    assert area(torch.tensor([1.0, 0.0])) == pytest.approx(0.5)
    assert area(torch.tensor([1.0, 1.0, 0.0])) == pytest.approx(0.75)
    real = torch.tensor([[True, True, False, True]])
    assert ordered(torch.tensor([[1.0, 3.0, 9.0, 2.0]]), real).tolist() == [[1, 3, 0, 2]]
    assert random_order(real, 3).tolist()[0][-1] == 2 and torch.equal(random_order(real, 3), random_order(real, 3))


@pytest.mark.parametrize("name", ["gmlp_pico_p4_32", "mlp", "bert_tiny"])
def test_the_lens_draws_its_examples(name: str) -> None:
    finding = registry.look(subject_of(name), "saliency", examples=6, shown=2, steps=4)
    assert set(finding.pictures) == {"examples", "deletion", "insertion"}
    assert [row[0] for row in finding.table.rows] == ["integrated gradients", "occlusion", "random order"]
    assert finding.record["examples"] == 6


def test_columns_of_vectors_are_ranked(tmp_path: Path) -> None:
    """A class that is the sign of one column is due to that column; a number has no class to be explained."""
    chance = torch.Generator().manual_seed(0)
    rows = torch.randn(80, 3, generator=chance)
    lines = [f"{a:.3f},{b:.3f},{c:.3f},{'yes' if b > 0 else 'no'}" for a, b, c in rows.tolist()]
    (tmp_path / "rows.csv").write_text("\n".join(["red,green,blue,label", *lines]) + "\n")
    subject = open_subject(
        "mlp", str(tmp_path / "rows.csv"), settings={"hidden": (), "in_features": 3, "img_size": None}
    )
    with torch.no_grad():
        subject.network.head.weight.copy_(torch.tensor([[0.1, 2.0, 0.0]]).expand_as(subject.network.head.weight))
    finding = registry.look(subject, "saliency", examples=12, steps=2)
    bars = finding.pictures["columns"].content
    assert isinstance(bars, str) and bars.index(">green<") < bars.index(">red<")
    subject.card = replace(subject.card, task="regression")
    with pytest.raises(WeftError, match="has no classes"):
        registry.look(subject, "saliency")


def test_without_captum_the_remedy_is_named_and_all_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def missing(name: str, *rest: Any, **more: Any) -> Any:
        if name.startswith("captum"):
            raise ImportError("No module named 'captum'")
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(Unfit, match=r"pip install 'weft\[insight\]'"):
        registry.look(subject_of("mlp"), "saliency", examples=2)
