"""Answers as they are sent: JSON, and refusals in LibreTranslate's words or in OpenAI's.

Used by `app.py` and, where a request does not even get there, by `guard.py`.
"""

import json
from typing import Any

from starlette.responses import Response

from regard.serving.limits import Refusal

_LONG = frozenset(("maps", "heads", "weights", "words"))  # names of lists that may be long


_NO_KEY, _UNKNOWN, _FAULT = 403, 401, 500  # OpenAI says 401 where LibreTranslate says 403
_KINDS = {403: "authentication_error", 429: "rate_limit_error"}


def answer(tree: Any, status: int = 200, **headers: str) -> Response:
    """JSON, as it is sent."""
    return ready(in_json(tree), status, **headers)


def ready(body: bytes, status: int = 200, **headers: str) -> Response:
    """JSON that is written already."""
    return Response(
        body, status, {name.replace("_", "-"): value for name, value in headers.items()}, "application/json"
    )


def in_json(tree: Any) -> bytes:
    """A tree as it goes over the line; half a surrogate pair, which is no text, becomes U+FFFD."""
    text = as_json(tree)
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


def as_json(tree: Any) -> str:
    """The text of a JSON value, as short as it can be.

    Long lists are written element by element: one call for all of it would keep the event loop waiting for
    the interpreter.

    >>> as_json({"words": [{"a": 1}, {"a": 2}], "b": None})
    '{"words":[{"a":1},{"a":2}],"b":null}'
    """
    if isinstance(tree, dict) and not _LONG.isdisjoint(tree):
        return "{" + ",".join([f"{_dumped(name)}:{as_json(value)}" for name, value in tree.items()]) + "}"
    if isinstance(tree, list) and tree and isinstance(tree[0], dict | list):
        return "[" + ",".join([as_json(each) for each in tree]) + "]"
    return _dumped(tree)


def _dumped(tree: Any) -> str:
    return json.dumps(tree, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def refuse(refusal: Refusal, path: str = "") -> Response:
    """A refusal as LibreTranslate words it; under /v1, as OpenAI does."""
    headers = {} if refusal.retry_after is None else {"retry_after": str(refusal.retry_after)}
    if path.startswith("/v1/"):
        status = _UNKNOWN if refusal.status == _NO_KEY else refusal.status
        return answer(openai_error(refusal), status, **headers)
    return answer({"error": refusal.message}, refusal.status, **headers)


def openai_error(refusal: Refusal) -> dict[str, Any]:
    """A refusal in OpenAI's words."""
    kind = _KINDS.get(refusal.status, "invalid_request_error" if refusal.status < _FAULT else "server_error")
    code = refusal.code or ("invalid_api_key" if refusal.status == _NO_KEY else None)
    return {"error": {"message": refusal.message, "type": kind, "param": refusal.param, "code": code}}
