"""Traces: a span a request with its wait and its work, the caller's trace, and not a word of the text."""

import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

SECRET, TRACE = "b c a d", "0af7651916cd43dd8448eb211c80319c"
LIMIT = 60.0  # seconds


@pytest.fixture
def collector() -> Iterator[tuple[str, list[bytes]]]:
    """A collector of spans on this machine: where it is, and what came."""
    came: list[bytes] = []

    class Taking(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            assert self.path == "/v1/traces"
            came.append(self.rfile.read(int(self.headers["content-length"])))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *said: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Taking) as http:
        thread = threading.Thread(target=http.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{http.server_port}", came
        http.shutdown()
        thread.join()


def test_spans_of_a_request_reach_a_collector(
    model: Path, start: Any, collector: tuple[str, list[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    where, came = collector
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", where)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "none")
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "100")
    asked = {"q": SECRET, "source": "en", "target": "de", "api_key": "open sesame"}
    with start("-m", f"en-de={model}", "--traces", "--api-key", "open sesame") as server:
        assert server.get("/health").status == 200
        head = f"00-{TRACE}-b7ad6b7169203331-01"
        assert server.post("/translate", asked, traceparent=head).status == 200
        until = time.monotonic() + LIMIT
        while b"engine" not in b"".join(came) and time.monotonic() < until:
            time.sleep(0.05)
    spans = [
        span
        for data in came
        for resource in ExportTraceServiceRequest.FromString(data).resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]
    found = {span.name: span for span in spans}
    assert found.keys() == {"POST /translate", "queue", "engine"}
    request, queue, engine = (found[name] for name in ("POST /translate", "queue", "engine"))
    assert {span.trace_id.hex() for span in spans} == {TRACE}
    assert request.parent_span_id.hex() == "b7ad6b7169203331"
    assert {queue.parent_span_id, engine.parent_span_id} == {request.span_id}
    assert request.start_time_unix_nano <= queue.start_time_unix_nano <= queue.end_time_unix_nano
    assert queue.end_time_unix_nano == engine.start_time_unix_nano <= engine.end_time_unix_nano
    fields = {each.key: each.value for each in request.attributes}
    assert fields["http.response.status_code"].int_value == 200
    assert not any(secret in b"".join(came) for secret in (SECRET.encode(), b"open sesame", b"127.0.0.1"))
