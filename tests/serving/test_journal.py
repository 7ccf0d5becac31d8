"""The log: a line of JSON a request, from its level on; no text, no key; a slow reader stops nobody."""

import io
import json
import threading

from regard.serving import journal
from regard.serving.journal import Journal


def test_a_line_a_request_from_its_level_on():
    for level, wanted in (("info", ["ready", "request", "request"]), ("warning", ["request"])):
        stream = io.StringIO()
        log = Journal(level, stream)
        log.ready(2, 1.234)
        log.request("POST", "/translate", 200, 0.01234)
        log.request("POST", "/translate", 500, 0.5)
        log.close()
        lines = [json.loads(line) for line in stream.getvalue().splitlines()]
        assert [line["event"] for line in lines] == wanted
        assert lines[-1]["status"] == 500
        assert set(lines[-1]) == {"time", "level", "event", "method", "path", "status", "seconds"}


def test_who_reads_slowly_loses_lines(monkeypatch):
    monkeypatch.setattr(journal, "WAITING", 2)
    gate = threading.Event()

    class Slow(io.StringIO):
        def write(self, text: str) -> int:
            gate.wait(10)
            return super().write(text)

    stream = Slow()
    log = Journal("info", stream)
    for _ in range(50):
        log.request("GET", "/health", 200, 0.0)
    gate.set()
    log.close()
    assert 1 <= stream.getvalue().count("\n") <= 4


def test_the_server_tells_its_requests_and_no_text(model, start):
    with start("-m", f"en-de={model}", "--log-level", "info", "--api-key", "secret-key") as server:
        server.post(
            "/translate", {"q": "hidden words", "source": "en", "target": "de", "api_key": "secret-key"}
        )
        server.get("/translate?q=hidden&source=en&target=de&api_key=secret-key")
        server.get("/nowhere/hidden")
        offered = {"q": "hidden", "s": "better", "source": "en", "target": "de", "api_key": "secret-key"}
        said = server.post("/suggest", offered)
        assert (said.status, said.tree) == (403, {"error": "Suggestions are disabled on this server."})
    said = "".join(server.said)
    lines = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
    assert [line["event"] for line in lines].count("ready") == 1
    assert ("POST", "/translate", 200) in [
        (line["method"], line["path"], line["status"]) for line in lines if line["event"] == "request"
    ]
    assert "hidden" not in said
    assert "secret" not in said
