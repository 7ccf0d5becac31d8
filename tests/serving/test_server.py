"""The process: loading, draining, ends; clients that hang up, dawdle, or send too much."""

import concurrent.futures
import contextlib
import http.client
import json
import os
import random
import signal
import socket
import time
from pathlib import Path

import pytest

TEXT = json.dumps({"q": "a b c\n" * 40, "source": "en", "target": "de"}).encode()


def memory(process: int) -> float:
    """Resident megabytes."""
    return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def raw(server, data: bytes) -> socket.socket:
    """A connection on which this was said."""
    connection = socket.create_connection((server.host, server.port), timeout=30)
    connection.sendall(data)
    return connection


def head(length: int, more: str = "") -> bytes:
    return (
        f"POST /translate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        f"Content-Length: {length}\r\n{more}\r\n"
    ).encode()


def status(connection: socket.socket) -> int:
    with contextlib.closing(connection):
        return int(connection.recv(65536).split()[1])


def test_loading_ready_draining_and_the_end(model, start):
    with start("-m", f"en-de={model}", "--queue", "1000", "--batch-size", "1", ready=False) as server:
        first = server.get("/health")
        assert (first.status, first.tree) == (503, {"status": "loading"})
        refused = server.post("/translate", {"q": "a", "target": "de"})
        assert (refused.status, refused.headers["retry-after"]) == (503, "2")
        server.wait()
        with concurrent.futures.ThreadPoolExecutor() as pool:
            long = pool.submit(server.post, "/translate", {"q": "a b c d e\n" * 100, "target": "de"})
            while b"regard_queue_requests 1.0" not in server.get("/metrics").body:
                time.sleep(0.01)
            server.process.send_signal(signal.SIGTERM)
            while server.get("/health").tree["status"] != "draining":
                time.sleep(0.01)
            assert server.get("/health").status == 503
            assert server.post("/translate", {"q": "a", "target": "de"}).status == 503
            answer = long.result()
        assert answer.status == 200
        assert answer.tree["translatedText"].count("\n") == 100
        assert server.process.wait(timeout=30) == 143


def test_a_lot_of_clients_are_answered_or_told_to_come_back(model, start):
    with start("-m", f"en-de={model}", "--queue", "4") as server:
        with concurrent.futures.ThreadPoolExecutor(32) as pool:
            fields = [{"q": f"a b c d e. {n}", "source": "en", "target": "de"} for n in range(100)]
            answers = list(pool.map(lambda each: server.post("/translate", each), fields))
        codes = {answer.status for answer in answers}
        assert codes == {200, 429}
        assert all(int(a.headers["retry-after"]) >= 1 for a in answers if a.status == 429)
        assert server.get("/health").status == 200
        assert server.post("/translate", fields[0]).status == 200


def test_clients_that_hang_up_stop_costing_work(server):
    def dropped() -> float:
        lines = server.get("/metrics").body.decode().splitlines()
        return sum(
            float(line.split()[1]) for line in lines if line.startswith("regard_dropped_sentences_total")
        )

    before = dropped()
    rng = random.Random(1)
    lines = [" ".join(rng.choices("abcdefgh", k=5)) for _ in range(3000)]
    text = json.dumps({"q": "\n".join(lines), "source": "en", "target": "de"}).encode()
    for number in range(10):
        said = head(len(text)) + (text if number % 2 else text[: len(text) // 2])
        raw(server, said).close()
    for _ in range(600):
        if dropped() > before and b"regard_queue_requests 0.0" in server.get("/metrics").body:
            break
        time.sleep(0.05)
    assert dropped() > before
    server.translate("a b")


def test_a_huge_body_is_refused_at_once_and_costs_no_memory(server):
    before = memory(server.process.pid)
    connection = raw(server, head(1 << 30))
    connection.setblocking(False)
    answer = b""
    for _ in range(2000):
        with contextlib.suppress(BlockingIOError):
            connection.send(b"x" * 65536)
        with contextlib.suppress(BlockingIOError):
            answer += connection.recv(65536)
        if answer:
            break
        time.sleep(0.001)
    connection.close()
    assert answer.split()[1] == b"413"
    chunked = b"POST /translate HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    connection = raw(server, chunked)
    with contextlib.suppress(OSError):
        for _ in range(40):
            connection.sendall(b"10000\r\n" + b"x" * 65536 + b"\r\n")
    assert status(connection) == 413
    assert memory(server.process.pid) - before < 50


def test_slow_readers_and_writers_are_in_nobodys_way(server):
    slow = [raw(server, head(len(TEXT)) + TEXT[:9]) for _ in range(20)]
    quiet = [raw(server, b"POST /tran") for _ in range(20)]
    readers = [raw(server, head(len(TEXT)) + TEXT) for _ in range(5)]
    assert server.translate("a b")["translatedText"]
    assert server.get("/health").status == 200
    for connection in slow + quiet + readers:
        connection.close()
    server.translate("a b")


def test_what_is_no_http_is_refused(server):
    for said in (b"\x16\x03\x01\x02\x00\x01\n\r\n", b"GET\r\n\r\n"):
        assert status(raw(server, said)) == 400
    assert status(raw(server, b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 200_000)) == 400


@pytest.mark.parametrize("value", ["1e9", "-1", "NaN", "1e999", "0.5", '"x"', "[]", "{}", "9" * 400])
def test_numbers_out_of_bounds_are_refused(server, value):
    body = f'{{"q": "a", "target": "de", "alternatives": {value}}}'
    assert server.ask("POST", "/translate", body, content_type="application/json").status == 400


def test_connections_can_be_used_again(server):
    with contextlib.closing(http.client.HTTPConnection(server.host, server.port, timeout=30)) as connection:
        for _ in range(3):
            connection.request("POST", "/translate", TEXT, {"Content-Type": "application/json"})
            assert connection.getresponse().read()
            connection.request("GET", "/health")
            assert connection.getresponse().read() == b'{"status":"ready"}'


def test_memory_and_descriptors_stay_flat(server):
    def spent() -> tuple[int, float]:
        return len(list(Path(f"/proc/{server.process.pid}/fd").iterdir())), memory(server.process.pid)

    rng = random.Random(1)

    def round_of(count: int) -> None:
        for _ in range(count):
            server.form("/translate", {"q": " ".join(rng.choices("abcdefgh", k=4)), "target": "de"})

    round_of(40)
    files, megabytes = spent()
    round_of(80)
    after = spent()
    assert after[0] <= files + 2
    assert after[1] < megabytes + 20


def test_small_answers_leave_at_once():
    """asyncio sets TCP_NODELAY only on sockets that are said to be TCP; without it answers wait 40 ms."""
    from regard.serving.server import bind

    with bind("127.0.0.1", 0) as listening:
        assert listening.proto == socket.IPPROTO_TCP


# What is said around a request ---------------------------------------------------------------------


def heard(connection: socket.socket) -> bytes:
    """Everything that is said until the server closes."""
    found = b""
    with contextlib.closing(connection), contextlib.suppress(ConnectionResetError):
        while data := connection.recv(65536):
            found += data
    return found


@pytest.mark.parametrize("upgrade", ["h2c", "websocket", "TLS/1.0", "x"])
@pytest.mark.parametrize("later", [False, True])
def test_no_second_request_is_smuggled_in_behind_an_upgrade(server, upgrade, later):
    """What follows the head may be a body or not, as the client likes: so there is no telling, and an end."""
    hidden = b"GET /languages HTTP/1.1\r\nHost: x\r\n\r\n"
    top = head(len(hidden), f"Connection: Upgrade\r\nUpgrade: {upgrade}\r\n")
    connection = raw(server, top if later else top + hidden)
    if later:
        time.sleep(0.2)
        with contextlib.suppress(OSError):
            connection.sendall(hidden)
    said = heard(connection)
    assert said.startswith(b"HTTP/1.1 400 ")
    assert b"connection: close" in said
    assert said.count(b"HTTP/1.1 ") == 1


def test_an_upgrade_behind_another_request_ends_the_connection_after_its_answer(server):
    top = (
        head(len(TEXT))
        + TEXT
        + head(9, "Connection: Upgrade\r\nUpgrade: h2c\r\n")
        + b"GET / HTTP/1.1\r\n\r\n"
    )
    said = heard(raw(server, top))
    assert said.startswith(b"HTTP/1.1 200 ")
    assert said.count(b"HTTP/1.1 ") == 1


CHUNKED = b"POST /translate HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("begin", "more"),
    [
        (b"2\r\n{}\r\n0\r\n", b"X: " + b"a" * 65532 + b"\r\n"),
        (b"2\r\n{}\r\n0\r\nX: ", b"a" * 65536),
        (b"1;", b"a" * 65536),
        (b"", b"1;a=" + b"b" * 50 + b"\r\n{\r\n"),
    ],
    ids=["trailers", "one trailer", "an extension", "extensions"],
)
def test_what_follows_a_body_or_stands_between_its_chunks_is_bounded(server, begin, more):
    before = memory(server.process.pid)
    connection = raw(server, CHUNKED + begin)
    with contextlib.suppress(OSError):
        for _ in range(300):  # 20 MB
            connection.sendall(more * (65536 // len(more)))
    connection.close()
    assert server.get("/health").status == 200
    assert memory(server.process.pid) - before < 30


def test_trailers_are_no_headers(model, start):
    """A key after the body must not count as one before it."""
    with start("-m", f"en-de={model}", "--api-key", "s3cret") as server:
        body = b'{"q": "a", "source": "en", "target": "de"}'
        said = CHUNKED + b"%x\r\n%b\r\n0\r\nAuthorization: Bearer s3cret\r\n\r\n" % (len(body), body)
        assert status(raw(server, said)) == 403


def test_many_headers_are_refused(server):
    assert status(raw(server, b"GET /health HTTP/1.1\r\n" + b"a: b\r\n" * 20_000 + b"\r\n")) == 400


def test_fewer_descriptors_than_connections(model, start):
    """Those who say nothing have to go, those who ask are answered, and the log stays small."""
    with start("-m", f"en-de={model}", descriptors=64) as server:
        idle = []
        for _ in range(3):
            for _ in range(120):
                with contextlib.suppress(OSError):
                    idle.append(socket.create_connection((server.host, server.port), timeout=30))
            assert server.get("/health").status == 200
            assert server.translate("a b")["translatedText"]
        for connection in idle:
            connection.close()
        server.process.terminate()
        server.process.wait(timeout=60)
    assert len("".join(server.said)) < 5000
    assert "Traceback" not in "".join(server.said)


def test_many_looks_at_once_are_bounded(server):
    server.post("/attention", {"q": "a b c", "source": "en", "target": "de"})
    before = memory(server.process.pid)
    with concurrent.futures.ThreadPoolExecutor(32) as pool:
        fields = {"q": "a b c d e f g h " * 3, "source": "en", "target": "de"}
        answers = list(pool.map(lambda _: server.post("/attention", fields), range(32)))
    assert {answer.status for answer in answers} <= {200, 429}
    assert any(answer.status == 200 for answer in answers)
    assert memory(server.process.pid) - before < 200


def test_who_may_ask_may_read_why_not(model, start):
    """A page of another site sees a refusal only if it has the headers that let it."""
    with start("-m", f"en-de={model}", "--queue", "1", "--allow-origin", "https://a.example") as server:
        long = json.dumps({"q": "a b c d e\n" * 5000, "source": "en", "target": "de"}).encode()
        for _ in range(50):  # of two long texts at once one is sent away, this one or the other
            connection = raw(server, head(len(long)) + long)
            found = server.ask("POST", "/translate", long, Origin="https://a.example")
            connection.close()
            if found.status == 429:
                break
        assert found.status == 429
        assert found.headers["access-control-allow-origin"] == "https://a.example"
        assert "retry-after" in found.headers["access-control-expose-headers"].lower()
        other = server.post("/translate", {"q": "a", "target": "xx"}, Origin="https://b.example")
        assert "access-control-allow-origin" not in other.headers


def test_what_takes_too_long_is_given_up(model, tmp_path):
    """With no time at all, as the service sees it."""
    import asyncio

    from regard.serving.family import Place
    from regard.serving.limits import Limits, Refusal
    from regard.serving.schema import Translate
    from regard.serving.service import Service

    async def main() -> None:
        service = Service([Place(model, "en-de")], Limits(seconds=0.0))
        await service.load()
        try:
            ask = Translate(q="a b c\n" * 2000, source="en", target="de")
            asked = await service.families["translation"].begin(ask)
            with pytest.raises(Refusal, match="within 0 seconds") as caught:
                await asked.job.all()
            assert caught.value.status == 503
            asked.batcher.cancel(asked.job)
            asked.place.leave()
            assert (service.room.inside, service.room.held) == (0, 0)
        finally:
            service.close()

    asyncio.run(main())
