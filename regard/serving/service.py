"""What the server does with a request that was read and checked: find the model, cut, wait, put together.

Knows nothing of HTTP but its refusals. `app.py` calls it; beneath it are `document.py` and `batcher.py`.
"""

import asyncio
import hashlib
import hmac
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from regard.serving import engine
from regard.serving.batcher import Batcher, Job
from regard.serving.document import Document, read_document
from regard.serving.engine import Glance, Pair, Reading, Wish
from regard.serving.limits import Limits, Refusal
from regard.serving.metrics import Metrics
from regard.serving.schema import Attention, Detect, Translate, bounded
from regard.serving.served import Directory, Loading

LOADING, READY, DRAINING = "loading", "ready", "draining"
WORKERS = 4  # batches at a time, at most
LONG = 4000  # characters; a longer text is cut in another thread


@dataclass(frozen=True)
class Asked:
    """A request under way."""

    documents: Sequence[Document]
    job: Job
    single: bool  # a text, not a list
    alternatives: int
    words: bool
    detected: dict[str, Any] | None = None

    def lists(self, results: Sequence[list[Reading]]) -> list[list[list[Reading]]]:
        """The readings of each document's sentences."""
        waiting = iter(results)
        return [[next(waiting) for _ in document.sentences] for document in self.documents]


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
        self.batcher = Batcher(self._work, self.limits, self.metrics)
        self._digests = [hashlib.sha256(key.encode()).digest() for key in self.keys]

    def _work(self, key: Any, texts: Sequence[str], alone: bool) -> list[Any]:
        share = max(1, self.threads // max(1, len(self.batcher.threads)))
        return engine.run(self.directory.models, key, texts, self.threads if alone else share)

    # From loading to the end -----------------------------------------------------------------------

    async def load(self) -> None:
        """Load the models while the server already answers; a fault is kept for whoever started it."""
        try:
            for pair, place in self.directory.places.items():
                self.directory.models[pair] = await asyncio.to_thread(self.loading.load, place)
            self.batcher.start(self._workers())
            for pair in self.directory.places:  # the first time is slow: let it not be a client's
                await self.batcher.submit(Wish(pair), ["a"], [1]).all()
        except Exception as error:
            self.fault = error
            return
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
        return self.batcher.idle and self.under_way == 0

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
        texts = bounded(ask.texts, self.limits)
        pair, detected = self._pair(ask.source, ask.target, "\n".join(texts))
        if ask.words and ask.format == "html":
            raise Refusal(400, "Invalid request: words are told for format=text only")
        wish = Wish(pair, ask.alternatives + 1, ask.words)
        if sum(map(len, texts)) > LONG:
            documents, sizes = await asyncio.to_thread(self._documents, texts, ask, pair)
        else:
            documents, sizes = self._documents(texts, ask, pair)
        if any(document.needs_trace for document in documents):
            wish = Wish(pair, ask.alternatives + 1, traced=True)
        sentences = [sentence.text for document in documents for sentence in document.sentences]
        job = self.batcher.submit(wish, sentences, sizes)
        label = "-".join(pair)
        self.metrics.characters.labels(label).inc(sum(map(len, texts)))
        self.metrics.sentences.labels(label).inc(len(sentences))
        single = isinstance(ask.q, str)
        return Asked(documents, job, single, ask.alternatives, ask.words, detected)

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

    def _documents(
        self, texts: Sequence[str], ask: Translate, pair: Pair
    ) -> tuple[list[Document], list[int]]:
        served = self.directory.models[pair]
        documents = [
            read_document(
                text,
                markup=ask.format == "html",
                glossary=ask.glossary,
                count=served.count,
                limit=served.limit,
            )
            for text in texts
        ]
        sentences = [sentence.text for document in documents for sentence in document.sentences]
        return documents, [len(ids) + 1 for ids in served.translator.tokenizer.encode_batch(sentences)]

    def answer(self, asked: Asked, results: Sequence[list[Reading]]) -> dict[str, Any]:
        """What `/translate` says."""
        texts, others, words = [], [], []
        for document, readings in zip(asked.documents, asked.lists(results), strict=True):
            best = [each[0] for each in readings]
            texts.append("".join(document.pieces(best)))
            if asked.alternatives:
                others.append(_alternatives(document, readings, asked.alternatives))
            if asked.words:
                words.append(document.words(best))
        found: dict[str, Any] = {"translatedText": texts}
        if asked.alternatives:
            found["alternatives"] = others
        if asked.words:
            found["words"] = words
        if asked.single:
            found = {name: values[0] for name, values in found.items()}
        if asked.detected:
            several = [asked.detected] * len(texts)
            found["detectedLanguage"] = asked.detected if asked.single else several
        return found

    async def deltas(self, asked: Asked) -> AsyncIterator[dict[str, Any]]:
        """The answer piece by piece, in its order, as soon as each piece is known."""
        flow = [(i, part) for i, document in enumerate(asked.documents) for part in document.parts]
        done: set[int] = set()
        at = number = 0  # of the flow, and of its sentences
        numbers = asked.job.numbers()
        while at < len(flow):
            index, part = flow[at]
            if isinstance(part, str):
                text = part
            else:
                while number not in done:
                    done.add(await anext(numbers))
                text = asked.documents[index].rendered(part, asked.job.results[number][0])
                number += 1
            at += 1
            if text:
                yield {"index": index, "text": text}

    def glance(self, ask: Attention) -> Job:
        """Put a sentence to look into in the queue."""
        self.check_ready()
        (text,) = bounded([ask.q], self.limits)
        pair, _ = self._pair(ask.source, ask.target, text)
        served = self.directory.models[pair]
        tokens = served.count(text)
        if not 0 < tokens <= served.limit:
            raise Refusal(400, f"Invalid request: q has {tokens} tokens; give 1 to {served.limit}")
        off = tuple((name, tuple(sorted(set(heads)))) for name, heads in sorted(ask.heads_off.items()))
        return self.batcher.submit(Glance(pair, off), [text], [tokens])

    def detect(self, ask: Detect) -> list[dict[str, Any]]:
        """What `/detect` says."""
        self.check_ready()
        (text,) = bounded([ask.q], self.limits)
        return [{"language": code, "confidence": share} for code, share in self.directory.guess(text)]


def _alternatives(document: Document, readings: Sequence[list[Reading]], count: int) -> list[str]:
    """Other answers, the best first: each has another reading of one sentence, the one that loses least."""
    best = [each[0] for each in readings]
    losses = [
        (several[0].score - other.score, number, other)
        for number, several in enumerate(readings)
        for other in several[1:]
    ]
    said = {"".join(document.pieces(best)): None}
    for _, number, other in sorted(losses, key=lambda each: each[:2]):
        if len(said) > count:
            break
        said["".join(document.pieces([*best[:number], other, *best[number + 1 :]]))] = None
    return list(said)[1:]
