"""A request's fields, read under bounds: bytes, seconds, depth, and the bytes of all requests together.

JSON, form or query string; what the body says wins over the query. A body that is too large is refused before
it is read. Before this file: the socket; after it: `schema.py`.
"""

import asyncio
import json
from collections.abc import Iterable
from typing import Any, NoReturn
from urllib.parse import parse_qsl

from starlette.datastructures import Headers
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import ClientDisconnect, Request

from regard.serving.limits import DEPTH, TEXTS, Limits, Refusal

FIELDS = TEXTS + 100  # a text each, and all the others


class Bodies:
    """Reads bodies; knows how many bytes of them are held."""

    def __init__(self, limits: Limits) -> None:
        self.limits, self.held = limits, 0

    async def fields(self, request: Request) -> dict[str, Any]:
        """Every field of the request; fields that are repeated become a list."""
        given = _joined(parse_query(request.scope["query_string"]))
        if request.method in ("GET", "HEAD"):
            return given
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        length = request.headers.get("content-length", "")
        if length.isdecimal() and int(length[:20]) > self.limits.body:
            self._too_large()
        data = await self._read(request)
        if not data.strip():
            return given
        if kind == "application/x-www-form-urlencoded":
            return given | _joined(parse_query(data))
        if kind == "multipart/form-data":
            return given | _joined(await _multipart(request.headers, data))
        return given | parse_json(data)

    async def _read(self, request: Request) -> bytes:
        parts: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(self.limits.body_seconds):
                async for part in request.stream():
                    size += len(part)
                    self.held += len(part)
                    if size > self.limits.body:
                        self._too_large()
                    if self.held > self.limits.bodies:
                        raise Refusal(429, "too many large requests at once", retry_after=1)
                    parts.append(part)
        except TimeoutError:
            seconds = f"{self.limits.body_seconds:g}"
            raise Refusal(408, f"the request was not sent within {seconds} seconds") from None
        except ClientDisconnect:
            raise Refusal(400, "the client went away") from None
        finally:
            self.held -= size
        return b"".join(parts)

    def _too_large(self) -> NoReturn:
        raise Refusal(413, f"the request is larger than {self.limits.body} bytes")


def parse_query(data: bytes) -> list[tuple[str, str]]:
    """The fields of a query string or a form, percent-escapes and all."""
    try:
        return parse_qsl(
            data.decode("utf-8"), keep_blank_values=True, errors="replace", max_num_fields=FIELDS
        )
    except UnicodeDecodeError:
        raise Refusal(400, "Invalid request: the form is not UTF-8") from None
    except ValueError:
        raise Refusal(400, f"Invalid request: the form has more than {FIELDS} fields") from None


def parse_json(data: bytes) -> dict[str, Any]:
    """The object in a JSON body; NaN, infinities and deep nesting are refused.

    >>> parse_json(b'{"q": "a"}')
    {'q': 'a'}
    """
    try:
        value = json.loads(data.decode("utf-8-sig"), parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        reason = str(error).partition("\n")[0][:100] if isinstance(error, ValueError) else "nested too deep"
        raise Refusal(400, f"Invalid request: no JSON ({reason})") from None
    if not isinstance(value, dict):
        raise Refusal(400, 'Invalid request: the JSON must be an object such as {"q": "text"}')
    level: list[Any] = [value]
    for _ in range(DEPTH):
        level = [inner for each in level for inner in _inside(each)]
        if not level:
            return value
    raise Refusal(400, f"Invalid request: the JSON is nested deeper than {DEPTH}")


def _inside(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number")


async def _multipart(headers: Headers, data: bytes) -> list[tuple[str, str]]:
    async def once() -> Any:
        yield data

    try:
        parser = MultiPartParser(
            headers, once(), max_files=0, max_fields=FIELDS, max_part_size=max(1, len(data))
        )
        form = await parser.parse()
    except (MultiPartException, KeyError, ValueError, LookupError) as error:
        raise Refusal(400, f"Invalid request: broken form ({getattr(error, 'message', error)})") from None
    return [(name, value) for name, value in form.multi_items() if isinstance(value, str)]


def _joined(pairs: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """Fields by name; one that comes again makes a list."""
    fields: dict[str, Any] = {}
    for name, value in pairs:
        if name in fields:
            before = fields[name]
            fields[name] = [*before, value] if isinstance(before, list) else [before, value]
        else:
            fields[name] = value
    return fields
