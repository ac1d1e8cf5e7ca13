"""What the server says of itself in /openapi.json holds, as schemathesis finds it; the long campaign is a benchmark."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from starlette.testclient import TestClient

schemathesis = pytest.importorskip("schemathesis")
told = pytest.importorskip("schemathesis.specs.openapi.checks")
CHECKS = [told.status_code_conformance, told.content_type_conformance, told.response_schema_conformance]
NAMES = ("digits", "words", "cells", "sugar")
FEW = settings(
    max_examples=3,
    deadline=None,
    database=None,
    derandomize=True,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)


def operations(schema: Any) -> Iterator[Any]:
    """Every operation, with good requests and with bad ones."""
    for result in schema.get_all_operations():
        for mode in schemathesis.GenerationMode:
            yield result.ok(), mode


def test_every_operation_answers_as_it_is_described(client: Callable[..., TestClient]) -> None:
    schema = schemathesis.openapi.from_asgi("/openapi.json", client().app, headers={"host": "localhost"})
    asked: list[str] = []
    for operation, mode in operations(schema):

        @FEW
        @given(case=operation.as_strategy(generation_mode=mode))
        def check(case: Any) -> None:
            if "name" in (case.path_parameters or {}) and len(asked) % 4:
                case.path_parameters["name"] = NAMES[len(asked) % len(NAMES)]  # else nothing but 404 would be seen
            asked.append(case.operation.label)
            answer = case.call(headers={"host": "localhost"})
            case.validate_response(answer, checks=CHECKS)
            assert answer.status_code < 500 or answer.status_code == 503

        try:
            check()
        except Unsatisfiable:  # where nothing is sent, nothing can be wrong
            assert mode.is_negative and not operation.body
    assert len(set(asked)) == 16 and len(asked) > 40
