"""Networks to try: a picture, a text or a row in, the likeliest classes out, two networks side by side."""

from __future__ import annotations

import asyncio
import json
import shlex
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response

from weft.serve.body import Bodies
from weft.serve.catalogue import Entry, NotServed
from weft.serve.descriptions import answers_questions, describe
from weft.serve.models import Model
from weft.serve.pages.numbers import whole
from weft.serve.pages.site import PageRoute, Site
from weft.serve.predictions import TOP
from weft.serve.protocols.asking import answered, json_or_plain
from weft.serve.refusal import JSON, Refusal

FEW = 300  # networks in a list that is read through; of more, names are typed


def routes(site: Site) -> APIRouter:
    """/predict and /predict/saliency."""
    router = APIRouter(route_class=PageRoute, include_in_schema=False)
    busy = asyncio.Lock()
    bodies = Bodies(site.config.max_body, site.config.timeout)

    @router.get("/predict")
    def page(request: Request) -> Response:
        known = [entry for entry in site.catalogue.runs() if answers_questions(entry)]
        known.sort(key=lambda entry: -(entry.path / "model.safetensors").stat().st_mtime)
        asked = request.query_params
        first = chosen(known, asked.get("model", ""))
        about = describe(first) if first is not None else {}
        alike = [entry for entry in known[:FEW] if describe(entry)["modality"] == about.get("modality")]
        second = next((entry for entry in alike if entry.name == asked.get("second") and entry is not first), None)
        return site.page(
            "predict.html.j2", known=[describe(entry) for entry in known[:FEW]], many=len(known) > FEW, about=about,
            alike=[entry.name for entry in alike], names=[entry.name for entry in (first, second) if entry is not None],
            second=second.name if second else "", top=whole(asked.get("top_k"), TOP, 100),
            snippets=snippets(str(request.base_url), about, site.config.secret is not None) if about else {},
        )  # fmt: skip

    @router.post("/predict/saliency")
    async def saliency(request: Request, model: str) -> Response:
        from weft.serve.pages.saliency import explain

        network = await site.app.state.models.get(model)
        async with bodies.read(request) as body:
            if busy.locked():
                raise Refusal(503, "another answer is being explained; try again in a moment", 2)
            async with busy:
                raw = await asyncio.to_thread(one_input, network, request, body)
                found = await asyncio.to_thread(explain, network, raw)
        return Response(found, media_type="image/png") if isinstance(found, bytes) else answered({"words": found})

    return router


def one_input(network: Model, request: Request, body: bytes) -> Any:
    """The only input of a request."""
    content = json_or_plain(network, request, body)
    raws = content if isinstance(content, list) else network.inputs.listed(content.get("inputs"))[0]
    if len(raws) != 1:
        raise Refusal(422, "one input at a time can be explained")
    network.inputs.is_quick(raws[0])  # measures a picture before it is decoded
    return raws[0]


def chosen(known: list[Entry], name: str) -> Entry | None:
    """The network of a name; where none is named, the newest."""
    if not name:
        return known[0] if known else None
    found = next((entry for entry in known if name in (entry.name, entry.long_name)), None)
    if found is None:
        raise NotServed(f"there is no trained network {name[:100]!r} here; the list has those there are")
    return found


def example(about: dict[str, Any]) -> str:
    """JSON that a network which takes no pictures understands."""
    row: list[float] = [0.0] * (about.get("features") or len(about["columns"]) or 1)
    inputs: dict[str, Any] = {"text": "a text", "pair": ["a text", "another"], "vector": row}
    return json.dumps({"inputs": inputs[about["modality"]]})


def snippets(base: str, about: dict[str, Any], token: bool) -> dict[str, str]:
    """The same question from elsewhere: curl, and Python's own library."""
    address = f"{base}api/v1/models/{about['name']}/predict"
    header = ' -H "Authorization: Bearer $WEFT_TOKEN"' if token else ""
    key = ', "Authorization": f"Bearer {os.environ[\'WEFT_TOKEN\']}"' if token else ""
    if about["modality"] == "image":
        curl = f"curl{header} -H 'Content-Type: image/png' --data-binary @picture.png {shlex.quote(address)}"
        data, kind = 'open("picture.png", "rb").read()', "image/png"
    else:
        body = example(about)
        curl = f"curl{header} -H 'Content-Type: application/json' -d {shlex.quote(body)} {shlex.quote(address)}"
        data, kind = f"json.dumps({body}).encode()", JSON
    python = (
        f"import json{', os' if token else ''}, urllib.request\n"
        f"request = urllib.request.Request(\n    {address!r},\n    data={data},\n"
        f'    headers={{"Content-Type": {kind!r}{key}}},\n)\nprint(json.load(urllib.request.urlopen(request)))'
    )
    return {"curl": curl, "Python": python}
