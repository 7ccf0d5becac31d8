"""Several processes behind one port: one that dies is replaced, and a reload loses no request."""

import http.client
import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from command import call, command, environment

LIMIT = 240.0  # seconds; a busy machine is slow


class Served:
    """A server of two workers, and what it says."""

    def __init__(self, model: Path, log: Path) -> None:
        self.log = log
        with log.open("w") as errors:
            self.process = subprocess.Popen(
                command("serve", "-m", f"en-de={model}", "--port", 0, "--workers", 2),
                stderr=errors,
                env=environment(),
            )
        self.wait("2 workers")
        self.port = int(log.read_text().split("127.0.0.1:")[1].split()[0])

    def wait(self, words: str, times: int = 1) -> None:
        """Until it has said so."""
        until = time.monotonic() + LIMIT
        while self.log.read_text().count(words) < times:
            assert self.process.poll() is None, self.log.read_text()
            assert time.monotonic() < until, self.log.read_text()
            time.sleep(0.05)

    def workers(self) -> set[int]:
        path = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return {int(number) for number in path.read_text().split()}

    def ask(self, connection: http.client.HTTPConnection | None = None) -> tuple[int, Any]:
        one = connection or http.client.HTTPConnection("127.0.0.1", self.port, timeout=LIMIT)
        body = json.dumps({"q": "a b c", "source": "en", "target": "de"})
        one.request("POST", "/translate", body, {"Content-Type": "application/json"})
        answer = one.getresponse()
        found = answer.status, json.loads(answer.read())
        if connection is None:
            one.close()
        return found


@pytest.fixture(scope="module")
def served(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    one = Served(model, tmp_path_factory.mktemp("workers") / "log")
    yield one
    one.process.terminate()
    assert one.process.wait(LIMIT) == 128 + signal.SIGTERM
    assert "Traceback" not in one.log.read_text()


def test_a_reload_under_load_loses_no_request(served: Served) -> None:
    before, found, done = served.workers(), [], threading.Event()

    def load(keep: bool) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=LIMIT) if keep else None
        while not done.is_set():
            found.append(served.ask(connection))
        if connection:
            connection.close()

    threads = [threading.Thread(target=load, args=(keep,)) for keep in (True, False)]
    for thread in threads:
        thread.start()
    served.process.send_signal(signal.SIGHUP)
    served.wait("reloaded")
    time.sleep(0.5)
    done.set()
    for thread in threads:
        thread.join()
    assert len(before) == 2
    assert len(served.workers() - before) == 2
    assert {status for status, _ in found} == {200}
    assert len({answer["translatedText"] for _, answer in found}) == 1


def test_one_that_dies_is_replaced(served: Served) -> None:
    os.kill(max(served.workers()), signal.SIGKILL)
    served.wait("another takes its place")
    assert served.ask()[0] == 200


def test_liveness_is_apart_from_readiness(served: Served) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=LIMIT)
    for path in ("/live", "/health"):
        connection.request("GET", path)
        answer = connection.getresponse()
        assert (answer.status, json.loads(answer.read())) == (200, {"status": "ready"})
    connection.close()


def test_a_model_that_cannot_be_loaded_is_told_once(model: Path, tmp_path: Path) -> None:
    for path in model.iterdir():
        if path.is_file():
            (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / "model.safetensors").write_bytes(b"broken")
    done = call("serve", "-m", f"en-de={tmp_path}", "--port", 0, "--workers", 3)
    assert done.returncode == 2
    assert sum(line.startswith("regard: error:") for line in done.stderr.splitlines()) == 1
