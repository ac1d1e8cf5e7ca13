"""The page of the API, drawn from /openapi.json on the server: it needs no script and nothing from elsewhere."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

from fastapi import APIRouter, FastAPI
from fastapi.responses import HTMLResponse, Response
from jinja2 import Environment, StrictUndefined

from weft.report.page import style

GROUPS = {
    "weft": "weft's own: what the page uses.",
    "Hugging Face": 'For clients of Hugging Face: InferenceClient(model="http://…/models/NAME").',
    "Open Inference Protocol": "For tritonclient and clients of KServe; tensors in JSON or in binary.",
    "health": "For those who look after the server.",
}
STYLE = """
summary code { overflow-wrap: anywhere; }
form label { display: block; } form input { font: inherit; padding: .5rem; width: min(100%, 24rem); }
form button { border: 1px solid var(--line); border-radius: 6px; padding: .5rem 1rem; background: var(--card); }
"""


def routes(app: FastAPI) -> APIRouter:
    """/docs and the style sheet."""
    router = APIRouter(include_in_schema=False)
    text = files("weft.serve.protocols").joinpath("documentation.html.j2").read_text(encoding="utf-8")
    template = Environment(autoescape=True, undefined=StrictUndefined).from_string(text)

    @router.get("/docs")
    def page() -> HTMLResponse:
        spec = app.openapi()
        sections = [(name, words, list(operations(spec, name))) for name, words in GROUPS.items()]
        return HTMLResponse(template.render(sections=sections, version=app.version))

    @router.get("/style.css")
    def sheet() -> Response:
        return Response(style() + STYLE, media_type="text/css", headers={"cache-control": "max-age=3600"})

    return router


def operations(spec: dict[str, Any], group: str) -> Iterator[dict[str, Any]]:
    """The operations of a group: method, path, words, the schema of what is sent, statuses."""
    for path, methods in spec["paths"].items():
        for method, operation in methods.items():
            if group not in operation.get("tags", ()):
                continue
            sent = operation.get("requestBody", {}).get("content", {})
            yield {
                "method": method.upper(),
                "path": path,
                "summary": operation.get("summary", ""),
                "sent": {
                    kind: json.dumps(part["schema"], indent=2) for kind, part in sent.items() if kind.endswith("json")
                },
                "kinds": ", ".join(sent),
                "statuses": {status: found["description"] for status, found in operation["responses"].items()},
            }
