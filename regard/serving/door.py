"""How a route takes a request in and lets its answer out: fields, key, a client that goes away, events.

Used by every family's routes. Before this file: `body.py`, `schema.py`; after it: `libretranslate.py`,
`completions.py`, `app.py`.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from starlette.requests import Request

from regard.serving.answers import in_json
from regard.serving.batcher import Batcher, Job
from regard.serving.limits import Refusal
from regard.serving.schema import Given

if TYPE_CHECKING:
    from regard.serving.service import Service

GONE = 499  # nobody is there to read it; nginx's number
Fields = TypeVar("Fields")
Model = TypeVar("Model", bound=Given)


async def read(service: "Service", request: Request, model: type[Model], *, whole: bool = False) -> Model:
    """The checked fields of a request whose key is right; `whole` as `read_fields` has it."""
    return await read_fields(service, request, model.of, carries=model.carries, whole=whole)


async def read_fields(
    service: "Service",
    request: Request,
    checked: Callable[[dict[str, Any]], Fields],
    *,
    carries: str = "",
    whole: bool = False,
) -> Fields:
    """What `checked` makes of the fields of a request whose key is right; `carries` as `Given` has it.

    With `whole`, a large one is handed over as it is, where there is a helper and nobody is counted: it is
    dear to take apart, and cannot ask for little.
    """
    if (read_before := request.scope.get("fields")) is not None:  # by the front, which hands it over
        return checked(read_before)
    header = request.headers.get("authorization", "").removeprefix("Bearer ")
    client = request.client.host if request.client else ""
    if service.behind_proxy:  # the last one is whom our own proxy saw; those before it anybody may write
        client = request.headers.get("x-forwarded-for", client).rpartition(",")[2].strip() or client

    def with_key(fields: dict[str, Any]) -> Fields:
        given = (fields.get("api_key"), fields.get("apiKey"), header)
        key = service.clients.check(str(key) for key in given if key)
        if request.scope.get("limited"):
            service.clients.admit(key, client, fields)
        return checked(fields)

    file = getattr(service.limits, carries) if carries else 0
    beside = partial(service.handed, request) if whole and not service.clients.counting else None
    return await service.bodies.fields(request, with_key, file=file, beside=beside)


@contextlib.asynccontextmanager
async def listening(request: Request, give_up: Callable[[Exception], None]) -> AsyncIterator[None]:
    """While the client is there; if it goes away, `give_up` is told so."""
    watching = asyncio.ensure_future(_watch(request, give_up))
    try:
        yield
    finally:
        watching.cancel()


async def results(request: Request, job: Job, batcher: Batcher) -> list[Any]:
    """The results of a job; if the client goes away, what has not begun is dropped."""
    try:
        async with listening(request, job.give_up):
            return await job.all()
    finally:
        batcher.cancel(job)


async def _watch(request: Request, give_up: Callable[[Exception], None]) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
    give_up(Refusal(GONE, "the client went away"))


def event(name: str, tree: Any) -> bytes:
    """A server-sent event."""
    head = f"event: {name}\n" if name else ""
    return b"%bdata: %b\n\n" % (head.encode(), in_json(tree))
