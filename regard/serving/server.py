"""The process: uvicorn with an end that drains, and connections that cannot be held for nothing.

On SIGTERM (or Ctrl-C) `/health` says draining, new requests are refused, those under way are answered, then
the process ends; a second signal ends it at once. Before this file: `regard serve`.
"""

import socket
import time
from types import FrameType
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from regard.errors import UsageError
from regard.serving.guard import Guard, in_bytes
from regard.serving.limits import Refusal
from regard.serving.service import DRAINING, Service

FIRST_WORDS = 10.0  # seconds that a new connection may be silent
HEAD = 131_072  # bytes before the body; a text may come in the address
KEEP_ALIVE = 15
BACKLOG = 1024  # connections that wait to be taken
SMALL = 5  # digits of the length of a body that is read up where its request is turned away


class Connection(HttpToolsProtocol):
    """A connection that is closed when its client is silent, goes on about itself, or does not read."""

    begun = 0  # requests
    head: int | None = 0  # bytes of the head that is being read; None: it is read
    turned_away: Refusal | None = None  # why the request that is being read is not taken

    def connection_made(self, transport: Any) -> None:
        """A client has come."""
        super().connection_made(transport)
        self.loop.call_later(FIRST_WORDS, self._expect_head, 0)

    def data_received(self, data: bytes) -> None:
        """It said something; a head without end is not listened to."""
        if self.head is not None:
            self.head += len(data)
            if self.head > HEAD:
                self.send_400_response("The head of the request is too large.")
                return
        super().data_received(data)

    def on_message_begin(self) -> None:
        """A request begins; its head has to come soon."""
        super().on_message_begin()
        self.begun += 1
        self.head = self.head or 1
        self.loop.call_later(FIRST_WORDS, self._expect_head, self.begun)

    def on_headers_complete(self) -> None:
        """The head is read; where there is no room, it is all that the request costs."""
        self.head = None
        self.turned_away = self._refusal()
        if self.turned_away is None:
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Some of the body."""
        if self.turned_away is None:
            super().on_body(body)

    def on_message_complete(self) -> None:
        """The request is read."""
        self.head = 0
        if self.turned_away is None:
            super().on_message_complete()
            return
        keep = self.parser.should_keep_alive()
        self.transport.write(in_bytes(self.turned_away, self.server_state.default_headers, keep))
        self.turned_away = None
        if not keep:
            self.transport.close()
            return
        self._unset_keepalive_if_required()
        wait, handler = self.timeout_keep_alive, self.timeout_keep_alive_handler
        self.timeout_keep_alive_task = self.loop.call_later(wait, handler)

    def _refusal(self) -> Refusal | None:
        """Why not even the body is looked at: those that are turned away are many, and must cost little."""
        length = next((value for name, value in self.headers if name == b"content-length"), b"")
        waited_for = self.expect_100_continue or not (self.cycle is None or self.cycle.response_complete)
        if waited_for or not length.isdigit() or len(length) > SMALL or not isinstance(self.app, Guard):
            return None
        return self.app.refusal(self.url.partition(b"?")[0].decode("latin-1"))

    def _expect_head(self, number: int) -> None:
        if self.begun == number and (number == 0 or self.head):
            self.transport.abort()

    def timeout_keep_alive_handler(self, unsent: int = 0) -> None:
        """Nothing came for a while; who still has something to read and read none of it is cut off."""
        left = self.transport.get_write_buffer_size()
        if left and left != unsent:
            self.loop.call_later(self.timeout_keep_alive, self.timeout_keep_alive_handler, left)
        elif left:
            self.transport.abort()
        else:
            super().timeout_keep_alive_handler()


class Server(uvicorn.Server):
    """uvicorn's server, which answers what it has taken before it ends."""

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self.service = service
        self.signal = 0
        self.patience = 0.0  # until when those under way are waited for

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """The first signal drains, the second ends."""
        if self.service.state == DRAINING or self.service.fault:
            super().handle_exit(sig, frame)
            return
        self.service.state, self.signal = DRAINING, sig
        self.patience = time.monotonic() + self.service.limits.drain_seconds

    async def on_tick(self, counter: int) -> bool:
        """Ten times a second: whether to end."""
        drained = self.service.idle or time.monotonic() > self.patience
        if self.signal and drained and not self.should_exit:
            super().handle_exit(self.signal, None)
        if self.service.fault is not None:
            self.should_exit = True
        return await super().on_tick(counter)


def bind(host: str, port: int) -> socket.socket:
    """A socket that listens there; UsageError where that cannot be."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        # asyncio sends small answers at once (TCP_NODELAY) only on sockets that are said to be TCP.
        listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    except (OSError, OverflowError) as error:
        raise _cannot(host, port, error) from error
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(BACKLOG)
    except (OSError, OverflowError) as error:
        listening.close()
        raise _cannot(host, port, error) from error
    return listening


def _cannot(host: str, port: int, error: Exception) -> UsageError:
    reason = getattr(error, "strerror", None) or error
    return UsageError(f"cannot listen on {host}:{port}: {reason}; choose another --host or --port")


def serve(service: Service, app: Any, listening: socket.socket) -> None:
    """Answer until told to end; the fault of loading, if there was one."""
    config = uvicorn.Config(
        app,
        http=Connection,
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=5,
    )
    Server(config, service).run(sockets=[listening])
    if service.fault is not None:
        raise service.fault
