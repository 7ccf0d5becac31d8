"""Encoders on a server: vectors as OpenAI has them, gaps filled, texts and words with their labels.

`/v1/embeddings` answers with any encoder that is served, whatever its task; `/fill`, `/classify` and `/tag`
say what the verbs say with `--json`. Texts are measured at the desk, read in the batchers' threads, and what
is said of each is JSON when it leaves them. Before this file: `family.py`, `door.py`; after it: `app.py`.
"""

import asyncio
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AliasChoices, Field
from starlette.requests import Request
from starlette.responses import Response

from regard.config.file import read_config
from regard.serving import limits as bounds
from regard.serving import schema
from regard.serving.answers import in_json, ready
from regard.serving.door import read, results
from regard.serving.family import Place, Route
from regard.serving.limits import Refusal
from regard.serving.looking import HeadsOff, Looking, Off, checked, off_of, wrong
from regard.tasks.encoder import EmbedConfig
from regard.tasks.task import Task, with_article

if TYPE_CHECKING:
    from regard.serving.service import Service
    from regard.tasks.embed.embedder import Embedder

Ids = Annotated[list[Annotated[int, Field(strict=True)]], Field(min_length=1)]
Name = Annotated[str, Field(max_length=1000, description="As /v1/models has it; of one model: any.")]
FEW = 20  # texts; more of them are long


class Embedding(schema.Given):
    """What OpenAI's `/v1/embeddings` takes."""

    model: Name = ""
    input: Annotated[
        str
        | Ids
        | Annotated[list[str], Field(min_length=1, max_length=bounds.TEXTS)]
        | Annotated[list[Ids], Field(min_length=1, max_length=bounds.TEXTS)],
        Field(description="A text, several, or the same as token ids."),
    ]
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: Annotated[int, Field(ge=1, description="The model's own width, or left out.")] | None = None
    heads_off: HeadsOff = Field(default_factory=dict)

    @property
    def texts(self) -> list[Any]:
        """One or many."""
        given: Any = self.input
        return [given] if isinstance(given, str) or isinstance(given[0], int) else given


class Reading(schema.Given):
    """A text, or a list of them."""

    model: Name = ""
    text: Annotated[
        schema.Texts, Field(validation_alias=AliasChoices("text", "q"), description="One or a list; or q.")
    ]
    heads_off: HeadsOff = Field(default_factory=dict)

    @property
    def texts(self) -> list[Any]:
        """One or many."""
        return [self.text] if isinstance(self.text, str) else self.text


class Filling(Reading):
    """Texts with gaps."""

    top: Annotated[int, Field(ge=1, le=bounds.GUESSES, description="Guesses for each gap.")] = 5


class Tagging(Reading):
    """Texts whose words are tagged."""

    words: Annotated[bool, Field(description="Words are what stands between spaces.")] = False


Ask = Embedding | Reading


@dataclass(frozen=True)
class Errand:
    """What is asked of a batch."""

    model: str
    top: int = 0  # guesses of a gap
    packed: bool = False  # numbers in base64
    off: Off = ()  # heads that are off meanwhile


@dataclass(frozen=True)
class Part:
    """A text that can be read."""

    item: Any  # itself, or its ids
    tokens: int
    size: int  # bytes that are held for what is said of it
    cut: bool = False


@dataclass(frozen=True)
class Loaded:
    """A model that is served: as its task uses it, and its vectors."""

    place: Place
    own: Any
    embedder: "Embedder"
    labels: int = 0  # bytes of all its labels with their probabilities

    @property
    def longest(self) -> int:
        """Tokens that are read, begin and end with them."""
        return self.embedder.reader.longest or bounds.CONTEXT


class Encoders(Looking):
    """Base: the models of one of these tasks."""

    def __init__(self, service: "Service", task: Task, places: Sequence[Place]) -> None:
        super().__init__(service, task, places)
        self.models: dict[str, Loaded] = {}

    def load(self, place: Place) -> None:
        """As its verb loads it; a model that has no bound has ours."""
        from regard.tasks.embed.embedder import Embedder

        asked = self.service.loading
        own = self.task.load(
            place.folder, device=asked.device, precision=asked.precision, engine=asked.engine
        )
        reader, how = own.reader, read_config(place.folder).of(EmbedConfig)
        embedder = Embedder.of(reader, how)
        for each in (reader, embedder.reader):
            each.longest = min(each.longest or bounds.CONTEXT, bounds.CONTEXT)
        labels = sum(bounds.LABEL + 8 * len(name) for name in getattr(own, "names", ()))
        self.models[place.name] = Loaded(place, own, embedder, labels)

    def engine_threads(self) -> int | None:
        """Those of the engine with the most; None where one model has no engine."""
        engines = [loaded.own.reader.engine for loaded in self.models.values()]
        if any(engine is None for engine in engines):
            return None
        return max((engine.threads for engine in engines), default=1)

    async def warm(self) -> None:
        """A text of each model."""
        for loaded in self.models.values():
            await asyncio.to_thread(loaded.embedder.embed, ["a"])

    def describe(self, place: Place) -> dict[str, Any]:
        """How wide its vectors are, and how long a text can be."""
        loaded = self.models.get(place.name)
        return {"width": loaded.embedder.width, "context": loaded.longest} if loaded else {}

    def known(self) -> Mapping[str, Loaded]:
        """The models that its routes may name."""
        return self.models

    def part(self, loaded: Loaded, ask: Any, text: Any) -> Part:
        """A text as the model takes it, or a refusal; at the desk."""
        raise NotImplementedError

    async def answers(self, request: Request, ask: Ask, wish: Errand) -> tuple[list[Part], list[bytes]]:
        """What is said of each text, and what was read of it."""
        service, loaded = self.service, self.named(ask.model)
        characters = sum(map(len, ask.texts))
        if characters > service.limits.characters:
            most = service.limits.characters
            raise Refusal(400, f"Invalid request: {characters} characters or tokens, the limit is {most}")
        checked(loaded.own.reader.body, ask.heads_off)
        long = len(ask.texts) > FEW or characters > bounds.QUICK
        seat = service.room.enter(long=long)
        request.scope["places"].append(seat)
        parts = await service.desk.do(lambda: [self.part(loaded, ask, each) for each in ask.texts], long=long)
        seat.hold(sum(part.size for part in parts))
        batcher = service.slow if long else service.quick
        job = batcher.submit((self, wish), [part.item for part in parts], [part.tokens for part in parts])
        service.expect(seat, job.give_up)
        service.metrics.tokens.labels(loaded.place.name, "read").inc(sum(part.tokens for part in parts))
        found = await results(request, job, batcher)
        seat.computed()
        return parts, found

    def named(self, name: str) -> Loaded:
        """The model that is meant."""
        self.service.check_ready()
        models = self.known()
        if name in models:
            return models[name]
        if not name and len(models) == 1:
            return next(iter(models.values()))
        other = next((each for each in self.service.served if name in each.places), None)
        what = f"is {with_article(other.task.noun)}" if other else "is not there"
        said = f"model {name[:100]!a} {what}; for this there are {', '.join(models)}"
        raise Refusal(404, said, param="model", code="model_not_found")


class Vectors(Encoders):
    """OpenAI's embeddings, by every encoder of the server."""

    @property
    def answering(self) -> bool:
        """Whether there is an encoder of any task."""
        return any(isinstance(each, Encoders) for each in self.service.served)

    def load(self, place: Place) -> None:
        """As `regard embed` loads it; what another of these families has is taken from there."""
        others = [each for each in self.service.served if isinstance(each, Encoders) and each is not self]
        if not any(place.name in each.guests for each in others):
            super().load(place)

    def routes(self) -> Sequence[Route]:
        """OpenAI's."""
        told: dict[str, Any] = {"content": {"application/json": {}}}
        return (Route("/v1/embeddings", self.embed, Embedding, told, queued=True),)

    def known(self) -> Mapping[str, Loaded]:
        """Those of all tasks."""
        families = (each for each in self.service.served if isinstance(each, Encoders))
        return {name: loaded for each in families for name, loaded in each.models.items()}

    async def embed(self, request: Request) -> Response:
        """A vector for each text."""
        ask = await read(self.service, request, Embedding)
        loaded = self.named(ask.model)
        if ask.dimensions not in (None, loaded.embedder.width):
            said = f"the model gives {loaded.embedder.width} numbers and cannot give {ask.dimensions}"
            raise wrong("dimensions", said)
        wish = Errand(loaded.place.name, packed=ask.encoding_format == "base64", off=off_of(ask.heads_off))
        parts, found = await self.answers(request, ask, wish)
        tokens, cut = sum(part.tokens for part in parts), sum(part.cut for part in parts)
        usage = {"prompt_tokens": tokens, "total_tokens": tokens}
        tail: dict[str, Any] = {"model": loaded.place.name, "usage": usage} | ({"cut": cut} if cut else {})

        def told() -> bytes:
            head = b'{"object":"embedding","index":%d,"embedding":%b}'
            data = b",".join([head % (index, vector) for index, vector in enumerate(found)])
            return b'{"object":"list","data":[%b],%b' % (data, in_json(tail)[1:])

        return ready(await self.service.desk.do(told, long=len(found) > FEW))

    def part(self, loaded: Loaded, ask: Embedding, text: Any) -> Part:
        """Its ids, cut where the model's places end."""
        from regard.tasks.encoder.reader import FRAME

        reader = loaded.embedder.reader
        if isinstance(text, str):
            (ids,) = reader.tokenizer.encode_batch(schema.sound([text]))
        else:
            ids, most = text, reader.tokenizer.vocab_size
            if strange := [number for number in ids if not 0 <= number < most]:
                raise wrong("input", f"there is no token {str(strange[0])[:40]}; there are {most}")
        row = reader.framed(ids)
        each = bounds.PACKED if ask.encoding_format == "base64" else bounds.NUMBER
        size = bounds.SENTENCE + each * loaded.embedder.width
        return Part(row, len(row), size, cut=len(ids) + FRAME > len(row))

    def say(self, wish: Errand, texts: Sequence[list[int]], threads: int) -> list[bytes]:
        """The vectors as JSON."""
        vectors = self.known()[wish.model].embedder.of_rows(texts, threads=threads)
        if wish.packed:
            return [b'"%b"' % b64encode(each.astype("<f4").tobytes()) for each in vectors]
        return [in_json(each.tolist()) for each in vectors]


class Readers(Encoders):
    """Base: one route that says something of each text; an object for a text, a list for a list."""

    path = ""
    takes: type[Reading] = Reading

    def routes(self) -> Sequence[Route]:
        """Its own."""
        told: dict[str, Any] = {"content": {"application/json": {}}}
        return (Route(self.path, self.answer, self.takes, told, queued=True),)

    async def answer(self, request: Request) -> Response:
        """What is said of the texts."""
        ask = await read(self.service, request, self.takes)
        wish = Errand(self.named(ask.model).place.name, getattr(ask, "top", 0), off=off_of(ask.heads_off))
        _, found = await self.answers(request, ask, wish)
        if isinstance(ask.text, str):
            return ready(found[0])
        return ready(await self.service.desk.do(lambda: b"[%b]" % b",".join(found), long=len(found) > FEW))


class Fill(Readers):
    """Models that fill gaps."""

    path, takes = "/fill", Filling

    def part(self, loaded: Loaded, ask: Filling, text: str) -> Part:
        """With gaps, not too many; a text that is too long is refused, for what is cut off is not filled."""
        from regard.tasks.encoder.reader import FRAME
        from regard.tasks.masked.filler import MASK

        (text,), gaps = schema.sound([text]), text.count(MASK)
        if not 1 <= gaps <= bounds.GAPS:
            raise wrong("text", f"it has {gaps} {MASK}; 1 to {bounds.GAPS} can be filled")
        if ask.top > loaded.own.choices:
            raise wrong("top", f"there are {loaded.own.choices} tokens that stand for text")
        tokens = len(loaded.own.ids(text)) + FRAME
        if tokens > loaded.longest:
            raise wrong("text", f"it has {tokens} tokens and the model reads {loaded.longest}; shorten it")
        return Part(text, tokens, bounds.SENTENCE + 8 * len(text) + gaps * ask.top * bounds.GUESS)

    def say(self, wish: Errand, texts: Sequence[str], threads: int) -> list[bytes]:
        """As `regard fill --json` has them."""
        found = self.models[wish.model].own.fill(texts, top=wish.top, threads=threads)
        return [in_json(each.to_dict()) for each in found]


class Classify(Readers):
    """Models that say what kind a text is."""

    path = "/classify"

    def part(self, loaded: Loaded, ask: Reading, text: str) -> Part:
        """Cut where the model's places end."""
        (text,) = schema.sound([text])
        return Part(text, len(loaded.own.row(text)), bounds.SENTENCE + 8 * len(text) + loaded.labels)

    def say(self, wish: Errand, texts: Sequence[str], threads: int) -> list[bytes]:
        """As `regard classify --json` has them."""
        labels = self.models[wish.model].own
        return [in_json(labels.said(each)) for each in labels.classify(texts, threads=threads)]


class Tag(Readers):
    """Models that say what each word is."""

    path, takes = "/tag", Tagging

    def part(self, loaded: Loaded, ask: Tagging, text: str) -> Part:
        """Its words; every one is read, however many there are of them."""
        from regard.tasks.encoder.reader import FRAME
        from regard.tasks.labels.labeller import words_of

        (text,) = schema.sound([text])
        words = text.split() if ask.words else words_of(text)
        if len(words) > bounds.WORDS:
            raise wrong("text", f"it has {len(words)} words; at most {bounds.WORDS} in one text")
        tokens = sum(map(len, loaded.own.reader.tokenizer.encode_batch(words)))
        size = bounds.SENTENCE + 8 * len(text) + len(words) * (bounds.GUESS + loaded.labels)
        return Part(words, tokens + FRAME, size)

    def say(self, wish: Errand, texts: Sequence[list[str]], threads: int) -> list[bytes]:
        """As `regard tag --json` has them."""
        from regard.tasks.labels.labeller import tags_of

        found = self.models[wish.model].own.tag(texts, threads=threads)
        return [in_json(tags_of(words, each)) for words, each in zip(texts, found, strict=True)]
