"""An .onnx file is used alone; one that is damaged, hostile or someone else's is refused before it is computed."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import weft
from networks.small import shaken, small
from weft.data.transform.tokenizer import train_tokenizer
from weft.data.transform.transforms import ImageTransform, TextTransform, Transform, VectorTransform
from weft.errors import WeftError
from weft.export.onnx_export import graph_file, require_place, require_same
from weft.networks.base.network import Network
from weft.training.inference import onnx_file
from weft.training.inference.network_folder import NetworkMetadata
from weft.training.inference.predictor import Predictor

onnx = pytest.importorskip("onnx", reason="no onnx: pip install 'weft[onnx]'")
pytest.importorskip("onnxruntime", reason="no onnxruntime: pip install 'weft[onnx]'")
pytest.importorskip("onnxscript", reason="no onnxscript: pip install 'weft[onnx]'")

TEXTS = ["a red thing and more of it", "blue", "some green one"]


def predictor(network: Network, transform: Transform, **card: Any) -> Predictor:
    names = [f"class {number}" for number in range(network.config.num_classes)]
    return Predictor(
        NetworkMetadata("small", **{"task": "classes", "classes": names, **card}), network.eval(), transform
    )


def of_images() -> Predictor:
    return predictor(shaken(small("mlp")), ImageTransform(16, 3, (0.5,) * 3, (0.2, 0.3, 0.4), crop=0.9))


def of_texts() -> Predictor:
    tokenizer = train_tokenizer(TEXTS * 5, 60)
    network = small("conv_text", vocab_size=tokenizer.vocab_size)
    return predictor(shaken(network), TextTransform(tokenizer, 10))


def of_numbers() -> Predictor:
    network = weft.create_model("mlp", in_features=2, hidden=(8,), num_classes=1)
    transform = VectorTransform((1.0, 2.0), (0.5, 2.0), ("width", "height"))
    card = {"task": "regression", "classes": [], "centre": 7.0, "scale": 3.0, "columns": ["width", "height"]}
    return predictor(shaken(network), transform, **card)


@pytest.fixture(scope="module")
def file() -> bytes:
    return graph_file(of_images())


def stored(folder: Path, content: bytes, name: str = "model.onnx") -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


def test_a_file_of_images_answers_as_the_network(file: bytes, tmp_path: Path) -> None:
    asked = np.random.default_rng(0).integers(0, 256, (3, 3, 20, 31), dtype=np.uint8)
    loaded = weft.load(stored(tmp_path, file))
    torch.testing.assert_close(loaded.outputs(asked), of_images().outputs(asked), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("made", "asked"),
    [
        (of_texts, TEXTS),
        (of_numbers, [[1.0, 2.0], [3.0, -1.0], {"width": 0.5, "height": 4.0}]),
    ],
)
def test_a_file_alone_answers_as_the_network(made: Callable[[], Predictor], asked: Any, tmp_path: Path) -> None:
    own = made()
    loaded = weft.load(stored(tmp_path, graph_file(own)))
    assert (loaded.card, loaded.columns, loaded.takes) == (own.card, own.columns, own.takes)
    assert loaded.transform.description() == own.transform.description()
    torch.testing.assert_close(loaded.outputs(asked), own.outputs(asked), rtol=1e-5, atol=1e-5)
    assert len(loaded.outputs([])) == 0


def test_a_graph_has_no_weights_to_save_and_no_features(file: bytes, tmp_path: Path) -> None:
    loaded = weft.load(stored(tmp_path, file))
    with pytest.raises(WeftError, match="is a graph"):
        loaded.save_pretrained(tmp_path / "folder")
    with pytest.raises(WeftError, match="no features"):
        loaded.network.forward_features(torch.zeros(1, 3, 16, 16))
    with pytest.raises(WeftError, match="exported already"):
        graph_file(loaded)


def changed(content: bytes, change: Callable[[Any], None], digest: bool = True) -> bytes:
    """The file after a change to its graph; `digest`: by someone who also makes the checksum fit."""
    model = onnx.load_model_from_string(content)
    change(model)
    if digest:
        facts = json.loads(model.metadata_props[0].value)
        model.metadata_props[0].value = json.dumps({**facts, "digest": onnx_file.digest(model)})
    return model.SerializeToString()


def refer_elsewhere(model: Any) -> None:
    tensor = model.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="../../etc/passwd")


def hold_a_graph(model: Any) -> None:
    inner = onnx.helper.make_graph([], "inner", [], [])
    model.graph.node.append(onnx.helper.make_node("If", ["y"], ["z"], then_branch=inner, else_branch=inner))


def ask_for_code(model: Any) -> None:
    model.graph.node[0].domain = "ai.onnx.contrib"


def take_something_else(model: Any) -> None:
    model.graph.input[0].name = model.graph.node[0].input[0] = "pixels"


def lose_a_layer(model: Any) -> None:
    del model.graph.node[0]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (refer_elsewhere, "refers to other files"),
        (hold_a_graph, "graphs or functions within"),
        (ask_for_code, "ai.onnx.contrib"),
        (take_something_else, "pixels"),
        (lose_a_layer, "no graph that can be computed"),
    ],
)
def test_a_graph_that_weft_would_not_write_is_refused(
    change: Callable[[Any], None], said: str, file: bytes, tmp_path: Path
) -> None:
    with pytest.raises(WeftError, match=said) as refused:
        weft.load(stored(tmp_path, changed(file, change)))
    assert "\n" not in str(refused.value)


def test_a_flipped_bit_in_a_weight_is_noticed(file: bytes, tmp_path: Path) -> None:
    def flip(model: Any) -> None:
        tensor = max(model.graph.initializer, key=lambda one: len(one.raw_data))
        data = bytearray(tensor.raw_data)
        data[len(data) // 2] ^= 1
        tensor.raw_data = bytes(data)

    with pytest.raises(WeftError, match="damaged"):
        weft.load(stored(tmp_path, changed(file, flip, digest=False)))


@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.99])
def test_a_file_that_was_cut_off_is_refused(share: float, file: bytes, tmp_path: Path) -> None:
    with pytest.raises(WeftError):
        weft.load(stored(tmp_path, file[: int(share * len(file))]))


def test_bytes_that_are_no_file_are_refused(tmp_path: Path) -> None:
    noise = np.random.default_rng(0)
    for size in (0, 1, 10, 1000, 100_000):
        with pytest.raises(WeftError):
            weft.load(stored(tmp_path, noise.integers(0, 256, size, dtype=np.uint8).tobytes()))


@pytest.mark.parametrize(
    "change",
    [
        {"format": 99},
        {"format": "1"},
        {"network": None},
        {"network": {"family": "nothing"}},
        {"classes": ["only one"]},
        {"classes": 7},
        {"transform": {"kind": "image", "size": -1}},
        {"transform": {"kind": "text", "max_length": 8, "tokenizer": "{}"}},
        {"transform": {"kind": "image", "size": 32, "channels": 3, "mean": [0, 0, 0], "std": [1, 1, 1]}},
        {"transform": None},
        {"precision": "int3"},
        {"digest": None},
    ],
)
def test_metadata_are_held_against_a_schema(change: dict[str, Any], file: bytes, tmp_path: Path) -> None:
    def edit(model: Any) -> None:
        facts = json.loads(model.metadata_props[0].value)
        model.metadata_props[0].value = json.dumps({**facts, **change})

    with pytest.raises(WeftError) as refused:
        weft.load(stored(tmp_path, changed(file, edit, digest=False)))
    assert "model.onnx" in str(refused.value) and "\n" not in str(refused.value)


def test_the_file_of_another_program_is_refused_and_never_overwritten(file: bytes, tmp_path: Path) -> None:
    foreign = stored(tmp_path, changed(file, lambda model: model.ClearField("metadata_props"), digest=False))
    with pytest.raises(WeftError, match="not written by weft"):
        weft.load(foreign)
    with pytest.raises(WeftError, match="weft did not write it"):
        require_place(foreign)
    text = stored(tmp_path, b"my notes", "notes.onnx")
    with pytest.raises(WeftError, match="weft did not write it"):
        require_place(text)
    assert text.read_bytes() == b"my notes"
    require_place(stored(tmp_path, file, "own.onnx"))


def test_places_that_cannot_be_written_are_refused(tmp_path: Path) -> None:
    stored(tmp_path, b"", "taken")
    with pytest.raises(WeftError, match="cannot make the folder"):
        require_place(tmp_path / "taken" / "model.onnx")
    with pytest.raises(WeftError, match=r"does not end in \.onnx"):
        require_place(tmp_path / "model.bin")


def test_a_file_that_is_too_large_is_not_read(file: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnx_file, "LIMIT", len(file) - 1)
    with pytest.raises(WeftError, match="MiB that such a file may have"):
        weft.load(stored(tmp_path, file))


def test_a_class_of_somebody_elses_is_needed_no_more(file: bytes, tmp_path: Path) -> None:
    """The configuration names it; nothing is imported, as the graph has all that is computed."""

    def edit(model: Any) -> None:
        facts = json.loads(model.metadata_props[0].value)
        facts["network"] = {"family": "foreign", "model": "no_such_package:Net", "img_size": 16, "num_classes": 3}
        model.metadata_props[0].value = json.dumps(facts)

    loaded = weft.load(stored(tmp_path, changed(file, edit, digest=False)))
    assert loaded.predict(np.zeros((1, 3, 16, 16), dtype=np.uint8))[0].startswith("class")


def test_a_graph_that_answers_otherwise_is_not_handed_over() -> None:
    require_same(1e-6, 2.0)
    for off in (0.1, math.nan):
        with pytest.raises(WeftError, match="answers otherwise"):
            require_same(off, 2.0)


def test_a_missing_extra_is_one_line_with_the_command(
    file: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "onnxruntime", None)
    with pytest.raises(WeftError, match=r"pip install 'weft\[onnx\]'"):
        weft.load(stored(tmp_path, file))
