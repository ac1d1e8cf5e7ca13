"""The lens `mistakes`: sums over batches equal the metrics over all examples; what is shown is what went wrong."""

from __future__ import annotations

import pytest
import torch

from insight.small import subject_of
from weft.errors import WeftError
from weft.insight import registry
from weft.insight.lenses.mistakes.charts import reliability
from weft.insight.lenses.mistakes.collect import in_two_dimensions, purity, watch_answers
from weft.training.loop.events import outputs_of
from weft.training.metrics import class_probabilities, measure


@pytest.mark.parametrize("name", ["vit_pico_p4_32", "gmlp_text_tiny"])
def test_streamed_figures_are_those_of_the_metrics(name: str) -> None:
    """Accuracy, confusions and calibration, one batch at a time, against scikit-learn over all examples at once."""
    subject = subject_of(name)
    answers = watch_answers(subject, 150, errors=5, points=40)
    outputs, targets = outputs_of(subject.network, subject.batches(150))
    expected = measure(subject.card.task, outputs, targets, len(subject.card.classes))
    assert answers.accuracy == pytest.approx(expected["accuracy"])
    assert answers.confusion.tolist() == expected["confusion"]
    assert answers.calibration_error == pytest.approx(expected["calibration_error"], abs=1e-6)
    confidence, predicted = class_probabilities(subject.card.task, outputs).max(1)
    wrong = confidence[predicted != targets.long()].sort(descending=True).values[:5]
    assert [each.confidence for each in answers.worst] == pytest.approx(wrong.tolist(), rel=1e-5)
    assert len(answers.features) == 40


def test_the_features_are_what_the_head_reads() -> None:
    """The kept vectors, given to the head, are answered as the network answers them."""
    subject = subject_of("vit_pico_p4_32")
    answers = watch_answers(subject, 30, errors=1, points=30)
    with torch.no_grad():
        again = subject.network.head(answers.features).argmax(1)
    assert torch.equal(again != answers.labels, answers.wrong)


def test_two_far_clouds_stay_apart_in_the_plane() -> None:
    """PCA and t-SNE are seeded and keep neighbours; purity is 1 for clouds apart, the class's share for noise."""
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(80) % 2
    features = torch.randn(80, 12, generator=generator) + 30 * labels[:, None]
    planes = in_two_dimensions(features)
    for points in (features.numpy(), *planes.values()):
        assert purity(points, labels) == 1
    assert (in_two_dimensions(features)["t-SNE"] == planes["t-SNE"]).all()
    assert purity(torch.randn(400, 5, generator=generator), torch.arange(400) % 2) == pytest.approx(0.5, abs=0.06)


def test_a_calibrated_diagram_says_so() -> None:
    """Bins of (examples, confidence, right): equal confidence and accuracy are no error."""
    assert "calibration error 0.0 %" in reliability([[10, 5.0, 5], [10, 9.0, 9]])
    assert "calibration error 20.0 %" in reliability([[10, 5.0, 3], [10, 9.0, 7]])


@pytest.mark.parametrize("name", ["resnet8_cifar", "mlp", "bert_tiny"])
def test_the_lens_shows_errors_with_pictures_or_texts(name: str) -> None:
    finding = registry.look(subject_of(name), "mistakes", examples=60, shown=4, points=30)
    assert {"errors", "calibration", "confusions", "pca", "tsne"} == set(finding.pictures)
    assert len(finding.table.rows) == 4
    content = finding.pictures["errors"].content
    assert isinstance(content, str)
    if name == "bert_tiny":
        assert finding.table.rows[0][5] and str(finding.table.rows[0][5]).split()[0] in content
    else:
        assert content.count("<image") == 4
    assert all(row[1] != row[2] for row in finding.table.rows)


def test_a_network_without_data_or_classes_is_told() -> None:
    from weft.insight.subject import open_subject

    with pytest.raises(WeftError, match="--source"):
        registry.look(open_subject("lenet5"), "mistakes")
    with pytest.raises(WeftError, match="about classes"):
        registry.look(subject_of("mlp", num_classes=0), "mistakes")
