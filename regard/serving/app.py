"""The routes: LibreTranslate's, ours beside them, and the page at `/`.

Each reads its fields, checks them and the key, and asks `service.py`. Descriptions at `/spec` come from the
models of `schema.py`. `guard.py` stands around all of it.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

from fastapi import FastAPI, Request
from fastapi.responses import Response, StreamingResponse
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.staticfiles import StaticFiles

from regard import __version__
from regard.errors import RegardError
from regard.serving import schema
from regard.serving.about import description
from regard.serving.answers import answer, in_json, ready, refuse
from regard.serving.asked import Asked
from regard.serving.batcher import Batcher, Job
from regard.serving.body import Bodies
from regard.serving.guard import Guard
from regard.serving.limits import Refusal
from regard.serving.service import READY, Service

PAGE = Path(__file__).parent / "page"
LOOK = Path(__file__).parent.parent / "look" / "page"  # modules that the page shares with `regard look`
logger = logging.getLogger("regard.serving")
GONE = 499  # nobody is there to read it; nginx's number
_ERRORS = {400: "wrong", 403: "no key", 408: "too slow", 413: "too large", 429: "busy", 503: "not ready"}
_FAILURES: dict[int | str, dict[str, Any]] = {
    status: {"model": schema.Failure, "description": why} for status, why in _ERRORS.items()
}

Given = TypeVar("Given", bound=schema.Given)


def _takes(model: type[schema.Given]) -> dict[str, Any]:
    """The description of what a route reads."""
    shape = {"schema": model.model_json_schema()}
    kinds = ("application/json", "application/x-www-form-urlencoded")
    return {"requestBody": {"required": True, "content": dict.fromkeys(kinds, shape)}}


class Routes:
    """What each address does."""

    def __init__(self, service: Service) -> None:
        self.service, self.bodies = service, Bodies(service.limits, service.desk)

    async def read(self, request: Request, model: type[Given]) -> Given:
        """The checked fields of a request whose key is right."""
        header = request.headers.get("authorization", "").removeprefix("Bearer ")

        def checked(fields: dict[str, Any]) -> Given:
            given = (fields.get("api_key"), fields.get("apiKey"), header)
            self.service.check_key(str(key) for key in given if key)
            return model.of(fields)

        return await self.bodies.fields(request, checked)

    async def translate(self, request: Request) -> Response:
        """Translate a text, or a list of texts."""
        ask = await self.read(request, schema.Translate)
        if ask.stream:
            return await self._stream(request, ask)
        asked = await self._begin(request, ask)
        results = await self._unless_gone(request, asked.job, asked.batcher)
        asked.place.computed()
        return ready(await self.service.told(asked, results, in_json))

    async def stream(self, request: Request) -> Response:
        """Translate; the answer comes as server-sent events, a sentence each."""
        return await self._stream(request, await self.read(request, schema.Translate))

    async def _begin(self, request: Request, ask: schema.Translate) -> Asked:
        asked = await self.service.begin(ask)
        request.scope["places"].append(asked.place)
        return asked

    async def _stream(self, request: Request, ask: schema.Translate) -> Response:
        events = self._events(await self._begin(request, ask))
        return StreamingResponse(events, media_type="text/event-stream")

    async def _events(self, asked: Asked) -> AsyncIterator[bytes]:
        """A `data:` for each piece, then `done` with what `/translate` would have said."""
        try:
            async for delta in self.service.deltas(asked):
                yield _event("", delta)
            asked.place.computed()
            yield await self.service.told(asked, asked.job.results, lambda tree: _event("done", tree))
        except Refusal as refusal:
            yield _event("error", {"error": refusal.message})
        except Exception as error:
            yield _event("error", {"error": f"it could not be translated ({type(error).__name__})"})
        finally:
            asked.batcher.cancel(asked.job)  # the client went away

    async def detect(self, request: Request) -> Response:
        """The language of a text, as far as scripts and vocabularies tell."""
        return answer(await self.service.detect(await self.read(request, schema.Detect)))

    async def attention(self, request: Request) -> Response:
        """What every head looked at while a sentence was translated; heads can be switched off."""
        job, place = await self.service.glance(await self.read(request, schema.Attention))
        request.scope["places"].append(place)
        try:
            (body,) = await self._unless_gone(request, job, self.service.slow)
        except RegardError as error:  # nothing to look at, or too much
            raise Refusal(400, str(error)) from error
        return ready(body)

    async def languages(self) -> Response:
        """What can be translated to what."""
        return answer(self.service.directory.languages())

    async def health(self) -> Response:
        """Whether the server is loading, ready or draining."""
        return answer({"status": self.service.state}, 200 if self.service.state == READY else 503)

    async def settings(self) -> Response:
        """What LibreTranslate's own page asks."""
        languages = self.service.directory.languages()
        source, target = next(iter(self.service.directory.places))
        names = {each["code"]: each["name"] for each in languages}
        return answer(
            {
                "apiKeys": bool(self.service.keys),
                "charLimit": self.service.limits.characters,
                "frontendTimeout": 500,
                "keyRequired": bool(self.service.keys),
                "language": {
                    "source": {"code": source, "name": names[source]},
                    "target": {"code": target, "name": names[target]},
                },
                "suggestions": False,
                "supportedFilesFormat": [],
            }
        )

    async def model(self, request: Request) -> Response:
        """The card, the settings and the training curve of the models, or of one pair."""
        await self.read(request, schema.Given)
        wanted = request.query_params
        places = self.service.directory.places
        if "source" in wanted and "target" in wanted:
            places = {
                pair: places[pair]
                for pair in [self.service.directory.find(wanted["source"], wanted["target"])]
            }
        found = await self.service.desk.do(
            lambda: in_json([description(place) for place in places.values()]), long=True
        )
        return ready(found)

    async def metrics(self, request: Request) -> Response:
        """For Prometheus."""
        await self.read(request, schema.Given)
        return Response(self.service.metrics.text(), media_type="text/plain; version=0.0.4")

    async def _unless_gone(self, request: Request, job: Job, batcher: Batcher) -> list[Any]:
        """The results of a job; if the client goes away, what has not begun is dropped."""
        watching = asyncio.ensure_future(_watch(request, job))
        try:
            return await job.all()
        finally:
            batcher.cancel(job)
            watching.cancel()


async def _watch(request: Request, job: Job) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
    job.give_up(Refusal(GONE, "the client went away"))


def _event(name: str, tree: Any) -> bytes:
    head = f"event: {name}\n" if name else ""
    return b"%bdata: %b\n\n" % (head.encode(), in_json(tree))


class Direct:
    """The application, with a short way to what is asked most: no layers between the guard and the route."""

    def __init__(self, app: Any, routes: dict[str, Callable[[Request], Awaitable[Response]]]) -> None:
        self.app, self.routes = app, routes

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """One request."""
        route = self.routes.get(scope["path"]) if scope["type"] == "http" else None
        if route is None or scope["method"] != "POST":
            await self.app(scope, receive, send)
            return
        try:
            response = await route(Request(scope, receive))
        except Refusal as refusal:
            response = refuse(refusal)
        except Exception:
            logger.exception("%s failed", scope["path"])
            response = _faulty()
        await response(scope, receive, send)


def build_app(service: Service, *, origins: tuple[str, ...] = ()) -> Any:
    """The ASGI application; `origins` are sites whose pages may ask it."""

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        loading = asyncio.create_task(service.load())
        yield
        loading.cancel()
        service.close()

    app = FastAPI(
        title="Regard",
        version=__version__,
        description="LibreTranslate's API, answered by models of one's own.",
        openapi_url="/spec",
        docs_url=None,  # they would load scripts of others
        redoc_url=None,
        lifespan=lifespan,
    )
    routes = Routes(service)
    _add_routes(app, routes)
    app.mount("/look", StaticFiles(directory=LOOK), name="look")
    app.mount("/", StaticFiles(directory=PAGE, html=True), name="page")
    app.add_exception_handler(Refusal, _refused)
    app.add_exception_handler(HTTPException, _http_fault)
    app.add_exception_handler(Exception, _fault)
    app.openapi()  # it takes a while, and is kept
    guarded = Guard(Direct(app, {"/translate": routes.translate}), service)
    if not origins:
        return guarded
    # Around everything, so that a page can read refusals too.
    return CORSMiddleware(guarded, origins, ("GET", "POST"), ("*",), expose_headers=("Retry-After",))


def _add_routes(app: FastAPI, routes: Routes) -> None:
    def post(path: str, call: Callable[..., Any], takes: type[schema.Given], gives: Any) -> None:
        app.post(path, responses={200: gives, **_FAILURES}, openapi_extra=_takes(takes))(call)

    translated = {"model": schema.Translated}
    post("/translate", routes.translate, schema.Translate, translated)
    post("/translate/stream", routes.stream, schema.Translate, {"content": {"text/event-stream": {}}})
    post("/detect", routes.detect, schema.Detect, {"model": list[schema.Detected]})
    post("/attention", routes.attention, schema.Attention, {"content": {"application/json": {}}})
    app.get("/languages", responses={200: {"model": list[schema.Language]}})(routes.languages)
    app.get("/health", responses={status: {"model": schema.Health} for status in (200, 503)})(routes.health)
    app.get("/frontend/settings")(routes.settings)
    app.get("/model", responses={400: _FAILURES[400], 403: _FAILURES[403]})(routes.model)
    app.get("/metrics", responses={200: {"content": {"text/plain": {}}}, 403: _FAILURES[403]})(routes.metrics)


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refusal)
    return refuse(error)


async def _http_fault(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    routes = (route for route in request.app.routes if getattr(route, "path", "") == request.scope["path"])
    allowed = sorted({method for route in routes for method in getattr(route, "methods", None) or ()})
    if error.status_code in (404, 405) and allowed:  # the page's files are looked for before it is said
        return answer({"error": "Method Not Allowed"}, 405, allow=", ".join(allowed))
    return answer({"error": str(error.detail)}, error.status_code)


async def _fault(request: Request, error: Exception) -> Response:
    return _faulty()


def _faulty() -> Response:
    return answer({"error": "this is a fault of the server; it has been logged"}, 500)
