"""A real server process with the small model, a client that says what came back, the page in a browser."""

import contextlib
import http.client
import json
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from browser import Shown
from command import command, environment
from writers import drawn

from regard.models.folder import save


@dataclass(frozen=True)
class Answer:
    """What a server said."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def tree(self) -> Any:
        return json.loads(self.body)


@dataclass
class Running:
    """A server that runs."""

    process: subprocess.Popen[str]
    host: str
    port: int
    said: list[str]

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.port}"

    def ask(self, method: str, path: str, body: bytes | str | None = None, **headers: str) -> Answer:
        connection = http.client.HTTPConnection(self.host, self.port, timeout=60)
        with contextlib.closing(connection):
            data = body.encode() if isinstance(body, str) else body
            connection.request(method, path, data, {k.replace("_", "-"): v for k, v in headers.items()})
            found = connection.getresponse()
            return Answer(found.status, {k.lower(): v for k, v in found.getheaders()}, found.read())

    def get(self, path: str, **headers: str) -> Answer:
        return self.ask("GET", path, **headers)

    def post(self, path: str, fields: Any, **headers: str) -> Answer:
        return self.ask("POST", path, json.dumps(fields), content_type="application/json", **headers)

    def form(self, path: str, fields: Any) -> Answer:
        kind = "application/x-www-form-urlencoded"
        return self.ask("POST", path, urlencode(fields, doseq=True), content_type=kind)

    def translate(self, q: Any, **fields: Any) -> Any:
        """The fields of a translation that went well."""
        found = self.post("/translate", {"q": q, "source": "en", "target": "de"} | fields)
        assert found.status == 200, found.body
        return found.tree

    def gauge(self, name: str) -> float:
        """One figure of `/metrics`."""
        lines = self.get("/metrics").body.decode().splitlines()
        return next(float(line.split()[-1]) for line in lines if line.startswith(f"{name} "))

    def wait(self, status: str = "ready", path: str = "/health") -> None:
        for _ in range(1200):
            assert self.process.poll() is None, "".join(self.said)
            with contextlib.suppress(OSError):
                if self.get(path).tree["status"] == status:
                    return
            time.sleep(0.1)
        raise AssertionError(f"never {status}")


Start = Callable[..., contextlib.AbstractContextManager[Running]]


@contextlib.contextmanager
def running(
    *arguments: object, ready: bool = True, descriptors: int = 0, **variables: str
) -> Iterator[Running]:
    """`regard serve` with these arguments on a free port."""
    words = command("serve", "--port", 0, *arguments)
    if descriptors:
        words = ["bash", "-c", f'ulimit -n {descriptors}; exec "$@"', "_", *words]
    process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True, env=environment() | variables)
    assert process.stderr is not None
    said: list[str] = []
    try:
        for line in process.stderr:
            said.append(line)
            if found := re.search(r"http://\[?([^]]+?)\]?:(\d+)", line):
                server = Running(process, found[1], int(found[2]), said)
                if ready:
                    server.wait()
                yield server
                return
        raise AssertionError("".join(said))
    finally:
        process.terminate()
        try:
            process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        said += process.stderr.readlines()
        process.stderr.close()


@pytest.fixture(scope="session")
def start() -> Start:
    return running


@pytest.fixture(scope="session")
def server(model: Path, start: Start) -> Iterator[Running]:
    """One server for all tests that do it no harm."""
    with start("-m", f"en-de={model}") as server:
        yield server
        assert server.process.poll() is None, "the server has ended"
    assert "Traceback" not in "".join(server.said)


@pytest.fixture(scope="session")
def language_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small language model of characters, as it is drawn, but it does not write parts of characters."""
    place = tmp_path_factory.mktemp("language") / "tiny"
    config, model, tokenizer = drawn("characters", positions__max_length=211)
    parts = [number for number in range(tokenizer.vocab_size) if tokenizer.spell([number])[:1] >= b"\x80"]
    model.embedding.weight.data[parts] = 0.0
    save(place, config=config, model=model, tokenizer=tokenizer, card="# A language model\n")
    return place


@pytest.fixture(scope="session")
def writing(language_model: Path, start: Start) -> Iterator[Running]:
    """A server of the small language model."""
    with start("-m", language_model) as server:
        yield server
        assert server.process.poll() is None, "the server has ended"
    assert "Traceback" not in "".join(server.said)


# The page in a browser -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def site(model: Path, start: Start) -> Iterator[Running]:
    """A server of two pairs of languages."""
    with start("-m", f"en-de={model}", "-m", f"de-en={model}") as server:
        yield server


@pytest.fixture
def visit(browser: Any, site: Running) -> Iterator[Callable[..., Shown]]:
    """`visit(text, **options of a browser's page)`: the page with this text; `before(page)` prepares it."""
    contexts = []

    def go(text: str = "", *, before: Any = None, server: Running = site, **options: Any) -> Shown:
        context = browser.new_context(**({"viewport": {"width": 1280, "height": 900}} | options))
        context.set_default_timeout(20_000)
        contexts.append(context)
        shown = Shown(context.new_page(), server)
        if before:
            before(shown.page)
        shown.page.goto(f"{server.url}/#{urlencode({'source': 'en', 'target': 'de', 'q': text})}")
        shown.page.locator(".answer").wait_for()
        if text:
            shown.said()
        return shown

    yield go
    for context in contexts:
        context.close()
