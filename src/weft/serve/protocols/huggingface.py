"""Hugging Face's way of asking: `InferenceClient(model="http://127.0.0.1:8000/models/NAME")`, or curl with a picture.

A body is the bytes of a picture, a text, or JSON: {"inputs": …, "parameters": {"top_k", "function_to_apply"}}. The
answer is [{"label", "score"}, …]; for texts in one more list, as their servers have it. Rows come as {"table": {column:
[values]}} too, and are answered with a list of labels or numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter, Request, Response

from weft.serve.body import known_fields, whole_number
from weft.serve.models import Model, Outputs
from weft.serve.predictions import FUNCTIONS, TOP, Function, ranked, scores, values
from weft.serve.protocols.asking import INPUT, LABEL, Asking, answered, described, json_or_plain, number, record, rows
from weft.serve.refusal import Refusal

PARAMETERS = record([], top_k=number(1, default=TOP), function_to_apply={"enum": [*FUNCTIONS, None], "default": None})
ASK = {
    "type": "object",
    "properties": {
        "inputs": INPUT,
        "parameters": PARAMETERS,
        "table": {"type": "object", "additionalProperties": rows({})},
    },
    "additionalProperties": False,
}
ANSWER = {"type": "array", "items": {"anyOf": [LABEL, rows(LABEL), {"type": ["string", "number"]}]}}


@dataclass(frozen=True)
class Wishes:
    """How the answer is to be written."""

    several: bool = False
    table: bool = False
    top: int = TOP
    function: Function | None = None


def routes(asking: Asking) -> APIRouter:
    """`/models/{name}`."""
    router = APIRouter(tags=["Hugging Face"])

    @router.post("/models/{name}", **described("What a network says, in Hugging Face's shape.", ASK, True, ANSWER))
    async def predict(name: str, request: Request) -> Response:
        return await asking.answer(name, request, read, written)

    return router


def read(model: Model, request: Request, body: bytes) -> tuple[list[Any], Wishes]:
    """The inputs, and how the answer is wanted."""
    content = json_or_plain(model, request, body)
    if isinstance(content, list):
        return content, Wishes()
    known_fields(content, "inputs", "parameters", "table", "options")
    parameters = content.get("parameters") or {}
    if not isinstance(parameters, dict):
        raise Refusal(422, 'parameters must be an object, such as {"top_k": 3}')
    known_fields(parameters, "top_k", "function_to_apply")
    function = parameters.get("function_to_apply")
    if function is not None and function not in FUNCTIONS:
        raise Refusal(422, f"function_to_apply must be one of {', '.join(FUNCTIONS)}")
    top = whole_number(parameters, "top_k", TOP)
    if content.get("table") is not None:
        return of_table(model, content["table"]), Wishes(table=True)
    if "inputs" not in content:
        raise Refusal(422, 'there is no field "inputs"; it holds what the network is asked about')
    raws, several = model.inputs.listed(content["inputs"])
    return raws, Wishes(several, False, top, function)


def of_table(model: Model, table: Any) -> list[Any]:
    """The rows of {column: [values]}."""
    if model.inputs.takes != "vector":
        raise model.inputs.unfit(table)
    if not isinstance(table, dict) or not table or not all(isinstance(cells, list) for cells in table.values()):
        raise Refusal(422, 'a table is an object of columns: {"height": [1.7, 1.8], …}')
    if len({len(cells) for cells in table.values()}) != 1:
        raise Refusal(422, "the columns of the table are not all of one length")
    cells = {name: [as_number(cell) for cell in column] for name, column in table.items()}
    return [model.inputs.raw(dict(zip(cells, row, strict=True))) for row in zip(*cells.values(), strict=True)]


def as_number(cell: Any) -> Any:
    """A number that came as text, as tables of that client do."""
    if not isinstance(cell, str):
        return cell
    try:
        return float(cell)
    except ValueError:
        return cell  # refused where the row is checked


def written(model: Model, outputs: Outputs, wishes: Wishes) -> Response:
    """The answer in Hugging Face's shape."""
    if model.task == "regression":
        found = values(outputs)
        label = model.engine.card.target or "value"
        said = [[{"label": label, "score": value}] for value in found]
        return answered(found if wishes.table else nested(model, said, wishes))
    likely = scores(model, outputs, wishes.function)
    if wishes.table:
        return answered([model.engine.classes[number] for number in likely.argmax(1).tolist()])
    return answered(nested(model, [ranked(model, row, wishes.top) for row in likely], wishes))


def nested(model: Model, said: list[Any], wishes: Wishes) -> list[Any]:
    """A list of lists where there were several inputs, and for texts always."""
    return said if wishes.several or model.inputs.takes in ("text", "pair") else said[0]
