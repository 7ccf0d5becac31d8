"""The process beside the front: it does what is dear, with the same models in the same memory.

A keeper is forked from the front when its models are loaded and nobody but its first thread is there. It
forks the helper, and another where that dies. The helper is less urgent than the front: of two that want a
core, the front has it. It answers what comes over the control socket, tells the front there what it counts,
and ends when the front does. On the other side: `beside.py`; before this file: `server.py`.
"""

import asyncio
import contextlib
import json
import logging
import os
import signal
import socket
import sys
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from regard.process.allocator import sweep_freed_memory
from regard.serving.beside import Beside, frame, read_frame, unpacked
from regard.serving.journal import Journal
from regard.serving.workers import Workers, keep

if TYPE_CHECKING:
    from regard.serving.service import Service

NICE = 10  # beside the front
HANDED = 64  # requests that are taken from the control socket at a time
SWITCH = 0.001  # seconds until a thread has to hand the interpreter to another that waits for it
_KEPT = (b"content-type", b"content-length", b"content-disposition", b"retry-after")
logger = logging.getLogger("regard.serving")


def start(service: "Service", app: Any, unused: Sequence[socket.socket]) -> Beside | None:
    """Fork the keeper of a helper that answers as `app` does; it has no use for some sockets.

    Only where processes end with those that started them, and where what computes can be forked; and in a
    process of one thread, whose models are loaded.
    """
    if not can_help(service.loading.device) or threading.active_count() > 1 or not service.loaded:
        return None
    ours, theirs = socket.socketpair()

    def kept(ready: Callable[[], object], first: bool) -> None:
        for each in (ours, *unused):
            each.close()
        Workers(1, help_, logger.warning, lambda again: None).run()

    def help_(ready: Callable[[], object], first: bool) -> None:
        os.nice(NICE)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # it ends when nobody can ask it any more
        sys.setswitchinterval(SWITCH)
        sweep_freed_memory()
        asyncio.run(Helper(service, app, theirs).run(ready))

    keeper = keep(kept)
    theirs.close()
    return Beside(ours, keeper)


def can_help(device: str) -> bool:
    """Whether a helper can be had on this system, for models on this device."""
    return sys.platform == "linux" and device == "cpu"


class Helper:
    """One process that does what it is handed."""

    def __init__(self, service: "Service", app: Any, control: socket.socket) -> None:
        self.service, self.app, self.control = service, app, control
        self._lock = threading.Lock()
        self._ended = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        service.traces, service.journal = None, Journal("error")  # the front sees to that
        service.metrics.tell = self._tell

    async def run(self, ready: Callable[[], object]) -> None:
        """Until the front has gone."""
        await self.service.load()
        if self.service.fault is not None:
            raise self.service.fault
        asyncio.get_running_loop().add_reader(self.control.fileno(), self._take)
        ready()
        await self._ended.wait()
        self.service.close()

    def _tell(self, name: str, *values: Any) -> None:
        """Have the front count something; from any thread."""
        with self._lock, contextlib.suppress(OSError):
            self.control.sendall(json.dumps([name, *values]).encode() + b"\n")

    def _take(self) -> None:
        try:
            data, handed, _, _ = socket.recv_fds(self.control, HANDED, HANDED, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return
        except OSError:
            data, handed = b"", []
        for each in handed:
            task = asyncio.ensure_future(self._answer(socket.socket(fileno=each)))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        if not data:
            self._ended.set()

    async def _answer(self, pipe: socket.socket) -> None:
        """One request, from its frame to the end of its answer."""
        pipe.setblocking(False)
        reader, writer = await asyncio.open_connection(sock=pipe)
        places: list[Any] = []
        try:
            head, parts = await read_frame(reader), []
            while part := await read_frame(reader):
                parts.append(part)
            writer.write(frame(b""))  # it is had
            told, body = unpacked(head, parts)
            scope = {"limited": False, **told, "places": places, "client": None}
            scope |= {"asgi": {"version": "3.0"}, "http_version": "1.1", "raw_path": told["path"].encode()}
            await self.app(scope, _Heard(reader, body).receive, _Said(writer).send)
        except (EOFError, OSError):
            pass  # nobody waits for it
        except Exception:
            logger.exception("what was handed over failed")
        finally:
            for place in places:
                place.leave()
            writer.close()


class _Heard:
    """What comes from the client by way of the front: its body, nothing more, until it goes away."""

    def __init__(self, reader: asyncio.StreamReader, parts: list[bytes]) -> None:
        self._reader, self._parts = reader, deque(parts or [b""])

    async def receive(self) -> Any:
        if self._parts:
            part = self._parts.popleft()
            return {"type": "http.request", "body": part, "more_body": bool(self._parts)}
        with contextlib.suppress(OSError):
            await self._reader.read()
        return {"type": "http.disconnect"}


class _Said:
    """What goes to the client by way of the front."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer

    async def send(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            pairs = [(name, value) for name, value in message["headers"] if name in _KEPT]
            headers = [(name.decode(), value.decode("latin-1")) for name, value in pairs]
            told = json.dumps({"status": message["status"], "headers": headers})
            self._writer.write(frame(told.encode()))
            return
        if data := message.get("body", b""):
            self._writer.write(frame(data))
        if not message.get("more_body", False):
            self._writer.write(frame(b""))
        await self._writer.drain()
