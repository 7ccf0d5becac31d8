"""What stands around the application: headers that keep a browser safe, time limits, counts.

A client that reads slowly is dropped after a while; one that is refused before it has sent everything is
listened to for a moment, so that it can read why. Plain ASGI, because it stands in the way of every request.
"""

import asyncio
import contextlib
import time
from collections.abc import Collection, Iterable
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from starlette.responses import RedirectResponse

from regard.serving.answers import refuse
from regard.serving.limits import LOOKS, Refusal

if TYPE_CHECKING:
    from regard.serving.service import Service

_ASKED_OFTEN = ("/health", "/live")  # by whoever watches the process: nobody waits for it
LINGER = 1.0  # seconds that a refused body is read and thrown away
_PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_DATA_POLICY = "default-src 'none'; frame-ancestors 'none'"
Headers = list[tuple[bytes, bytes]]
_ALWAYS: Headers = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
]
_DATA: Headers = [
    *_ALWAYS,
    (b"content-security-policy", _DATA_POLICY.encode()),
    (b"cache-control", b"no-store"),
]
# The files of the page belong together: each is asked for again, and mostly answered with 304.
_PAGE: Headers = [
    *_ALWAYS,
    (b"content-security-policy", _PAGE_POLICY.encode()),
    (b"cache-control", b"no-cache"),
]


def asked_path(scope: Any) -> str:
    """The address that is meant, without what all of them begin with; `elsewhere` for what lies beside."""
    path, prefix = str(scope["path"]), str(scope.get("root_path", ""))
    beside = prefix and path != prefix and not path.startswith(f"{prefix}/")
    return "elsewhere" if beside else path.removeprefix(prefix)


class Guard:
    """The application with a guard around it."""

    def __init__(
        self,
        app: Any,
        service: "Service",
        *,
        queued: Collection[str],
        counted: Collection[str],
        prefix: str = "",
    ) -> None:
        """Requests for `queued` paths need room; `counted` ones are counted by name, any other is "other".

        All addresses begin with `prefix`.
        """
        self.app, self.service, self.queued, self.counted = app, service, queued, counted
        self.prefix = prefix

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """One request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        passage = _Passage(scope, receive, send, self.service.limits.send_seconds)
        if self.prefix:
            scope["root_path"] = self.prefix
        asked = asked_path(scope)
        path = asked if asked in self.counted else "other"
        scope["limited"] = path in self.queued
        began = time.perf_counter()
        scope["places"] = []  # what the request has in the room, until it is answered
        traces = self.service.traces if path not in _ASKED_OFTEN else None
        span = traces.begin(scope["method"], path, scope["headers"]) if traces else None
        self.service.under_way += path not in _ASKED_OFTEN
        self.service.looks += path == "/attention"
        try:
            if not asked.startswith("/"):  # it is the prefix without its slash, or lies beside it
                await self._elsewhere(asked, passage)
                return
            if path in self.queued and await self._turned_away(path, passage):
                return
            await self.app(scope, passage.receive, passage.send)
        finally:
            for place in scope["places"]:
                place.leave()
            self.service.under_way -= path not in _ASKED_OFTEN
            self.service.looks -= path == "/attention"
            seconds = time.perf_counter() - began
            self.service.metrics.answered(path, passage.status, seconds)
            self.service.journal.request(scope["method"], path, passage.status, seconds)
            if traces:
                traces.end(span, passage.status)

    async def _elsewhere(self, asked: str, passage: "_Passage") -> None:
        """Send on to the page whoever left out its last slash; anything else is not here."""
        response = (
            RedirectResponse(f"{self.prefix}/")
            if not asked
            else refuse(Refusal(404, f"Not Found; addresses here begin with {self.prefix}/"))
        )
        await response(passage.scope, passage.receive, passage.send)

    async def _turned_away(self, path: str, passage: "_Passage") -> bool:
        """Whether the queue is full; it is said at once, because those that are sent away are many then."""
        refusal = self.service.room.refusal()
        if refusal is None and path == "/attention" and self.service.looks > LOOKS:
            refusal = self.service.room.full(f"more than {LOOKS} requests for /attention at once")
        if refusal is None:
            return False
        await passage.read_up()
        response = refuse(refusal, path)
        await response(passage.scope, passage.receive, passage.send)
        return True

    def refusal(self, path: str) -> Refusal | None:
        """Why a request for this path is turned away by its head alone; it is counted."""
        path = path.removeprefix(self.prefix)
        refusal = self.service.room.refusal() if path in self.queued else None
        if refusal is not None:
            self.service.metrics.answered(path, refusal.status, 0.0)
            self.service.journal.request("POST", path, refusal.status, 0.0)
        return refusal


class _Passage:
    """One request on its way in and out."""

    def __init__(self, scope: Any, receive: Any, send: Any, seconds: float) -> None:
        self.scope = scope
        self._receive, self._send, self._seconds = receive, send, seconds
        self._unread = scope["method"] not in ("GET", "HEAD", "OPTIONS")
        self.status = 0

    async def receive(self) -> Any:
        """What the client sends."""
        message = await self._receive()
        if message["type"] == "http.disconnect" or not message.get("more_body", False):
            self._unread = False
        return message

    async def read_up(self) -> None:
        """Take a small body that is on its way, so that the connection can be kept."""
        length = dict(self.scope["headers"]).get(b"content-length", b"")
        if length.isdigit() and len(length) < 6:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LINGER):
                    while self._unread:
                        await self.receive()

    async def send(self, message: Any) -> None:
        """What the client gets, if it takes it in time."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            message = {**message, "headers": [*message.get("headers", ()), *self._headers(message)]}
        final = message["type"] == "http.response.body" and not message.get("more_body", False)
        async with asyncio.timeout(self._seconds):
            if final and self._unread:
                await self._send({**message, "more_body": True})
                await self._linger()
                message = {"type": "http.response.body", "body": b""}
            await self._send(message)

    def _headers(self, message: Any) -> Headers:
        kind = dict(message.get("headers", ())).get(b"content-type", b"")
        data = kind.startswith((b"application/json", b"text/event-stream", b"text/plain"))
        return [*(_DATA if data else _PAGE), *([(b"connection", b"close")] if self._unread else [])]

    async def _linger(self) -> None:
        """Take what the client is still sending, so that it does not meet a closed door before the answer."""
        try:
            async with asyncio.timeout(LINGER):
                while self._unread:
                    await self.receive()
        except TimeoutError:
            return


def in_bytes(refusal: Refusal, headers: Iterable[tuple[bytes, bytes]], keep: bool, path: str = "") -> bytes:
    """A refusal as it goes over the line, with these headers in front of our own."""
    response = refuse(refusal, path)
    closing = [] if keep else [(b"connection", b"close")]
    lines = [f"HTTP/1.1 {response.status_code} {HTTPStatus(response.status_code).phrase}".encode()]
    lines += [name + b": " + value for name, value in (*headers, *response.raw_headers, *_DATA, *closing)]
    return b"\r\n".join([*lines, b"", bytes(response.body)])
