"""`weft data` and its verbs."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image

from data.made import encoded, sentence, write_parquet
from weft.commands.main import main


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages and sheets go to a folder of their own."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")


def weft(*words: object) -> int:
    with pytest.raises(SystemExit) as exit:
        main(["data", *map(str, words)])
    return int(exit.value.code or 0)


def test_the_list_names_every_embedded_source(capsys):
    from weft.data.sources.find import EMBEDDED

    assert weft() == 0
    printed = capsys.readouterr().out
    assert all(name in printed for name in EMBEDDED) and "weft[hub]" in printed


def test_help_and_list_do_without_torch():
    program = (
        "import sys; from weft.commands.main import main\n"
        "try: main({words})\nexcept SystemExit: pass\n"
        "assert 'torch' not in sys.modules"
    )
    for words in (["data"], ["data", "--help"]):
        subprocess.run([sys.executable, "-c", program.format(words=words)], check=True, capture_output=True)


def test_show_tells_splits_balance_sizes_duplicates_and_draws_a_sheet(tmp_path: Path, capsys):
    for name in ("train", "test"):
        for label in ("cat", "dog"):
            folder = tmp_path / "sets" / name / label
            folder.mkdir(parents=True)
            for number in range(6):
                (folder / f"{number}.png").write_bytes(encoded(number + 10 * (label == "dog") + 5 * (name == "test")))
    assert weft("show", tmp_path / "sets", "--output", tmp_path / "sheet.png") == 0
    printed = capsys.readouterr().out
    assert "20 × 16 px" in " ".join(printed.split()).replace("16 × 20", "20 × 16")
    shared = re.findall(r"(\d+) rows? of test occurs? in (?:train|validation)", printed)
    assert sum(map(int, shared)) == 3  # the images 5, 10 and 15
    assert "held out for validation" in printed
    with Image.open(tmp_path / "sheet.png") as sheet:
        assert sheet.height >= 2 * 64 and sheet.width > 200


def test_show_prints_sample_rows_of_text_and_vectors(tmp_path: Path, capsys):
    assert weft("show", write_parquet(tmp_path / "text", 60), "--rows", "3") == 0
    printed = capsys.readouterr().out
    assert printed.count("[0]") + printed.count("[1]") + printed.count("[2]") == 3 and "letters" in printed
    assert weft("show", "diabetes") == 0
    assert "10 features" in capsys.readouterr().out


SHOWN = [
    "cifar10", "imdb", "oxford_pets_96", "sst2", "mnli_subset", "rotten_tomatoes", "rte", "wikitext2_heldout",
    "wiki_small",
]  # fmt: skip
ROWS = 1000  # of each file: to show all 60,000 images of CIFAR-10 takes a quarter of a minute


@pytest.mark.parametrize("name", SHOWN)
def test_every_real_dataset_is_shown(datasets: Path, tmp_path: Path, capsys, name: str):
    """From shorter files with the columns, types and notes of the real ones."""
    shutil.copytree(datasets / name, tmp_path / name, ignore=shutil.ignore_patterns("*.parquet"))
    for file in (datasets / name).glob("*.parquet"):
        whole = pq.read_table(file)
        rows = np.linspace(0, len(whole) - 1, min(ROWS, len(whole))).astype(int)  # classes may stand in order
        pq.write_table(whole.take(rows), tmp_path / name / file.name)
    assert weft("show", tmp_path / name, "--output", tmp_path / "sheet.png") == 0
    printed = capsys.readouterr().out
    assert all(word in printed for word in ("train", "validation", "test", "fingerprint"))
    assert "held out for" in printed or "serves for choices" in printed, "which split serves for what"
    assert ("contact sheet" in printed) == (tmp_path / "sheet.png").exists()


def test_augment_draws_the_same_images_under_each(tmp_path: Path, capsys):
    assert weft("augment", "digits", "--output", tmp_path / "out.png") == 0
    with Image.open(tmp_path / "out.png") as sheet:
        assert sheet.height == 10 * 66
    assert weft("augment", "diabetes") == 2
    assert "for images" in capsys.readouterr().err


def test_cache_lists_and_clears(image_folder: Path, tmp_path: Path, capsys):
    from weft.data import batches, open_source

    batches(open_source(image_folder), "train", 4)
    assert weft("cache") == 0
    assert "16 px" in " ".join(capsys.readouterr().out.split())
    assert weft("cache", "--clear") == 0 and "removed" in capsys.readouterr().out


def test_bad_input_is_one_sentence_and_exit_code_two(image_folder: Path, capsys):
    (image_folder / "cat" / "broken.png").write_bytes(b"no image")
    assert weft("show", image_folder, "--output", image_folder.parent / "s.png") == 2
    error = capsys.readouterr().err
    assert error.startswith("weft: cat/broken.png: ") and error.count("\n") == 1
    assert weft("show", image_folder, "--on-bad", "skip", "--output", image_folder.parent / "s.png") == 0
    assert "1 bad row, left out" in capsys.readouterr().out
    assert weft("show") == 2


def test_a_sheet_overwrites_sheets_only(image_folder: Path, tmp_path: Path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    own = encoded(0)
    Path("images.png").write_bytes(own)
    for _ in range(2):  # the second time weft knows its own sheet
        assert weft("show", "images") == 0
        assert "contact sheet: images-2.png" in capsys.readouterr().out
    assert Path("images.png").read_bytes() == own and not Path("images-3.png").exists()
    assert weft("show", "images", "--output", "images.png") == 2
    assert "images.png exists" in capsys.readouterr().err
    assert weft("augment", "images", "--output", "images-2.png") == 0
    assert weft("show", "images", "--output", "images.png/sheet.png") == 2
    assert weft("show", "images", "--output", "sheet.jpg") == 2
    assert Path("images.png").read_bytes() == own


def test_show_lists_every_bad_row(tmp_path: Path, capsys):
    """The first twenty by name, the others counted; a run would stop at the first."""
    rows = [f"{'' if n % 4 == 0 else sentence(n)},{'' if n % 10 == 1 else 'ab'[n % 2]}" for n in range(120)]
    (tmp_path / "rows.csv").write_text("\n".join(["text,label", *rows]) + "\n")
    assert weft("show", tmp_path / "rows.csv") == 2
    printed, told = capsys.readouterr()
    assert told.startswith("weft: rows.csv line 2: the text is empty; repair or remove it") and told.count("\n") == 1
    assert "42 bad rows: a run stops at the first of them" in printed
    assert len(re.findall(r"^  rows\.csv line \d+: ", printed, re.M)) == 20
    assert sum(map(int, re.findall(r"^  and (\d+) more: the (?:text is empty|label is missing)", printed, re.M))) == 22


def test_show_tells_all_of_a_source_with_a_bad_row(image_folder: Path, tmp_path: Path, capsys, monkeypatch):
    """What would be trained without it: a run is refused still, and the exit code says so."""
    (tmp_path / "rows.csv").write_text("text,label\n" + "\n".join(f"{sentence(n)},{'ab'[n % 2]}" for n in range(60)))
    assert weft("show", tmp_path / "rows.csv") == 0
    whole = capsys.readouterr().out
    with (tmp_path / "rows.csv").open("a") as file:
        file.write("\n,a\n")
    assert weft("show", tmp_path / "rows.csv") == 2
    printed, told = capsys.readouterr()
    assert "1 bad row: a run stops at the first of them; left out here" in printed and told.count("\n") == 1
    for words in ("letters", "distribution", "train ", "[a] "):
        assert words in printed and words in whole
    (image_folder / "cat" / "broken.png").write_bytes(b"no image")
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    assert weft("show", image_folder) == 2 and "cat" in capsys.readouterr().out
    assert list(Path().iterdir()) == [], "what is refused leaves no file that nobody asked for"
    assert weft("show", image_folder, "--output", image_folder.parent / "s.png") == 2
    assert "contact sheet: " in capsys.readouterr().out and (image_folder.parent / "s.png").is_file()


def test_show_draws_lengths_and_says_what_would_be_cut(tmp_path: Path, capsys):
    rows = [f"{' '.join([sentence(n)] * (60 if n % 4 == 0 else 1))},{'ab'[n % 2]}" for n in range(200)]
    (tmp_path / "rows.csv").write_text("\n".join(["text,label", *rows]) + "\n")
    assert weft("show", tmp_path / "rows.csv") == 0
    printed = capsys.readouterr().out
    assert re.search(r"\d+ % of the training texts|\d+% of the training texts are longer than 256 tokens", printed)
    assert "--max-length" in printed and "█" in printed and "distribution" in printed


def test_show_finds_near_duplicates_and_odd_pictures(tmp_path: Path, capsys):
    """A picture that was saved anew, larger and as JPEG, is one that test must not have."""
    for name, first in (("train", 0), ("test", 100)):
        for label in ("cat", "dog"):
            folder = tmp_path / "sets" / name / label
            folder.mkdir(parents=True)
            for number in range(8):
                seed = first + number + 50 * (label == "dog")
                (folder / f"{number}.png").write_bytes(encoded(seed, (40, 40)))
    with Image.open(tmp_path / "sets/train/cat/3.png") as image:
        image.resize((56, 56)).save(tmp_path / "sets/test/dog/again.jpg", quality=90)
    Image.new("RGB", (64, 48)).save(tmp_path / "sets/train/dog/odd.png")
    assert weft("show", tmp_path / "sets", "--output", tmp_path / "sheet.png") == 0
    printed = " ".join(capsys.readouterr().out.split())
    found = re.findall(r"(\d+) picture of test is nearly the same as pictures of (train|validation)", printed)
    assert [count for count, _ in found] == ["1"] and "test/dog/again.jpg and train/cat/3.png" in printed
    assert "would be resized; --img-size sets another side" in printed
    assert "named gets pictures of 40 px" in printed and "chooses itself gets 32 px, or 40 px in runs" in printed


def test_too_many_pictures_to_compare_are_said_with_a_remedy(tmp_path: Path, capsys, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("weft.data.show.suspicions.PAIRS", 10)
    for number in range(20):
        folder = tmp_path / "set" / "ab"[number % 2]
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{number}.png").write_bytes(encoded(number, (16, 16)))
    assert weft("show", tmp_path / "set", "--output", tmp_path / "sheet.png") == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "too many pictures to look for near-duplicates: show a folder with some of them" in printed
    assert "chooses itself" not in printed, "small pictures stay as they are"


def test_show_names_labels_that_like_rows_contradict(tmp_path: Path, capsys):
    words = ["warp weft loom thread", "red green blue knot"]
    rows = [f"{words[n % 2]} {n} {words[n % 2].split()[n % 4]},{'ab'[n % 2]}" for n in range(200)]
    rows[20] = rows[20][:-1] + "b"
    rows += ["one and the same,a", "one and the same,b"]
    (tmp_path / "rows.csv").write_text("\n".join(["text,label", *rows]) + "\n")
    assert weft("show", tmp_path / "rows.csv") == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert re.search(r"2 rows of \w+ have the same input and different labels, such as rows\.csv line 202", printed)
    assert re.search(r"1 label of \w+ to look at, .*: rows\.csv line 22 \(b\), among a", printed)


def test_unlike_pictures_are_no_duplicates():
    """The digits look alike in small; none of them is a copy of another."""
    from weft.data.open.source import open_source
    from weft.data.show.summary import summarize

    found = [note for note in summarize(open_source("digits")).warnings if "nearly the same" in note]
    assert found == []


def test_show_lists_bad_rows_of_a_source_that_cannot_be_opened_without_them(tmp_path: Path, capsys):
    rows = "\n".join(f"late and broken {row},complaint\n,other" for row in range(30))
    (tmp_path / "texts.csv").write_text("text,label\n" + rows)
    assert weft("show", tmp_path / "texts.csv") == 2
    printed = capsys.readouterr()
    assert printed.out.count("the text is empty") == 21 and "and 10 more" in printed.out
    assert "all 30 rows of the class 'other'" in printed.err
