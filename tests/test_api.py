"""`weft.open_source`, `weft.train` and `weft.compare` from Python: what goes in, what comes back, what is refused."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from PIL import Image
from sklearn.datasets import load_digits

import weft
from forking import command
from weft.api import Leaderboard
from weft.data import AugmentConfig, batches
from weft.data.sources.arrow import pixels_in
from weft.errors import WeftError
from weft.imported import trust
from weft.networks import listing
from weft.training.metrics import score

ROOT = Path(__file__).parents[1]
DIGITS: Any = load_digits()
IMAGES = (DIGITS.images[:120] / 16).astype(np.float32)
LABELS = DIGITS.target[:120]
TEXTS = [f"{'good' if number % 2 else 'bad'} film number {number} of {number * 7 % 50}" for number in range(80)]
QUICK: dict[str, Any] = {"steps": 4, "batch_size": 32, "network": {"hidden": [16]}, "device": "cpu"}


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Every test has a current folder and a cache of its own, in which the names of networks stand already."""
    monkeypatch.chdir(tmp_path)
    Path("cache").mkdir()
    shutil.copy2(listing.cache_file(), "cache")
    monkeypatch.setenv("WEFT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("WEFT_TRUST_MODULES", "")
    return tmp_path


def module(name: str, code: str) -> None:
    Path(f"{name}.py").write_text(textwrap.dedent(code), encoding="utf-8")


# ---- open_source


def first(source: Any, split: str = "train") -> Any:
    return source.splits[split].read(np.arange(1))[0][0]


def test_import_weft_loads_no_torch() -> None:
    code = "import sys, weft; assert not {'torch', 'numpy', 'pydantic'} & set(sys.modules), 'heavy'"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_vectors_with_their_test_split() -> None:
    source = weft.open_source(DIGITS.data[:120], LABELS, test=(DIGITS.data[120:160], DIGITS.target[120:160]))
    assert (source.modality, source.task, len(source.classes)) == ("vector", "classes", 10)
    assert len(source.splits["test"]) == 40
    assert sum(len(source.splits[role]) for role in ("train", "validation")) == 120
    np.testing.assert_array_equal(first(source, "test"), DIGITS.data[120].astype(np.float32))


def test_validation_given_is_validation_used() -> None:
    parts = [(DIGITS.data[a:b], DIGITS.target[a:b]) for a, b in ((120, 150), (150, 200))]
    source = weft.open_source(DIGITS.data[:120], LABELS, validation=parts[0], test=parts[1])
    assert [len(source.splits[role]) for role in ("train", "validation", "test")] == [120, 30, 50]


@pytest.mark.parametrize("form", ["grey", "first", "last", "bytes", "pillow"])
def test_images_of_every_form_are_the_same_pixels(form: str) -> None:
    pixels = np.rint(IMAGES * 255).astype(np.uint8)
    colour = np.repeat(pixels[:, None], 3, 1)
    given: Any = {
        "grey": IMAGES,
        "first": colour,
        "last": colour.transpose(0, 2, 3, 1),
        "bytes": pixels,
        "pillow": [Image.fromarray(image) for image in pixels],
    }[form]
    source = weft.open_source(given, LABELS, task="classes")
    assert source.modality == "image"
    row = source.splits["train"].rows[0]  # type: ignore[union-attr]
    expected = colour[row] if form in ("first", "last") else pixels[row][None]
    np.testing.assert_array_equal(first(source), expected)


def test_texts_and_pairs() -> None:
    source = weft.open_source(TEXTS, ["p", "n"] * 40)
    assert (source.modality, source.classes) == ("text", ["n", "p"])
    pairs = weft.open_source(list(zip(TEXTS, reversed(TEXTS), strict=True)), [0, 1] * 40)
    assert (pairs.modality, pairs.task) == ("pair", "binary")


def test_numbers_are_a_regression() -> None:
    assert weft.open_source(DIGITS.data[:120], np.linspace(0.0, 1.0, 120) ** 2).task == "regression"


class Column(list[Any]):
    """A column as pandas has it, as far as weft looks at it."""

    def to_numpy(self) -> Any:
        return np.asarray(list(self), dtype=object if isinstance(self[0], str) else None)


class Frame:
    """A table as pandas has it, as far as weft looks at it."""

    def __init__(self, **columns: list[Any]) -> None:
        self._held = {name: Column(values) for name, values in columns.items()}
        self.columns = list(columns)

    def __len__(self) -> int:
        return len(self._held[self.columns[0]])

    def __getitem__(self, name: str) -> Column:
        return self._held[name]

    def to_numpy(self) -> Any:
        return np.stack([column.to_numpy() for column in self._held.values()], axis=1)


def test_tables_with_the_target_among_the_columns_or_beside_them() -> None:
    title, width = list(map(float, range(80))), [value * 2.0 for value in range(80)]
    kinds = ["cat", "dog"] * 40
    within = weft.open_source(Frame(title=title, width=width, kind=kinds), target="kind", inputs=("title", "width"))
    assert (within.modality, within.columns, within.classes) == ("vector", ["title", "width"], ["cat", "dog"])
    beside = weft.open_source(Frame(title=title, width=width), Column(kinds))
    assert beside.columns == ["title", "width"], "nothing is guessed from names where y is given"
    arrow = weft.open_source(pa.table({"text": TEXTS, "label": kinds}))
    assert (arrow.modality, arrow.classes) == ("text", ["cat", "dog"])


class HubDataset:
    """A Dataset of the library `datasets`, as far as weft looks at it."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table
        self.features = SimpleNamespace(arrow_schema=table.schema)

    def with_format(self, form: str) -> HubDataset:
        assert form == "arrow"
        return self

    def __len__(self) -> int:
        return len(self.table)

    def __getitem__(self, which: slice) -> pa.Table:
        return self.table.replace_schema_metadata(None)


def hub(texts: list[str], labels: list[int]) -> HubDataset:
    note = b'{"info": {"features": {"label": {"names": ["no", "yes"], "_type": "ClassLabel"}}}}'
    table = pa.table({"text": texts, "label": labels}).replace_schema_metadata({b"huggingface": note})
    return HubDataset(table)


def test_datasets_and_their_dictionaries_keep_splits_and_class_names() -> None:
    one = weft.open_source(hub(TEXTS, [0, 1] * 40))
    assert one.classes == ["no", "yes"]
    both = weft.open_source({"train": hub(TEXTS, [0, 1] * 40), "test": hub(["a film", "the film"], [0, 1])})
    assert len(both.splits["test"]) == 2


@pytest.mark.parametrize("shape", ["(1, 8, 8)", "(1, 99999999, 99999999)", "(64,)", "'no'"])
def test_a_cell_that_only_looks_like_an_image_stays_what_it_is(shape: str) -> None:
    header = f"{{'descr': '|u1', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    cell = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + bytes(64)
    found = pixels_in(cell)
    assert (isinstance(found, bytes)) == (shape != "(1, 8, 8)")


class Items(torch.utils.data.Dataset[Any]):
    """A map-style Dataset of torch."""

    def __len__(self) -> int:
        return len(IMAGES)

    def __getitem__(self, number: int) -> tuple[torch.Tensor, int]:
        return torch.from_numpy(IMAGES[number])[None], int(LABELS[number])


class Stream(torch.utils.data.IterableDataset[Any]):
    def __iter__(self) -> Any:
        yield IMAGES[0], 1


def test_a_dataset_of_torch() -> None:
    source = weft.open_source(Items())
    assert (source.modality, source.task, len(source.classes)) == ("image", "classes", 10)


def test_the_same_data_are_stored_once_and_other_data_apart() -> None:
    one, same = weft.open_source(IMAGES, LABELS), weft.open_source(IMAGES.copy(), LABELS.tolist())
    other = weft.open_source(IMAGES[::-1], LABELS)
    assert one.name == same.name and one.fingerprint == same.fingerprint
    assert other.name != one.name and other.fingerprint != one.fingerprint
    assert {path.name[:5] for path in Path("cache/sources").iterdir()} == {"data-"}, "nothing is left of the writing"


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (lambda: weft.open_source(Stream()), "no length"),
        (lambda: weft.open_source(iter(TEXTS)), "no length"),
        (lambda: weft.open_source(DIGITS.data[:120], LABELS[:-1]), "120 inputs and 119 labels"),
        (lambda: weft.open_source(DIGITS.data[:120], DIGITS.data[:120]), "one an input"),
        (lambda: weft.open_source(DIGITS.data[:120]), "without labels"),
        (lambda: weft.open_source("digits", LABELS), "brings its own labels"),
        (lambda: weft.open_source(Items(), LABELS), "brings its own labels"),
        (lambda: weft.open_source({"train": hub(TEXTS, [0, 1] * 40)}, test=(TEXTS, [0, 1] * 40)), "their own splits"),
        (lambda: weft.open_source(IMAGES * 300, LABELS), "from 0 to 1"),
        (lambda: weft.open_source(TEXTS, ["p", 3] * 40), "several kinds"),
        (lambda: weft.open_source([["a", 1], ["b"]], [0, 1]), "rows of numbers"),
        (lambda: weft.open_source("digits", val_fractoin=0.2), "did you mean val_fraction"),
        (lambda: weft.open_source("digits", val_fraction=2.0), "val_fraction"),
    ],
)
def test_bad_data_are_refused_in_a_sentence(given: Any, sentence: str) -> None:
    with pytest.raises(WeftError, match=sentence) as refusal:
        given()
    assert "\n" not in str(refusal.value)


def test_a_cache_that_cannot_be_written_to(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("file").write_text("")
    monkeypatch.setenv("WEFT_CACHE", "file/cache")
    with pytest.raises(WeftError, match="WEFT_CACHE"):
        weft.open_source(IMAGES, LABELS)


# ---- train


def test_a_run_tells_what_came_out_and_predicts() -> None:
    source = weft.open_source(IMAGES, LABELS, task="classes", val_fraction=0.25)
    run = weft.train(source, "mlp", output="run", seed=3, **QUICK)
    assert run.path == Path("run") and run.config.seed == 3
    assert run.metric == "accuracy" and 0 <= run.metrics["accuracy"] <= 1
    assert [event["step"] for event in run.curve if event["kind"] == "evaluation"][-1] == 4
    assert run.config.reading.val_fraction == 0.25, "a source is read as it was opened"
    assert set(run.predict(IMAGES[:5])) <= set(source.classes)
    assert "accuracy" in repr(run)


def test_the_same_call_finds_the_run_done_and_another_is_refused() -> None:
    asked: dict[str, Any] = {"output": "run", **QUICK}
    before = weft.train("breast_cancer", "mlp", **asked).record
    assert weft.train("breast_cancer", "mlp", **asked).record == before
    with pytest.raises(WeftError, match=r"another configuration .*seed"):
        weft.train("breast_cancer", "mlp", seed=1, **asked)


def test_training_from_python_is_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    from weft.commands.main import dispatch
    from weft.training.storage.run_folder import open_run

    words = ["--steps", "4", "--batch-size", "32", "--network", "hidden=[16]", "--device", "cpu"]
    dispatch(["train", "breast_cancer", "--model", "mlp", *words, "--output", "command"])
    run = weft.train("breast_cancer", "mlp", output="python", **QUICK)
    assert run.config == open_run(Path("command")).config()
    assert (run.path / "model.safetensors").read_bytes() == Path("command/model.safetensors").read_bytes()


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"batchsize": 3}, "did you mean batch_size"),
        ({"batch_size": "many"}, "batch_size"),
        ({"time": "soon", "steps": None}, "not a duration"),
        ({"model": "mpl"}, "did you mean"),
        ({"metric": "macro_f2"}, "did you mean macro_f1"),
        ({"metric": "r2"}, "not for targets that are classes"),
        ({"metric": "nowhere_at_all:f"}, "PYTHONPATH"),
        ({"metric": lambda a, b: 0.0}, "in the script or notebook itself"),
        ({"augmentation": "nowhere_at_all:f"}, "PYTHONPATH"),
        ({"augmentation": "math:sine"}, "math has no sine; did you mean"),
        ({"augmentation": "math:pi"}, "name a function"),
        ({"augmentation": "turn"}, "no import string"),
    ],
)
def test_bad_settings_are_refused_and_leave_nothing_behind(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(WeftError, match=sentence) as refusal:
        weft.train("digits", **{"model": "mlp", "output": "run", **QUICK, **settings})
    assert "\n" not in str(refusal.value)
    assert not Path("run").exists()


# ---- own metric, own augmentation


def test_named_metrics_are_those_of_scikit_learn() -> None:
    from sklearn import metrics

    outputs, targets = torch.randn(200, 4, generator=torch.Generator().manual_seed(0)), torch.arange(200) % 4
    predicted, chances = outputs.argmax(1).numpy(), torch.softmax(outputs.double(), 1).numpy()
    for name, expected in {
        "balanced_accuracy": metrics.balanced_accuracy_score(targets, predicted),
        "macro_f1": metrics.f1_score(targets, predicted, average="macro"),
        "matthews": metrics.matthews_corrcoef(targets, predicted),
        "auroc": metrics.roc_auc_score(targets, chances, multi_class="ovr"),
        "sklearn.metrics:cohen_kappa_score": metrics.cohen_kappa_score(targets, predicted),
    }.items():
        assert score(name, "classes", outputs, targets) == pytest.approx(expected), name
    numbers, truth = outputs[:, :1], outputs[:, 1].double()
    error = metrics.mean_absolute_error(truth, numbers[:, 0])
    assert score("negative_mae", "regression", numbers, truth) == pytest.approx(-error)
    two = score("sklearn.metrics:roc_auc_score", "binary", numbers, (truth > 0).float())
    assert two == pytest.approx(metrics.roc_auc_score(truth > 0, numbers[:, 0])), "y_score gets probabilities"


def test_an_own_metric_chooses_the_best_step_and_is_reported() -> None:
    module(
        "own_worst",
        """
        def wrong(targets, predictions):
            return (targets != predictions).mean()
        """,
    )
    quick = QUICK | {"steps": 100, "lr": 0.01}
    run = weft.train("digits", "mlp", output="run", metric="own_worst:wrong", **quick)
    assert run.metric == "own_worst:wrong"
    assert run.metrics[run.metric] == pytest.approx(1 - run.metrics["accuracy"])
    evaluations = [event for event in run.curve if event["kind"] == "evaluation"]
    best = max(evaluations, key=lambda event: (event["validation_metric"], -event["validation_loss"]))
    assert run.record["best_step"] == best["step"] < 100, "the earliest are the worst"


@pytest.mark.parametrize("returned", ["None", "'high'", "float('nan')", "predictions", "1 / 0"])
def test_a_metric_that_returns_no_number(returned: str) -> None:
    name = f"own_bad_{abs(hash(returned))}"
    module(name, f"def metric(targets, predictions):\n    return {returned}\n")
    with pytest.raises(WeftError, match=rf"{name}:metric returned"):
        weft.train("digits", "mlp", output="run", metric=f"{name}:metric", **QUICK)
    assert not Path("run").exists()


def test_an_own_augmentation_is_a_pure_function_of_seed_step_and_example() -> None:
    module(
        "own_darker",
        """
        def darker(images, noise):
            return (images * noise.uniform()[:, :, None, None]).to(images.dtype)
        """,
    )
    trust("own_darker:darker")
    source = weft.open_source("digits")
    config = AugmentConfig(augmentation="own_darker:darker")
    whole = batches(source, batch_size=32, augment=config)
    plain = batches(source, batch_size=32)
    parts = [batches(source, batch_size=32, augment=config, rank=rank, world=2) for rank in range(2)]
    later = whole[7].inputs["x"]
    assert torch.equal(later, batches(source, batch_size=32, augment=config)[7].inputs["x"])
    assert torch.equal(later, torch.cat([part[7].inputs["x"] for part in parts])), "whatever the processes"
    assert not torch.equal(later, plain[7].inputs["x"])
    assert torch.equal(
        batches(source, "test", augment=config)[0].inputs["x"], batches(source, "test")[0].inputs["x"]
    ), "training alone"


@pytest.mark.parametrize(
    ("returned", "sentence"),
    [
        ("images[:, :, 1:]", "same shape"),
        ("images / 255", "same shape and type"),
        ("None", "NoneType"),
        ("x", "failed"),
    ],
)
def test_an_augmentation_that_returns_no_images(returned: str, sentence: str) -> None:
    name = f"own_shape_{abs(hash(returned))}"
    module(name, f"def change(images, noise):\n    return {returned}\n")
    trust(f"{name}:change")
    loader = batches(weft.open_source("digits"), augment=AugmentConfig(augmentation=f"{name}:change"))
    with pytest.raises(WeftError, match=sentence):
        loader[0]


def test_a_module_is_not_imported_because_a_file_names_it() -> None:
    module("own_found", "def metric(targets, predictions):\n    return 1.0\n")
    run = weft.train("breast_cancer", "mlp", output="run", metric="own_found:metric", **QUICK)
    clean = {name: value for name, value in os.environ.items() if name != "WEFT_TRUST_MODULES"} | {"PYTHONPATH": "."}
    refused = command("eval", "run", environment=clean)
    assert refused.returncode == 2 and "WEFT_TRUST_MODULES=own_found" in refused.stderr
    vouched = clean | {"WEFT_TRUST_MODULES": "own_found"}
    done = command("eval", "run", environment=vouched)
    assert done.returncode == 0 and "own_found:metric" in done.stdout, run


def test_a_function_given_as_such_is_stored_by_its_name() -> None:
    from sklearn.metrics import matthews_corrcoef

    run = weft.train("breast_cancer", "mlp", output="run", metric=matthews_corrcoef, **QUICK)
    assert run.config.objective.metric == "sklearn.metrics._classification:matthews_corrcoef"


# ---- compare

SCRIPT = """
import numpy as np, weft
print("the script begins")
values = np.random.default_rng(0).normal(size=(120, 6))
source = weft.open_source(values, (values[:, 0] > 0).astype(int))
quick = dict(steps=4, seeds=1, trials=0, jobs=1, match="none")
found = weft.compare(source, ["mlp"], metric="own_share:share", output="out", **quick)
print(found)
print(len(found.leaderboard), found.report.is_file())
"""


@pytest.mark.slow
@pytest.mark.parametrize("way", ["script", "stdin"])
def test_a_comparison_from_an_unguarded_script(way: str) -> None:
    Path("script.py").write_text(SCRIPT, encoding="utf-8")
    module("own_share", "def share(targets, predictions):\n    return (targets == predictions).mean()\n")
    words = [sys.executable, "script.py"] if way == "script" else [sys.executable, "-"]
    done = subprocess.run(words, input=SCRIPT, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("the script begins") == 1, "workers do not run it again"
    assert "own_share:share" in done.stdout and done.stdout.rstrip().endswith("2 True")
    for row in weft.Comparison.read(Path("out")).leaderboard:
        assert row["own_share:share"] == pytest.approx(row["score"])


SUMMARY: dict[str, Any] = {
    "metric": "accuracy",
    "rows": [
        {"name": "<b>", "group": "mlp", "score": 0.5, "low": 0.4, "high": 0.6, "parameters": 1000.0},
        {"name": "vit", "group": "control", "score": None, "low": None, "high": None},
    ],
}


def test_a_leaderboard_prints_as_text_and_as_a_table_of_a_notebook() -> None:
    table = Leaderboard(SUMMARY)
    assert [row["name"] for row in table] == ["<b>", "vit"] and table[0]["score"] == 0.5
    lines = repr(table).splitlines()
    assert len(lines) == 3 and "50.0 %" in lines[1] and "–" in lines[2]
    whole = weft.Comparison(Path("out"), SUMMARY | {"verdicts": [{"sentence": "a < b"}], "recommendation": ""})
    assert whole.verdicts == ["a < b"] and "<li>a &lt; b</li>" in whole._repr_html_() and lines[1] in repr(whole)
    page = table._repr_html_()
    assert page.count("<tr>") == 3 and "&lt;b&gt;" in page and "<b>" not in page


def test_a_leaderboard_for_pandas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(WeftError, match="pip install pandas"):
        Leaderboard(SUMMARY).to_pandas()
    monkeypatch.setitem(sys.modules, "pandas", SimpleNamespace(DataFrame=list))
    assert Leaderboard(SUMMARY).to_pandas() == list(Leaderboard(SUMMARY))


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"sedes": 3}, "did you mean seeds"),
        ({"time": "20m", "steps": 5}, "--time decides"),
        ({"time": "soon"}, "not a duration"),
    ],
)
def test_bad_settings_of_a_comparison(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(WeftError, match=sentence):
        weft.compare("digits", ["mlp"], output="out", **settings)


# ---- the page about it


def test_the_examples_of_the_page_run() -> None:
    page = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    module("own", next(block for block in blocks if "# own.py" in block))
    held: dict[str, Any] = {"__name__": "page"}
    for block in blocks:
        if "# own.py" not in block and "weft.compare" not in block:
            exec(block, held)
    assert held["run"].metrics
