"""Folders belong to the user: weft deletes and replaces what it wrote, and takes none of it for data."""

from __future__ import annotations

import io
import os
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from PIL import Image
from pyarrow.csv import write_csv as store_csv

import weft
from training.runs import configure, train
from weft.api import default_comparison, default_run
from weft.commands import study, tune
from weft.commands.main import dispatch, parse
from weft.commands.study import folder_of
from weft.data import open_source
from weft.data.config import EMBEDDED, SourceConfig
from weft.data.corpus.config import CorpusConfig
from weft.data.corpus.documents import read_documents, text_files
from weft.data.read.cache import Cache
from weft.data.sources import find
from weft.disk import claim, data_files, mark, require_output, write_bytes
from weft.errors import WeftError
from weft.insight.finding import Finding, Picture, Table
from weft.machine import Lock
from weft.networks.weights import save_weights
from weft.studies.engine.worker import redirect
from weft.studies.experiments.registry import STUDIES
from weft.training.config import RunConfig
from weft.training.inference.evaluate import require_there
from weft.training.loop.display import Silent
from weft.training.run import lifecycle
from weft.training.storage.run_folder import RunBusy, RunFolder, create, name_for

ASKED = configure("mlp", steps=4, checkpoint_every=2)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("finished") / "run"
    train(ASKED, folder)
    return folder


def everything(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


# Deleting


def test_prune_deletes_checkpoints_and_nothing_else(finished: Path, tmp_path: Path) -> None:
    run, elsewhere = tmp_path / "runs" / "one", tmp_path / "elsewhere"
    shutil.copytree(finished, run)
    before = everything(run)
    checkpoints = {name for name in before if name.startswith("checkpoints")}
    (run / "checkpoints" / "notes.txt").write_text("why the rate was halved")
    (run / "checkpoints" / "2024").mkdir()
    (run / "checkpoints" / "2024" / "thesis.tex").write_text("precious")
    elsewhere.mkdir()
    (elsewhere / "state.safetensors").write_text("of another machine")
    (run / "checkpoints" / "00000099").symlink_to(elsewhere)
    assert dispatch(["runs", "prune", str(tmp_path / "runs"), "--apply"]) == 0
    kept = {"checkpoints", "checkpoints/notes.txt", "checkpoints/2024", "checkpoints/2024/thesis.tex"}
    assert everything(run) == before - checkpoints | kept | {"checkpoints/00000099"}
    assert (elsewhere / "state.safetensors").read_text() == "of another machine"


def test_looking_at_a_folder_that_is_only_named_like_a_run_leaves_nothing_there(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "run.yaml").write_text("mine: yes\n")
    (tmp_path / "mine" / "record.json").write_text('{"status": "finished"}')
    before = everything(tmp_path)
    with pytest.warns(UserWarning, match="record"):
        assert dispatch(["runs", "prune", str(tmp_path), "--apply"]) == 0
        assert dispatch(["runs", str(tmp_path)]) == 0
    assert everything(tmp_path) == before


def test_prune_names_what_it_leaves(finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(finished, tmp_path / "one")
    (tmp_path / "one" / "checkpoints" / "notes.txt").write_text("mine")
    for flag in ((), ("--apply",)):
        assert dispatch(["runs", "prune", str(tmp_path), *flag]) == 0
        assert "notes.txt, which weft did not write" in capsys.readouterr().out


def test_prune_leaves_a_run_that_never_began_when_others_files_are_in_it(
    finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Other runs below it above all."""
    for name in ("plain", "with-notes", "with-runs"):
        create(tmp_path / name, ASKED).release()
        (tmp_path / name / "checkpoints").mkdir()
    (tmp_path / "with-notes" / "notes.txt").write_text("mine")
    shutil.copytree(finished, tmp_path / "with-runs" / "inner")
    assert dispatch(["runs", "prune", str(tmp_path), "--apply"]) == 0
    said = capsys.readouterr().out
    assert "notes.txt is not weft's" in said and "inner is not weft's" in said
    assert not (tmp_path / "plain").exists()
    assert (tmp_path / "with-notes" / "notes.txt").is_file() and (tmp_path / "with-notes" / "run.yaml").is_file()
    assert (tmp_path / "with-runs" / "inner" / "model.safetensors").is_file()


def test_prune_does_not_follow_a_link_in_the_place_of_the_checkpoints(finished: Path, tmp_path: Path) -> None:
    run, large = tmp_path / "runs" / "one", tmp_path / "large-disk"
    shutil.copytree(finished, run)
    (run / "checkpoints").rename(large)
    (run / "checkpoints").symlink_to(large)
    before = everything(large)
    assert dispatch(["runs", "prune", str(tmp_path / "runs"), "--apply"]) == 0
    assert everything(large) == before and (run / "checkpoints").is_symlink()


def test_a_process_refused_because_another_trains_in_the_folder_deletes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "run"
    path.mkdir()
    other = RunFolder(path).lock()
    with pytest.raises(RunBusy):
        lifecycle.start(ASKED, path, Silent())
    assert everything(path) == {".lock"}
    other.release()
    lock = create(path, ASKED)
    before = everything(path)
    with pytest.raises(WeftError, match="already holds a run"):
        lifecycle.start(ASKED, path, Silent())
    with pytest.raises(RunBusy):
        lifecycle.resume(path, Silent())
    assert everything(path) == before
    lock.release()


def test_a_run_killed_before_it_was_written_down_can_be_begun_again(tmp_path: Path) -> None:
    for name in (".lock", ".run.yaml.4711"):  # as a kill leaves them in the middle of the first write
        (tmp_path / name).touch()
    create(tmp_path, configure("mlp")).release()
    assert RunFolder(tmp_path).config() == configure("mlp")


def test_a_refused_run_takes_back_its_own_files_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(WeftError):
        lifecycle.start(configure("mlp", source=str(tmp_path / "nowhere")), tmp_path / "plain", Silent())
    assert not (tmp_path / "plain").exists()

    def refuse(*_: object) -> None:
        (tmp_path / "run" / "notes.txt").write_text("written while weft was looking")
        raise WeftError("refused late")

    monkeypatch.setattr(lifecycle, "measure_plan", refuse)
    with pytest.raises(WeftError, match="refused late"):
        lifecycle.start(ASKED, tmp_path / "run", Silent())
    assert everything(tmp_path / "run") == {"notes.txt"}


# Replacing


def test_a_folder_of_someone_else_is_no_output(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "report.html").write_text("mine")
    commands = [
        ["compare", "digits", "--output"],
        ["study", "run", "e11", "digits", "--output"],
        ["tune", "digits", "--model", "mlp", "--output"],
        ["train", "digits", "--model", "mlp", "--output"],
        ["finetune", str(tmp_path), "digits", "--seeds", "2", "--output"],
        ["tokenizer", "pydocs", "--output"],
    ]
    for words in commands:
        with pytest.raises(WeftError, match="precious"):
            dispatch([*words, str(precious)])
    assert everything(precious) == {"report.html"} and (precious / "report.html").read_text() == "mine"


def test_a_leaderboard_does_not_overwrite_a_page_of_someone_else(finished: Path, tmp_path: Path) -> None:
    shutil.copytree(finished, tmp_path / "one")
    (tmp_path / "report.html").write_text("mine")
    with pytest.raises(WeftError, match=r"report\.html"):
        dispatch(["leaderboard", str(tmp_path), "--html"])
    assert (tmp_path / "report.html").read_text() == "mine"
    (tmp_path / "report.html").unlink()
    for _ in range(2):  # its own it does
        assert dispatch(["leaderboard", str(tmp_path), "--html"]) == 0


def test_a_run_yaml_or_study_json_of_another_program_gives_no_leave_to_overwrite(
    finished: Path, tmp_path: Path
) -> None:
    shutil.copytree(finished, tmp_path / "one")
    finding = Finding("field", "a title", "a sentence", {}, Table(["a"], [[1]]))
    for name, content in (("run.yaml", "a: b\n"), ("study.json", '{"study": "mine"}'), ("study.json", "[")):
        (tmp_path / name).write_text(content)
        for mine in ("report.html", "field.csv", "model.safetensors"):
            (tmp_path / mine).write_text("mine")
        with pytest.raises(WeftError, match=r"report\.html"):
            claim(tmp_path / "report.html")
        with pytest.raises(WeftError, match=r"field\.csv"):
            finding.save(tmp_path)
        with pytest.raises(WeftError, match=r"model\.safetensors"):
            save_weights(weft.load(finished).network, tmp_path)
        with pytest.raises(WeftError, match="weft did not make it"):
            require_output(tmp_path)
        (tmp_path / name).unlink()


def test_in_the_folder_of_a_run_the_files_of_others_stay(finished: Path, tmp_path: Path) -> None:
    shutil.copytree(finished, tmp_path / "run")
    (tmp_path / "run" / "report.html").write_text("mine")
    (tmp_path / "run" / "field.csv").write_text("mine")
    with pytest.raises(WeftError, match=r"report\.html"):
        claim(tmp_path / "run" / "report.html")
    with pytest.raises(WeftError, match=r"field\.csv"):
        Finding("field", "a title", "a sentence", {}, Table(["a"], [[1]])).save(tmp_path / "run")


def test_a_lens_writes_beside_other_files_and_over_its_own_alone(tmp_path: Path) -> None:
    finding = Finding("field", "a title", "a sentence", {"map": Picture(b"png", "a map")}, Table(["a"], [[1]]))
    (tmp_path / "mine.svg").write_text("mine")
    for _ in range(2):
        assert [path.name for path in finding.save(tmp_path)] == ["field-map.png", "field.csv", "field.json"]
    (tmp_path / ".weft").unlink()
    (tmp_path / "field.csv").write_text("mine")
    before = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    with pytest.raises(WeftError, match="weft did not write it"):
        finding.save(tmp_path)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == before


def test_networks_are_saved_beside_other_files_and_over_their_own_alone(finished: Path, tmp_path: Path) -> None:
    predictor, theirs = weft.load(finished), tmp_path / "theirs"
    (tmp_path / "repository").mkdir()
    (tmp_path / "repository" / "README.md").write_text("a card")
    for _ in range(2):
        predictor.save_pretrained(tmp_path / "repository")
        save_weights(predictor.network, tmp_path / "net.safetensors")
    theirs.mkdir()
    (theirs / "config.json").write_text('{"model_type": "bert"}')
    with pytest.raises(WeftError, match=r"config\.json"):
        predictor.save_pretrained(theirs)
    with pytest.raises(WeftError, match=r"config\.json"):
        save_weights(predictor.network, theirs)
    (theirs / "net.safetensors").write_bytes(b"their weights")
    with pytest.raises(WeftError, match=r"net\.safetensors"):
        save_weights(predictor.network, theirs / "net.safetensors")
    assert everything(theirs) == {"config.json", "net.safetensors"}


def test_a_sheet_does_not_overwrite_a_picture(tmp_path: Path) -> None:
    Image.new("RGB", (4, 4)).save(tmp_path / "cat.png")
    before = (tmp_path / "cat.png").read_bytes()
    with pytest.raises(WeftError, match=r"cat\.png"):
        dispatch(["data", "show", "digits", "--output", str(tmp_path / "cat.png")])
    assert (tmp_path / "cat.png").read_bytes() == before


def test_what_is_claimed_once_can_be_replaced(tmp_path: Path) -> None:
    claim(tmp_path / "new" / "a.txt").write_text("1")
    claim(tmp_path / "new" / "a.txt").write_text("2")
    (tmp_path / "new" / "b.txt").symlink_to(tmp_path / "nowhere")
    with pytest.raises(WeftError):
        claim(tmp_path / "new" / "b.txt")
    with pytest.raises(WeftError, match=r"\.weft|a\.txt|b\.txt"):
        require_output(tmp_path / "new")
    mark(tmp_path / "new")
    require_output(tmp_path / "new")


def test_a_file_of_the_user_under_a_name_that_weft_once_wrote_stays(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    for content in (b"1", b"2", b"1"):
        write_bytes(claim(path), content)
    path.write_text("mine")
    with pytest.raises(WeftError, match=r"report\.html is not what weft wrote there; move it away"):
        claim(path)
    assert path.read_text() == "mine"
    path.unlink()
    (tmp_path / "mine.html").write_bytes(b"1")
    path.symlink_to(tmp_path / "mine.html")
    with pytest.raises(WeftError, match="not what weft wrote"):
        claim(path)
    path.unlink()
    write_bytes(claim(path), b"3")
    assert [file.name for file in data_files(tmp_path)] == ["mine.html"]


def test_saving_a_network_leaves_the_part_files_of_others_alone(finished: Path, tmp_path: Path) -> None:
    (tmp_path / "net.safetensors.part").write_text("of a download")
    save_weights(weft.load(finished).network, tmp_path / "net.safetensors")
    assert (tmp_path / "net.safetensors.part").read_text() == "of a download"
    assert everything(tmp_path) == {"net.safetensors", "net.safetensors.part"}


# Links in a folder that came from elsewhere


def test_a_run_that_holds_links_writes_through_none_of_them(finished: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    (mine / "folder").mkdir(parents=True)
    for name in ("a.txt", "b.txt", "c.txt", "folder/state.safetensors"):
        (mine / name).write_text("precious")
    (mine / "empty.txt").touch()
    run = tmp_path / "run"
    create(run, ASKED).release()
    (run / "summary.csv").symlink_to(mine / "a.txt")
    (run / f".record.json.{os.getpid()}").symlink_to(mine / "b.txt")
    (run / f".run.yaml.{os.getpid()}").symlink_to(mine / "c.txt")
    (run / "metrics.jsonl").symlink_to(mine / "empty.txt")
    (run / "checkpoints").mkdir()
    (run / "checkpoints" / ".00000002.writing").symlink_to(mine / "folder")
    lifecycle.resume(run, Silent())
    assert RunFolder(run).status() == "finished"
    assert {path.read_text() for path in mine.rglob("*") if path.is_file() and path.name != "empty.txt"} == {"precious"}
    assert (mine / "empty.txt").read_text() == ""
    assert everything(mine) == {"a.txt", "b.txt", "c.txt", "empty.txt", "folder", "folder/state.safetensors"}


def test_a_link_or_a_pipe_in_the_place_of_a_lock_is_refused(tmp_path: Path) -> None:
    create(tmp_path / "run", ASKED).release()
    (tmp_path / "mine.txt").write_text("precious")
    lock = tmp_path / "run" / ".lock"
    for place in (lambda: lock.symlink_to(tmp_path / "mine.txt"), lambda: os.mkfifo(lock)):
        lock.unlink()
        place()
        for use in (lambda: RunFolder(tmp_path / "run").status(), lambda: lifecycle.resume(tmp_path / "run", Silent())):
            with pytest.raises(WeftError, match="no plain file"):
                use()
    with pytest.raises(OSError, match="no plain file"):
        lock.unlink()
        lock.symlink_to(tmp_path / "mine.txt")
        Lock(lock).acquire()
    assert (tmp_path / "mine.txt").read_text() == "precious"


def test_the_mark_and_the_logs_of_a_study_are_not_written_through_links(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("precious")
    for name, write in ((".weft", lambda: mark(tmp_path)), ("log.txt", lambda: redirect(tmp_path / "log.txt"))):
        (tmp_path / name).symlink_to(tmp_path / "mine.txt")
        with pytest.raises(OSError, match="no plain file"):
            write()
    assert (tmp_path / "mine.txt").read_text() == "precious"


# Default folders


def test_default_folders_are_those_of_one_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By whatever path it is named; embedded sets keep their plain names."""
    for place in ("a", "b"):
        (tmp_path / place / "photos").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "a")
    ways = ["photos", "./photos/", str(tmp_path / "a" / "photos"), "../a/photos"]
    assert len({default_comparison(way) for way in ways}) == 1
    assert default_comparison("photos") != default_comparison("../b/photos")
    assert default_comparison("photos").name.startswith("photos-")
    assert default_comparison("digits") == Path("comparisons/digits")
    assert name_for("hub:one/set") != name_for("hub:two/set")
    one, other = (RunConfig(source=way, model="mlp") for way in ("photos", "../b/photos"))
    assert default_run(one) != default_run(other)
    assert tune.default_output(one) != tune.default_output(other)
    asked = [parse(study.Arguments, "study", ["run", "e10", way]) for way in ("photos", "../b/photos")]
    assert len({folder_of(arguments, STUDIES["e10"]) for arguments in asked}) == 2
    for awkward in ("..", "/", "a/" + "x" * 300, "\udcff", "a b/c:d*?"):
        assert 0 < len(name_for(awkward)) < 80 and not set(name_for(awkward)) & set("/:*? ")


def test_the_embedded_sets_are_the_ones_that_can_be_read() -> None:
    assert set(find.EMBEDDED) == set(EMBEDDED)


@pytest.mark.parametrize(
    "use",
    [
        name_for,
        lambda name: find.read(name, SourceConfig()),
        lambda name: read_documents(name, CorpusConfig()),
        lambda name: require_there(Path("run"), name),
    ],
    ids=["name", "source", "corpus", "run"],
)
def test_the_home_of_nobody_is_a_sentence(use: Callable[[str], object]) -> None:
    with pytest.raises(WeftError, match="~nobody-of-this-name/x: no home folder"):
        use("~nobody-of-this-name/x")


def test_a_user_without_a_home_is_told_of_the_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("WEFT_CACHE")
    monkeypatch.setattr(Path, "home", homeless)
    with pytest.raises(WeftError, match="set WEFT_CACHE"):
        Cache()


# Not data


def pictures(folder: Path, count: int = 3) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(count):
        Image.fromarray(torch.full((8, 8, 3), number * 20, dtype=torch.uint8).numpy()).save(folder / f"{number}.png")


def test_what_weft_wrote_into_a_source_is_not_its_data(finished: Path, tmp_path: Path) -> None:
    root = tmp_path / "photos"
    for name in ("cats", "dogs"):
        pictures(root / name, 6)
    before = open_source(str(root), SourceConfig())
    shutil.copytree(finished, root / "runs" / "photos-mlp")
    pictures(root / "runs" / "photos-mlp" / "insight")
    (root / "runs" / "notes.txt").write_text("mine")
    pictures(root / "comparisons" / "photos" / "logs")
    (root / "comparisons" / "photos" / "study.json").write_text('{"format": 1, "candidates": [], "runs": []}')
    pictures(root / "resnet18-insight")
    mark(root / "resnet18-insight")
    pictures(root / "tuning" / "photos-mlp" / "trials")
    mark(root / "tuning" / "photos-mlp")
    shutil.copytree(finished, root / "cats" / "run")
    pictures(root / "cats" / "run")
    Image.new("RGB", (9, 9)).save(claim(root / "cats" / "cats.png"))
    after = open_source(str(root), SourceConfig())
    assert after.classes == ["cats", "dogs"]
    assert after.fingerprint == before.fingerprint
    (note,) = set(after.notes) - set(before.notes)
    assert note == ("images in folders that weft wrote were left out: cats/run, comparisons, resnet18-insight, …"), (
        "they may have been meant as data"
    )


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".tar"])
def test_what_weft_wrote_into_a_folder_of_tables_is_not_its_data(finished: Path, tmp_path: Path, ending: str) -> None:
    """As after `cd texts && weft train .`, whose runs lie among the tables."""
    root = tmp_path / "texts"
    root.mkdir()
    table = pa.table({"text": [f"a text of number {row}" for row in range(20)], "label": ["odd", "even"] * 10})
    store = {".csv": store_csv, ".parquet": pq.write_table, ".tar": store_tar}[ending]
    store(table, root / f"train{ending}")
    before = open_source(str(root), SourceConfig()).fingerprint
    shutil.copytree(finished, root / "runs" / "texts-mlp")
    store(table.slice(0, 5), root / "runs" / "texts-mlp" / f"predictions{ending}")
    store(table.slice(0, 5), claim(root / f"answers{ending}"))
    assert open_source(str(root), SourceConfig()).fingerprint == before


def store_tar(table: pa.Table, path: Path) -> None:
    with tarfile.open(path, "w") as archive:
        for number, row in enumerate(table.to_pylist()):
            for suffix, content in (("txt", row["text"]), ("cls", row["label"])):
                member = tarfile.TarInfo(f"{number}.{suffix}")
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content.encode()))


def test_files_that_are_only_named_like_those_of_weft_hide_no_class(tmp_path: Path) -> None:
    for name in ("cats", "dogs", "owls"):
        pictures(tmp_path / name, 6)
    pictures(tmp_path / "cats" / "young", 2)
    (tmp_path / "dogs" / "study.json").write_text('{"study": "of dogs"}')
    (tmp_path / "cats" / "young" / "run.yaml").write_text("a: b\n")
    source = open_source(str(tmp_path), SourceConfig())
    assert source.classes == ["cats", "dogs", "owls"]
    assert sum(len(split) for split in source.splits.values()) == 20


def test_a_class_may_be_called_like_a_folder_of_weft(tmp_path: Path) -> None:
    for name in ("comparisons", "runs"):
        pictures(tmp_path / name, 6)
    assert open_source(str(tmp_path), SourceConfig()).classes == ["comparisons", "runs"]


def test_pictures_without_classes_are_not_mixed_with_those_of_weft(tmp_path: Path) -> None:
    pictures(tmp_path, 8)
    before = open_source(str(tmp_path), SourceConfig(task="none")).fingerprint
    pictures(tmp_path / "vit-insight")
    mark(tmp_path / "vit-insight")
    assert open_source(str(tmp_path), SourceConfig(task="none")).fingerprint == before


def test_a_corpus_does_not_grow_by_what_was_made_of_it(finished: Path, tmp_path: Path) -> None:
    (tmp_path / "one.txt").write_text("a text")
    shutil.copytree(finished, tmp_path / "runs" / "words")
    (tmp_path / "runs" / "words" / "log.txt").write_text("a log")
    mark(tmp_path / "vocabulary")
    (tmp_path / "vocabulary" / "vocab.txt").write_text("a\nb\n")
    assert text_files(tmp_path) == [tmp_path / "one.txt"]


def test_a_folder_that_cannot_be_written_to_is_a_sentence(tmp_path: Path) -> None:
    if os.getuid() == 0:
        pytest.skip("root may write anywhere")
    tmp_path.chmod(0o500)
    with pytest.raises(WeftError, match="cannot write"):
        claim(tmp_path / "a.txt")
    tmp_path.chmod(0o700)
