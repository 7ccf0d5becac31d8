"""A request as the application gets it: address, kind of content and body, with a real model behind it.

    /translate application/json
    {"q": "a b", "source": "en", "target": "de"}

The first line of an input is for the head, the rest is the body. Everything from the guard to the engine is
the real one; only the socket is not there (`benchmarks/fuzz_routes.py` has one).
"""

import asyncio
import functools
import threading
from typing import Any

from fuzz import ground

HEADERS = [(b"host", b"here"), (b"user-agent", b"fuzz")]


class Application:
    """The server's application, running in a loop of its own."""

    def __init__(self) -> None:
        from regard.serving.app import build_app
        from regard.serving.family import parse_place
        from regard.serving.service import Service

        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.loop.run_forever, daemon=True).start()
        folders = ground.model_folder(), ground.writer_folder()
        self.service = Service([parse_place(str(folder)) for folder in folders])
        self.app = build_app(self.service)
        self.wait(self.service.load())
        assert self.service.fault is None, self.service.fault

    def wait(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result()

    async def ask(self, path: str, kind: bytes, body: bytes) -> tuple[int, bytes]:
        """The status and the body of the answer."""
        head, _, query = path.partition("?")
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": "POST" if body else "GET",
            "scheme": "http",
            "path": head,
            "raw_path": head.encode(),
            "query_string": query.encode("latin-1", "replace"),
            "root_path": "",
            "headers": [*HEADERS, (b"content-type", kind), (b"content-length", str(len(body)).encode())],
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 2),
        }
        waiting: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        waiting.put_nowait({"type": "http.request", "body": body, "more_body": False})
        status, parts = 0, []

        async def send(message: dict[str, Any]) -> None:
            nonlocal status
            status = message.get("status", status)
            parts.append(message.get("body", b""))

        await self.app(scope, waiting.get, send)
        return status, b"".join(parts)


@functools.cache
def application() -> Application:
    """One for the whole process."""
    return Application()


def body(data: bytes) -> None:
    """Ask; nothing that a client says may make the server fail."""
    head, _, content = data.partition(b"\n")
    path, _, kind = head.decode("latin-1").partition(" ")
    status, said = application().wait(
        application().ask(f"/{path.lstrip('/')}", kind.encode("latin-1"), content)
    )
    assert 200 <= status < 500, (status, said[:200])
    assert b"it could not be translated" not in said, said[-200:]
