"""LibreTranslate's routes, and ours beside them, for the translators of a server.

Each reads its fields and asks `translating.py`; descriptions at `/spec` come from `schema.py`. After this
file: `app.py`.
"""

from collections.abc import AsyncIterator, Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from regard.errors import RegardError
from regard.files.file import FORMATS
from regard.serving import schema
from regard.serving.answers import answer, in_json, ready
from regard.serving.asked import Asked, dear
from regard.serving.door import event, read, results
from regard.serving.family import Route
from regard.serving.filed import ordered
from regard.serving.limits import Refusal
from regard.serving.translating import Translating

EVENTS: dict[str, Any] = {"content": {"text/event-stream": {}}}


class LibreTranslate(Translating):
    """What each address does."""

    def routes(self) -> Sequence[Route]:
        """LibreTranslate's, and its answer as events."""
        told = {"model": schema.Translated}
        return (
            Route("/translate", self.translate, schema.Translate, told, queued=True, direct=True),
            Route("/translate/stream", self.stream, schema.Translate, EVENTS, queued=True),
            Route(
                "/translate_file",
                self.translate_file,
                schema.TranslateFile,
                {"model": schema.TranslatedFile},
                queued=True,
            ),
            Route("/download_file/{name}", self.download_file, gives={"content": {"application/*": {}}}),
            Route("/detect", self.detected, schema.Detect, {"model": list[schema.Detected]}),
            Route("/suggest", self.suggest, schema.Suggest),
            Route("/languages", self.languages, gives={"model": list[schema.Language]}),
            Route("/frontend/settings", self.settings),
        )

    async def translate(self, request: Request) -> Response:
        """Translate a text, or a list of texts."""
        ask = await read(self.service, request, schema.Translate, whole=True)
        if dear(ask) and (found := await self.service.handed(request, dict(ask))):
            return found
        if ask.stream:
            return await self._stream(request, ask)
        asked = await self._begin(request, ask)
        readings = await results(request, asked.job, asked.batcher)
        asked.place.computed()
        return ready(await self.told(asked, readings, in_json))

    async def translate_file(self, request: Request) -> Response:
        """Translate a file; the answer says where the translated one is fetched."""
        given = await read(self.service, request, schema.TranslateFile, whole=True)
        if found := await self.service.handed(request, dict(given)):
            return found
        self.service.check_ready()
        errand = await self.desk.do(lambda: ordered(given), long=True)
        asked = await self._begin(request, errand.ask)
        readings = await results(request, asked.job, asked.batcher)
        asked.place.computed()
        data = await self.told(asked, readings, lambda tree: errand.written(tree["translatedText"]))
        name = self.kept.put(errand.name, data)
        return answer({"translatedFileUrl": f"{request.base_url}download_file/{name}"})

    async def download_file(self, request: Request) -> Response:
        """A file that was translated."""
        name = request.path_params["name"]
        if name not in self.kept and (found := await self.service.handed(request, {})):
            return found
        data = self.kept.get(name)
        shown = name.partition(".")[2]
        headers = {
            "content-disposition": f'attachment; filename="{shown}"',
            "x-content-type-options": "nosniff",
        }
        return Response(data, media_type="application/octet-stream", headers=headers)

    async def stream(self, request: Request) -> Response:
        """Translate; the answer comes as server-sent events, a sentence each."""
        ask = await read(self.service, request, schema.Translate, whole=True)
        if dear(ask) and (found := await self.service.handed(request, dict(ask))):
            return found
        return await self._stream(request, ask)

    async def _begin(self, request: Request, ask: schema.Translate) -> Asked:
        asked = await self.begin(ask)
        request.scope["places"].append(asked.place)
        return asked

    async def _stream(self, request: Request, ask: schema.Translate) -> Response:
        events = self._events(await self._begin(request, ask))
        return StreamingResponse(events, media_type="text/event-stream")

    async def _events(self, asked: Asked) -> AsyncIterator[bytes]:
        """A `data:` for each piece, then `done` with what `/translate` would have said."""
        try:
            async for delta in self.deltas(asked):
                yield event("", delta)
            asked.place.computed()
            yield await self.told(asked, asked.job.results, lambda tree: event("done", tree))
        except Refusal as refusal:
            yield event("error", {"error": refusal.message})
        except Exception as error:
            yield event("error", {"error": f"it could not be translated ({type(error).__name__})"})
        finally:
            asked.batcher.cancel(asked.job)  # the client went away

    async def detected(self, request: Request) -> Response:
        """The language of a text, as far as scripts and vocabularies tell."""
        return answer(await self.detect(await read(self.service, request, schema.Detect, whole=True)))

    async def suggest(self, request: Request) -> Response:
        """A better translation, as LibreTranslate's clients offer it; nothing that people write is kept."""
        await read(self.service, request, schema.Suggest)
        raise Refusal(403, "Suggestions are disabled on this server.")

    async def look(self, request: Request, fields: dict[str, Any]) -> Response:
        """What every head looked at while a sentence was translated; heads can be switched off."""
        job, place = await self.glance(schema.Attention.of(fields))
        request.scope["places"].append(place)
        try:
            (body,) = await results(request, job, self.slow)
        except RegardError as error:  # nothing to look at, or too much
            raise Refusal(400, str(error)) from error
        return ready(body)

    async def languages(self, request: Request) -> Response:
        """What can be translated to what."""
        return answer(self.directory.languages())

    async def settings(self, request: Request) -> Response:
        """What LibreTranslate's own page asks."""
        languages = self.directory.languages()
        source, target = next(iter(self.directory.places))
        names = {each["code"]: each["name"] for each in languages}
        keys = bool(self.service.keys)
        return answer(
            {
                "apiKeys": keys,
                "charLimit": self.limits.characters,
                "filesTranslation": True,
                "frontendTimeout": 500,
                "keyRequired": keys,
                "language": {
                    "source": {"code": source, "name": names[source]},
                    "target": {"code": target, "name": names[target]},
                },
                "suggestions": False,
                "supportedFilesFormat": [f".{form}" for form in FORMATS],
            }
        )
