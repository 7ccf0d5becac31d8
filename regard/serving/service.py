"""What the server does with a request that was read and checked: find the model, cut, wait, put together.

Knows nothing of HTTP but its refusals. `app.py` calls it; beneath it are `document.py` and `batcher.py`.
"""

import asyncio
import gc
import hashlib
import hmac
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from regard.errors import RegardError
from regard.serving import engine
from regard.serving import limits as bounds
from regard.serving.asked import Asked, Cut, answer, small
from regard.serving.batcher import NICE, Batcher, Job
from regard.serving.desk import Desk
from regard.serving.document import Document, Sentence, read_document
from regard.serving.engine import Glance, Pair, Reading, Wish
from regard.serving.guess import READ
from regard.serving.limits import Limits, Refusal
from regard.serving.metrics import Metrics
from regard.serving.room import Place, Room
from regard.serving.schema import Attention, Detect, Translate, sound
from regard.serving.served import Directory, Loading, Served
from regard.text.glossary import Glossary

LOADING, READY, DRAINING = "loading", "ready", "draining"
WORKERS = 4  # batches at a time, at most, in each queue
TURN = 8  # pieces of a stream after which others have their turn
Result = TypeVar("Result")


@dataclass
class Service:
    """One server's state."""

    directory: Directory
    limits: Limits = field(default_factory=Limits)
    keys: tuple[str, ...] = ()
    loading: Loading = field(default_factory=Loading)
    metrics: Metrics = field(default_factory=Metrics)
    state: str = LOADING
    fault: Exception | None = None
    under_way: int = 0  # requests that are being answered
    threads: int = 1  # of the engine

    def __post_init__(self) -> None:
        self.quick = Batcher(self._work, self.limits, self.metrics)
        # What is long is less urgent, and has a core at a time: a sentence that comes finds the other free.
        self.slow = Batcher(self._slow_work, self.limits, self.metrics, nice=2 * NICE)
        self.room = Room(self.limits, lambda: self.quick.wait + self.slow.wait)
        self.desk = Desk()
        self.looks = 0  # requests to look inside that are under way
        self.metrics.waiting.set_function(lambda: self.quick.waiting + self.slow.waiting)
        self._digests = [hashlib.sha256(key.encode()).digest() for key in self.keys]

    def _work(self, key: Any, texts: Sequence[str], alone: bool) -> list[Any]:
        alone = alone and self.slow.idle
        return engine.run(self.directory.models, key, texts, self.threads if alone else self._share())

    def _slow_work(self, key: Any, texts: Sequence[str], alone: bool) -> list[Any]:
        return engine.run(self.directory.models, key, texts, self._share())

    def _share(self) -> int:
        """Threads of a batch that others run beside."""
        return max(1, self.threads // max(1, len(self.quick.threads)))

    # From loading to the end -----------------------------------------------------------------------

    async def load(self) -> None:
        """Load the models while the server already answers; a fault is kept for whoever started it."""
        try:
            for pair, place in self.directory.places.items():
                self.directory.models[pair] = await asyncio.to_thread(self.loading.load, place)
            for batcher in (self.quick, self.slow):
                batcher.start(self._workers())
            for pair in self.directory.places:  # the first time is slow: let it not be a client's
                await self.quick.submit(Wish(pair), ["a"], [1]).all()
        except Exception as error:
            self.fault = error
            return
        # What stays is looked through no more: a search for garbage among it stopped everybody for 130 ms.
        gc.collect()
        gc.freeze()
        if self.state == LOADING:
            self.state = READY

    def _workers(self) -> int:
        """Batches at a time: several small ones keep the native engine's cores busier than a large one."""
        engines = [served.translator.engine for served in self.directory.models.values()]
        if any(each is None for each in engines):
            return 1  # torch's own threads, and Python's lock
        self.threads = max(getattr(each, "threads", 1) for each in engines)
        return min(self.threads + 1, WORKERS)

    @property
    def idle(self) -> bool:
        """Whether nobody waits for an answer."""
        return self.quick.idle and self.slow.idle and self.under_way == 0

    def close(self) -> None:
        """Begin nothing more."""
        self.quick.close()
        self.slow.close()
        self.desk.close()

    def check_ready(self) -> None:
        """Refuse while loading or draining."""
        if self.state != READY:
            raise Refusal(503, f"the server is {self.state}; try again soon", retry_after=2)

    def check_key(self, given: Iterable[str]) -> None:
        """Refuse those who do not have a key; the comparison tells nothing by its time."""
        if not self._digests:
            return
        digests = [hashlib.sha256(key.encode("utf-8", "replace")).digest() for key in given]
        same = [hmac.compare_digest(one, other) for one in digests for other in self._digests]
        if not any(same):
            raise Refusal(403, "Invalid API key")

    # Requests --------------------------------------------------------------------------------------

    async def begin(self, ask: Translate) -> Asked:
        """Find the model, cut the texts, and put the sentences in the queue."""
        self.check_ready()
        length = sum(map(len, ask.texts))
        if length > self.limits.characters:
            said = f"text has {length} characters, the limit is {self.limits.characters}"
            raise Refusal(400, f"Invalid request: {said}")
        if ask.words and ask.format == "html":
            raise Refusal(400, "Invalid request: words are told for format=text only")
        long = len(ask.texts) > 20 or length * (ask.alternatives + 1) > bounds.QUICK
        place = self.room.enter(long=long)
        try:
            cut = self._cut(ask) if small(ask) else await self.desk.do(lambda: self._cut(ask), long=long)
            place.hold(cut.bytes(ask))
            wish = Wish(cut.pair, ask.alternatives + 1, ask.words or cut.traced)
            batcher = self.slow if long else self.quick
            job = batcher.submit(wish, cut.sentences, cut.sizes)
            self._expect(place, job)
        except BaseException:
            place.leave()
            raise
        label = "-".join(cut.pair)
        self.metrics.characters.labels(label).inc(length)
        self.metrics.sentences.labels(label).inc(len(cut.sizes))
        return Asked(ask, cut.documents, job, place, batcher, cut.detected)

    def _expect(self, place: Place, job: Job) -> None:
        """Give a job up when its time is over."""
        seconds = self.limits.seconds
        said = f"it could not be done within {seconds:g} seconds; send less text at a time"
        place.within(seconds, lambda: job.give_up(Refusal(503, said, retry_after=2)))

    def _cut(self, ask: Translate) -> Cut:
        texts = sound(ask.texts)
        pair, detected = self._pair(ask.source, ask.target, "\n".join(texts))
        served = self.directory.models[pair]
        documents, count = [], 0
        glossary = Glossary(ask.glossary)
        for text in texts:
            documents.append(self._document(text, ask, served, glossary))
            count += len(documents[-1].sentences)
            if count > bounds.SENTENCES:
                said = f"the text has more than {bounds.SENTENCES} sentences; send it in several requests"
                raise Refusal(400, f"Invalid request: {said}")
        sentences = [sentence.text for document in documents for sentence in document.sentences]
        sizes = [len(ids) + 1 for ids in served.translator.tokenizer.encode_batch(sentences)]
        traced = any(document.needs_trace for document in documents)
        return Cut(pair, documents, sizes, ask.words or traced, detected)

    def _document(self, text: str, ask: Translate, served: Served, glossary: Glossary) -> Document:
        try:
            return read_document(
                text,
                markup=ask.format == "html",
                glossary=glossary,
                count=served.count,
                limit=served.limit,
                most=bounds.MARKS,
            )
        except RegardError as error:
            raise Refusal(400, f"Invalid request: {error}") from error

    def _pair(self, source: str, target: str, text: str) -> tuple[Pair, dict[str, Any] | None]:
        """The pair of languages that is meant, and what was detected if that was asked."""
        if source.lower() != "auto":
            return self.directory.find(source, target), None
        guesses = self.directory.guess(text, target)
        if not guesses:
            self.directory.find(source, target)
        if len(guesses) > 1:
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

    async def glance(self, ask: Attention) -> tuple[Job, Place]:
        """Put a sentence to look into in the queue."""
        self.check_ready()
        if len(ask.q) > self.limits.characters:
            raise Refusal(400, f"Invalid request: q has {len(ask.q)} characters")
        place = self.room.enter(long=True)
        try:
            pair, text, tokens = await self.desk.do(
                lambda: self._sentence(ask), long=len(ask.q) > bounds.QUICK
            )
            off = tuple((name, tuple(sorted(set(heads)))) for name, heads in sorted(ask.heads_off.items()))
            job = self.slow.submit(Glance(pair, off), [text], [tokens])
            self._expect(place, job)
        except BaseException:
            place.leave()
            raise
        return job, place

    def _sentence(self, ask: Attention) -> tuple[Pair, str, int]:
        """The one sentence of a request to look inside, if it can be done."""
        (text,) = sound([ask.q])
        pair, _ = self._pair(ask.source, ask.target, text)
        served = self.directory.models[pair]
        # A token has eight characters at most on average: what is longer need not be counted.
        tokens = served.count(text) if len(text) <= 8 * served.limit else len(text)
        if not 0 < tokens <= served.limit:
            raise Refusal(400, f"Invalid request: q has {tokens} tokens; give 1 to {served.limit}")
        try:
            engine.check_glance(served, ask.heads_off, tokens)
        except RegardError as error:
            raise Refusal(400, f"Invalid request: {error}") from error
        return pair, text, tokens

    async def detect(self, ask: Detect) -> list[dict[str, Any]]:
        """What `/detect` says."""
        self.check_ready()
        if len(ask.q) > self.limits.characters:
            raise Refusal(400, f"Invalid request: q has {len(ask.q)} characters")
        (text,) = sound([ask.q[:READ]])
        found = await self.desk.do(lambda: self.directory.guess(text), long=False)
        return [{"language": code, "confidence": share} for code, share in found]
