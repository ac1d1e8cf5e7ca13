"""The page of the API, drawn from /openapi.json on the server: it needs no script and nothing from elsewhere."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response

from weft.serve.pages.runs.run_view import Command
from weft.serve.pages.site import Site

GROUPS = {
    "weft": "weft's own: what the page uses.",
    "Hugging Face": 'For clients of Hugging Face: InferenceClient(model="http://…/models/NAME").',
    "Open Inference Protocol": "For tritonclient and clients of KServe; tensors in JSON or in binary.",
    "health": "For those who look after the server.",
}


def routes(site: Site) -> APIRouter:
    """/docs."""
    router = APIRouter(include_in_schema=False)

    @router.get("/docs")
    def page(request: Request) -> Response:
        spec = site.app.openapi()
        sections = [(name, words, list(operations(spec, name))) for name, words in GROUPS.items()]
        shown = examples(f"{request.base_url}api/v1/models/NAME/predict", site.config.secret is not None)
        return site.page("documentation.html.j2", sections=sections, examples=shown, release=site.app.version)

    return router


def examples(address: str, token: bool) -> list[Command]:
    """Questions that a reader can copy."""
    key = '-H "Authorization: Bearer $WEFT_TOKEN" ' if token else ""
    return [
        Command("asks about a picture", f"curl {key}--data-binary @cat.jpg {address}"),
        Command("asks about a text", f'curl {key}--json \'{{"inputs": "a text", "top_k": 3}}\' {address}'),
    ]


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
