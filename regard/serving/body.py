"""A request's fields, read under bounds: bytes, seconds, depth, and the bytes of all requests together.

JSON, form or query string; what the body says wins over the query. A body that is too large is refused before
it is read. Before this file: the socket; after it: `schema.py`.
"""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar

from starlette.datastructures import Headers
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import ClientDisconnect, Request

from regard.serving.desk import Desk
from regard.serving.limits import DEPTH, PARSED, SENT, TEXTS, VALUES, Answered, Limits, Refusal

Given = TypeVar("Given")
_STEPS = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[{,]', re.DOTALL)
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")
FIELDS = TEXTS + 100  # a text each, and all the others


class Bodies:
    """Reads bodies; knows how many bytes of them are held."""

    def __init__(self, limits: Limits, desk: Desk) -> None:
        self.limits, self.desk = limits, desk
        self.held = self.filed = 0  # of texts; of forms with a file

    async def fields(
        self,
        request: Request,
        checked: Callable[[dict[str, Any]], Given],
        *,
        file: int = 0,
        beside: Callable[[list[bytes]], Awaitable[Any]] | None = None,
    ) -> Given:
        """What `checked` makes of every field of the request; fields that are repeated become a list.

        One of them may be a file (`Sent`) of so many bytes. A long request, and one that may hold a file, is
        answered by what is `beside` (`Answered`), or else taken apart in another thread; its bytes count as
        held until that is done.
        """
        query: bytes = request.scope["query_string"]
        parts: list[bytes] = []
        if request.method not in ("GET", "HEAD"):
            length = request.headers.get("content-length", "")
            most = self.limits.body + file
            told = int(length[:20]) if length.isdecimal() else 0
            if told > most:
                self._too_large(most)
            seconds = self.limits.body_seconds + (told / SENT if file else 0)
            parts = await self._read(request, most, seconds, file)
        size = sum(map(len, parts))
        kind = request.headers.get("content-type", "")

        def taken_apart() -> Given:
            data = b"".join(parts)
            parts.clear()
            return checked(parse(query, kind, data, files=int(file > 0)))

        try:
            if size + len(query) <= PARSED and not file:
                return taken_apart()
            if beside is not None and (found := await beside(parts)):
                raise Answered(found)
            return await self.desk.do(taken_apart, long=True)
        finally:
            self._hold(-size, file)

    def _hold(self, size: int, file: int) -> None:
        """So many bytes more; those of files are in no text's way."""
        if file:
            self.filed += size
        else:
            self.held += size
        full = self.filed > 2 * (self.limits.body + file) if file else self.held > self.limits.bodies
        if size > 0 and full:
            raise Refusal(429, "too many large requests at once", retry_after=1)

    async def _read(self, request: Request, most: int, seconds: float, file: int) -> list[bytes]:
        """The body in the parts that came, whose bytes are held from now on."""
        parts: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(seconds):
                async for part in request.stream():
                    size += len(part)
                    self._hold(len(part), file)
                    if size > most:
                        self._too_large(most)
                    parts.append(part)
        except BaseException as error:
            self._hold(-size, file)
            if isinstance(error, TimeoutError):
                raise Refusal(408, f"the request was not sent within {seconds:.3g} seconds") from None
            if isinstance(error, ClientDisconnect):
                raise Refusal(400, "the client went away") from None
            raise
        return parts

    def _too_large(self, most: int) -> NoReturn:
        raise Refusal(413, f"the request is larger than {most} bytes")


@dataclass(frozen=True)
class Sent:
    """A file in a form."""

    name: str
    data: bytes


def parse(query: bytes, kind: str, data: bytes, *, files: int = 0) -> dict[str, Any]:
    """The fields of a query string and a body; `kind` is the body's content type."""
    given = _joined(parse_query(query))
    if not data.strip():
        return given
    name = kind.partition(";")[0].strip().lower()
    if name == "application/x-www-form-urlencoded":
        return given | _joined(parse_query(data))
    if name == "multipart/form-data":
        return given | _joined(_multipart(kind, data, files=files))
    return given | parse_json(data)


def parse_query(data: bytes) -> list[tuple[str, str]]:
    """The fields of a query string or a form, percent-escapes and all.

    As the standard library's `parse_qsl` has them. That makes a string of every escape before it joins them,
    which takes seventy times the form.

    >>> parse_query(b"q=a+b%21&words")
    [('q', 'a b!'), ('words', '')]
    """
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        raise Refusal(400, "Invalid request: the form is not UTF-8") from None
    if data.count(b"&") >= FIELDS:
        raise Refusal(400, f"Invalid request: the form has more than {FIELDS} fields")
    pairs = (field.partition(b"=") for field in data.split(b"&") if field)
    return [(_unescaped(name), _unescaped(value)) for name, _, value in pairs]


def _unescaped(data: bytes) -> str:
    # A letter a byte, since those are had already; pieces of bytes would be joined by way of a view of each.
    letters = data.replace(b"+", b" ").decode("latin-1")
    plain = _ESCAPE.sub(lambda found: chr(int(found[1], 16)), letters)
    return plain.encode("latin-1").decode("utf-8", "replace")


def parse_json(data: bytes) -> dict[str, Any]:
    """The object in a JSON body; NaN, infinities and deep nesting are refused.

    >>> parse_json(b'{"q": "a"}')
    {'q': 'a'}
    """
    if sum(map(data.count, (b"[", b"{", b","))) > VALUES and _values(data) > VALUES:
        raise Refusal(400, f"Invalid request: the JSON has more than {VALUES} values")
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


def _values(data: bytes) -> int:
    """About how many values a JSON text holds: what begins or parts them, outside of strings."""
    return sum(found[0] in b"[{," for found in _STEPS.finditer(data))


def _inside(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number")


def _multipart(kind: str, data: bytes, *, files: int = 0) -> list[tuple[str, Any]]:
    async def once() -> Any:
        yield data

    try:
        parser = MultiPartParser(
            Headers({"content-type": kind}),
            once(),
            max_files=files,
            max_fields=FIELDS,
            max_part_size=max(1, len(data)),
        )
        parser.spool_max_size = len(data) + 1  # a file stays in memory, for nothing here may wait
        form = _at_once(parser.parse())
    except (MultiPartException, KeyError, ValueError, LookupError) as error:
        raise Refusal(400, f"Invalid request: broken form ({getattr(error, 'message', error)})") from None
    found: list[tuple[str, Any]] = []
    for name, value in form.multi_items():
        if isinstance(value, str):
            found.append((name, value))
        else:
            with value.file as held:
                found.append((name, Sent(value.filename or "", held.read())))
    return found


def _at_once(task: Coroutine[Any, Any, Any]) -> Any:
    """The result of what waits for nothing: all data are here, and files are refused."""
    try:
        task.send(None)
    except StopIteration as done:
        return done.value
    task.close()
    raise Refusal(400, "Invalid request: broken form")


def _joined(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Fields by name; one that comes again makes a list."""
    fields: dict[str, Any] = {}
    for name, value in pairs:
        if name not in fields:
            fields[name] = value
        elif isinstance(fields[name], list):
            fields[name].append(value)
        else:
            fields[name] = [fields[name], value]
    return fields
