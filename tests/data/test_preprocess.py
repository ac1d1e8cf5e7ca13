"""What evaluation saw is what serving gives, from the file's bytes, bit for bit; input normalisation (F6)."""

from __future__ import annotations

import io
import json
import resource
import signal
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from data.made import encoded, write_parquet
from weft.data import TransformConfig, batches, fit, open_source
from weft.data.transform.tokenizer import train_tokenizer
from weft.data.transform.transforms import ImageTransform, TextTransform, VectorTransform, load
from weft.errors import WeftError


def evaluated(source, transform) -> torch.Tensor:
    return torch.cat([batch.inputs["x"] for batch in batches(source, "test", 5, transform=transform)])


@pytest.mark.parametrize(
    "config", [TransformConfig(), TransformConfig(img_size=11, crop=0.8), TransformConfig(img_size=40, channels=1)]
)
@pytest.mark.parametrize("memory", [1 << 30, 1])
def test_an_image_file_gives_the_tensor_of_evaluation(image_folder: Path, tmp_path: Path, config, memory):
    source = open_source(image_folder, memory=memory)
    transform = fit(source, config)
    transform.save(tmp_path / "run")
    served = load(tmp_path / "run")
    seen = evaluated(source, transform)
    assert all(batch.inputs["x"].is_contiguous() for batch in batches(source, "test", 5, transform=transform))
    split = source.splits["test"]
    for example, row in enumerate(split.rows):
        path = split.table.inputs.files[row]
        assert torch.equal(served(path)["x"][0], seen[example])
        assert torch.equal(served(path.read_bytes())["x"][0], seen[example])


def test_a_row_of_a_table_gives_the_tensor_of_evaluation(tmp_path: Path):
    for name in ("breast_cancer", "digits"):
        source = open_source(name)
        transform = fit(source)
        transform.save(tmp_path / name)
        split = source.splits["test"]
        seen = evaluated(source, transform)
        raws = split.read(np.arange(len(split)))[0]
        assert all(torch.equal(load(tmp_path / name)(raw)["x"][0], seen[row]) for row, raw in enumerate(raws[:20]))
    row = dict(zip(open_source("breast_cancer").columns, raws_of("breast_cancer"), strict=True))
    assert torch.equal(load(tmp_path / "breast_cancer")(row)["x"][0], evaluated(open_source("breast_cancer"), None)[0])


def raws_of(name: str) -> list[float]:
    return open_source(name).splits["test"].read(np.array([0]))[0][0].tolist()


@pytest.mark.parametrize("value", [float("inf"), float("-inf"), float("nan"), 1e39])
def test_a_row_with_a_value_that_is_not_finite_is_refused(value: float):
    with pytest.raises(WeftError, match="give finite numbers"):
        VectorTransform((1.0, 2.0), (1.0, 1.0))([0.5, value])


def test_a_text_gives_the_ids_of_evaluation(tmp_path: Path):
    source = open_source(write_parquet(tmp_path / "text", 60))
    transform = fit(source, TransformConfig(max_length=24, vocab_size=150))
    transform.save(tmp_path / "run")
    assert {"tokenizer.json", "tokenizer_config.json"} <= {path.name for path in (tmp_path / "run").iterdir()}
    served = load(tmp_path / "run")
    split = source.splits["test"]
    loader = batches(source, "test", len(split), transform=transform)
    for row, text in enumerate(split.read(np.arange(len(split)))[0]):
        one, many = served(text), loader[0].inputs
        assert torch.equal(one["x"][one["mask"]], many["x"][row][many["mask"][row]])


def test_f6_z_scores_are_those_of_the_training_rows(image_folder: Path):
    """F6: mean 0 and deviation 1 of every channel, or feature, over the training split; checked against numpy."""
    digits = open_source("digits")
    rows = digits.splits["train"].rows
    levels = digits.splits["train"].table.inputs[rows] / 255
    transform = fit(digits)
    assert isinstance(transform, ImageTransform)
    assert transform.mean == pytest.approx((levels.mean(),)) and transform.std == pytest.approx((levels.std(),))
    whole = torch.cat([batch.inputs["x"] for batch in batches(digits, "train", 64, transform=transform, train=False)])
    assert abs(float(whole.mean())) < 1e-4 and abs(float(whole.std()) - 1) < 1e-3
    vectors = open_source("breast_cancer")
    table = torch.cat([batch.inputs["x"] for batch in batches(vectors, "train", 64, train=False)])
    assert table.mean(0).abs().max() < 1e-4 and (table.std(0, unbiased=False) - 1).abs().max() < 1e-4


def test_f6_the_unit_range_is_zero_to_one():
    batch = batches(open_source("digits"), "train", 64, transform=TransformConfig(normalize="unit"))[0]
    assert batch.inputs["x"].min() == 0.0 and batch.inputs["x"].max() == 1.0


def test_f6_statistics_are_computed_once_and_stored(tmp_path: Path):
    transform = fit(open_source("digits"))
    transform.save(tmp_path)
    assert load(tmp_path) == transform
    public = json.loads((tmp_path / "preprocessor_config.json").read_text())
    assert public["image_mean"] == list(transform.mean) and public["size"] == {"height": 8, "width": 8}


def test_a_constant_feature_and_a_flat_image_stay_finite(csv_file):
    source = open_source(csv_file("a,b,label\n" + "\n".join(f"7,{n},{n % 2}" for n in range(20))))
    assert (batches(source, "train", 4)[0].inputs["x"][:, 0] == 0).all()


def test_images_of_many_sizes_become_one(image_folder: Path):
    for number in range(12):
        (image_folder / "cat" / f"wide{number}.png").write_bytes(encoded(number, (90, 30)))
    assert fit(open_source(image_folder)).size == 16
    assert (
        batches(open_source(image_folder), "train", 4, transform=TransformConfig(img_size=9))[0].inputs["x"].shape[-1]
        == 9
    )


def test_resizing_agrees_with_pillow(tmp_path: Path):
    """The antialiased filter is Pillow's own: a large image shrinks to nearly the same pixels."""
    data = encoded(3, (120, 80), "PNG")
    ours = ImageTransform(20, 3, (0.0,) * 3, (1.0,) * 3).pixels(data)
    theirs = Image.open(io.BytesIO(data)).resize((30, 20), Image.Resampling.BILINEAR).crop((5, 0, 25, 20))
    assert (ours.int() - torch.from_numpy(np.array(theirs)).permute(2, 0, 1).int()).abs().max() <= 1


def test_a_jpeg_decoded_at_half_size_is_nearly_the_whole_one():
    data = encoded(3, (400, 300), "JPEG")
    from weft.data.read.decode import decode
    from weft.data.transform.transforms import resize

    small, whole = decode(data, side=64), decode(data)
    assert small.shape[1] < whole.shape[1] and min(small.shape[1:]) >= 64
    assert (resize(small, (60, 80)).float() - resize(whole, (60, 80)).float()).abs().mean() < 1.5


def test_strangers_files_are_refused(tmp_path: Path):
    with pytest.raises(WeftError, match="neither"):
        load(tmp_path)
    (tmp_path / "preprocessor_config.json").write_text("{}")
    with pytest.raises(WeftError, match="not written by weft"):
        load(tmp_path)
    (tmp_path / "broken.jpg").write_bytes(b"no image")
    with pytest.raises(WeftError, match=r"broken\.jpg: the image cannot be decoded"):
        fit(open_source("digits"))(tmp_path / "broken.jpg")
    with pytest.raises(WeftError, match="3 values"):
        fit(open_source("diabetes"))([1.0, 2.0, 3.0])


@pytest.mark.parametrize("kind", ["vector", "text"])
def test_a_full_disk_leaves_the_transform_that_was_there(kind: str, tmp_path: Path):
    """The kernel refuses bytes beyond a limit, as a full disk does."""
    text = TextTransform(train_tokenizer(["red warp and blue weft"], 64), 16)
    transform = text if kind == "text" else VectorTransform((1.0, 2.0), (1.0, 1.0), ("a", "b"))
    transform.save(tmp_path)
    stored = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, before[1]))
    try:
        with pytest.raises(WeftError, match=r"disk is full.*intact"):
            transform.save(tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == stored


@pytest.mark.parametrize("content", ["", "[]", '{"weft": {"kind": "vector"}}', '{"weft": {"mean": [1.0]}}'])
def test_a_damaged_transform_is_named(content: str, tmp_path: Path):
    (tmp_path / "preprocessor_config.json").write_text(content)
    with pytest.raises(WeftError, match=r"preprocessor_config\.json.*resume the run"):
        load(tmp_path)
