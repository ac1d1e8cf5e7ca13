"""What networks say over HTTP equals what they say in Python, in every protocol, to clients that others wrote."""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient

import weft
from weft.serve import catalogue as catalogue_module
from weft.serve import models as models_module

ROW = [float(number) for number in range(30)]
SICK = [0.03, 0.05, 0.06, 0.02, -0.04, -0.03, -0.04, -0.002, 0.02, -0.01]
SENTENCE = "abc red def"


def labels(said: list[dict[str, Any]]) -> dict[str, float]:
    return {one["label"]: one["score"] for one in said}


def by_python(folder: Path, raw: Any) -> dict[str, float]:
    predictor = weft.load(folder)
    return dict(zip(predictor.classes, predictor.predict_proba([raw])[0].tolist(), strict=True))


Client = Callable[..., TestClient]


def test_networks_are_listed_with_what_they_take(client: Client) -> None:
    answer = client().get("/api/v1/models")
    found = {one["name"]: one for one in answer.json()}
    assert {name: (one["modality"], one["task"]) for name, one in found.items()} == {
        "digits": ("image", "classes"),
        "words": ("text", "classes"),
        "cells": ("vector", "binary"),
        "sugar": ("vector", "regression"),
    }
    assert found["digits"]["classes"] == list("0123456789") and found["digits"]["img_size"] == [8, 8]
    assert answer.headers["x-total-count"] == "4"
    page = client().get("/api/v1/models", params={"limit": 1, "offset": 1}).json()
    assert [one["name"] for one in page] == ["digits"] and client().get("/api/v1/models/digits").json() == page[0]


def test_a_picture_as_bytes_as_base64_and_as_a_data_url_is_answered_alike(
    client: Client, runs: Path, picture: bytes
) -> None:
    text, asked, path = base64.b64encode(picture).decode(), client(), "/api/v1/models/digits/predict"
    answers = [asked.post(path, content=picture, headers={"content-type": kind}) for kind in ("image/png", "")]
    answers.append(asked.post(path, content=picture, headers={"content-type": "application/x-www-form-urlencoded"}))
    answers += [asked.post(path, json={"inputs": sent}) for sent in (text, f"data:image/png;base64,{text}")]
    expected = by_python(runs / "digits", picture)
    for answer in answers:
        said = answer.json()["predictions"]
        assert len(said) == 5 and [one["score"] for one in said] == sorted((one["score"] for one in said), reverse=True)
        assert labels(said) == pytest.approx({label: expected[label] for label in labels(said)})


def test_texts_and_rows_are_answered_as_in_python(client: Client, runs: Path) -> None:
    asked = client()
    said = asked.post("/api/v1/models/words/predict", json={"inputs": SENTENCE}).json()["predictions"]
    assert labels(said) == pytest.approx(by_python(runs / "words", SENTENCE))
    plain = asked.post("/api/v1/models/words/predict", content=SENTENCE, headers={"content-type": "text/plain"})
    assert plain.json()["predictions"] == said
    both = asked.post("/api/v1/models/words/predict", json={"inputs": [SENTENCE, "blue"], "top_k": 1}).json()
    assert labels(both["predictions"][0]) == pytest.approx(labels(said[:1])) and len(both["predictions"]) == 2
    row = asked.post("/api/v1/models/cells/predict", json={"inputs": ROW}).json()["predictions"]
    assert labels(row) == pytest.approx(by_python(runs / "cells", ROW))
    columns = weft.load(runs / "cells").columns
    named = asked.post("/api/v1/models/cells/predict", json={"inputs": dict(zip(columns, ROW, strict=True))})
    assert named.json()["predictions"] == row
    assert asked.post("/api/v1/models/sugar/predict", json={"inputs": SICK}).json() == {
        "value": pytest.approx(weft.load(runs / "sugar").predict([SICK])[0])
    }
    values = asked.post("/api/v1/models/sugar/predict", json={"inputs": [SICK, SICK]}).json()["values"]
    (shaped,) = asked.post("/models/sugar", json={"inputs": SICK}).json()
    assert shaped == {"label": "value", "score": pytest.approx(values[0], rel=1e-5)}
    table = {name: [value] * 2 for name, value in zip(weft.load(runs / "sugar").columns, SICK, strict=True)}
    assert (
        asked.post("/models/sugar", json={"table": table}).json() == pytest.approx(values, rel=1e-5)
        and len(values) == 2
    )


def test_hugging_faces_client_asks_pictures_texts_and_tables(address: str, runs: Path, picture: bytes) -> None:
    hub = pytest.importorskip("huggingface_hub")

    def client(name: str) -> Any:
        return hub.InferenceClient(model=f"http://{address}/models/{name}", token="hf_none")

    said = client("digits").image_classification(picture)
    expected = by_python(runs / "digits", picture)
    assert len(said) == 5 and all(one.score == pytest.approx(expected[one.label]) for one in said)
    logits = weft.load(runs / "digits").outputs([picture])[0].tolist()
    raw = client("digits").image_classification(picture, top_k=2, function_to_apply="none")
    assert [one.score for one in raw] == pytest.approx(sorted(logits, reverse=True)[:2], rel=1e-5)
    sigmoid = client("digits").image_classification(picture, top_k=1, function_to_apply="sigmoid")
    assert sigmoid[0].score == pytest.approx(1 / (1 + np.exp(-max(logits))), rel=1e-5)
    text = client("words").text_classification(SENTENCE, top_k=1)
    best = max(by_python(runs / "words", SENTENCE).items(), key=lambda pair: pair[1])
    assert [(one.label, one.score) for one in text] == [(best[0], pytest.approx(best[1]))]
    columns = weft.load(runs / "cells").columns
    table = {column: [str(value), str(value)] for column, value in zip(columns, ROW, strict=True)}
    assert client("cells").tabular_classification(table) == weft.load(runs / "cells").predict([ROW, ROW])


@pytest.mark.parametrize("binary", [True, False], ids=["binary", "json"])
def test_tritons_client_asks_every_kind_of_network(address: str, runs: Path, picture: bytes, binary: bool) -> None:
    triton = pytest.importorskip("tritonclient.http")
    client = triton.InferenceServerClient(address)
    assert client.is_server_live() and client.is_server_ready() and client.is_model_ready("digits", "1")
    assert "binary_tensor_data" in client.get_server_metadata()["extensions"]

    def ask(name: str, data: Any, datatype: str, *outputs: str) -> Any:
        given = triton.InferInput("input", list(data.shape), datatype)
        given.set_data_from_numpy(data, binary_data=binary)
        wanted = [triton.InferRequestedOutput(output, binary_data=binary) for output in outputs]
        found = client.infer(name, [given], outputs=wanted, request_id="7")
        assert found.get_response()["id"] == "7"
        return [found.as_numpy(output) for output in outputs]

    pixels = np.arange(2 * 64, dtype=np.uint8).reshape(2, 1, 8, 8)
    (likely, said) = ask("digits", pixels, "UINT8", "probabilities", "label")
    expected = weft.load(runs / "digits").predict_proba(list(pixels))
    np.testing.assert_allclose(likely, expected, rtol=1e-5)
    names = [one.decode() if isinstance(one, bytes) else one for one in said.tolist()]
    assert likely.dtype == np.float32 and names == weft.load(runs / "digits").predict(list(pixels))
    floats = (pixels / 255).astype(np.float32)
    np.testing.assert_allclose(ask("digits", floats, "FP32", "probabilities")[0], expected, rtol=1e-5)
    file = np.array([picture if binary else base64.b64encode(picture)], dtype=object)
    (filed,) = ask("digits", file, "BYTES", "probabilities")
    np.testing.assert_allclose(filed, weft.load(runs / "digits").predict_proba([picture]), rtol=1e-5)
    (worded,) = ask("words", np.array([SENTENCE.encode(), b"blue"], dtype=object), "BYTES", "probabilities")
    np.testing.assert_allclose(worded, weft.load(runs / "words").predict_proba([SENTENCE, "blue"]), rtol=1e-5)
    (value,) = ask("sugar", np.array([SICK], np.float32), "FP32", "value")
    assert value.shape == (1, 1) and value[0, 0] == pytest.approx(
        weft.load(runs / "sugar").predict([SICK])[0], rel=1e-5
    )
    metadata = client.get_model_metadata("sugar")
    assert metadata["inputs"] == [{"name": "input", "datatype": "FP32", "shape": [-1, 10]}]


def test_tritons_client_takes_all_outputs_where_it_names_none_and_the_likeliest_classes(address: str) -> None:
    triton = pytest.importorskip("tritonclient.http")
    client = triton.InferenceServerClient(address)
    given = triton.InferInput("input", [1, 1, 8, 8], "UINT8")
    given.set_data_from_numpy(np.zeros((1, 1, 8, 8), np.uint8))
    everything = client.infer("digits", [given])
    likely = everything.as_numpy("probabilities")[0]
    assert everything.as_numpy("label").tolist() == [str(likely.argmax()).encode()]
    wanted = [triton.InferRequestedOutput("probabilities", class_count=2)]
    first = client.infer("digits", [given], outputs=wanted).as_numpy("probabilities")[0, 0].decode().split(":")
    assert float(first[0]) == pytest.approx(likely.max(), abs=1e-5) and first[1:] == [str(likely.argmax())] * 2
    with pytest.raises(triton.InferenceServerException, match=r"\[404\].*nobody"):
        client.infer("nobody", [given])


def test_metrics_are_what_prometheus_reads(client: Client, picture: bytes) -> None:
    parser = pytest.importorskip("prometheus_client.parser")
    asked = client()
    for _ in range(3):
        asked.post("/models/digits", content=picture)
    asked.post("/models/nobody", content=picture)
    found = {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in parser.text_string_to_metric_families(asked.get("/metrics").text)
        for sample in family.samples
    }
    assert found["weft_requests_total", (("protocol", "huggingface"), ("status", "200"))] == 3
    assert found["weft_requests_total", (("protocol", "huggingface"), ("status", "404"))] == 1
    assert found["weft_batch_size_sum", (("model", "digits"),)] == 3
    assert found["weft_models_loaded", ()] == 1


def test_the_networks_not_asked_for_longest_are_let_go(client: Client, picture: bytes) -> None:
    asked = client(max_models=1)
    for name, body in (("digits", picture), ("words", b"red"), ("digits", picture)):
        answer = asked.post(f"/models/{name}", content=body, headers={"content-type": ""})
        assert answer.status_code == 200, answer.text
        assert "weft_models_loaded 1.0" in asked.get("/metrics").text
    assert 'model="words"' not in asked.get("/metrics").text


def test_what_was_trained_further_is_loaded_anew(
    client: Client, runs: Path, tmp_path: Path, picture: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(models_module, "TRUSTED", 0.0)
    folder = tmp_path / "runs" / "one"
    shutil.copytree(runs / "cells", folder)
    asked = client(folders=(tmp_path,))
    before = asked.post("/models/one", json={"inputs": ROW}).json()
    predictor = weft.load(folder)
    for weights in predictor.network.parameters():
        weights.data *= 1.5
    predictor.save_pretrained(folder)
    os.utime(folder / "model.safetensors", ns=(1, 1))
    after = asked.post("/models/one", json={"inputs": ROW}).json()
    assert before != after and labels(after) == pytest.approx(by_python(folder, ROW))


def test_runs_without_weights_or_with_damaged_ones_are_sentences(
    client: Client, runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalogue_module, "AGE", 0.0)
    for name in ("untrained", "damaged", "broken"):
        shutil.copytree(runs / "cells", tmp_path / "runs" / name)
    (tmp_path / "runs" / "untrained" / "model.safetensors").unlink()
    (tmp_path / "runs" / "damaged" / "model.safetensors").write_bytes(b"\xff" * 100)
    (tmp_path / "runs" / "broken" / "config.json").write_text("{")
    asked = client(folders=(tmp_path,))
    assert [one["name"] for one in asked.get("/api/v1/models").json()] == ["damaged"]
    for name, why in (("untrained", "no trained network yet"), ("damaged", "safetensors"), ("broken", "damaged")):
        answer = asked.post(f"/api/v1/models/{name}/predict", json={"inputs": ROW})
        assert answer.status_code == 404 and why in answer.json()["error"], answer.text
        assert str(tmp_path) not in answer.text  # where things lie on the server is nobody's business
    assert asked.get("/v2/models/untrained/ready").status_code == 404


def test_the_page_of_the_api_needs_nothing_from_elsewhere(client: Client) -> None:
    asked = client()
    page, spec = asked.get("/docs"), asked.get("/openapi.json")
    assert page.status_code == 200
    assert not re.findall(r"""(?:src|href|action|url)\s*[=(]\s*["']?(?:\w+:)?//[^\s"')>]*""", page.text)
    assert set(re.findall(r"https?://[\w.…-]+", page.text)) <= {"http://localhost", "http://127.0.0.1", "http://…"}
    assert all(re.search(r' src="/(page|report)\.js\?', tag) for tag in re.findall("<script[^>]*>", page.text))
    assert all(path in page.text for path in json.loads(spec.text)["paths"])
    assert asked.get("/style.css").headers["content-type"].startswith("text/css")
