"""Networks on the page: what is offered, the commands beside it, and what an answer is due to."""

from __future__ import annotations

import io
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from starlette.testclient import TestClient

Make = Callable[..., TestClient]


@pytest.fixture
def server(client: Make, runs) -> TestClient:
    return client(folders=(runs,))


def picture() -> bytes:
    file = io.BytesIO()
    Image.fromarray(np.random.default_rng(0).integers(0, 255, (8, 8), dtype=np.uint8)).save(file, "PNG")
    return file.getvalue()


def test_two_networks_of_one_kind_stand_side_by_side(server: TestClient):
    page = server.get("/predict?model=cells&second=digits").text
    assert page.count("data-answer=") == 1, "a picture cannot be asked of both"
    page = server.get("/predict?model=digits&top_k=3").text
    assert 'data-modality="image"' in page and 'value="3"' in page and "capture=" in page


def test_commands_for_elsewhere_name_the_network(server: TestClient):
    page = server.get("/predict?model=words").text
    assert "curl" in page and "/api/v1/models/words/predict" in page and "urllib.request" in page


def test_a_network_that_is_not_there_is_told(server: TestClient):
    assert server.get("/predict?model=nobody").status_code == 404


def test_a_damaged_network_is_not_offered(client: Make, runs: Path, tmp_path: Path):
    """One whose preprocessing says nothing of what it takes."""
    shutil.copytree(runs / "digits", tmp_path / "odd")
    (tmp_path / "odd" / "preprocessor_config.json").write_text("{}")
    answer = client(folders=(tmp_path,)).get("/predict")
    assert answer.status_code == 200 and "no trained network" in answer.text


def test_without_a_network_the_page_says_so(client: Make):
    assert "no trained network" in client().get("/predict").text


def test_what_an_answer_is_due_to_is_a_picture_or_words(server: TestClient):
    pytest.importorskip("captum")
    answer = server.post("/predict/saliency?model=digits", content=picture(), headers={"content-type": "image/png"})
    assert answer.headers["content-type"] == "image/png" and Image.open(io.BytesIO(answer.content)).size == (96, 96)
    words = server.post("/predict/saliency?model=words", json={"inputs": "a good film"}).json()["words"]
    assert [each["word"] for each in words][:2] == ["[CLS]", "a"]
    assert max(abs(each["weight"]) for each in words) == pytest.approx(1)
    assert server.post("/predict/saliency?model=sugar", json={"inputs": [0.0] * 10}).status_code == 422


def test_others_are_answered_as_ever_while_an_answer_is_explained(server: TestClient, monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("captum")
    before = server.post("/api/v1/models/digits/predict", content=picture()).json()
    meanwhile = []

    def hooked(batch: Any, steps: int) -> torch.Tensor:
        with torch.no_grad():
            for weight in batch.subject.network.parameters():  # whatever is done to the network that is looked into
                weight.zero_()
        engine = server.app.state.models._kept["digits"].loading.result().engine  # type: ignore[attr-defined]
        meanwhile.append(engine.predict_proba([picture()])[0])
        return torch.ones(1, 64)

    monkeypatch.setattr("weft.serve.pages.saliency.integrated_gradients", hooked)
    answer = server.post("/predict/saliency?model=digits", content=picture(), headers={"content-type": "image/png"})
    assert (
        answer.status_code == 200 and server.post("/api/v1/models/digits/predict", content=picture()).json() == before
    )
    assert max(meanwhile[0]) == pytest.approx(before["predictions"][0]["score"], abs=1e-6)


def test_a_picture_that_is_none_is_refused(server: TestClient):
    answer = server.post("/predict/saliency?model=digits", content=b"nonsense", headers={"accept": "application/json"})
    assert answer.status_code == 415 and "error" in answer.json()
