"""`weft inspect`: files on disk, one page for all lenses, and a sentence for everything that does not fit."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from scipy.stats import binomtest

from insight.small import subject_of
from weft.commands.main import main
from weft.errors import WeftError
from weft.insight import LENSES, Finding, Picture, Table, Unfit, look, open_subject, render
from weft.insight.drawing.raster import png, signed
from weft.insight.drawing.tiles import sheet
from weft.insight.finding import plain, written
from weft.insight.intervals import change_interval, share_interval
from weft.insight.page import png_size, spans_of
from weft.insight.score import of_confusion
from weft.insight.subject import spread
from weft.training.inference.predictor import Predictor


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a network, its preprocessing and its weights, as a run leaves it."""
    folder = tmp_path_factory.mktemp("network") / "lenet"
    subject = open_subject("lenet_slide", "digits")
    assert subject.transform is not None
    Predictor(subject.card, subject.network, subject.transform).save_pretrained(folder)
    return folder


TABLES = ("efficientnet_nano_32", "nfnet_nano_32", "bit_nano_32", "halonet_nano_32", "deit_pico_distilled_p4_32")


def run(*words: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(["inspect", *words])
    return int(ended.value.code or 0)


def test_a_lens_leaves_pictures_a_table_and_a_record(
    saved: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(str(saved), "filters", "--source", "digits", "--output", str(tmp_path)) == 0
    names = {path.name for path in tmp_path.iterdir()}
    assert {"filters.json", "filters.csv", "filters-handmade.svg", "filters-maps.svg"} <= names
    record = json.loads((tmp_path / "filters.json").read_text())
    assert record["lens"] == "filters" and record["sentence"] in " ".join(capsys.readouterr().out.split())
    svg = (tmp_path / "filters-maps.svg").read_text()
    assert svg.startswith('<svg xmlns="http://www.w3.org/2000/svg"') and "prefers-color-scheme: dark" in svg


def test_help_of_every_lens_needs_no_torch() -> None:
    check = (
        "import sys; from weft.commands.main import main\n"
        "try: main(['inspect', 'x', sys.argv[1], '--help'])\n"
        "except SystemExit as end: assert not end.code, end.code\n"
        "assert 'torch' not in sys.modules"
    )
    for lens in ("field", "all"):
        subprocess.run([sys.executable, "-c", check, lens], check=True, capture_output=True)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("no_such_thing", "field"), "neither a folder nor a network"),
        (("vit_pico_p4_23", "field"), "vit_pico_p4_32"),
        (("lenet_slide", "field"), "no data of its own"),
        (("lenet_slide", "filters", "--layer", "convolution.0", "--source", "digits"), "did you mean convolutions.0"),
        (("lenet_slide", "field", "--source", "breast_cancer"), "takes images, but breast_cancer holds vectors"),
        (("mlp", "shift", "--source", "breast_cancer"), "for networks on images and text"),
        (("lenet_slide", "shift", "--source", "digits", "--split", "reprot"), "no split 'reprot'"),
        (("lenet_slide", "shift", "--source", "digits", "--examples", "0"), "--examples must be"),
    ],
)
def test_bad_input_is_a_sentence(words: tuple[str, ...], sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*words) == 2
    said = capsys.readouterr().err
    assert sentence in said and said.count("\n") == 1


def test_a_run_without_weights_says_so(saved: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("config.json", "preprocessor_config.json"):
        (tmp_path / name).write_bytes((saved / name).read_bytes())
    assert run(str(tmp_path), "filters") == 2
    assert "cannot read the weights" in capsys.readouterr().err


def test_settings_of_a_trained_network_cannot_be_changed(saved: Path) -> None:
    with pytest.raises(WeftError, match="cannot be changed"):
        open_subject(saved, settings={"act": "tanh"})


def test_a_lens_may_not_fit_and_the_page_says_so() -> None:
    subject = open_subject("mlp", "breast_cancer")
    with pytest.raises(Unfit):
        look(subject, "field")
    with pytest.raises(WeftError, match="did you mean field"):
        look(subject, "fields")
    page = render(subject, [look(subject, "backprop", depth=2), "the lens field is for others"])
    assert "the lens field is for others" in page


def test_the_page_is_self_contained_and_every_picture_is_described() -> None:
    subject = open_subject("lenet_slide", "digits")
    dots = Picture(png(np.zeros((2, 800, 3), np.uint8)), "Dots", "Black dots")
    extra = Finding("made", "Made up", "It says this.", {"dots": dots}, Table(["a", "b"], [["x", 1.0], ["y", None]]))
    page = render(subject, [look(subject, "filters"), extra])
    assert not re.findall(r'(?:src|href)="(?!data:|#)', page)
    assert all('role="img"' in svg and 'aria-label="' in svg for svg in re.findall(r"<svg [^>]*>", page))
    assert all('alt="' in image for image in re.findall(r"<img [^>]*>", page)) and 'alt="Black dots"' in page
    assert 'class="panel span6"' in page and "<td class=number>–</td>" in page


def test_examples_are_spread_over_the_split_and_come_in_batches() -> None:
    subject = open_subject("lenet_slide", "digits")
    sizes = [len(batch.targets) for batch in subject.batches(100, size=32)]
    assert sum(sizes) == 100 and max(sizes) <= 32
    assert len(subject.examples(5).targets) == 5
    assert spread(10, 3).tolist() == [0, 4, 9] and spread(3, 10).tolist() == [0, 1, 2]
    shown = subject.pixels(subject.examples(1).inputs["x"])
    assert shown.shape == (1, 32, 32, 3) and shown.dtype == np.uint8 and shown.min() == 0


def test_an_untrained_network_always_has_the_same_weights() -> None:
    first, second = (open_subject("mlp").network.state_dict() for _ in range(2))
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_every_lens_is_there_with_help() -> None:
    wanted = {"activations", "backprop", "filters", "field", "shift", "positions", "attention", "gates", "saliency"}
    assert wanted <= set(LENSES)
    assert all(lens.help and callable(lens.function) for lens in LENSES.values())


def test_numbers_for_reading_and_for_json() -> None:
    assert [written(cell) for cell in (None, 1234, 0.123456, 1e-9, "x")] == ["–", "1,234", "0.1235", "1.00e-09", "x"]
    assert plain({"a": (float("nan"), 1)}) == {"a": [None, 1]}


def test_zero_is_white_and_tiles_keep_their_shape() -> None:
    assert signed(np.array([[-1.0, 0.0, 1.0]]))[0, 1].tolist() == [247, 247, 247]
    assert png_size(png(np.zeros((3, 5, 3), np.uint8))) == (5, 3)
    drawn = sheet([("a_name", np.zeros((2, 4, 3), np.uint8))], "said", "Tiles")
    assert Image.MIME["PNG"] in drawn.content and "a_<wbr>name" in drawn.page


def test_a_single_lens_has_a_page(saved: Path, tmp_path: Path) -> None:
    assert run(str(saved), "mistakes", "--source", "digits", "--examples", "40", "--output", str(tmp_path)) == 0
    page = (tmp_path / "mistakes.html").read_text()
    assert '<h2 id="mistakes">' in page and "<dt>Accuracy</dt>" in page and "<nav" not in page


def test_a_page_opens_with_the_run_and_ends_with_theory() -> None:
    subject = open_subject("lenet_slide", "digits")
    lenses = {"mistakes": {"examples": 40, "points": 5}, "filters": {}, "activations": {"examples": 8},
              "backprop": {"examples": 8, "depth": 2}}  # fmt: skip
    page = render(subject, [look(subject, name, **settings) for name, settings in lenses.items()])
    places = ['class="facts"', 'id="mistakes"', 'id="filters"', 'id="activations"', 'id="backprop"', 'id="theory"']
    order = [page.index(place) for place in places]
    assert order == sorted(order)
    theory = page.index('id="theory"')
    assert all(page.index(words) > theory for words in ("Each activation g", "filters on a picture", "Steps that δ"))
    assert list(LENSES)[:3] == ["mistakes", "saliency", "attention"]


def test_charts_fill_their_rows() -> None:
    """Six columns: rows of three and of two charts, never one alone unless there is no other."""
    for count in range(1, 12):
        spans, used = spans_of(count), 0
        assert len(spans) == count
        for span in spans:
            used = used % 6 + span
            assert used <= 6
        assert used == 6


def test_a_class_that_is_never_answered_is_named() -> None:
    facts = {fact.name: fact for fact in of_confusion([[5, 0], [5, 0]], ["cat", "dog"], "test")}
    assert facts["Accuracy"].value == "50.0 %" and "23.7 % to 76.3 %" in facts["Accuracy"].about
    assert facts["Classes never answered"].about == "dog" and facts["Weakest class"].value == "0.0 %"


@pytest.mark.parametrize(("right", "count"), [(0, 5), (3, 10), (110, 110), (57, 110)])
def test_an_interval_of_a_share_is_wilsons(right: int, count: int) -> None:
    known = binomtest(right, count).proportion_ci(method="wilson")
    assert share_interval(right, count) == pytest.approx((known.low, known.high), abs=1e-6)


def test_an_interval_of_a_change_holds_its_level_on_few_examples() -> None:
    """Simulated: of 110 examples some become right and some wrong; the truth lies inside 93 % of the time or more."""
    chance = np.random.default_rng(0)
    for gain, loss in ((0.02, 0.06), (0.0, 0.03), (0.2, 0.2)):
        cells = chance.multinomial(110, (gain, loss, 1 - gain - loss), size=2000)
        inside = [low <= gain - loss <= high for low, high in (change_interval(g, lo, 110) for g, lo, _ in cells)]
        assert np.mean(inside) >= 0.93


@pytest.mark.slow
def test_a_run_is_seen_through_all_lenses_and_its_field_through_training(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    words = [
        "--model",
        "lenet_slide",
        "--img-size",
        "12",
        "--steps",
        "3",
        "--batch-size",
        "16",
        "--output",
        str(folder),
    ]
    with pytest.raises(SystemExit) as ended:
        main(["train", "digits", *words])
    assert not ended.value.code
    assert run(str(folder), "all") == 0
    out = capsys.readouterr().out
    page = (folder / "insight" / "index.html").read_text()
    for lens in ("activations", "backprop", "filters", "field", "shift"):
        assert f"{lens}: " in out and f'<h2 id="{lens}">' in page
        assert (folder / "insight" / f"{lens}.json").is_file()
    fields = json.loads((folder / "insight" / "field.json").read_text())["fields"]
    assert {"convolutions.5, untrained", "convolutions.5, step 3"} <= fields.keys()
    trained, stored = fields["convolutions.5"]["energy"], fields["convolutions.5, step 3"]["energy"]
    assert np.shape(trained) == np.shape(stored) == (12, 12)


@pytest.mark.parametrize("lens", ["activations", "backprop", "filters", "field", "shift", "positions", "gates"])
@pytest.mark.parametrize("name", TABLES)
def test_the_networks_of_the_tables_can_be_looked_into(name: str, lens: str) -> None:
    """T1–T5: a finding with a sentence, or the sentence why the lens does not fit."""
    try:
        assert look(subject_of(name), lens).sentence
    except Unfit as reason:
        assert str(reason)
