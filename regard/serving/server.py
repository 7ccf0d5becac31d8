"""The process: uvicorn with an end that drains, and connections that cannot be held for nothing.

On SIGTERM (or Ctrl-C) `/health` says draining, new requests are refused, those under way are answered, then
the process ends; a second signal ends it at once. Before this file: `regard serve`.
"""

import asyncio
import logging
import signal
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import httptools
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from regard.errors import UsageError
from regard.process.allocator import return_freed_memory, sweep_freed_memory
from regard.serving import helper
from regard.serving.guard import Guard, in_bytes
from regard.serving.limits import CONNECTIONS, HEAD, HEADERS, Refusal
from regard.serving.service import DRAINING, READY, Service
from regard.serving.workers import RETIRE

FIRST_WORDS = 10.0  # seconds that a new connection may be silent
KEEP_ALIVE = 15
BACKLOG = 1024  # connections that wait to be taken
TAKEN = 8  # connections that are taken at a time
SPARE = 3 * TAKEN + 16  # descriptors for those on their way in, which are not counted yet, and for files
ON_THEIR_WAY = 0.5  # seconds in which a connection that was taken is counted
SMALL = 5  # digits of the length of a body that is read up where its request is turned away
logger = logging.getLogger("regard.serving")


class Connection(HttpToolsProtocol):
    """A connection that is closed when its client is silent, goes on about itself, or does not read."""

    begun = 0  # requests
    head: int | None = 0  # bytes of the head that is being read; None: it is read
    idle = 0  # bytes that came since then without being body: trailers, and what stands around chunks
    since = 0.0  # when it was heard last
    most = CONNECTIONS  # of all that are open
    turned_away: Refusal | None = None  # why the request that is being read is not taken
    deaf = False  # what comes is not listened to any more

    def connection_made(self, transport: Any) -> None:
        """A client has come; where too many are there, one that says nothing has to go."""
        super().connection_made(transport)
        self.since = time.monotonic()
        self.loop.call_later(FIRST_WORDS, self._expect_head, 0)
        if len(self.connections) > self.most:
            others = [each for each in self.connections if isinstance(each, Connection) and each is not self]
            oldest = min(
                (each for each in others if not each.busy), key=lambda each: each.since, default=None
            )
            if oldest is not None:
                oldest.transport.abort()
                oldest.connections.discard(oldest)
            else:
                self._refuse(Refusal(503, "too many connections; try again soon", retry_after=2))

    @property
    def busy(self) -> bool:
        """Whether a request on it is being answered."""
        return self.cycle is not None and not self.cycle.response_complete

    def data_received(self, data: bytes) -> None:
        """It said something; what has no end is not listened to."""
        self._unset_keepalive_if_required()
        self.since = time.monotonic()
        if self.deaf:
            return
        if self.head is not None:
            self.head += len(data)
        self.idle += len(data)
        if (self.head or 0) > HEAD or self.idle > 2 * HEAD:
            self._refuse(Refusal(400, "the head of the request, or what follows its body, is too large"))
            return
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._refuse(Refusal(400, "this server does not switch protocols; leave out the header Upgrade"))
        except httptools.HttpParserError:
            self._refuse(Refusal(400, "this is no HTTP request, or none that is understood"))

    def _refuse(self, refusal: Refusal) -> None:
        """Answer so, if no other answer is on its way, listen no more, and close."""
        if self.deaf:
            return
        self.deaf = True
        if self.busy:
            self.cycle.keep_alive = False  # its answer is the last one
            self.pipeline.clear()
            if not self.cycle.more_body:
                return
        self.transport.write(in_bytes(refusal, self.server_state.default_headers, False))
        self.transport.close()

    def on_header(self, name: bytes, value: bytes) -> None:
        """A line of the head; those after the body are none of it."""
        if self.head is None:
            return
        if len(self.headers) >= HEADERS:
            raise ValueError("too many headers")
        super().on_header(name, value)

    def on_message_begin(self) -> None:
        """A request begins; its head has to come soon."""
        super().on_message_begin()
        self.begun += 1
        self.head = self.head or 1
        self.loop.call_later(FIRST_WORDS, self._expect_head, self.begun)

    def on_headers_complete(self) -> None:
        """The head is read; where there is no room, it is all that the request costs."""
        self.head, self.idle = None, 0
        if self.parser.should_upgrade():
            # What comes next would be taken for another request, whatever the client meant by it.
            self._refuse(Refusal(400, "this server does not switch protocols; leave out the header Upgrade"))
            return
        self.turned_away = self._refusal()
        if self.turned_away is None:
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Some of the body."""
        self.idle = 0
        if self.turned_away is None and not self.deaf:
            super().on_body(body)

    def on_message_complete(self) -> None:
        """The request is read."""
        self.head = self.idle = 0
        if self.deaf:
            return
        if self.turned_away is None:
            super().on_message_complete()
            return
        keep = self.parser.should_keep_alive()
        self.transport.write(
            in_bytes(self.turned_away, self.server_state.default_headers, keep, self._path())
        )
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
        return self.app.refusal(self._path())

    def _path(self) -> str:
        return self.url.partition(b"?")[0].decode("latin-1")

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


def connections_there_can_be() -> int:
    """Connections that may be open: no more than there are descriptors, or nobody could even be refused."""
    try:
        import resource
    except ImportError:  # not on Windows, where there is no such bound
        return CONNECTIONS
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    open_now = len(list(Path("/proc/self/fd").iterdir())) if Path("/proc/self/fd").is_dir() else 32
    return max(1, min(CONNECTIONS, soft - open_now - SPARE))


class Server(uvicorn.Server):
    """uvicorn's server, which answers what it has taken before it ends."""

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self.service = service
        self.signal = 0
        self.patience = 0.0  # until when those under way are waited for
        self.quiet_until = 0.0  # no trouble is told before
        self.ready: Callable[[], object] | None = None  # to be called once, when it is
        self.servers = []  # uvicorn has none before it listens, and may be told to retire before that
        self.retiring = 0.0  # since when it only answers those that are connected; others take who comes

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen; asyncio takes as many newcomers at a time as it lets wait, which are too many to count."""
        await super().startup(sockets)
        for listening in sockets or ():
            listening.listen(BACKLOG)
        asyncio.get_running_loop().set_exception_handler(self._trouble)
        if self.retiring:  # it was told so before there was anything to close
            self._close()

    def _trouble(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """What went wrong outside of any request, in a line; a flood of them is no help to anybody."""
        if time.monotonic() > self.quiet_until:
            self.quiet_until = time.monotonic() + 10
            logger.error("%s (%s)", context["message"], context.get("exception"))

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """The first signal drains, the second ends."""
        if self.service.state == DRAINING or self.service.fault:
            super().handle_exit(sig, frame)
            return
        self.service.state, self.signal = DRAINING, sig
        self.patience = time.monotonic() + self.service.limits.drain_seconds

    def retire(self, ready: Callable[[], object]) -> None:
        """Take no more connections, answer whom it has for a while, and end; who only waited says so."""
        self.retiring = time.monotonic()
        self._close()
        if self.service.waits:
            ready()

    def _close(self) -> None:
        for server in self.servers:
            server.close()

    def _retired(self) -> bool:
        """Whether those that were connected when it retired have gone; each goes after one answer more."""
        if not self.retiring:
            return False
        self.config.encoded_headers = [(b"connection", b"close")]
        since = time.monotonic() - self.retiring
        gone = not self.server_state.connections and self.service.idle and since > ON_THEIR_WAY
        return gone or since > self.service.limits.drain_seconds

    async def on_tick(self, counter: int) -> bool:
        """Ten times a second: whether to end."""
        if self.ready is not None and self.service.state == READY:
            self.ready()
            self.ready = None
        if self._retired() and not self.signal:
            self.service.state, self.signal = DRAINING, RETIRE
            self.patience = time.monotonic() + self.service.limits.drain_seconds
        drained = self.service.idle or time.monotonic() > self.patience
        if self.signal and drained and not self.should_exit:
            if self.signal == RETIRE:
                self.should_exit = True  # nothing was wrong
            else:
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


def serve(
    service: Service, app: Any, listening: socket.socket, ready: Callable[[], object] | None = None
) -> None:
    """Answer until told to end; the fault of loading, if there was one. `ready` is called when it is."""
    return_freed_memory()
    service.beside = helper.start(service, service.inner, [listening])
    sweep_freed_memory()
    config = uvicorn.Config(
        app,
        http=Connection,
        loop="asyncio",  # tested on this one; uvicorn would take uvloop where it is installed
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        backlog=TAKEN,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=5,
    )
    Connection.most = connections_there_can_be()
    logging.getLogger("uvicorn.error").setLevel(
        logging.ERROR
    )  # a client's mistakes are not the log's business
    before = sys.getswitchinterval()
    sys.setswitchinterval(helper.SWITCH)
    server = Server(config, service)
    if ready is not None:  # it is one of several
        server.ready = ready
        signal.signal(RETIRE, lambda number, frame: server.retire(ready))
    try:
        server.run(sockets=[listening])
    finally:
        sys.setswitchinterval(before)
        if service.beside is not None:
            service.beside.close()
    if service.fault is not None:
        raise service.fault
