"""Answers as they are sent: JSON, and refusals in LibreTranslate's words.

Used by `app.py` and, where a request does not even get there, by `guard.py`.
"""

import json
from typing import Any

from starlette.responses import Response

from regard.serving.limits import Refusal


def answer(tree: Any, status: int = 200, **headers: str) -> Response:
    """JSON, as it is sent."""
    text = json.dumps(tree, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Response(
        text, status, {name.replace("_", "-"): value for name, value in headers.items()}, "application/json"
    )


def refuse(refusal: Refusal) -> Response:
    """A refusal as LibreTranslate words it."""
    headers = {} if refusal.retry_after is None else {"retry_after": str(refusal.retry_after)}
    return answer({"error": refusal.message}, refusal.status, **headers)
