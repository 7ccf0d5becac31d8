"""`regard serve`: models of one's own behind LibreTranslate's API and OpenAI's, and a page.

The work is regard/serving's, which is imported when the verb runs.
"""

import re
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regard.cli.console import note
from regard.cli.options import takes
from regard.errors import UsageError

if TYPE_CHECKING:
    from regard.serving.family import Place
    from regard.serving.service import Service

LOG_LEVELS = ("debug", "info", "warning", "error")
_PREFIX = re.compile(r"(/[A-Za-z0-9_.~-]+)+")
LOCAL = ("127.0.0.1", "::1", "localhost")


@dataclass(frozen=True)
class Options:
    """What `regard serve` takes."""

    models: Annotated[
        list[str],
        typer.Option(
            "-m",
            "--model",
            metavar="DIR",
            help="A model folder, or NAME=DIR; a translator is named by its languages, en-de=DIR; several.",
        ),
    ]
    host: Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0 is every one.")] = "127.0.0.1"
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 takes a free one.")] = 5000
    api_keys: Annotated[
        list[str] | None,
        typer.Option(
            "--api-key",
            metavar="KEY",
            envvar="REGARD_API_KEY",
            show_envvar=True,
            help="Answer only those who send it; several.",
        ),
    ] = None
    key_file: Annotated[
        Path | None,
        typer.Option(
            "--api-keys", metavar="F.toml", help="Keys with limits of their own; see docs/serving.md."
        ),
    ] = None
    req_limit: Annotated[
        int, typer.Option(min=0, max=1_000_000, help="Requests a minute of each client; 0: any number.")
    ] = 0
    behind_proxy: Annotated[
        bool, typer.Option("--behind-proxy", help="Tell clients apart by the proxy's X-Forwarded-For.")
    ] = False
    url_prefix: Annotated[
        str, typer.Option(metavar="/PATH", help="What all addresses begin with, behind a proxy.")
    ] = ""
    max_chars: Annotated[int, typer.Option(min=1, max=10_000_000, help="Characters in one request.")] = (
        100_000
    )
    queue: Annotated[int, typer.Option(min=1, max=100_000, help="Requests at a time; more get 429.")] = 32
    max_seconds: Annotated[float, typer.Option(min=1, max=86_400, help="For one request; then 503.")] = 120.0
    cache: Annotated[
        int, typer.Option(min=1, max=1_000_000, help="MB for keys and values of texts that are written.")
    ] = 256
    remember: Annotated[
        int, typer.Option(min=0, max=1_000_000, help="MB for sentences that come again; 0: none is kept.")
    ] = 0
    pivot: Annotated[
        str, typer.Option(metavar="CODE", help="Translate pairs without a model by way of this language.")
    ] = ""
    batch_size: Annotated[int, typer.Option(min=1, max=1024, help="Sentences translated together.")] = 32
    origins: Annotated[
        list[str] | None,
        typer.Option("--allow-origin", metavar="URL", help="A site whose pages may ask; * is any."),
    ] = None
    workers: Annotated[
        int,
        typer.Option(
            min=0, max=256, help="Processes on the port; SIGHUP reloads the models. 0: one, and no reload."
        ),
    ] = 0
    log_level: Annotated[
        str, typer.Option(help="debug, info (a JSON line a request, and when it is ready), warning, error.")
    ] = "warning"
    traces: Annotated[
        bool,
        typer.Option("--traces", help="Send OpenTelemetry spans where OTEL_EXPORTER_OTLP_ENDPOINT says."),
    ] = False
    precision: Annotated[str, typer.Option(help="int8, bf16, fp32; auto: the fastest that is as good.")] = (
        "auto"
    )
    engine: Annotated[str, typer.Option(help="native, readable; auto: native where it can.")] = "auto"
    device: Annotated[str, typer.Option(help="cpu, cuda, cuda:1, mps.")] = "cpu"
    shortlist: Annotated[
        bool,
        typer.Option("--shortlist", help="Translators choose from their shortlists, where they have one."),
    ] = False

    def __post_init__(self) -> None:
        if any(not key for key in self.api_keys or ()):
            raise UsageError("an --api-key is empty; leave it out to ask for none")
        if self.log_level not in LOG_LEVELS:
            raise UsageError(f"--log-level ({self.log_level}) must be one of {', '.join(LOG_LEVELS)}")
        if self.url_prefix and not _PREFIX.fullmatch(self.url_prefix):
            raise UsageError(f"--url-prefix ({self.url_prefix}) must be like /translate: a slash, then words")


@takes(Options)
def serve(options: Options) -> None:
    """Serve models over HTTP, as LibreTranslate and OpenAI do."""
    try:
        import fastapi  # noqa: F401
        import prometheus_client  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise UsageError(f"{error.name} is not installed; pip install 'regard[serve]'") from error
    from regard.serving import server
    from regard.serving.app import build_app
    from regard.serving.family import parse_place
    from regard.serving.helper import can_help

    places = [parse_place(argument) for argument in options.models]
    listening = server.bind(options.host, options.port)

    def started(first: bool) -> "tuple[Service, Any]":
        service = _service(options, places)
        if first:
            _say(options, service, listening)
        return service, build_app(service, origins=tuple(options.origins or ()), prefix=options.url_prefix)

    if options.workers:
        _several(options.workers, started, listening)
    elif can_help(options.device):
        _one(started, listening)
    else:
        server.serve(*started(True), listening)


def _one(started: "Callable[[bool], tuple[Service, Any]]", listening: socket.socket) -> None:
    """One process that answers; its models are loaded before it has threads, so that it can be forked.

    Meanwhile another says that they are being loaded.
    """
    from regard.serving import server
    from regard.serving.workers import Meanwhile, prepare

    service, app = started(True)

    def waiting(ready: Callable[[], object], _: bool) -> None:
        service.waits = True
        server.serve(service, app, listening, ready)

    with Meanwhile(waiting) as meanwhile:
        prepare(service.loads())
        service.quiet, service.relieves = True, meanwhile.relieve
        server.serve(service, app, listening)


def _several(count: int, started: "Callable[[bool], tuple[Service, Any]]", listening: socket.socket) -> None:
    """Workers that are forked when the models are loaded, and forked anew when they are loaded again."""
    from regard.serving import server
    from regard.serving.workers import Workers, prepare

    def mould(stands: Callable[[], object], first: bool) -> None:
        service, app = started(first)

        def work(ready: Callable[[], object], _: bool) -> None:
            server.serve(service, app, listening, ready)

        def waiting(ready: Callable[[], object], _: bool) -> None:
            service.waits = True
            work(ready, _)

        workers = Workers(count, work, note, lambda again: stands())
        if first:
            workers.meanwhile(waiting)
        service.quiet = True
        prepare(service.loads())
        workers.run()

    said = f"{count} worker{'' if count == 1 else 's'}"
    Workers(1, mould, note, lambda again: note("reloaded" if again else said)).run()


def _service(options: Options, places: "list[Place]") -> "Service":
    """The state of one process."""
    from regard.serving.family import Loading
    from regard.serving.journal import Journal
    from regard.serving.keys import read_keys
    from regard.serving.limits import Limits
    from regard.serving.service import Service
    from regard.serving.traces import Traces

    limits = Limits(
        characters=options.max_chars,
        requests=options.queue,
        rows=options.batch_size,
        seconds=options.max_seconds,
        cache=options.cache * 1_000_000,
    )
    loading = Loading(
        options.device,
        options.precision,
        options.engine,
        options.shortlist,
        options.pivot,
        options.remember * 1_000_000,
    )
    keys = (*(options.api_keys or ()), *(read_keys(options.key_file) if options.key_file else ()))
    return Service(
        places,
        limits,
        keys,
        loading,
        journal=Journal(options.log_level),
        traces=Traces() if options.traces else None,
        req_limit=options.req_limit,
        behind_proxy=options.behind_proxy,
    )


def _say(options: Options, service: "Service", listening: socket.socket) -> None:
    """What is served, and where."""
    for family in service.served:
        for place in family.places.values():
            note(family.line(place))
    if not service.clients and options.host not in LOCAL:
        note(f"warning: anybody who reaches {options.host} can use this server: no --api-key is set")
    host, port = listening.getsockname()[:2]
    where = f"[{host}]" if ":" in host else host
    note(f"serving at http://{where}:{port}{options.url_prefix} (Ctrl-C ends)")
