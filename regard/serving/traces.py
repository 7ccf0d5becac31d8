"""OpenTelemetry traces of a server, where one asks for them: a span a request, in it its wait and its work.

    POST /translate  (SERVER; method, route, status; the caller's trace goes on)
        queue        from when its texts are handed over until the first of them is taken
        engine       from then until the last of them is done

Never a text, a key or an address. Where spans go, OTEL_EXPORTER_OTLP_ENDPOINT and the other variables of
OpenTelemetry say. Before this file: `guard.py`, which begins and ends spans, and `batcher.py`.
"""

import time
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from functools import cached_property
from typing import Any

from regard.errors import UsageError

FLUSH = 2000  # milliseconds that the last spans have when the server ends
_CARRIED = (b"traceparent", b"tracestate")
Told = Callable[[int, int], None]  # when texts were handed over and taken, in nanoseconds; they are done now
_asked: "ContextVar[Told | None]" = ContextVar("asked", default=None)


def asked() -> Told | None:
    """Whom to tell when what is handed over here is done."""
    return _asked.get()


class Traces:
    """The spans of one process. Nothing begins before the first request: it may be forked till then."""

    def __init__(self) -> None:
        try:
            import opentelemetry.exporter.otlp.proto.http
            import opentelemetry.sdk.trace  # noqa: F401
        except ImportError as error:
            raise UsageError("OpenTelemetry is not installed; pip install 'regard[traces]'") from error

    @cached_property
    def _provider(self) -> Any:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import SERVICE_NAME, OTELResourceDetector, Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        named = Resource({SERVICE_NAME: "regard"}).merge(OTELResourceDetector().detect())
        provider = TracerProvider(resource=named)
        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        return provider

    @cached_property
    def _tracer(self) -> Any:
        return self._provider.get_tracer("regard")

    def begin(self, method: str, path: str, headers: Iterable[tuple[bytes, bytes]]) -> Any:
        """The span of a request; what its task hands over is told in it."""
        from opentelemetry.propagate import extract
        from opentelemetry.trace import SpanKind, set_span_in_context

        carried = {name.decode(): value.decode("latin-1") for name, value in headers if name in _CARRIED}
        fields = {"http.request.method": method, "http.route": path}
        span = self._tracer.start_span(
            f"{method} {path}", context=extract(carried), kind=SpanKind.SERVER, attributes=fields
        )
        inside = set_span_in_context(span)

        def told(handed: int, taken: int) -> None:
            for name, start, end in (("queue", handed, taken), ("engine", taken, time.time_ns())):
                self._tracer.start_span(name, context=inside, start_time=start).end(end)

        _asked.set(told)
        return span

    def end(self, span: Any, status: int) -> None:
        """The request was answered so."""
        span.set_attribute("http.response.status_code", status)
        span.end()

    def close(self) -> None:
        """Send what is left."""
        if "_provider" in vars(self):
            self._provider.force_flush(FLUSH)
