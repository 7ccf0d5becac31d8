"""What the server tells Prometheus: requests, seconds, sentences, batches, the queue.

The text of `GET /metrics`, written by prometheus_client; the process's memory and descriptors come with it.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


def _counted(count: Callable[..., None]) -> Callable[..., None]:
    """A count that a helper has the front make."""

    @wraps(count)
    def counting(self: "Metrics", *values: Any) -> None:
        if self.tell is None:
            count(self, *values)
        else:
            self.tell(count.__name__, *values)

    return counting


class Metrics:
    """Every figure of one server."""

    tell: Callable[..., None] | None = None  # whom a helper tells what it counts

    def __init__(self) -> None:
        all_ = self.registry = CollectorRegistry()
        ProcessCollector(registry=all_)
        self.requests = Counter("regard_requests", "Requests answered", ["path", "status"], registry=all_)
        self.seconds = Histogram(
            "regard_request_seconds", "From request to answer", ["path"], buckets=_SECONDS, registry=all_
        )
        self.characters = Counter("regard_characters", "Characters taken", ["pair"], registry=all_)
        self.sentences = Counter("regard_sentences", "Sentences taken", ["pair"], registry=all_)
        self.tokens = Counter("regard_tokens", "Tokens read and written", ["model", "kind"], registry=all_)
        self.rows = Histogram(
            "regard_batch_sentences", "Sentences in a batch", buckets=(1, 2, 4, 8, 16, 32, 64), registry=all_
        )
        self.busy = Counter("regard_engine_seconds", "Seconds that the engine worked", registry=all_)
        self.waiting = Gauge("regard_queue_requests", "Requests that wait", registry=all_)
        self.gone = Counter("regard_dropped_sentences", "Sentences whose client went away", registry=all_)

    @_counted
    def batch(self, rows: int, seconds: float) -> None:
        """The engine has done a batch."""
        self.rows.observe(rows)
        self.busy.inc(seconds)

    @_counted
    def taken(self, pair: str, characters: int, sentences: int) -> None:
        """A text of two languages was taken in."""
        self.characters.labels(pair).inc(characters)
        self.sentences.labels(pair).inc(sentences)

    @_counted
    def dropped(self, sentences: int) -> None:
        """So many sentences were dropped before they were begun."""
        self.gone.inc(sentences)

    def answered(self, path: str, status: int, seconds: float) -> None:
        """A request was answered; a path that is none of ours is not kept by name."""
        self.requests.labels(path, str(status)).inc()
        self.seconds.labels(path).observe(seconds)

    def text(self) -> bytes:
        """Everything in Prometheus' text form."""
        return generate_latest(self.registry)
