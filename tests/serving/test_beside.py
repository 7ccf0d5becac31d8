"""What is dear is done by a process beside: nobody waits for it, and when it dies somebody says so.

A helper that is stopped (SIGSTOP) stands for one that takes long: nothing here depends on the time it takes.
"""

import concurrent.futures
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from forms import KIND, form

from regard.serving.beside import packed, unpacked
from regard.serving.body import Sent

LIMIT = 120.0  # seconds; a busy machine is slow
PAIR = {"source": "en", "target": "de"}
DEAR: list[tuple[str, dict[str, Any]]] = [
    ("/translate", {"q": "a b c", "words": True}),
    ("/translate", {"q": "<p>a <b>b</b> c</p>", "format": "html"}),
    ("/translate", {"q": "a b c", "glossary": {"b": "X"}}),
    ("/translate", {"q": "a b c. " * 300}),
    ("/translate", {"q": ["a b"] * 21}),
    ("/translate", {"q": "a b c", "words": True, "stream": True}),
    ("/translate/stream", {"q": "a b c", "words": True}),
    ("/attention", {"q": "a b c"}),
]


def children(number: int) -> list[int]:
    tasks = Path(f"/proc/{number}/task")
    return [int(each) for task in tasks.iterdir() for each in (task / "children").read_text().split()]


def helpers(server) -> tuple[int, int]:
    """The keeper and its helper."""
    until = time.monotonic() + LIMIT
    while time.monotonic() < until:
        for keeper in children(server.process.pid):
            if found := children(keeper):
                return keeper, found[0]
        time.sleep(0.02)
    raise AssertionError("there is no helper")


def gone(number: int) -> bool:
    """Whether a process has ended."""
    try:
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except FileNotFoundError:
        return True


def wait_until(true) -> None:
    until = time.monotonic() + LIMIT
    while not true():
        assert time.monotonic() < until
        time.sleep(0.02)


@pytest.fixture
def pool() -> Iterator[concurrent.futures.ThreadPoolExecutor]:
    with concurrent.futures.ThreadPoolExecutor(16) as threads:
        yield threads


@pytest.fixture
def stopped(server) -> Iterator[int]:
    """The helper of the server that all share, which stands still meanwhile."""
    _, helper = helpers(server)
    os.kill(helper, signal.SIGSTOP)
    yield helper
    os.kill(helper, signal.SIGCONT)


def test_what_is_handed_over_arrives_as_it_was():
    headers = [(b"host", b"h\xe4"), (b"cookie", b"x")]
    scope = {"path": "/translate", "method": "POST", "query_string": b"a=%ff\xe4", "headers": headers}
    sent = Sent("\udcff.txt", b"\x00\xff")
    fields = {"q": ["\ud800 lone", "\u2028"], "n": float("inf"), "file": sent, "none": None}
    told, body = unpacked(*packed(scope, fields))
    assert told == scope | {"headers": headers[:1], "fields": fields}
    assert body == []
    parts = [b"\xff", b"", b"{"]
    assert unpacked(*packed(scope, parts)) == (scope | {"headers": headers[:1]}, parts)
    nested, _ = unpacked(*packed(scope, {"file": ["text", sent]}))
    assert nested["fields"] == {"file": ["text", None]}


def test_plain_sentences_are_answered_while_all_that_is_dear_waits(server, stopped, pool):
    waiting = [pool.submit(server.post, path, PAIR | fields) for path, fields in DEAR]
    file = pool.submit(
        server.ask, "POST", "/translate_file", form("a.txt", b"a b c", **PAIR), content_type=KIND
    )
    wait_until(lambda: server.gauge("regard_queue_requests") == len(waiting) + 1)
    for _ in range(3):
        server.translate("a b c")
        server.translate("a b c", alternatives=2)
        assert server.get("/health").status == 200
    assert not any(each.done() for each in (*waiting, file))
    os.kill(stopped, signal.SIGCONT)
    assert [each.result(LIMIT).status for each in waiting] == [200] * len(waiting)
    url = file.result(LIMIT).tree["translatedFileUrl"]
    assert (
        server.get(url.removeprefix(server.url)).body.decode() == server.translate("a b c")["translatedText"]
    )
    assert server.gauge("regard_queue_requests") == 0


def test_a_large_body_is_not_even_taken_apart_by_who_answers(server, stopped, pool):
    waiting = pool.submit(server.ask, "POST", "/translate", b"[" * 5000, content_type="application/json")
    wait_until(lambda: server.gauge("regard_queue_requests") == 1)
    server.translate("a b c")
    assert not waiting.done()
    os.kill(stopped, signal.SIGCONT)
    answer = waiting.result(LIMIT)
    assert (answer.status, answer.tree["error"][:24]) == (400, "Invalid request: no JSON")


def test_a_large_body_may_hold_the_key(model, start):
    with start("-m", f"en-de={model}", "--api-key", "s3cret") as server:
        fields = PAIR | {"q": "a b c. " * 1000}
        assert server.post("/translate", fields).status == 403
        assert server.post("/translate", fields | {"api_key": "s3cret"}).status == 200
        assert server.post("/translate", fields, authorization="Bearer s3cret").status == 200


def test_dear_requests_leave_half_of_the_places_to_plain_ones(model, start, pool):
    with start("-m", f"en-de={model}", "--queue", "4") as server:
        _, helper = helpers(server)
        os.kill(helper, signal.SIGSTOP)
        waiting = [pool.submit(server.post, "/translate", PAIR | DEAR[0][1]) for _ in range(2)]
        wait_until(lambda: server.gauge("regard_queue_requests") == 2)
        refused = server.post("/translate", PAIR | DEAR[0][1])
        assert (refused.status, refused.headers["retry-after"]) == (429, "1")
        server.translate("a b c")
        os.kill(helper, signal.SIGCONT)
        assert [each.result(LIMIT).status for each in waiting] == [200, 200]


def test_what_the_helper_counts_is_told_by_the_front(server):
    names = ("regard_batch_sentences_count", "regard_engine_seconds_total")
    before = [server.gauge(name) for name in names]
    server.translate("a b c", words=True)
    wait_until(lambda: all(server.gauge(name) > was for name, was in zip(names, before, strict=True)))


def test_keys_and_limits_are_the_same_for_what_is_dear(model, start):
    with start("-m", f"en-de={model}", "--api-key", "s3cret", "--req-limit", "3") as server:
        fields = PAIR | DEAR[0][1]
        assert server.post("/translate", fields).status == 403
        assert server.post("/translate", fields | {"api_key": "s3cret"}).status == 200
        assert server.post("/translate", PAIR | {"q": "a", "api_key": "s3cret"}).status == 200
        assert server.post("/translate", fields | {"api_key": "s3cret"}).status == 200
        assert server.post("/translate", fields | {"api_key": "s3cret"}).status == 429
        assert server.post("/translate", PAIR | {"q": "a", "api_key": "s3cret"}).status == 429
    with start("-m", f"en-de={model}", "--req-limit", "9") as server:  # who is counted is read here first
        sent = server.ask("POST", "/translate_file", form("a.txt", b"a b c", **PAIR), content_type=KIND)
        assert server.ask("GET", sent.tree["translatedFileUrl"].removeprefix(server.url)).body


def test_a_helper_that_dies_is_told_of_and_another_takes_its_place(model, start, pool):
    with start("-m", f"en-de={model}") as server:
        keeper, helper = helpers(server)
        before = server.translate("a b c", words=True)
        os.kill(helper, signal.SIGSTOP)
        waiting = pool.submit(server.post, "/translate", PAIR | DEAR[0][1])
        wait_until(lambda: server.gauge("regard_queue_requests") == 1)
        os.kill(helper, signal.SIGKILL)
        assert waiting.result(LIMIT).tree == before  # it was not begun: the next helper does it
        assert server.translate("a b c", words=True) == before
        assert helpers(server)[0] == keeper
        assert helpers(server)[1] != helper
    assert "another takes its place" in "".join(server.said)
    assert "Traceback" not in "".join(server.said)


def test_a_request_that_was_begun_is_answered_503_when_its_helper_dies(model, start, pool):
    with start("-m", f"en-de={model}") as server:
        _, helper = helpers(server)
        waiting = pool.submit(server.post, "/translate", PAIR | {"q": "a b c. " * 14_000})

        def taken() -> bool:
            lines = server.get("/metrics").body.decode().splitlines()
            return any(line.startswith("regard_sentences_total") for line in lines)

        wait_until(taken)
        os.kill(helper, signal.SIGKILL)
        answer = waiting.result(LIMIT)
        assert (answer.status, answer.headers["retry-after"]) == (503, "1")
        assert "try again" in answer.tree["error"]


def test_where_there_is_no_helper_all_is_done_here_and_says_the_same(model, start, pool):
    with start("-m", f"en-de={model}") as server:
        whole = [each for each in DEAR if each[0] == "/translate"]
        before = [server.post(path, PAIR | fields).body for path, fields in whole]
        both = helpers(server)
        os.kill(both[1], signal.SIGSTOP)
        waiting = pool.submit(server.post, whole[0][0], PAIR | whole[0][1])
        wait_until(lambda: server.gauge("regard_queue_requests") == 1)
        for each in both:
            os.kill(each, signal.SIGKILL)
        assert waiting.result(LIMIT).body == before[0]  # nobody had begun it
        wait_until(lambda: all(map(gone, both)))
        assert [server.post(path, PAIR | fields).body for path, fields in whole] == before


def test_what_was_handed_over_is_answered_before_the_server_ends(model, start, pool):
    with start("-m", f"en-de={model}") as server:
        both = helpers(server)
        os.kill(both[1], signal.SIGSTOP)
        waiting = pool.submit(server.post, "/translate", PAIR | DEAR[0][1])
        wait_until(lambda: server.gauge("regard_queue_requests") == 1)
        server.process.send_signal(signal.SIGTERM)
        for each in both:  # as where a whole group of processes is told to end
            os.kill(each, signal.SIGTERM)
        wait_until(lambda: server.get("/health").tree["status"] == "draining")
        os.kill(both[1], signal.SIGCONT)
        assert waiting.result(LIMIT).status == 200
        assert server.process.wait(LIMIT) == 143
        assert all(map(gone, both))


def test_nobody_is_left_when_the_front_is_killed(model, start):
    with start("-m", f"en-de={model}") as server:
        both = helpers(server)
        server.process.kill()
        server.process.wait(LIMIT)
        wait_until(lambda: all(map(gone, both)))


def test_a_file_is_fetched_where_the_addresses_begin_otherwise(model, start):
    with start("-m", f"en-de={model}", "--url-prefix", "/mt", ready=False) as server:
        server.wait(path="/mt/health")
        sent = form("a.txt", b"a b c", **PAIR)
        url = server.ask("POST", "/mt/translate_file", sent, content_type=KIND).tree["translatedFileUrl"]
        assert url.startswith(f"{server.url}/mt/download_file/")
        assert server.get(url.removeprefix(server.url)).status == 200
