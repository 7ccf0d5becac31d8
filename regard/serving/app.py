"""The application: the routes of every task, those that all share, and the page at `/`.

What a task answers is its family's affair (`family.py`); here are health, models, metrics, and the heads of
whichever model is asked for. `guard.py` stands around all of it.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import Response
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.staticfiles import StaticFiles

from regard import __version__
from regard.serving import schema
from regard.serving.about import description
from regard.serving.answers import answer, in_json, ready, refuse
from regard.serving.door import read, read_fields
from regard.serving.family import Family, Place, Route
from regard.serving.guard import Guard, asked_path
from regard.serving.limits import Answered, Refusal
from regard.serving.service import READY, Service

PAGE = Path(__file__).parent / "page"
LOOK = Path(__file__).parent.parent / "look" / "page"  # modules that the page shares with `regard look`
logger = logging.getLogger("regard.serving")
_ERRORS = {400: "wrong", 403: "no key", 408: "too slow", 413: "too large", 429: "busy", 503: "not ready"}
_NAME = {"name": "name", "in": "path", "required": True, "schema": {"type": "string"}}
_JSON: dict[str, Any] = {"content": {"application/json": {}}}
_FAILURES: dict[int | str, dict[str, Any]] = {
    status: {"model": schema.Failure, "description": why} for status, why in _ERRORS.items()
}


def _takes(model: type[schema.Given]) -> dict[str, Any]:
    """The description of what a route reads."""
    shape = {"schema": model.model_json_schema()}
    plain = ["application/json", "application/x-www-form-urlencoded"]
    kinds = ["multipart/form-data"] if model.carries else plain
    return {"requestBody": {"required": True, "content": dict.fromkeys(kinds, shape)}}


class Shared:
    """What is asked of any server, whatever it serves."""

    def __init__(self, service: Service) -> None:
        self.service = service

    def routes(self) -> Sequence[Route]:
        """The addresses."""
        return (
            Route("/attention", self.attention, schema.Attention, _JSON, queued=True),
            Route("/v1/models", self.models, gives={"model": schema.Models}),
            Route("/v1/models/{name:path}", self.one_model, gives={"model": schema.Model}),
            Route("/model", self.model),
            Route("/metrics", self.metrics, gives={"content": {"text/plain": {}}}),
            Route("/health", self.health, gives={"model": schema.Health}),
            Route("/live", self.live, gives={"model": schema.Health}),
        )

    async def attention(self, request: Request) -> Response:
        """What every head looked at; heads can be switched off. The fields are the task's own."""
        carries = next((each.look_carries for each in self.service.served if each.look_carries), "")
        fields = await read_fields(self.service, request, dict, carries=carries, whole=True)
        if found := await self.service.handed(request, fields):
            return found
        return await self._asked(fields).look(request, fields)

    def _asked(self, fields: dict[str, Any]) -> Family:
        """The family of the model that is named, or of the field that is given; else the first."""
        served, name = self.service.served, fields.get("model")
        named = [each for each in served if each.look_field and isinstance(name, str) and name in each.places]
        told = [each for each in served if each.look_field and each.look_field in fields]
        return (named or told or served)[0]

    async def models(self, request: Request) -> Response:
        """Every model that is served, as OpenAI lists them."""
        await read(self.service, request, schema.Given)
        return answer({"object": "list", "data": [self._entry(*each) for each in self._places()]})

    async def one_model(self, request: Request) -> Response:
        """One of them."""
        await read(self.service, request, schema.Given)
        name = request.path_params["name"]
        for family, place in self._places():
            if place.name == name:
                return answer(self._entry(family, place))
        there = ", ".join(place.name for _, place in self._places())
        raise Refusal(
            404, f"there is no model {name[:100]!a}; there are {there}", param="model", code="model_not_found"
        )

    def _places(self) -> list[tuple[Family, Place]]:
        return [(family, place) for family in self.service.served for place in family.places.values()]

    def _entry(self, family: Family, place: Place) -> dict[str, Any]:
        try:
            created = int((place.folder / "config.json").stat().st_mtime)
        except OSError:  # the folder went away since it was loaded
            created = 0
        known = {"id": place.name, "object": "model", "created": created, "owned_by": "regard"}
        return known | {"task": family.task.name} | family.describe(place)

    async def model(self, request: Request) -> Response:
        """The card, the settings and the training curve of the models; or of one, by name or languages."""
        await read(self.service, request, schema.Given)
        query = request.query_params
        found = [(each, place) for each in self.service.served for place in each.wanted(query)]
        if not found:
            raise Refusal(400, "Invalid request: there is no such model; /v1/models lists those there are")

        def told() -> bytes:
            return in_json(
                [description(place, {"task": each.task.name} | each.describe(place)) for each, place in found]
            )

        return ready(await self.service.desk.do(told, long=True))

    async def metrics(self, request: Request) -> Response:
        """For Prometheus."""
        await read(self.service, request, schema.Given)
        return Response(self.service.metrics.text(), media_type="text/plain; version=0.0.4")

    async def health(self, request: Request) -> Response:
        """Whether the server is loading, ready or draining."""
        return answer({"status": self.service.state}, 200 if self.service.state == READY else 503)

    async def live(self, request: Request) -> Response:
        """Whether the process is worth keeping: also while it loads and drains. Who works must be there."""
        alive = self.service.fault is None and self.service.working
        return answer({"status": self.service.state}, 200 if alive else 503)


class Direct:
    """The application, with a short way to what is asked most: no layers between the guard and the route."""

    def __init__(self, app: Any, routes: dict[str, Callable[[Request], Awaitable[Response]]]) -> None:
        self.app, self.routes = app, routes

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """One request."""
        path = asked_path(scope) if scope["type"] == "http" else ""
        route = self.routes.get(path)
        if route is None or scope["method"] != "POST":
            await self.app(scope, receive, send)
            return
        try:
            response = await route(Request(scope, receive))
        except Answered as answered:
            response = answered.response
        except Refusal as refusal:
            response = refuse(refusal, path)
        except Exception:
            logger.exception("%s failed", path)
            response = _faulty(path)
        await response(scope, receive, send)


def build_app(service: Service, *, origins: tuple[str, ...] = (), prefix: str = "") -> Any:
    """The ASGI application; `origins` are sites whose pages may ask it, addresses begin with `prefix`."""

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        loading = asyncio.create_task(service.load())
        if service.quiet:
            await loading
        if service.relieves is not None:
            await asyncio.to_thread(service.relieves)
        yield
        loading.cancel()
        service.close()

    app = FastAPI(
        title="Regard",
        version=__version__,
        description="LibreTranslate's API and OpenAI's, answered by models of one's own.",
        openapi_url="/spec",
        docs_url=None,  # they would load scripts of others; page/docs has ours
        redoc_url=None,
        lifespan=lifespan,
    )
    routes = _routes(service)
    for route in routes:
        _add_route(app, route)
    app.mount("/look", StaticFiles(directory=LOOK), name="look")
    app.mount("/", StaticFiles(directory=PAGE, html=True), name="page")
    app.add_exception_handler(Refusal, _refused)
    app.add_exception_handler(Answered, _answered)
    app.add_exception_handler(HTTPException, _http_fault)
    app.add_exception_handler(Exception, _fault)
    app.openapi()  # it takes a while, and is kept
    service.inner = Direct(app, {route.path: route.call for route in routes if route.direct})
    guarded = Guard(
        service.inner,
        service,
        queued=frozenset(route.path for route in routes if route.queued),
        counted=frozenset(["/", "/spec", *(route.path for route in routes if "{" not in route.path)]),
        prefix=prefix,
    )
    if not origins:
        return guarded
    # Around everything, so that a page can read refusals too.
    return CORSMiddleware(guarded, origins, ("GET", "POST"), ("*",), expose_headers=("Retry-After",))


def _routes(service: Service) -> list[Route]:
    """Those of every task, and the shared ones; where no model of a task is served, its routes say so."""
    found = list(Shared(service).routes())
    for family in service.families.values():
        for route in family.routes():
            found.append(route if family.answering else Route(route.path, family.absent, route.takes))
    return found


def _add_route(app: FastAPI, route: Route) -> None:
    responses: dict[int | str, dict[str, Any]] = {200: dict(route.gives), **_FAILURES}
    if route.takes is None:
        extra = {"parameters": [_NAME]} if "{name" in route.path else None
        app.get(route.path, responses=responses, openapi_extra=extra)(route.call)
    else:
        app.post(route.path, responses=responses, openapi_extra=_takes(route.takes))(route.call)


async def _answered(request: Request, error: Exception) -> Response:
    assert isinstance(error, Answered)
    response: Response = error.response
    return response


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refusal)
    return refuse(error, asked_path(request.scope))


async def _http_fault(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    path = asked_path(request.scope)
    routes = (route for route in request.app.routes if getattr(route, "path", "") == path)
    allowed = sorted({method for route in routes for method in getattr(route, "methods", None) or ()})
    if error.status_code in (404, 405) and allowed:  # the page's files are looked for before it is said
        refused = refuse(Refusal(405, "Method Not Allowed"), path)
        refused.headers["allow"] = ", ".join(allowed)
        return refused
    return refuse(Refusal(error.status_code, str(error.detail)), path)


async def _fault(request: Request, error: Exception) -> Response:
    return _faulty(asked_path(request.scope))


def _faulty(path: str) -> Response:
    return refuse(Refusal(500, "this is a fault of the server; it has been logged"), path)
