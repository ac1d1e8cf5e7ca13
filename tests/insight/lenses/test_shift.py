"""C6: inputs that move, and how many answers stay."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from weft.data.batch.loader import Batch
from weft.errors import WeftError
from weft.insight import look, open_subject
from weft.insight.lenses.shift.shifted_inputs import Tally, moved_images, text_mover


def test_c6_images_move_by_exactly_the_shift_in_all_four_directions() -> None:
    x = torch.zeros(4, 1, 9, 9)
    x[:, :, 4, 4] = 1
    moved = moved_images(Batch({"x": x}, torch.zeros(4), torch.arange(4), 4), 3)["x"]
    assert [tuple(image[0].nonzero()[0].tolist()) for image in moved] == [(4, 7), (4, 1), (7, 4), (1, 4)]


def test_c6_what_comes_in_repeats_the_border() -> None:
    x = torch.arange(5.0).expand(1, 1, 5, 5)
    assert moved_images(Batch({"x": x}, torch.zeros(1), torch.tensor([0]), 1), 2)["x"][0, 0, 0].tolist() == [
        0,
        0,
        0,
        1,
        2,
    ]


def test_c6_a_network_that_sees_only_the_mean_of_a_centred_spot_never_changes_its_answer() -> None:
    """Invariant by construction: the pooled maximum of a bright spot does not depend on where it is."""
    subject = open_subject("resnet8_cifar", "digits", settings={"img_size": 16})

    class Brightest(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.stack([x.amax((1, 2, 3)) * 0, x.amax((1, 2, 3)) * 0 + 1], 1)

    network = Brightest()
    network.config = subject.network.config  # type: ignore[assignment]
    subject.network = network  # type: ignore[assignment]
    finding = look(subject, "shift", examples=16)
    assert [row[2] for row in finding.table.rows] == [1.0] * 9


def test_c6_an_mlp_is_moved_more_than_what_ignores_the_place() -> None:
    """A perceptron that looks at one row of pixels changes its answer when that row is moved away."""
    subject = open_subject("mlp", "digits", settings={"img_size": 8, "in_chans": 1, "hidden": []})
    with torch.no_grad():
        subject.network.head.weight.zero_()
        subject.network.head.bias.zero_()
        subject.network.head.weight.view(10, 8, 8)[0, :, 3] = 1
    finding = look(subject, "shift", examples=64)
    consistency = [row[2] for row in finding.table.rows]
    assert consistency[0] == 1 and len(consistency) == 5  # at most half of 8 pixels
    assert min(consistency) < 0.9


def test_tallies_count_answers_that_stay_and_are_right() -> None:
    before, after = (
        torch.tensor([[2.0, 1.0], [0.0, 1.0], [3.0, 0.0]]),
        torch.tensor([[0.0, 1.0], [0.0, 1.0], [3.0, 0.0]]),
    )
    tally = Tally("classes")
    for row in range(3):  # one by one: what is kept does not grow
        tally.add(before[row : row + 1], after[row : row + 1], torch.tensor([1, 1, 1])[row : row + 1])
    assert (tally.consistency, tally.score) == (pytest.approx(2 / 3), pytest.approx(2 / 3))


def test_tallies_of_numbers_tell_how_much_of_the_variance_stays() -> None:
    before = torch.tensor([[0.0], [2.0]])
    tally = Tally("regression")
    tally.add(before, before + 0.5, torch.tensor([0.5, 2.5]))
    assert (tally.consistency, tally.score) == (pytest.approx(1 - 0.5 / 2), 0.0)


@pytest.mark.parametrize("name", ["conv_text", "gmlp_text_tiny", "bert_tiny"])
def test_padding_after_the_words_never_changes_an_answer(name: str) -> None:
    more = {} if name == "conv_text" else {"hidden_dim": 32, "depth": 1}
    subject = open_subject(name, "pydocs", settings={"vocab_size": 400, "dim": 16, "max_length": 32, **more})
    finding = look(subject, "shift", examples=24, largest=4)
    after = [row[2] for row in finding.table.rows if str(row[0]).endswith("after")]
    assert after == [1.0] * 5


def test_padding_before_moves_the_words() -> None:
    inputs = {"x": torch.tensor([[5, 6, 7]]), "mask": torch.tensor([[True, True, False]])}
    moved = text_mover(2, before=True)(Batch(inputs, torch.zeros(1), torch.zeros(1), 1), 2)
    assert moved["x"].tolist() == [[0, 0, 5, 6]] and moved["mask"].tolist() == [[False, False, True, True]]


def test_what_does_not_fit_one_chart_or_has_no_answers_is_said() -> None:
    with pytest.raises(WeftError, match="no classes"):
        look(open_subject("filternet", "digits", settings={"img_size": 8}), "shift")


def test_a_change_of_accuracy_has_its_interval() -> None:
    """Of four answers one becomes wrong; by the formula of Agresti & Min."""
    before, after = torch.eye(4)[[0, 1, 2, 3]], torch.eye(4)[[0, 1, 2, 0]]
    tally = Tally("classes")
    tally.add(before, after, torch.arange(4))
    assert (tally.gained, tally.lost) == (0, 1)
    half = 1.959964 * (2 - 1 / 6) ** 0.5 / 6
    assert tally.change() == pytest.approx((-1 / 6 - half, -1 / 6 + half))
    finding = look(open_subject("lenet_slide", "digits"), "shift", examples=24, largest=2)
    assert "95 % interval" in finding.sentence and "24 examples" in finding.sentence
    assert [*finding.table.columns][-2:] == ["change, low", "change, high"]
    assert all(row[5] <= row[4] <= row[6] for row in finding.table.rows)
