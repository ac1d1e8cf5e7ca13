"""The Open Inference Protocol, version 2, with the binary tensor extension: tritonclient and KServe's clients speak it.

A network has one input, `input`: BYTES (n) for texts and for files of pictures, BYTES (n, 2) for pairs, UINT8 (n,
channels, height, width) for pixels, FP32 (n, features) for rows. Its outputs are `probabilities`, FP32 (n, classes),
and `label`, BYTES (n); or `value`, FP64 (n, 1).
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from fastapi import APIRouter, Request, Response

from weft import __version__
from weft.data.transform.transforms import ImageTransform, VectorTransform
from weft.serve.body import parsed
from weft.serve.models import Model, Outputs
from weft.serve.predictions import ranked, scores
from weft.serve.protocols.asking import Asking, Content, described, number, record, refusals, rows
from weft.serve.protocols.tensors import BYTES, TYPES, Tensor, as_file, as_text, in_binary, read_tensor
from weft.serve.refusal import JSON, Refusal

LENGTH = "Inference-Header-Content-Length"  # bytes of the JSON, where binary data follows it
INPUT = "input"
EXTENSIONS = ["binary_tensor_data", "classification"]
TENSOR = {
    "type": "object",
    "required": ["name", "shape", "datatype"],
    "properties": {
        "name": {"const": INPUT},
        "shape": rows(number(0)),
        "datatype": {"enum": [*TYPES, BYTES]},
        "data": {"type": "array", "items": {}},
        "parameters": {"type": "object"},
    },
}
ASK = {
    "type": "object",
    "required": ["inputs"],
    "properties": {
        "id": {"type": "string"},
        "inputs": {"type": "array", "items": TENSOR, "minItems": 1, "maxItems": 1},
        "outputs": rows({"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}}),
        "parameters": {"type": "object"},
    },
}
ANSWER = record(
    ["model_name", "outputs"],
    model_name={"type": "string"},
    model_version={"type": "string"},
    id={"type": "string"},
    outputs=rows({"type": "object", "required": ["name", "shape", "datatype"]}),
)


def routes(asking: Asking) -> APIRouter:
    """`/v2/…`."""
    router = APIRouter(prefix="/v2", tags=["Open Inference Protocol"])
    models, about = asking.models, refusals(404, 422, 503)

    @router.get("", summary="The server.")
    async def server() -> Content:
        return {"name": "weft", "version": __version__, "extensions": EXTENSIONS}

    @router.get("/health/live", summary="Whether the server lives.")
    async def live() -> Content:
        return {"live": True}

    @router.get("/health/ready", summary="Whether the server can be asked.", responses=refusals(503))
    async def ready(request: Request) -> Content:
        if request.app.state.ending:
            raise Refusal(503, "the server is about to end", 5)
        return {"ready": True}

    @router.get("/models/{name}/versions/{version}", summary="The same; there is one version.", responses=about)
    @router.get("/models/{name}", summary="Inputs and outputs of a network.", responses=about)
    async def metadata(name: str, version: str = "1") -> Content:
        one_version(version)
        return metadata_of(await models.get(name))

    @router.get("/models/{name}/versions/{version}/ready", summary="The same; there is one version.", responses=about)
    @router.get("/models/{name}/ready", summary="Whether a network can be asked.", responses=about)
    def model_ready(name: str, version: str = "1") -> Content:
        one_version(version)
        return {"name": models.entry(name).name, "ready": True}

    words = described("What a network says of tensors.", ASK, False, ANSWER)

    @router.post("/models/{name}/versions/{version}/infer", **words)
    @router.post("/models/{name}/infer", **words)
    async def infer(name: str, request: Request, version: str = "1") -> Response:
        one_version(version)
        return await asking.answer(name, request, read, written)

    return router


def one_version(version: str) -> None:
    if version != "1":
        raise Refusal(404, f"there is no version {version[:40]!r}; every network has one, 1")


def metadata_of(model: Model) -> Content:
    """Names, types and shapes of the tensors; -1 is a side of any length."""
    transform, datatype, shape = model.engine.transform, BYTES, [-1]
    if isinstance(transform, ImageTransform):
        datatype, shape = "UINT8", [-1, transform.channels, -1, -1]
    elif isinstance(transform, VectorTransform):
        datatype, shape = "FP32", [-1, transform.features]
    elif model.inputs.takes == "pair":
        shape = [-1, 2]
    outputs = [{"name": name, "datatype": kind, "shape": shape} for name, (kind, shape) in outputs_of(model).items()]
    given = {"name": INPUT, "datatype": datatype, "shape": shape}
    return {"name": model.name, "versions": ["1"], "platform": "weft", "inputs": [given], "outputs": outputs}


def outputs_of(model: Model) -> dict[str, tuple[str, list[int]]]:
    """Type and shape of each output."""
    if model.task == "regression":
        return {"value": ("FP64", [-1, 1])}
    return {"probabilities": ("FP32", [-1, len(model.engine.classes)]), "label": (BYTES, [-1])}


# ---- Requests.


def read(model: Model, request: Request, body: bytes) -> tuple[list[Any], Content]:
    """The inputs, and the JSON of the request, in which the wanted outputs are checked."""
    text, tail = split(request, body)
    content = parsed(text)
    check_wishes(model, content)
    inputs = content.get("inputs")
    if not isinstance(inputs, list) or len(inputs) != 1 or not isinstance(inputs[0], dict):
        raise Refusal(422, f"a request holds a list `inputs` of one tensor, {INPUT!r}")
    size = parameters_of(inputs[0]).get("binary_data_size")
    if size is not None and (isinstance(size, bool) or not isinstance(size, int) or size != len(tail)):
        raise Refusal(422, f"binary_data_size says {size!r:.40}, behind the JSON there are {len(tail)} bytes")
    if size is None and len(tail):
        raise Refusal(422, f"{len(tail)} bytes follow the JSON, and no input has a binary_data_size")
    tensor = read_tensor(inputs[0], None if size is None else tail)
    if tensor.name != INPUT:
        raise Refusal(422, f"there is no input {tensor.name[:40]!r}; the network has one, {INPUT!r}")
    return raws_of(model, tensor), content


def split(request: Request, body: bytes) -> tuple[bytes, memoryview]:
    """The JSON, and what follows it."""
    stated = request.headers.get(LENGTH)
    if stated is None:
        return body, memoryview(b"")
    if not (stated.isascii() and stated.isdecimal()) or len(stated) > 12 or int(stated) > len(body):
        raise Refusal(400, f"the header {LENGTH} is no number, or beyond the body")
    return body[: int(stated)], memoryview(body)[int(stated) :]


def check_wishes(model: Model, content: Content) -> None:
    """Refuse outputs that there are not, and parts of the wrong kind."""
    if not isinstance(content.get("id", ""), str):
        raise Refusal(422, "id must be a text")
    parameters_of(content)
    wanted = content.get("outputs", [])
    if not isinstance(wanted, list) or not all(isinstance(one, dict) for one in wanted):
        raise Refusal(422, "outputs must be a list of objects with names")
    known = outputs_of(model)
    if len(wanted) > len(known):  # a short request must not ask for an answer of gigabytes
        raise Refusal(422, f"{len(wanted)} outputs are wanted and there are {len(known)}; name each of them once")
    for one in wanted:
        if not isinstance(one.get("name"), str) or one["name"] not in known:
            raise Refusal(422, f"there is no output {one.get('name')!r:.40}; there are {', '.join(known)}")
        count = parameters_of(one).get("classification", 0)
        if isinstance(count, bool) or not isinstance(count, int) or count < 0 or (count and one["name"] == "value"):
            raise Refusal(422, "classification must be a number of classes, for the output probabilities")


def parameters_of(content: Content) -> Content:
    found = content.get("parameters")
    if found is not None and not isinstance(found, dict):
        raise Refusal(422, "parameters must be an object")
    return found or {}


def raws_of(model: Model, tensor: Tensor) -> list[Any]:
    """The rows of a tensor as inputs of the network."""
    inputs, shape = model.inputs, tensor.shape
    if inputs.takes == "image":
        if tensor.datatype == BYTES:
            return [as_file(element) for element in tensor.data]
        if len(shape) != 4:
            raise Refusal(422, f"pictures have the shape (n, channels, height, width), these have {list(shape)}")
        return [inputs.picture(picture) for picture in tensor.data]
    if inputs.takes == "vector":
        if tensor.datatype == BYTES or len(shape) != 2:
            raise Refusal(
                422, f"rows of numbers have the shape (n, features); {tensor.datatype} {list(shape)} was sent"
            )
        return [inputs.raw(row) for row in tensor.data.tolist()]
    wide = 2 if inputs.takes == "pair" else 1
    if tensor.datatype != BYTES or (shape[1:] not in ((), (1,)) if wide == 1 else shape[1:] != (2,)):
        form = "(n, 2)" if wide == 2 else "(n)"
        raise Refusal(422, f"this network takes BYTES of shape {form}; {tensor.datatype} {list(shape)} was sent")
    texts = [as_text(element) for element in tensor.data]
    return [inputs.raw(texts[i : i + 2] if wide == 2 else texts[i]) for i in range(0, len(texts), wide)]


# ---- Answers.


def written(model: Model, outputs: Outputs, content: Content) -> Response:
    """JSON, with the outputs that were to be binary behind it."""
    usual = bool(parameters_of(content).get("binary_data_output", False))
    wanted = content.get("outputs") or [{"name": name} for name in outputs_of(model)]
    likely = None if model.task == "regression" else scores(model, outputs)
    said, tail = [], b""
    for one in wanted:
        parameters = parameters_of(one)
        datatype, shape, data = output(model, one["name"], parameters.get("classification", 0), outputs, likely)
        entry: Content = {"name": one["name"], "datatype": datatype, "shape": shape}
        if parameters.get("binary_data", usual) is True:
            part = in_binary(data)
            entry["parameters"] = {"binary_data_size": len(part)}
            tail += part
        else:
            entry["data"] = data.ravel().tolist() if isinstance(data, np.ndarray) else data
        said.append(entry)
    named = {"id": content["id"]} if "id" in content else {}
    text = json.dumps({"model_name": model.name, "model_version": "1", **named, "outputs": said}).encode()
    if not tail:
        return Response(text, media_type=JSON)
    return Response(text + tail, headers={LENGTH: str(len(text))}, media_type="application/octet-stream")


def output(model: Model, name: str, classes: int, outputs: Outputs, likely: Any) -> tuple[str, list[int], Any]:
    """Type, shape and data of one output; with `classes` the likeliest as texts `score:number:label`."""
    if name == "value":
        return "FP64", [len(outputs), 1], outputs.astype("<f8")
    if classes:
        order = np.argsort(-likely, axis=1, kind="stable")[:, :classes]
        labels = model.engine.classes
        texts = [f"{likely[row, c]:f}:{c}:{labels[c]}" for row in range(len(order)) for c in order[row].tolist()]
        return BYTES, list(order.shape), texts
    if name == "label":
        return BYTES, [len(likely)], [ranked(model, row, 1)[0]["label"] for row in likely]
    return "FP32", list(likely.shape), likely.astype("<f4")
