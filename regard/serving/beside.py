"""What is dear is done beside: the front hands such a request whole to a process that is less urgent.

Words that are told, tags, terms, long texts and looks hold the interpreter and the cores for long; a plain
sentence must not wait for them. Every request has a bound on what it costs before it starts, and by that the
front decides. It makes a pair of sockets, sends one end over to the helper, and passes on what comes back.

    front -> helper   a frame of JSON: where it was sent to, and its fields if they are read already
    helper -> front   an empty frame when it has all of that; then one of JSON: status and headers
    both              frames of the body, and an empty one; a file among the fields goes as the body

A frame is four bytes of length, and so many bytes. A client that goes away closes the pair, as a helper that
dies does: a request that it had is answered 503, and the keeper forks another helper, to which what it had
not yet goes. Where there is no helper, what is dear is done where it came in. Before this file: the routes;
on the other side: `helper.py`.
"""

import asyncio
import contextlib
import json
import os
import signal
import socket
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import Response

from regard.serving.body import Sent
from regard.serving.door import listening
from regard.serving.limits import Refusal
from regard.serving.traces import asked

if TYPE_CHECKING:
    from regard.serving.metrics import Metrics
    from regard.serving.service import Service

_LENGTH = 4  # bytes that say how long a frame is
_SCOPE = ("type", "method", "path", "query_string", "root_path", "scheme", "server", "limited")
_HEADERS = (b"host", b"content-type", b"authorization")
PATIENCE = 3.0  # seconds that helper and keeper have to end
GRACE = 10.0  # seconds that the helper has, beyond its own limit, to say itself that it took too long
TRIES = 3  # helpers that a request is sent to, as long as they end before they have it
_DIED = "the process that did this has ended and another takes its place; try again"


async def read_frame(reader: asyncio.StreamReader) -> bytes:
    """The next frame; EOFError where the other side has gone."""
    try:
        size = int.from_bytes(await reader.readexactly(_LENGTH))
        return await reader.readexactly(size)
    except (asyncio.IncompleteReadError, OSError) as error:
        raise EOFError from error


def frame(data: bytes) -> bytes:
    """As it goes over the line.

    >>> frame(b"abc")
    b'\\x00\\x00\\x00\\x03abc'
    """
    return len(data).to_bytes(_LENGTH) + data


def packed(scope: Mapping[str, Any], given: Mapping[str, Any] | list[bytes]) -> tuple[bytes, list[bytes]]:
    """A request as it is handed over: the first frame, and the parts that follow it."""
    told = {name: scope[name] for name in _SCOPE if name in scope}
    told["query_string"] = scope.get("query_string", b"").decode("latin-1")
    pairs = [pair for pair in scope["headers"] if pair[0] in _HEADERS]
    told["headers"] = [[each.decode("latin-1") for each in pair] for pair in pairs]
    if isinstance(given, list):
        return json.dumps([told, None, None]).encode(), given
    files = [(name, value) for name, value in given.items() if isinstance(value, Sent)]  # one at most
    fields = {name: value for name, value in given.items() if not isinstance(value, Sent)}
    file = [files[0][0], files[0][1].name] if files else None
    # A file that is repeated among texts stands in a list, and is no file to any route.
    head = json.dumps([told, fields, file], default=lambda nested: None)
    return head.encode(), [sent.data for _, sent in files]


def unpacked(head: bytes, parts: list[bytes]) -> tuple[dict[str, Any], list[bytes]]:
    """The scope of a request that was `packed`, with its fields if there are any, and its body."""
    told, fields, file = json.loads(head)
    told["query_string"] = told["query_string"].encode("latin-1")
    told["headers"] = [tuple(each.encode("latin-1") for each in pair) for pair in told["headers"]]
    if fields is None:
        return told, parts
    if file is not None:
        name, called = file
        fields[name] = Sent(called, b"".join(parts))
    return told | {"fields": fields}, []


class Beside:
    """The front's end: what it hands over, and what the helper counts."""

    def __init__(self, control: socket.socket, keeper: int) -> None:
        self._control, self._keeper = control, keeper
        self._said = b""
        self.waiting = 0  # requests whose answer has not begun

    async def begin(self, metrics: "Metrics") -> bool:
        """Wait for the helper, whose counts go into these metrics; whether there is one."""
        asyncio.get_running_loop().add_reader(self._control.fileno(), self._counted, metrics)
        pipe = await self._opened()
        if pipe is None:
            return False
        try:
            return await pipe.send({"type": "http", "method": "GET", "path": "/live", "headers": []}, {})
        finally:
            pipe.close()

    def _counted(self, metrics: "Metrics") -> None:
        try:
            data = self._control.recv(1 << 16, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:  # neither helper nor keeper is there
            asyncio.get_running_loop().remove_reader(self._control.fileno())
        *lines, self._said = (self._said + data).split(b"\n")
        for line in lines:
            name, *values = json.loads(line)
            getattr(metrics, name)(*values)

    async def answer(
        self, service: "Service", request: Request, given: Mapping[str, Any] | list[bytes]
    ) -> "Relayed | None":
        """What the helper answers; None where there is none, and it has to be done here."""
        service.check_ready()
        place = service.room.enter(long=True)
        request.scope["places"].append(place)  # which it leaves when it is answered, whatever comes
        for _ in range(TRIES):
            pipe = await self._opened()
            if pipe is None:
                place.leave()
                return None
            service.expect(place, pipe.give_up, service.limits.seconds + GRACE)
            told, handed = asked(), time.time_ns()
            self.waiting += 1
            try:
                async with listening(request, pipe.give_up):
                    head = json.loads(await pipe.read()) if await pipe.send(request.scope, given) else None
            except BaseException:
                pipe.close()
                raise
            finally:
                self.waiting -= 1
            if head is None:
                pipe.close()
                continue
            if told is not None:
                told(handed, handed)
            if any(name == "content-length" for name, _ in head["headers"]):
                place.computed()  # all of it is there
            return Relayed(request, pipe, head)
        raise Refusal(503, _DIED, retry_after=1)

    async def _opened(self) -> "Pipe | None":
        """A pair of sockets, one of them on its way to the helper; None where there is nobody, or no room."""
        try:
            ours, theirs = socket.socketpair()
        except OSError:  # no descriptors are left
            return None
        with theirs:
            try:
                socket.send_fds(self._control, [b"."], [theirs.fileno()], socket.MSG_DONTWAIT)
            except OSError:
                ours.close()
                return None
        ours.setblocking(False)
        return Pipe(*await asyncio.open_connection(sock=ours))

    def close(self) -> None:
        """The helper ends, since nobody asks any more, and so does its keeper; in the end by force."""
        self._control.close()
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            for _ in range(2):
                os.kill(self._keeper, signal.SIGTERM)
                until = time.monotonic() + PATIENCE
                while time.monotonic() < until:
                    if os.waitpid(self._keeper, os.WNOHANG)[0]:
                        return
                    time.sleep(0.02)


class Pipe:
    """One request that was handed over."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self.fault: Exception | None = None

    async def send(self, scope: Mapping[str, Any], given: Mapping[str, Any] | list[bytes]) -> bool:
        """Hand the request over, parts of its body one after the other, for they may be large.

        Whether the helper has it: one that ended before that has done nothing.
        """
        head, parts = packed(scope, given)
        self._writer.write(frame(head))
        with contextlib.suppress(OSError):  # reading will tell
            for part in filter(None, parts):
                self._writer.write(frame(part))
                await self._writer.drain()
        self._writer.write(frame(b""))
        try:
            await read_frame(self._reader)
        except EOFError:
            if self.fault is not None:
                raise self.fault from None
            return False
        return True

    async def read(self) -> bytes:
        """The next frame; where none comes, why."""
        try:
            return await read_frame(self._reader)
        except EOFError:
            self.fault = self.fault or Refusal(503, _DIED, retry_after=1)
            raise self.fault from None

    def give_up(self, fault: Exception) -> None:
        """Let whoever waits for it have this instead; the helper stops when it sees that nobody does."""
        self.fault = fault
        self.close()

    def close(self) -> None:
        self._writer.transport.abort()


class Relayed(Response):
    """An answer that is passed on as it comes."""

    def __init__(self, request: Request, pipe: Pipe, head: Any) -> None:
        self.status_code = head["status"]
        self.background = None
        self.raw_headers = [(name.encode(), value.encode("latin-1")) for name, value in head["headers"]]
        self._request, self._pipe = request, pipe

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Send it; where the helper dies in the middle, the client finds that it has no end."""
        start = {"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers}
        try:
            await send(start)
            with contextlib.suppress(Refusal):
                async with listening(self._request, self._pipe.give_up):
                    while data := await self._pipe.read():
                        await send({"type": "http.response.body", "body": data, "more_body": True})
                await send({"type": "http.response.body", "body": b""})
        finally:
            self._pipe.close()
