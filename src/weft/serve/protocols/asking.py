"""One request, one way: find the network, read the body, take a place in the queue, answer; whatever the protocol."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.responses import Response

from weft.serve.batching import overrun
from weft.serve.body import Bodies, is_json, media_type, parsed
from weft.serve.models import Model, Models, Outputs
from weft.serve.refusal import JSON, Refusal

Made = TypeVar("Made")
Content = dict[str, Any]
Read = Callable[[Model, Request, bytes], tuple[list[Any], Any]]
"""of a body: the inputs, and what is needed to write the answer"""
Write = Callable[[Model, Outputs, Any], Response]
"""the answer, from the outputs for the inputs and what `Read` kept"""
LARGE = 1 << 16  # bytes of a body, and
MANY = 10_000  # outputs of a network, that take longer than handing them to another thread
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

    async def answer(self, name: str, request: Request, read: Read, write: Write) -> Response:
        """What the network says of the inputs of a request."""
        model = await self.models.get(name)
        model.batcher.require_room()  # before anything is read: who cannot be served is told at once
        async with self.bodies.read(request) as body:
            deadline = asyncio.get_running_loop().time() + self.models.config.timeout
            raws, wishes = await self.beside(len(body) > LARGE, deadline, read, model, request, body)
            if not raws:
                raise Refusal(422, "there is no input in the request; send at least one")
            most = self.models.config.max_queue
            if len(raws) > most:
                raise Refusal(413, f"a request may hold {most} inputs and this one has {len(raws)}; send them in parts")
            with model.batcher.accept(len(raws)):  # not before all is there: who sends slowly keeps no place
                outputs = await model.answers(raws, request, deadline)
        return await self.beside(outputs.size > MANY, deadline, write, model, outputs, wishes)

    async def beside(self, long: bool, deadline: float, work: Callable[..., Made], *arguments: Any) -> Made:
        """What `work` makes; where that takes long, in a thread, so that others are answered meanwhile."""
        if not long:
            return work(*arguments)
        try:
            async with asyncio.timeout_at(deadline):
                job = asyncio.get_running_loop().run_in_executor(self.models.reading, work, *arguments)
                return await job
        except TimeoutError:
            raise overrun() from None


def json_or_plain(model: Model, request: Request, body: bytes) -> Content | Any:
    """The JSON object of a body, or else the body as one input (in a list)."""
    if not body:
        raise Refusal(422, "the request is empty; send a picture, a text, or JSON")
    if is_json(request, body):
        return parsed(body)
    return [model.inputs.plain(body, media_type(request))]


def answered(content: Any) -> Response:
    """JSON."""
    return Response(json.dumps(content), media_type=JSON)


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
