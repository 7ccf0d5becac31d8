"""Several processes behind one port: models in memory once, the dead replaced, a reload loses no request."""

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
from command import call, command, environment, interruptible

from regard.config import merge
from regard.models import build
from regard.models.folder import load_folder, save

LIMIT = 240.0  # seconds; a busy machine is slow


def children(number: int) -> set[int]:
    """Of a process."""
    path = Path(f"/proc/{number}/task/{number}/children")
    return {int(each) for each in path.read_text().split()} if path.exists() else set()


def rollup(number: int, name: str) -> int:
    """What Linux tells of the memory of a process: bytes."""
    (line,) = (
        line
        for line in Path(f"/proc/{number}/smaps_rollup").read_text().splitlines()
        if line.startswith(f"{name}:")
    )
    return 1024 * int(line.split()[1])


def private(number: int) -> int:
    """Bytes that a process alone has."""
    return sum(rollup(number, f"Private_{kind}") for kind in ("Clean", "Dirty"))


def family(number: int) -> list[int]:
    """A process and all that it started: a worker has a keeper, and that a helper."""
    return [number, *(each for child in children(number) for each in family(child))]


def enlarge(model: Path, place: Path) -> None:
    """The same with 22 million weights, as they are drawn."""
    loaded = load_folder(model)
    more = {"model.d_model": 512, "model.d_ff": 2048, "model.encoder_layers": 3, "model.decoder_layers": 3}
    config = merge(loaded.config, more)
    save(place, config=config, model=build(config), tokenizer=loaded.tokenizer, card="# Large")


class Served:
    """A server of two workers, and what it says."""

    def __init__(self, model: Path, log: Path) -> None:
        self.model, self.log = model, log
        with log.open("w") as errors, interruptible():
            self.process = subprocess.Popen(
                command("serve", "-m", f"en-de={model}", "--port", 0, "--workers", 2),
                stderr=errors,
                env=environment(),
            )
        self.wait("2 workers")
        self.settle()
        self.port = int(log.read_text().split("127.0.0.1:")[1].split()[0])

    def said(self, words: str) -> int:
        """How often it has said so: other tests may have made it, or not, in this process."""
        return self.log.read_text().count(words)

    def wait(self, words: str, times: int = 1) -> None:
        """Until it has said so."""
        until = time.monotonic() + LIMIT
        while self.said(words) < times:
            assert self.process.poll() is None, self.log.read_text()
            assert time.monotonic() < until, self.log.read_text()
            time.sleep(0.05)

    def moulds(self) -> set[int]:
        return children(self.process.pid)

    def settle(self) -> None:
        """Until nobody is there but a mould and its two workers."""
        until = time.monotonic() + LIMIT
        while len(self.moulds()) != 1 or len(self.workers()) != 2:
            assert time.monotonic() < until, self.log.read_text()
            time.sleep(0.05)

    def workers(self) -> set[int]:
        return {number for mould in self.moulds() for number in children(mould)}

    def memory(self) -> tuple[int, int]:
        """Bytes that all of it takes with one worker, and those that the second adds."""
        added = max(sum(map(private, family(number))) for number in self.workers())
        return sum(rollup(number, "Pss") for number in family(self.process.pid)) - added, added

    def ask(
        self, connection: http.client.HTTPConnection | None = None, **more: Any
    ) -> tuple[int, dict[str, Any]]:
        one = connection or http.client.HTTPConnection("127.0.0.1", self.port, timeout=LIMIT)
        body = json.dumps({"q": "a b c", "source": "en", "target": "de"} | more)
        one.request("POST", "/translate", body, {"Content-Type": "application/json"})
        answer = one.getresponse()
        found = answer.status, json.loads(answer.read())
        if connection is None:
            one.close()
        return found


@pytest.fixture(scope="module")
def served(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("workers")
    enlarge(model, folder / "large")
    one = Served(folder / "large", folder / "log")
    yield one
    one.process.terminate()
    assert one.process.wait(LIMIT) == 128 + signal.SIGTERM
    assert "Traceback" not in one.log.read_text()


def test_the_second_worker_takes_little_memory_also_after_a_reload(served: Served) -> None:
    weights = (served.model / "model.safetensors").stat().st_size
    firsts = []
    for _ in range(2):
        assert [served.ask()[0] for _ in range(20)] == [200] * 20
        first, second = served.memory()
        firsts.append(first)
        assert weights < first
        assert second < 0.3 * first
        assert second < weights
        if len(firsts) == 1:
            reloads = served.said("reloaded")
            served.process.send_signal(signal.SIGHUP)
            served.wait("reloaded", reloads + 1)
            served.settle()
    assert firsts[1] < 1.2 * firsts[0], "what was loaded before is gone"


def test_a_reload_under_load_loses_no_request(served: Served) -> None:
    before, found, done = served.workers(), [], threading.Event()
    reloads = served.said("reloaded")

    def load(keep: bool, words: bool) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=LIMIT) if keep else None
        while not done.is_set():
            found.append(served.ask(connection, words=words))
        if connection:
            connection.close()

    ways = [(keep, words) for keep in (True, False) for words in (True, False)]  # words: by a helper
    threads = [threading.Thread(target=load, args=each) for each in ways]
    for thread in threads:
        thread.start()
    served.process.send_signal(signal.SIGHUP)
    served.wait("reloaded", reloads + 1)
    time.sleep(0.5)
    done.set()
    for thread in threads:
        thread.join()
    assert len(before) == 2
    assert len(served.workers() - before) == 2
    assert {status for status, _ in found} == {200}
    assert any("words" in answer for _, answer in found)
    assert len({answer["translatedText"] for _, answer in found}) == 1


def test_one_that_dies_is_replaced(served: Served) -> None:
    served.settle()
    before, died = served.workers(), served.said("another takes its place")
    os.kill(max(before), signal.SIGKILL)
    served.wait("another takes its place", died + 1)
    assert served.ask()[0] == 200
    served.settle()
    assert len(served.workers() & before) == 1


def test_all_begin_anew_where_the_mould_dies(served: Served) -> None:
    served.settle()
    (before,), died = served.moulds(), served.said("another takes its place")
    os.kill(before, signal.SIGKILL)
    served.wait("another takes its place", died + 1)
    until = time.monotonic() + LIMIT
    while (status := served.ask()[0]) != 200:
        assert status == 503  # by one whose mould has died, and who is about to end
        assert time.monotonic() < until
    served.settle()
    assert before not in served.moulds()


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
