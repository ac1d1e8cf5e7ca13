"""A run folder may be damaged or come from anywhere: whatever stands in its files, what comes out is a sentence.

Every file of a small finished run is cut, emptied, overwritten, and each of its fields given values of other types and
sizes; then the folder is used. Only `WeftError`, or a working result, may come of it.
"""

from __future__ import annotations

import copy
import hashlib
import json
import math
import os
import shutil
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch
import yaml

import weft
from training.runs import configure, train
from weft.commands import running, runs
from weft.data.transform.tokenizer import train_tokenizer
from weft.data.transform.transforms import ImageTransform, TextTransform
from weft.errors import WeftError
from weft.networks.weights import network_from_folder, save_weights
from weft.studies.compare.mcnemar import compare_two
from weft.studies.results.load import collect
from weft.studies.results.summary import summarise
from weft.training.finetuning.start import read_start
from weft.training.inference.evaluate import evaluate_run
from weft.training.inference.network_folder import NetworkMetadata
from weft.training.inference.predictor import Predictor
from weft.training.inference.verify import verify
from weft.training.loop.display import Silent
from weft.training.run import lifecycle
from weft.training.storage.checkpoints import CheckpointStore, canonical, digest
from weft.training.storage.record import read_predictions
from weft.training.storage.run_folder import LOADER, RunFolder, dump, open_run

VALUES: tuple[Any, ...] = (
    None, "text", -1, 0, 10**30, 1.5, math.nan, math.inf, True, [], {}, [[]], "\ud800", "x" * 9999
)  # fmt: skip
EMPTY = dict.fromkeys(("metric", "value", "steps", "seconds", "cost"))
FEW = (None, "text", -1, 10**30, [], {})
MISSING = object()
RAW = {
    "empty": lambda content: b"",
    "cut": lambda content: content[: len(content) // 2],
    "garbage": lambda content: bytes(range(256)) * 4,
    "zeros": lambda content: bytes(len(content)),
    "brackets": lambda content: b"[" * 100_000,
    "braces": lambda content: b'{"weft":' * 100_000,
    "another kind": lambda content: b"[]",
    "number": lambda content: b"7",
    "doubled": lambda content: content * 2,
}


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of a moment on rows of three numbers."""
    place = tmp_path_factory.mktemp("sound")
    rows = [f"{n % 7},{n % 5},{n % 3},{'yes' if n % 7 > 3 else 'no'}" for n in range(120)]
    (place / "rows.csv").write_text("\n".join(["a,b,c,label", *rows]) + "\n")
    asked = configure("mlp", steps=4, checkpoint_every=2, log_every=1, network={"hidden": [4]})
    train(replace(asked, source=str(place / "rows.csv")), place / "run")
    return place / "run"


def pipe(path: Path) -> None:
    os.mkfifo(path)


def device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def hollow(path: Path) -> None:
    """A file of a petabyte without a byte on the disk; 16 GiB where the system has no larger ones."""
    path.touch()
    try:
        os.truncate(path, 1 << 50)
    except OSError:
        os.truncate(path, 1 << 34)


USES = {
    "predictions.safetensors": lambda run: read_predictions(run),
    "checkpoints/00000004/state.safetensors": lambda run: CheckpointStore(run / "checkpoints").load(4),
    "model.safetensors": lambda run: network_from_folder(run),
}


@pytest.mark.parametrize("place", [pipe, device, hollow], ids=lambda place: place.__name__)
@pytest.mark.parametrize("name", USES)
def test_what_has_no_end_is_not_read(name: str, place: Callable[[Path], None], run: Path) -> None:
    (run / name).unlink()
    place(run / name)
    with pytest.raises(WeftError, match=(run / name).name if "check" not in name else "checkpoints"):
        USES[name](run)


@pytest.mark.parametrize("place", [pipe, device, hollow], ids=lambda place: place.__name__)
def test_what_a_lock_says_is_short(place: Callable[[Path], None], run: Path) -> None:
    (run / ".lock").unlink(missing_ok=True)
    place(run / ".lock")
    assert RunFolder(run).phase() == "starting"


@pytest.fixture
def run(sound: Path, tmp_path: Path) -> Path:
    shutil.copytree(sound, tmp_path / "runs" / "run")
    return tmp_path / "runs" / "run"


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A text network as `save_pretrained` writes it."""
    folder = tmp_path_factory.mktemp("texts")
    tokenizer = train_tokenizer(["red green blue"] * 9, 64)
    sizes = {"vocab_size": tokenizer.vocab_size, "max_length": 16, "dim": 8, "depth": 1, "hidden_dim": 8}
    network = weft.create_model("gmlp_text_tiny", num_classes=2, **sizes)
    card = NetworkMetadata("gmlp_text_tiny", "classes", ["a", "b"])
    Predictor(card, network, TextTransform(tokenizer, 16)).save_pretrained(folder)
    return folder


# Uses


def predict(folder: Path) -> None:
    predictor = weft.load(folder)
    raw = {"image": np.zeros((1, 9, 8), np.uint8), "text": "red blue", "vector": [0.5] * 3}[predictor.modality]
    predictor.predict([raw])


def evaluate(folder: Path) -> None:
    evaluate_run(folder)


def resume(folder: Path) -> None:
    """From the checkpoints, since the run has no record any more."""
    (folder / "record.json").unlink(missing_ok=True)
    lifecycle.resume(folder, Silent())


def tell(folder: Path) -> None:
    running.tell(lifecycle.resume(folder, Silent()))


def listed(folder: Path) -> None:
    runs.show_table([runs.summary(found) for found in runs.find(folder.parent)])


def noted(folder: Path) -> None:
    """What a table of runs makes of a record."""
    record = RunFolder(folder).record()
    runs.cells({"run": "", "status": "", "source": "", "model": "", **(runs.results(record) if record else EMPTY)})


def prune(folder: Path) -> None:
    runs.prune(folder.parent, apply=False)


def repeat(folder: Path) -> None:
    list(verify(folder, 2))


def leaderboard(folder: Path) -> None:
    """What has no record is left out, which is quickly told."""
    if RunFolder(folder).record() is not None:
        summarise(collect(folder.parent))


def paired(folder: Path) -> None:
    compare_two(folder, folder)


def start(folder: Path) -> None:
    read_start(str(folder))


def plan(folder: Path) -> None:
    open_run(folder).plan()
    open_run(folder).config()


# Damages


def read_yaml(text: str) -> Any:
    return yaml.load(text, LOADER)


def places(content: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where something stands in nested dictionaries and lists; of a list, its first item stands for all."""
    if path:
        yield path
    if isinstance(content, dict):
        for key in content:
            yield from places(content[key], (*path, key))
    elif isinstance(content, list) and content:
        yield from places(content[0], (*path, 0))


def replaced(content: Any, path: tuple[Any, ...], value: Any) -> Any:
    """The content with something else in that place, or without it."""
    content = copy.deepcopy(content)
    inner = content
    for key in path[:-1]:
        inner = inner[key]
    if value is MISSING:
        del inner[path[-1]]
    else:
        inner[path[-1]] = value
    return content


def survives(use: Callable[[Path], None], folder: Path, what: str) -> None:
    """Use a folder; anything but a sentence is a failure that names the damage."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            use(folder)
    except WeftError as error:
        assert len(str(error)) < 2000, what
    except BaseException as error:
        pytest.fail(f"{use.__name__} after {what}: {type(error).__name__}: {str(error)[:300]}")


def damage_raw(file: Path, *uses: Callable[[Path], None]) -> None:
    """All damages to the bytes of a file, and a folder, a link into nowhere, and nothing in its place."""
    folder, content = file.parents[0], file.read_bytes()
    while not (folder / "run.yaml").exists() and not (folder / "config.json").exists():
        folder = folder.parent
    for name, damage in RAW.items():
        for use in uses:
            file.write_bytes(damage(content))
            survives(use, folder, f"{file.name} {name}")
    for name in ("a folder", "a link into nowhere", "nothing"):
        for use in uses:
            file.unlink(missing_ok=True)
            if name == "a folder":
                file.mkdir()
            elif name != "nothing":
                file.symlink_to(folder / "nowhere")
            survives(use, folder, f"{file.name} is {name}")
            file.rmdir() if name == "a folder" else file.unlink(missing_ok=True)
    file.write_bytes(content)


def damage_fields(
    file: Path,
    read: Callable[[str], Any],
    write: Callable[[Any], str],
    *uses: Callable[[Path], None],
    only: tuple[Any, ...] = (),
    values: tuple[Any, ...] = VALUES,
) -> None:
    """Each field of a file in turn holds each of the values, or is missing; `only` those below a path."""
    original = file.read_text()
    content = read(original)
    for path in places(content):
        if path[: len(only)] != only:
            continue
        for value in (*values, MISSING):
            for use in uses:
                file.write_text(write(replaced(content, path, value)))
                survives(use, file.parent, f"{file.name}: {path} = {value!r:.40}")
    file.write_text(original)


# What is used of a run's files


def test_config(run: Path) -> None:
    damage_raw(run / "config.json", predict, start)
    damage_fields(run / "config.json", json.loads, json.dumps, predict, only=("weft",))
    damage_fields(run / "config.json", json.loads, json.dumps, start, only=("weft",), values=("text", 10**30, []))


def test_preprocessing(run: Path) -> None:
    damage_raw(run / "preprocessor_config.json", predict)
    damage_fields(run / "preprocessor_config.json", json.loads, json.dumps, predict, only=("weft",))


def test_weights(run: Path) -> None:
    damage_raw(run / "model.safetensors", predict, start)
    content = safetensors.torch.load_file(run / "model.safetensors")
    name = next(iter(content))
    others: list[dict[str, Any]] = [
        {}, {"a": torch.zeros(3)}, {**content, "a": torch.zeros(3)}, {**content, name: torch.zeros(2, 2)},
        {**content, name: content[name].long()}, {**content, name: content[name].T.contiguous()},
        {**content, name: content[name] * math.nan},
    ]  # fmt: skip
    for number, tensors in enumerate(others):
        safetensors.torch.save_file(tensors, run / "model.safetensors")
        survives(predict, run, f"weights {number}")


def test_tokenizer(texts: Path, tmp_path: Path) -> None:
    folder = tmp_path / "texts"
    shutil.copytree(texts, folder)
    damage_raw(folder / "tokenizer.json", predict)
    damage_raw(folder / "tokenizer_config.json", predict)
    damage_fields(folder / "tokenizer_config.json", json.loads, json.dumps, predict, only=("model_max_length",))
    damage_fields(folder / "tokenizer.json", json.loads, json.dumps, predict, values=FEW)
    damage_fields(folder / "config.json", json.loads, json.dumps, predict, only=("weft", "network"), values=FEW)


def test_pictures(tmp_path: Path) -> None:
    """The preprocessing of a network on images."""
    network = weft.create_model("lenet5", img_size=(16, 16), channels=(4, 4), num_classes=2)
    card, pictures = NetworkMetadata("lenet5", "classes", ["a", "b"]), ImageTransform(16, 1, (0.5,), (0.5,))
    Predictor(card, network, pictures).save_pretrained(tmp_path)
    predict(tmp_path)
    damage_fields(tmp_path / "preprocessor_config.json", json.loads, json.dumps, predict, only=("weft",))


def test_what_was_asked(run: Path) -> None:
    damage_raw(run / "run.yaml", plan, listed, prune, tell)
    damage_fields(run / "run.yaml", read_yaml, dump, plan, values=tuple(v for v in VALUES if v != "\ud800"))
    for name in ("reading", "source"):
        damage_fields(run / "run.yaml", read_yaml, dump, evaluate, only=("config", name), values=FEW)


def test_a_run_whose_configuration_is_odd_is_resumed_or_refused(run: Path) -> None:
    values = (-1, 0, 10**9, "text")
    for name in ("network", "optimisation"):
        damage_fields(run / "run.yaml", read_yaml, dump, resume, only=("config", name), values=values)


def test_record(run: Path) -> None:
    file = run / "record.json"
    damage_raw(file, listed, leaderboard, paired)
    used = (
        "status",
        "metric",
        "metrics",
        "source",
        "parameters",
        "curve",
        "steps",
        "wall_seconds",
        "cost",
        "beats_constant_guess",
    )
    for name in used:
        damage_fields(file, json.loads, json.dumps, noted, only=(name,))
    for name in ("metrics", "curve", "source"):
        damage_fields(file, json.loads, json.dumps, leaderboard, only=(name,), values=("text", 10**30))
    for name in ("seed", "model", "network", "source"):
        damage_fields(file, json.loads, json.dumps, leaderboard, only=("config", name), values=("text", []))
    damage_fields(file, json.loads, json.dumps, tell, only=("metrics",), values=("text", 10**30))


def test_curve(run: Path) -> None:
    lines = (run / "metrics.jsonl").read_text().splitlines()
    for file in ("metrics.jsonl", "summary.csv"):
        damage_raw(run / file, resume, repeat)
    for number in (0, next(n for n, line in enumerate(lines) if "evaluation" in line)):
        for path in places(json.loads(lines[number])):
            for value in ("text", None, 10**30, []):
                odd = json.dumps(replaced(json.loads(lines[number]), path, value))
                (run / "metrics.jsonl").write_text("\n".join([*lines[:number], odd, *lines[number + 1 :]]) + "\n")
                survives(repeat, run, f"metrics.jsonl: {path} = {value!r}")


def test_predictions(run: Path) -> None:
    damage_raw(run / "predictions.safetensors", leaderboard, paired)
    content = safetensors.torch.load_file(run / "predictions.safetensors")
    for name, value in content.items():
        for odd in (
            value[:3],
            value[None],
            value[:0],
            value.double() * math.nan,
            value.long() * 10**12,
            torch.zeros(()),
        ):
            safetensors.torch.save_file({**content, name: odd.contiguous()}, run / "predictions.safetensors")
            survives(leaderboard, run, f"predictions {name} {tuple(odd.shape)}")
            survives(paired, run, f"predictions {name} {tuple(odd.shape)}")


def test_checkpoints(run: Path) -> None:
    """The newest is damaged, or all are."""
    newest = sorted((run / "checkpoints").iterdir())[-1]
    for name in ("manifest.json", "state.safetensors"):
        damage_raw(newest / name, resume)
    damage_raw(newest / "manifest.json", repeat)
    for name in ("²", "00000009", "9" * 5000):
        if len(name) < 200:
            (run / "checkpoints" / name).mkdir()
    survives(resume, run, "odd folders")
    for manifest in (run / "checkpoints").glob("*/manifest.json"):
        manifest.write_text("{}")
    with pytest.raises(WeftError, match="no sound checkpoint"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        resume(run)


def test_checkpoints_with_a_right_checksum(run: Path) -> None:
    """Of another network, or with numbers that no run has."""
    newest = sorted((run / "checkpoints").iterdir())[-1]
    stored = json.loads((newest / "manifest.json").read_text())
    content = (newest / "state.safetensors").read_bytes()

    def sign(numbers: Any, tensors: bytes) -> None:
        signed = {"step": stored["step"], "sha256": digest(tensors), "numbers": numbers}
        (newest / "manifest.json").write_bytes(
            canonical({**signed, "manifest_sha256": hashlib.sha256(canonical(signed)).hexdigest()})
        )
        (newest / "state.safetensors").write_bytes(tensors)

    for path in places(stored["numbers"]):
        for value in ("text", None, 10**30, [], MISSING):
            sign(replaced(stored["numbers"], path, value), content)
            survives(resume, run, f"numbers {path} = {value!r}")
    tensors = safetensors.torch.load(content)
    for name in list(tensors)[:: max(1, len(tensors) // 12)]:
        without = {key: value for key, value in tensors.items() if key != name}
        for odd in ({**tensors, name: torch.zeros(2, 7)}, without):
            sign(stored["numbers"], safetensors.torch.save(odd))
            survives(resume, run, f"state {name}")


# Things that could be large


@pytest.mark.parametrize(
    ("model", "changes"),
    [
        ("mlp", {"hidden": [10**9]}),
        ("mlp", {"hidden": [2**24, 2**24]}),
        ("vit_nano_p4_32", {"depth": 10**9}),
        ("vit_nano_p4_32", {"dim": 2**20, "heads": 1}),
        ("control_random_p4_32", {"img_size": [2**15, 2**15], "patch_size": 1}),
        ("gmlp_text_tiny", {"max_length": 2**24}),
        ("bert_tiny", {"positions": "sinusoidal", "max_length": 2**24}),
        ("lstm_text", {"depth": 9999, "hidden_dim": 2**24}),
        ("rcnn_96", {"steps": 10**9}),
        ("resnet20_cifar", {"layers": [10**6, 1, 1]}),
    ],
)
def test_a_network_is_built_only_if_its_weights_are_there(model: str, changes: dict[str, Any], tmp_path: Path) -> None:
    """A few bytes of config.json can ask for any amount of memory."""
    save_weights(weft.create_model(model, **({"in_features": 4} if model == "mlp" else {})), tmp_path)
    stored = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**stored, **changes}))
    before = torch.get_rng_state()
    with pytest.raises(WeftError):
        network_from_folder(tmp_path)
    section = {"format": 1, "model": model, "task": "classes", "classes": ["a"] * stored["num_classes"]}
    fields = {name: value for name, value in {**stored, **changes}.items() if name != "library_name"}
    (tmp_path / "config.json").write_text(json.dumps({"weft": {**section, "network": fields}}))
    with pytest.raises(WeftError):
        weft.load(tmp_path)
    assert torch.equal(before, torch.get_rng_state()), "something was built"


def test_a_network_larger_than_the_memory_is_a_sentence() -> None:
    with pytest.raises(WeftError, match=r"GiB.*choose a smaller one"):
        weft.create_model("mlp", in_features=2**24, hidden=(2**24,))


def test_yaml_that_multiplies_itself_is_refused(run: Path) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    (run / "run.yaml").write_text("format: 1\nconfig: {}\n" + "\n".join(lines))
    with pytest.raises(WeftError, match="alias"):
        RunFolder(run).config()
    (run / "run.yaml").write_text("format: 1\nconfig: " + "{a: " * 5000)
    with pytest.raises(WeftError, match="levels deep"):
        RunFolder(run).config()
    (run / "run.yaml").write_text("format: 1\nconfig: {}\n" + "#" * (2 << 20))
    with pytest.raises(WeftError, match="MiB"):
        RunFolder(run).config()


def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(run: Path) -> None:
    import os

    for name, use in (("config.json", predict), ("run.yaml", plan), ("record.json", listed)):
        (run / name).unlink()
        os.mkfifo(run / name)
        survives(use, run, f"{name} is a pipe")
