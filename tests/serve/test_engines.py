"""`weft serve --engine onnx` answers as torch does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from starlette.testclient import TestClient

import weft

pytest.importorskip("onnxruntime", reason="no onnxruntime: pip install 'weft[onnx]'")
pytest.importorskip("onnxscript", reason="no onnxscript: pip install 'weft[onnx]'")


def test_onnxruntime_answers_as_torch_does(
    client: Callable[..., TestClient], runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEFT_CACHE", str(tmp_path))
    row = [float(number) for number in range(30)]
    answer = client(engine="onnx", timeout=300.0).post("/api/v1/models/cells/predict", json={"inputs": row})
    predictor = weft.load(runs / "cells")
    expected = dict(zip(predictor.classes, predictor.predict_proba([row])[0].tolist(), strict=True))
    said = {one["label"]: one["score"] for one in answer.json()["predictions"]}
    assert said == pytest.approx(expected, abs=1e-5)
    assert len(list(tmp_path.glob("*.safetensors"))) == 1  # the graph, for the next time
