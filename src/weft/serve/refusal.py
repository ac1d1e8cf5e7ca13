"""Why a request is not answered: a status and a sentence, in the one shape that all protocols here share."""

from __future__ import annotations

import json

from starlette.responses import Response

JSON = "application/json"


class Refusal(Exception):
    """Ends a request with a status of 400 or above."""

    def __init__(self, status: int, sentence: str, retry_after: int | None = None) -> None:
        super().__init__(sentence)
        self.status, self.sentence, self.retry_after = status, sentence, retry_after

    def response(self) -> Response:
        """As Hugging Face and the Open Inference Protocol say it: {"error": sentence}."""
        headers = {} if self.retry_after is None else {"retry-after": str(self.retry_after)}
        return error(self.status, self.sentence, headers)


def error(status: int, sentence: str, headers: dict[str, str] | None = None) -> Response:
    """A sentence as a response."""
    return Response(json.dumps({"error": sentence}), status, headers, JSON)
