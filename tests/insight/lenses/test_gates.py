"""M1, M3, M5, M6, C5: every family's matrices over tokens on one scale, and what projecting a gate costs."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from insight.small import subject_of
from training.runs import configure, train
from weft.commands.main import main
from weft.errors import WeftError
from weft.insight import registry, toeplitz
from weft.insight.lenses.gates.toeplitz_projection import dense_gates, projected
from weft.insight.lenses.gates.token_matrices import mixings
from weft.insight.subject import open_subject
from weft.networks.mixer import TokenMLP

KINDS = {
    "gmlp_pico_p4_32": ("gate", (4, 4)),
    "mixer_pico_p4_32": ("token MLP", (4, 4)),
    "vit_pico_p4_32": ("attention", (4, 4)),
    "control_pooling_pico_p4_32": ("pooling", (4, 4)),
    "control_random_pico_p4_32": ("random", (4, 4)),
    "control_depthwise_pico_p4_32": ("convolution", (4, 4)),
    "resnet8_cifar": ("convolution", (8, 8)),
    "lenet5_local": ("locally connected", (6, 6)),
    "bert_tiny": ("attention", None),
    "gmlp_text_tiny": ("gate", None),
    "amlp_text_tiny": ("gate", None),
    "mixer_text_tiny": ("token MLP", None),
}


@pytest.mark.parametrize("name", KINDS)
def test_every_family_has_its_matrices(name: str) -> None:
    """Square matrices over the grid, class token left out; texts over their median length."""
    kind, grid = KINDS[name]
    found = mixings(subject_of(name), 24)
    first = found[0]
    assert first.kind == kind
    assert first.matrices.shape[-1] == first.matrices.shape[-2] == torch.tensor(first.grid).prod()
    assert first.grid == grid if grid else len(first.grid) == 1 and 3 < first.grid[0] <= 24


@torch.no_grad()
def test_the_slope_of_a_token_mlp_is_its_derivative() -> None:
    """M1: with an activation that is linear, the mean slope is the layer itself: W₂ W₁."""
    subject = subject_of("mixer_pico_p4_32", act="identity")
    layer = next(module for module in subject.network.modules() if isinstance(module, TokenMLP))
    matrix = mixings(subject, 10)[0].matrices[0]
    torch.testing.assert_close(matrix, layer.fc2.weight @ layer.fc1.weight)
    x = torch.randn(1, 16, 5)
    torch.testing.assert_close(layer(x) - layer(torch.zeros_like(x)), matrix @ x, atol=1e-4, rtol=1e-4)


def test_the_mean_slope_is_the_mean_jacobian_over_data() -> None:
    """M1: W₂ diag(E σ′) W₁ equals autograd's derivative of the tokens, averaged over examples and channels."""
    subject = subject_of("mixer_pico_p4_32", depth=1)
    layer = next(module for module in subject.network.modules() if isinstance(module, TokenMLP))
    entered: list[torch.Tensor] = []
    handle = layer.register_forward_pre_hook(lambda module, inputs: entered.append(inputs[0].detach()))
    subject.network(**subject.examples(3).inputs)
    handle.remove()
    jacobian = torch.autograd.functional.jacobian(layer, entered[0])  # (B, S, C, B, S, C)
    mean = torch.stack([jacobian[b, :, c, b, :, c] for b in range(3) for c in range(16)]).mean(0)
    torch.testing.assert_close(mixings(subject, 3)[0].matrices[0], mean, atol=1e-5, rtol=1e-4)


def test_a_toeplitz_network_scores_one_and_its_shuffled_rows_do_not() -> None:
    """M5: tMLP by the lens itself, table and record."""
    finding = registry.look(subject_of("tmlp2d_pico_p4_32"), "gates", examples=8)
    rows = [dict(zip(finding.table.columns, row, strict=True)) for row in finding.table.rows]
    assert [row["Toeplitz"] for row in rows] == pytest.approx([1, 1], abs=1e-6)
    told = finding.record["runs"]["tmlp2d_pico_p4_32"]
    assert all(layer["shuffled"]["plane"] < 0.5 for layer in told)
    assert told[0]["noise"] == pytest.approx(toeplitz.share_of_noise((4, 4)))


def test_projecting_a_gate_that_is_toeplitz_changes_nothing() -> None:
    """M5: the claim's easy half, by the same code that measures the other; the control changes the loss."""
    subject = subject_of("gmlp_pico_p4_32", dim=8)
    with torch.no_grad():
        for number, gate in enumerate(dense_gates(subject).values()):
            noise = torch.randn(16, 16, generator=torch.Generator().manual_seed(number))
            gate.weight.copy_(3 * toeplitz.nearest_toeplitz(noise, (4, 4)))
        subject.network.head.weight.normal_(generator=torch.Generator().manual_seed(5))
    before = [gate.weight.clone() for gate in dense_gates(subject).values()]
    found = projected(subject, 40)
    assert [change.layer for change in found.changes] == ["blocks.0.gate", "blocks.1.gate", "all together"]
    assert all(abs(change.projected) < 1e-5 for change in found.changes)
    assert all(abs(change.shuffled) > 1e-3 for change in found.changes)
    after = [gate.weight for gate in dense_gates(subject).values()]
    assert all(torch.equal(a, b) for a, b in zip(before, after, strict=True)), "the network is left as it was"


def test_projecting_equals_putting_the_projection_in_place() -> None:
    """M5: per layer and all together, against the loss of a network that really has those weights."""
    subject = subject_of("gmlp_pico_p4_32", dim=12)
    found = projected(subject, 30)
    batch = subject.examples(30)
    objective = subject.card.objective()

    def loss() -> float:
        with torch.no_grad():
            return float(objective.losses(subject.network(**batch.inputs), batch.targets).mean())

    assert found.loss == pytest.approx(loss(), rel=1e-5)
    with torch.no_grad():
        for gate in dense_gates(subject).values():
            gate.weight.copy_(toeplitz.nearest_toeplitz(gate.weight, (4, 4)))
    assert found.loss + found.changes[-1].projected == pytest.approx(loss(), rel=1e-5)


def test_a_text_gate_is_projected_where_texts_are() -> None:
    """M5: an entry counts as often as its two tokens occur, so what no text reaches has no say."""
    subject = subject_of("gmlp_text_tiny", dim=8, max_length=128)
    gate = next(iter(dense_gates(subject).values()))
    with torch.no_grad():
        gate.weight[:] = torch.eye(128)
    plain = projected(subject, 20)
    with torch.no_grad():
        gate.weight[127, 127] = 100.0  # no text is that long
    assert projected(subject, 20).changes[0].projected == pytest.approx(plain.changes[0].projected, abs=1e-6)


@pytest.mark.parametrize("name", ["tmlp2d_pico_p4_32", "mixer_pico_p4_32"])
def test_nothing_to_project_is_said(name: str) -> None:
    with pytest.raises(WeftError, match=r"nothing to project .* --project is for gMLP and aMLP"):
        projected(subject_of(name), 8)


def test_an_mlp_has_no_matrices_over_tokens() -> None:
    with pytest.raises(WeftError, match="no layer that mixes tokens or pixels"):
        registry.look(subject_of("mlp"), "gates")


@pytest.mark.slow
def test_several_runs_share_one_chart(tmp_path: Path) -> None:
    """M5: trained runs of three families, from their folders, on one chart."""
    for family in ("gmlp", "vit", "resnet"):
        train(configure(family, steps=4), tmp_path / family)
    subject = open_subject(tmp_path / "gmlp")
    others = (tmp_path / "vit", tmp_path / "resnet")
    finding = registry.look(subject, "gates", examples=32, others=others, project=True)
    assert {row[0] for row in finding.table.rows} == {"gmlp", "vit", "resnet"}
    chart = finding.pictures["families"].content
    assert isinstance(chart, str) and all(f">{name}</text>" in chart for name in ("gmlp", "vit", "resnet"))
    assert {path.name for path in finding.save(tmp_path / "out")} >= {"gates-families.svg", "gates.csv", "gates.json"}


def test_a_lens_that_does_not_fit_is_one_sentence_and_exit_code_2(capsys: pytest.CaptureFixture[str]) -> None:
    """A1: by the command."""
    with pytest.raises(SystemExit) as ended:
        main(["inspect", "mixer_pico_p4_32", "attention", "--source", "digits"])
    said = capsys.readouterr().err.strip()
    assert ended.value.code == 2 and "has no attention" in said and "\n" not in said
