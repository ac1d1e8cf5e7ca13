"""weft's own API: the networks that can be asked, and what they say of an input."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from weft.serve.body import known_fields, whole_number
from weft.serve.descriptions import answers_questions, describe
from weft.serve.models import Model, Outputs
from weft.serve.predictions import TOP, ranked, scores, values
from weft.serve.protocols.asking import (
    INPUT,
    LABEL,
    Asking,
    answered,
    described,
    json_or_plain,
    number,
    record,
    refusals,
    rows,
)
from weft.serve.refusal import JSON, Refusal

ASK = record(["inputs"], inputs=INPUT, top_k=number(1, default=TOP))
ANSWER = {
    "oneOf": [
        record(["predictions"], predictions={"type": "array", "items": {"anyOf": [LABEL, rows(LABEL)]}}),
        record(["value"], value={"type": "number"}),
        record(["values"], values=rows({"type": "number"})),
    ]
}
ABOUT = {
    "type": "object",
    "required": ["name", "modality", "task", "classes"],
    "properties": {
        "name": {"type": "string"},
        "modality": {"enum": ["image", "text", "pair", "vector"]},
        "task": {"enum": ["classes", "binary", "regression"]},
        "classes": rows({"type": "string"}),
    },
}
LISTED: dict[int | str, Any] = refusals(422) | {
    200: {"description": "The networks.", "content": {JSON: {"schema": rows(ABOUT)}}}
}
FOUND: dict[int | str, Any] = refusals(404, 422) | {
    200: {"description": "The network.", "content": {JSON: {"schema": ABOUT}}}
}


def routes(asking: Asking) -> APIRouter:
    """`/api/v1/…`."""
    router = APIRouter(prefix="/api/v1", tags=["weft"])
    models = asking.models

    @router.get("/models", summary="The networks that can be asked, by name.", responses=LISTED)
    def listed(
        response: Response,
        limit: Annotated[int, Query(ge=1, le=1000)] = 1000,
        offset: Annotated[int, Query(ge=0, le=1 << 31)] = 0,
    ) -> list[dict[str, Any]]:
        found = [entry for entry in models.catalogue.runs() if answers_questions(entry)]
        response.headers["x-total-count"] = str(len(found))
        return [describe(entry) for entry in found[offset : offset + limit]]

    @router.get("/models/{name}", summary="One network.", responses=FOUND)
    def one(name: str) -> dict[str, Any]:
        entry = models.entry(name)
        if not answers_questions(entry):
            raise Refusal(404, f"the network of {entry.name} is damaged, or only pre-trained, and answers nothing")
        return describe(entry)

    @router.post("/models/{name}/predict", **described("What a network says of an input.", ASK, True, ANSWER))
    async def predict(name: str, request: Request) -> Response:
        return await asking.answer(name, request, read, written)

    return router


def read(model: Model, request: Request, body: bytes) -> tuple[list[Any], tuple[bool, int]]:
    """The inputs, whether they came as a list, and how many classes are wanted."""
    content = json_or_plain(model, request, body)
    if isinstance(content, list):
        return content, (False, TOP)
    known_fields(content, "inputs", "top_k")
    if "inputs" not in content:
        raise Refusal(422, 'there is no field "inputs"; it holds what the network is asked about')
    raws, several = model.inputs.listed(content["inputs"])
    return raws, (several, whole_number(content, "top_k", TOP))


def written(model: Model, outputs: Outputs, wishes: tuple[bool, int]) -> Response:
    """The answer: predictions, or a value; lists of them where inputs came as a list."""
    several, top = wishes
    if model.task == "regression":
        found = values(outputs)
        return answered({"values": found} if several else {"value": found[0]})
    said = [ranked(model, row, top) for row in scores(model, outputs)]
    return answered({"predictions": said if several else said[0]})
