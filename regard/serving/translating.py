"""Translation on a server: find the model, cut the texts, wait for the engine, put the answer together.

Knows nothing of HTTP but its refusals. Before this file: `libretranslate.py`, which has the routes; beneath
it are `document.py` and `batcher.py`.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from regard.errors import RegardError
from regard.serving import engine
from regard.serving import limits as bounds
from regard.serving.asked import Asked, Cut, answer, is_long, small
from regard.serving.batcher import Job
from regard.serving.engine import Glance, Order
from regard.serving.family import Family, Place
from regard.serving.filed import Kept
from regard.serving.limits import Refusal
from regard.serving.remembered import Remembered
from regard.serving.room import Place as Seat
from regard.serving.schema import Attention, Detect, Translate, sound
from regard.serving.served import (
    UNKNOWN,
    Directory,
    Served,
    load_served,
    pairs_of,
    untrained,
    writing_of,
)
from regard.tasks.task import Task
from regard.tasks.translation.document import Document, Sentence
from regard.tasks.translation.reading import Reading
from regard.tasks.translation.texts import Handling, cut
from regard.text.directions import Pair
from regard.text.identify import READ, identifier

if TYPE_CHECKING:
    from regard.serving.service import Service

TAGGED = 20_000  # characters of HTML that its language is looked for in
_TAGS = re.compile(r"<[^<>]*>")
TURN = 8  # pieces of a stream after which others have their turn
Result = TypeVar("Result")


class Translating(Family):
    """The translators of a server."""

    look_field = "q"

    def __init__(self, service: "Service", task: Task, places: Sequence[Place]) -> None:
        super().__init__(service, task, places)
        self.directory = Directory(places, service.loading.pivot if places else "")
        self.remembered = Remembered(service.loading.remember)
        self.kept = Kept()
        self.limits, self.room, self.desk = service.limits, service.room, service.desk
        self.quick, self.slow, self.metrics = service.quick, service.slow, service.metrics

    @classmethod
    def check(cls, place: Place) -> None:
        """It has two languages."""
        pairs_of(place)

    def load(self, place: Place) -> None:
        """Into the directory."""
        self.directory.models[place.name] = load_served(place, self.service.loading)
        identifier()  # the first time is slow

    def engine_threads(self) -> int | None:
        """Those of the engine with the most; None where one model has no engine."""
        engines = [served.translator.engine for served in self.directory.models.values()]
        if any(each is None for each in engines):
            return None
        return max((getattr(each, "threads", 1) for each in engines), default=1)

    async def warm(self) -> None:
        """The first time is slow: let it not be a client's."""
        self.directory.join()
        for name in self.directory.models:
            await self.quick.submit((self, Order(name)), ["a"], [1]).all()

    def run(self, wish: Any, texts: Sequence[str], threads: int) -> list[Any]:
        """Readings of each text, or the JSON of a look."""
        models = self.directory.models
        if isinstance(wish, Glance) or wish.traced:
            return engine.run(models, wish, texts, threads)
        return self.remembered.answers(wish, texts, lambda new: engine.run(models, wish, new, threads))

    def line(self, place: Place) -> str:
        """With its languages, if it knows them."""
        pairs = pairs_of(place)
        unknown = "\n  it does not know its languages; say them as en-de=DIR" if UNKNOWN in pairs else ""
        told = ", ".join(f"{source} to {target}" for source, target in pairs)
        never = ", ".join(map("-".join, untrained(place)))
        more = f"; zero-shot, never trained: {never}" if never else ""
        return f"{told}: {place.folder}{unknown}{more}"

    def describe(self, place: Place) -> dict[str, Any]:
        """Its languages, and how it writes."""
        pairs, never = pairs_of(place), untrained(place)
        source, target = pairs[0]
        several = {"pairs": [*map("-".join, pairs)], "zero_shot": [*map("-".join, never)]}
        told = {"source": source, "target": target, "writes": writing_of(place)}
        return told | several if len(pairs) > 1 or never else told

    def wanted(self, query: Any) -> list[Place]:
        """Also by its languages."""
        if "source" in query and "target" in query and self.places:
            pair = self.directory.find(query["source"], query["target"])
            name = self.directory.named(pair, query.get("model", ""))
            return [self.places[each] for each in self.directory.through.get(name, (name,))]
        return super().wanted(query)

    # Requests --------------------------------------------------------------------------------------

    async def begin(self, ask: Translate) -> Asked:
        """Find the model, cut the texts, and put the sentences in the queue."""
        self.service.check_ready()
        length = sum(map(len, ask.texts))
        if length > self.limits.characters:
            said = f"text has {length} characters, the limit is {self.limits.characters}"
            raise Refusal(400, f"Invalid request: {said}")
        if ask.words and ask.format == "html":
            raise Refusal(400, "Invalid request: words are told for format=text only")
        long = is_long(ask)
        place = self.room.enter(long=long)
        try:
            cut = self._cut(ask) if small(ask) else await self.desk.do(lambda: self._cut(ask), long=long)
            place.hold(cut.bytes(ask))
            wish = Order(cut.model, ask.alternatives + 1, ask.words or cut.traced, cut.pair[1])
            batcher = self.slow if long else self.service.tracing if wish.traced else self.quick
            if long:
                self.room.check_ahead(batcher.ahead, batcher.seconds(sum(cut.sizes)))
            job = batcher.submit((self, wish), cut.sentences, cut.sizes)
            self.service.expect(place, job.give_up)
        except BaseException:
            place.leave()
            raise
        self.metrics.taken("-".join(cut.pair), length, len(cut.sizes))
        return Asked(ask, cut.documents, job, place, batcher, cut.detected)

    def _cut(self, ask: Translate) -> Cut:
        texts = sound(ask.texts)
        read = "\n".join(texts) if ask.format == "text" else _TAGS.sub(" ", "\n".join(texts)[:TAGGED])
        pair, detected = self._pair(ask.source, ask.target, read)
        name = self.directory.named(pair, ask.model)
        served = self.directory.models[name].to(pair[1])
        documents, count = [], 0
        handling = Handling.of(html=ask.format == "html", glossary=ask.glossary)
        for text in texts:
            documents.append(self._document(text, served, handling))
            count += len(documents[-1].sentences)
            if count > bounds.SENTENCES:
                said = f"the text has more than {bounds.SENTENCES} sentences; send it in several requests"
                raise Refusal(400, f"Invalid request: {said}")
        sentences = [sentence.text for document in documents for sentence in document.sentences]
        sizes = [len(ids) + 1 for ids in served.translator.tokenizer.encode_batch(sentences)]
        traced = any(document.needs_trace for document in documents)
        if served.then is not None and (ask.words or traced):
            raise Refusal(
                400,
                f"Invalid request: {'-'.join(pair)} goes by way of a third language, where words cannot be "
                "followed; leave out words, glossary and tags inside sentences",
            )
        return Cut(pair, name, documents, sizes, ask.words or traced, detected)

    def _document(self, text: str, served: Served, handling: Handling) -> Document:
        try:
            return cut(served.translator, text, handling, most=bounds.MARKS)
        except RegardError as error:
            raise Refusal(400, f"Invalid request: {error}") from error

    def _pair(self, source: str, target: str, text: str) -> tuple[Pair, dict[str, Any] | None]:
        """The pair of languages that is meant, and what was detected if that was asked."""
        if source.lower() != "auto":
            return self.directory.find(source, target), None
        guesses = self.directory.guess(text, target)
        if not guesses:
            self.directory.find(source, target)
        if len(guesses) > 1 and guesses[0][1] == guesses[1][1]:
            codes = ", ".join(code for code, _ in guesses)
            raise Refusal(400, f"the text may be in {codes}; say which as source")
        code, confidence = guesses[0]
        return self.directory.find(code, target), {"language": code, "confidence": confidence}

    async def told(
        self, asked: Asked, results: Sequence[list[Reading]], say: Callable[[Any], Result]
    ) -> Result:
        """What `say` makes of the answer; where that takes time, the event loop goes on meanwhile."""
        if asked.plain:
            return say(answer(asked, results))
        return await self.desk.do(lambda: say(answer(asked, results)), long=asked.place.long)

    async def deltas(self, asked: Asked) -> AsyncIterator[dict[str, Any]]:
        """The answer piece by piece, in its order, as soon as each piece is known."""
        flow = [(i, part) for i, document in enumerate(asked.documents) for part in document.parts]
        done: set[int] = set()
        number = 0  # of the sentences
        numbers = asked.job.numbers()
        for at, (index, part) in enumerate(flow):
            if isinstance(part, str):
                text = part
            else:
                while number not in done:
                    done.add(await anext(numbers))
                text = await self._rendered(asked, index, part, asked.job.results[number][0])
                number += 1
            if text:
                yield {"index": index, "text": text}
            if at % TURN == 0:
                await asyncio.sleep(0)

    async def _rendered(self, asked: Asked, index: int, sentence: Sentence, reading: Reading) -> str:
        document = asked.documents[index]
        if reading.trace is None:
            return document.rendered(sentence, reading)
        return await self.desk.do(lambda: document.rendered(sentence, reading), long=asked.place.long)

    async def glance(self, ask: Attention) -> tuple[Job, Seat]:
        """Put a sentence to look into in the queue."""
        self.service.check_ready()
        if len(ask.q) > self.limits.characters:
            raise Refusal(400, f"Invalid request: q has {len(ask.q)} characters")
        place = self.room.enter(long=True)
        try:
            name, target, text, tokens = await self.desk.do(
                lambda: self._sentence(ask), long=len(ask.q) > bounds.QUICK
            )
            off = tuple((name, tuple(sorted(set(heads)))) for name, heads in sorted(ask.heads_off.items()))
            job = self.slow.submit((self, Glance(name, off, target)), [text], [tokens])
            self.service.expect(place, job.give_up)
        except BaseException:
            place.leave()
            raise
        return job, place

    def _sentence(self, ask: Attention) -> tuple[str, str, str, int]:
        """The model, the language and the one sentence of a request to look inside, if it can be done."""
        (text,) = sound([ask.q])
        pair, _ = self._pair(ask.source, ask.target, text)
        name = self.directory.named(pair, ask.model)
        served = self.directory.models[name].to(pair[1])
        if served.then is not None:
            raise Refusal(400, f"{'-'.join(pair)} goes by way of a third language; look into one step of it")
        # A token has eight characters at most on average: what is longer need not be counted.
        tokens = served.count(text) if len(text) <= 8 * served.limit else len(text)
        if not 0 < tokens <= served.limit:
            raise Refusal(400, f"Invalid request: q has {tokens} tokens; give 1 to {served.limit}")
        try:
            engine.check_glance(served, ask.heads_off, tokens)
        except RegardError as error:
            raise Refusal(400, f"Invalid request: {error}") from error
        return name, pair[1], text, tokens

    async def detect(self, ask: Detect) -> list[dict[str, Any]]:
        """What `/detect` says."""
        self.service.check_ready()
        if len(ask.q) > self.limits.characters:
            raise Refusal(400, f"Invalid request: q has {len(ask.q)} characters")
        (text,) = sound([ask.q[:READ]])
        found = await self.desk.do(lambda: self.directory.guess(text), long=False)
        return [{"language": code, "confidence": share} for code, share in found]
