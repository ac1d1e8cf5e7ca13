"""Bad input is named by file and row, stops the work or is skipped and counted, and is never dropped in silence."""

from __future__ import annotations

import io
import json
import struct
import zlib
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from PIL import Image

from data.made import encoded, sentence, tar_of_images, write_parquet, write_tar
from weft.data import TransformConfig, batches, open_source
from weft.data.read.decode import BadImage, decode
from weft.data.sources.arrays import order_of
from weft.errors import WeftError


def png(array: np.ndarray, **options: object) -> bytes:
    stream = io.BytesIO()
    Image.fromarray(array).save(stream, "PNG", **options)
    return stream.getvalue()


def bomb() -> bytes:
    """A PNG of a few hundred bytes whose header declares 30,000 × 30,000 pixels."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", 30_000, 30_000, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(bytes(1000))) + chunk(b"IEND", b"")
    )


def tall_jpeg() -> bytes:
    """A small JPEG whose header has been changed to declare 65,000 × 65,000 pixels."""
    data = bytearray(encoded(0, kind="JPEG"))
    at = data.index(b"\xff\xc0")
    data[at + 5 : at + 9] = struct.pack(">HH", 65_000, 65_000)
    return bytes(data)


BROKEN = {
    "corrupt": b"this is no image at all",
    "truncated JPEG": encoded(1, (200, 200), "JPEG")[:-800],
    "truncated PNG": encoded(1, (200, 200))[:-300],
    "zero bytes": b"",
    "bomb": bomb(),
    "JPEG bomb": tall_jpeg(),
    "other format": b"%PDF-1.4 and so on",
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_image_is_named_and_stops_or_is_skipped(image_folder: Path, kind: str):
    (image_folder / "cat" / "broken.jpg").write_bytes(BROKEN[kind])
    with pytest.raises(WeftError, match=r"cat/broken\.jpg: the .*--on-bad skip"):
        batches(open_source(image_folder), "train")[0]
    source = open_source(image_folder, on_bad="skip")
    assert sum(len(split) for split in source.splits.values()) == 24
    assert any("1 bad row was skipped" in note and "cat/broken.jpg" in note for note in source.notes)
    assert batches(source, "train", 8)[0].inputs["x"].isfinite().all()


@pytest.mark.parametrize("seed", range(4))
def test_a_broken_image_is_named_whichever_split_it_falls_into(image_folder: Path, seed: int):
    (image_folder / "cat" / "broken.jpg").write_bytes(b"")
    with pytest.raises(WeftError, match=r"cat/broken\.jpg"):
        batches(open_source(image_folder, split_seed=seed, val_fraction=0.4, memory=1 << 30), "train")


@pytest.mark.parametrize("kind", ["bomb", "JPEG bomb"])
def test_a_bomb_is_refused_by_its_header(kind: str):
    with pytest.raises(BadImage, match="header declares"):
        decode(BROKEN[kind])


def test_a_cmyk_image_has_the_colours_of_its_rgb_form():
    rgb = Image.fromarray(np.full((16, 16, 3), (200, 40, 90), np.uint8))
    stream = io.BytesIO()
    rgb.convert("CMYK").save(stream, "JPEG", quality=95)
    assert (decode(stream.getvalue()).float().mean((1, 2)) - torch.tensor([200.0, 40, 90])).abs().max() < 4


def test_a_palette_image_has_its_colours():
    stream = io.BytesIO()
    colours = np.random.default_rng(0).integers(0, 4, (8, 8, 3), dtype=np.uint8) * 80
    Image.fromarray(colours).quantize(64, method=Image.Quantize.FASTOCTREE).save(stream, "PNG", transparency=0)
    image = decode(stream.getvalue())
    assert (
        image.shape == (3, 8, 8)
        and (image.int() - torch.from_numpy(colours).permute(2, 0, 1).int()).abs().float().mean() < 20
    )


def test_a_16_bit_image_keeps_its_upper_bits():
    levels = (np.arange(256, dtype=np.uint16) * 257).reshape(16, 16)
    assert torch.equal(decode(png(levels), channels=1)[0], torch.arange(256, dtype=torch.uint8).view(16, 16))


def test_of_an_animation_the_first_frame_is_taken():
    frames = [Image.new("RGB", (10, 10), colour) for colour in ("red", "blue")]
    stream = io.BytesIO()
    frames[0].save(stream, "GIF", save_all=True, append_images=frames[1:])
    assert decode(stream.getvalue())[:, 5, 5].tolist() == [255, 0, 0]


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP"])
def test_a_rotated_image_is_set_upright(kind: str):
    upright = Image.fromarray(np.zeros((20, 30, 3), np.uint8))
    upright.paste((255, 0, 0), (0, 0, 15, 20))
    exif = Image.Exif()
    exif[0x0112] = 6  # turn by 90 degrees to see it upright
    stream = io.BytesIO()
    upright.rotate(90, expand=True).save(stream, kind, exif=exif)
    image = decode(stream.getvalue())
    assert image.shape == (3, 20, 30)
    assert image[0, 10, 3] > 200 and image[0, 10, 27] < 50


def test_transparency_and_grey_with_alpha_become_three_channels():
    for mode in ("RGBA", "LA", "1", "L"):
        stream = io.BytesIO()
        Image.new(mode, (6, 6)).save(stream, "PNG")
        assert decode(stream.getvalue()).shape == (3, 6, 6)
        assert decode(stream.getvalue(), channels=1).shape == (1, 6, 6)


def test_an_empty_class_folder(image_folder: Path):
    (image_folder / "bird").mkdir()
    with pytest.raises(WeftError, match="class folder bird holds no images"):
        open_source(image_folder)
    source = open_source(image_folder, on_bad="skip")
    assert any("bird holds no images" in note for note in source.notes)


def test_one_class_only(image_folder: Path, csv_file):
    for file in (image_folder / "dog").iterdir():
        file.unlink()
    (image_folder / "dog").rmdir()
    with pytest.raises(WeftError, match="one class only, 'cat'"):
        open_source(image_folder)
    with pytest.raises(WeftError, match="only the class 'a'"):
        open_source(csv_file("text,label\n" + "\n".join(f"text {n},a" for n in range(9))))
    with pytest.raises(WeftError, match=r"only the class 'a' \(none: taken for missing labels; .* another name\)"):
        open_source(csv_file("text,label\n" + "\n".join(f"text {n},{('a', 'none')[n % 2]}" for n in range(9))))


@pytest.mark.parametrize("stream", [False, True])
def test_a_label_outside_the_range(tmp_path: Path, stream: bool):
    names = {"info": {"features": {"label": {"names": ["a", "b", "c"], "_type": "ClassLabel"}}}}
    labels = [n % 3 for n in range(200)]
    labels[17] = 3
    table = pa.table({"text": [sentence(n) for n in range(200)], "label": labels})
    pq.write_table(table.replace_schema_metadata({"huggingface": json.dumps(names)}), tmp_path / "train.parquet")
    with pytest.raises(WeftError, match=r"train\.parquet row 17: the label 3 is outside the range 0 to 2"):
        loaders = [batches(open_source(tmp_path, stream=stream), role) for role in ("train", "validation", "test")]
        for loader in loaders:
            list(loader.range(0, loader.steps_per_epoch))
    source = open_source(tmp_path, stream=stream, on_bad="skip")
    assert sum(len(split) for split in source.splits.values()) == 199
    assert "row 17" in " ".join(source.notes)


def test_nan_and_missing_features(csv_file):
    rows = [f"{n},{n * 2},{n % 2}" for n in range(30)]
    rows[4], rows[9], rows[11] = "nan,1,0", "1,,0", "inf,1,1"
    path = csv_file("a,b,label\n" + "\n".join(rows))
    with pytest.raises(WeftError, match=r"rows\.csv line 6: feature 0 is not a finite number \(nan\)"):
        open_source(path)
    source = open_source(path, on_bad="skip")
    assert sum(len(split) for split in source.splits.values()) == 27
    assert "3 bad rows were skipped" in " ".join(source.notes)


def test_empty_and_enormous_text(csv_file):
    rows = [f"text number {n},{n % 2}" for n in range(30)]
    rows[2], rows[5] = "   ,1", "x" * 10_000_000 + ",0"
    path = csv_file("text,label\n" + "\n".join(rows))
    with pytest.raises(WeftError, match=r"line 4: the text is empty"):
        open_source(path)
    notes = " ".join(open_source(path, on_bad="skip").notes)
    assert "2 bad rows" in notes and "line 7: the text has 10,000,000 characters" in notes


def test_a_class_whose_texts_are_all_empty_is_named(csv_file):
    lines = [f"late and broken {row},complaint\n,other\nthanks {row},praise" for row in range(20)]
    path = csv_file("text,label\n" + "\n".join(lines))
    with pytest.raises(WeftError, match="all 20 rows of the class 'other' are bad"):
        open_source(path)
    source = open_source(path, on_bad="skip")
    assert any("'other'" in note and "cannot be learnt" in note for note in source.notes)


def test_what_is_left_of_two_classes_when_one_has_empty_texts_alone(csv_file):
    path = csv_file("text,label\n" + "\n".join(f"late and broken {row},complaint\n,other" for row in range(20)))
    with pytest.raises(WeftError, match=r"one class only.*all rows of 'other' are bad"):
        open_source(path, on_bad="skip")


def test_columns_that_might_be_the_label_are_named_where_none_is_taken(csv_file):
    path = csv_file("id,body,team\n" + "\n".join(f"T{row},a text {row},{'ab'[row % 2]}" for row in range(20)))
    assert any("--target" in note and "team" in note for note in open_source(path).notes)


def test_text_that_is_not_utf_8(tmp_path: Path):
    lines = [b"text,label"] + [f"text number {n},{n % 2}".encode() for n in range(20)]
    lines[8], lines[3] = "caf\xe9,1".encode("latin-1"), "caf\xe9 here,1".encode()
    (tmp_path / "rows.csv").write_bytes(b"\n".join(lines))
    with pytest.raises(WeftError, match=r"rows\.csv line 9: the text is not UTF-8"):
        open_source(tmp_path / "rows.csv")
    assert "line 9" in " ".join(open_source(tmp_path / "rows.csv", on_bad="skip").notes)
    data = pa.array([b"fine", b"caf\xe9", *[f"text {n}".encode() for n in range(20)]])
    column = pa.Array.from_buffers(pa.string(), 22, data.buffers())
    pq.write_table(pa.table({"text": column, "label": [n % 2 for n in range(22)]}), tmp_path / "train.parquet")
    with pytest.raises(WeftError, match=r"train\.parquet row 1: the text is not UTF-8"):
        open_source(tmp_path / "train.parquet")


def test_ragged_rows_and_broken_json(csv_file):
    rows = [f"text number {n},{n % 2}" for n in range(20)]
    rows[3] = "a comma, too many,1"
    path = csv_file("text,label\n" + "\n".join(rows))
    with pytest.raises(WeftError, match=r"line 5: the row has 3 cells where the header has 2"):
        open_source(path)
    assert sum(len(split) for split in open_source(path, on_bad="skip").splits.values()) == 19
    lines = [json.dumps({"text": f"text {n}", "label": n % 2}) for n in range(20)]
    lines[6], lines[8] = '{"text": "cut off', '{"text": "no label"}'
    path = csv_file("\n".join(lines), "rows.jsonl")
    with pytest.raises(WeftError, match=r"rows\.jsonl line 7: the line is not JSON"):
        open_source(path)
    assert "line 9: the row lacks label" in " ".join(open_source(path, on_bad="skip").notes)


@pytest.mark.parametrize("stream", [False, True])
def test_a_tar_member_that_points_outside(tmp_path: Path, stream: bool):
    members = {
        f"{n:03}{end}": data for n in range(150) for end, data in ((".png", encoded(n)), (".cls", str(n % 2).encode()))
    }
    members |= {"../evil.png": encoded(99), "../evil.cls": b"0"}
    folder = write_tar(tmp_path / "shards" / "all.tar", members).parent
    with pytest.raises(WeftError, match=r"all\.tar sample \.\./evil: the member '\.\./evil\.png' points outside"):
        source = open_source(folder, stream=stream)
        for split in source.splits.values():
            split.read(np.arange(len(split)))
    source = open_source(folder, stream=stream, on_bad="skip")
    assert sum(len(split) for split in source.splits.values()) == 150
    assert "evil" in " ".join(source.notes)


def test_a_truncated_tar(tmp_path: Path):
    folder = tar_of_images(tmp_path / "shards", 40, files=1)
    file = next(folder.glob("*.tar"))
    file.write_bytes(file.read_bytes()[: -11 * 1024])
    with pytest.raises(WeftError, match=r"train-000000\.tar"):
        open_source(folder)


def test_a_symbolic_link_out_of_the_folder(image_folder: Path, tmp_path: Path):
    secret = tmp_path / "secret.png"
    secret.write_bytes(encoded(7))
    (image_folder / "cat" / "link.png").symlink_to(secret)
    with pytest.raises(WeftError, match=r"cat/link\.png: the file is a symbolic link that leads out"):
        open_source(image_folder)
    source = open_source(image_folder, on_bad="skip")
    assert sum(len(split) for split in source.splits.values()) == 24
    assert "cat/link.png" in " ".join(source.notes)


def test_a_source_that_changed_between_start_and_resume(tmp_path: Path):
    folder = write_parquet(tmp_path / "text", 60)
    source = open_source(folder)
    began, files = source.fingerprint, dict(source.files)
    source.require(began, files)
    write_parquet(folder, 61)
    with pytest.raises(WeftError, match=r"has changed since the run began \(train-0000"):
        open_source(folder).require(began, files)
    with pytest.raises(WeftError, match="has changed"):
        open_source(folder).require(began)


def test_files_that_are_no_images_are_counted(image_folder: Path):
    (image_folder / "cat" / "Thumbs.db").write_bytes(b"x")
    assert any("1 files" in note and "not images" in note for note in open_source(image_folder).notes)


def test_a_bad_row_of_a_streamed_image_source_is_named_at_its_batch(tmp_path: Path):
    members = {
        f"{n:03}{end}": data for n in range(150) for end, data in ((".png", encoded(n)), (".cls", str(n % 2).encode()))
    }
    members["007.png"] = members["007.png"][:60]
    folder = write_tar(tmp_path / "shards" / "train.tar", members).parent
    with pytest.raises(WeftError, match=r"train\.tar sample 007: the image cannot be decoded"):
        source = open_source(folder, stream=True)
        for role in ("train", "validation", "test"):
            list(batches(source, role, 4, transform=TransformConfig(normalize="unit")).range())
    source = open_source(folder, stream=True, on_bad="skip")
    assert sum(len(split) for split in source.splits.values()) == 149


def test_an_unreadable_parquet_or_idx_file_is_named(tmp_path: Path):
    (tmp_path / "train.parquet").write_bytes(b"PAR1 but nothing else")
    with pytest.raises(WeftError, match=r"train\.parquet is not a readable Parquet file"):
        open_source(tmp_path)
    (tmp_path / "train.parquet").unlink()
    (tmp_path / "train-images-idx3-ubyte").write_bytes(struct.pack(">HBB3I", 0, 8, 3, 9, 28, 28) + bytes(100))
    (tmp_path / "train-labels-idx1-ubyte").write_bytes(struct.pack(">HBBI", 0, 8, 1, 9) + bytes(9))
    with pytest.raises(WeftError, match=r"images-idx3-ubyte holds 100 bytes where its header declares 7,056"):
        open_source(tmp_path)


def test_an_array_that_is_no_image_is_named_with_a_remedy():
    with pytest.raises(WeftError, match=r"image 1 has the shape \(2, 3, 4, 5\).*; bring all images into one"):
        order_of([(8, 8), (2, 3, 4, 5)])
