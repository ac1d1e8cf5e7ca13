"""One request, one way: find the network, make room in its queue, read the body, answer; whatever the protocol."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request

from weft.serve.body import Bodies, is_json, media_type, parsed
from weft.serve.models import Model, Models, Outputs
from weft.serve.refusal import Refusal

Content = dict[str, Any]
Read = Callable[[Model, Request, bytes], tuple[list[Any], Any]]
"""of a body: the inputs, and what is needed to write the answer"""
ERROR = {"type": "object", "required": ["error"], "properties": {"error": {"type": "string"}}}
WHY = {
    400: "The body cannot be read.",
    401: "The token is missing or wrong.",
    403: "Another site sent this.",
    404: "There is no such network.",
    408: "The request came too slowly.",
    413: "Too many bytes, pixels, letters or inputs.",
    415: "Not what this network takes.",
    422: "Understood, but of the wrong shape, type or value.",
    503: "Too much to do; `Retry-After` says when to try again.",
}


@dataclass(frozen=True)
class Asking:
    """What every protocol needs to answer."""

    models: Models
    bodies: Bodies

    async def answer(self, name: str, request: Request, read: Read) -> tuple[Model, Outputs, Any]:
        """The network, its outputs for the inputs of the request, and what `read` made of the rest."""
        model = await self.models.get(name)
        with model.batcher.accept():  # before anything is read: who cannot be served is told at once
            async with self.bodies.read(request) as body:
                raws, wishes = read(model, request, body)
                if not raws:
                    raise Refusal(422, "there is no input in the request; send at least one")
                most = self.models.config.max_queue
                if len(raws) > most:
                    raise Refusal(
                        413, f"a request may hold {most} inputs and this one has {len(raws)}; send them in parts"
                    )
                with model.batcher.accept(max(0, len(raws) - 1)):
                    return model, await model.answers(raws, request), wishes


def json_or_plain(model: Model, request: Request, body: bytes) -> Content | Any:
    """The JSON object of a body, or else the body as one input (in a list)."""
    if not body:
        raise Refusal(422, "the request is empty; send a picture, a text, or JSON")
    if is_json(request, body):
        return parsed(body)
    return [model.inputs.plain(body, media_type(request))]


def refusals(*statuses: int) -> dict[int | str, Content]:
    """The statuses with which a route may refuse, for the OpenAPI page."""
    said = {"application/json": {"schema": ERROR}}
    return {status: {"description": WHY[status], "content": said} for status in statuses}


def described(summary: str, body: Content, plain: bool, answer: Content) -> dict[str, Any]:
    """The words and schemas of a route for the OpenAPI page."""
    content: Content = {"application/json": {"schema": body}}
    if plain:
        binary = {"schema": {"type": "string", "format": "binary"}}
        content |= {"application/octet-stream": binary, "image/*": binary, "text/plain": {"schema": {"type": "string"}}}
    responses = refusals(*WHY)
    responses[200] = {"description": "What the network says.", "content": {"application/json": {"schema": answer}}}
    return {
        "summary": summary,
        "responses": responses,
        "openapi_extra": {"requestBody": {"required": True, "content": content}},
    }


def number(least: float | None = None, **more: Any) -> Content:
    """The schema of a whole number."""
    return {"type": "integer", **({} if least is None else {"minimum": least}), **more}


def record(required: list[str], **properties: Content) -> Content:
    """The schema of an object with these fields and no others."""
    return {"type": "object", "required": required, "properties": properties, "additionalProperties": False}


def rows(of: Content) -> Content:
    """The schema of a list."""
    return {"type": "array", "items": of}


LABEL = record(["label", "score"], label={"type": "string"}, score={"type": "number"})
INPUT: Content = {
    "description": "A picture as base64, a text, a pair of texts, a row of numbers or an object by column; or a list.",
    "anyOf": [{"type": "string"}, {"type": "array", "items": {}}, {"type": "object"}],
}
