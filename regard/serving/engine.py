"""The model work of the server: batches of sentences in, translations out. It runs in a thread of its own.

What is asked of a batch is one value (`Wish`, `Glance`), so that only sentences that want the same are put
together. Before this file: `batcher.py`; beneath it: `regard.decoding`, `regard.look`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from regard.serving.served import Served

if TYPE_CHECKING:
    from regard.decoding.translator import Translation
    from regard.serving.align import Traced

Pair = tuple[str, str]


@dataclass(frozen=True)
class Wish:
    """Translate."""

    pair: Pair
    n_best: int = 1
    traced: bool = False  # with the alignment and the probabilities


@dataclass(frozen=True)
class Glance:
    """Translate one sentence and keep what every head looked at."""

    pair: Pair
    off: tuple[tuple[str, tuple[int, ...]], ...] = ()


@dataclass(frozen=True)
class Reading:
    """One way to translate a sentence."""

    text: str
    score: float
    trace: "Traced | None" = None


def run(models: dict[Pair, Served], key: Wish | Glance, texts: Sequence[str], threads: int = 0) -> list[Any]:
    """What was wished of each text: a list of readings, the best first; or the JSON of a look.

    `threads` are those that the native engine may use here; it gives the same translations with any number.
    """
    served = models[key.pair]
    _use(served, threads)
    if isinstance(key, Glance):
        return [_look(served, key, text) for text in texts]
    once = list(dict.fromkeys(texts))
    found = served.translator.hypotheses(
        once,
        n_best=key.n_best,
        beam=max(served.translator.decode.beam, key.n_best),
        batch_size=max(1, len(once)),
    )
    readings = _traced(served, once, found) if key.traced else [_plain(each) for each in found]
    by_text = dict(zip(once, readings, strict=True))
    return [by_text[text] for text in texts]


def _use(served: Served, threads: int) -> None:
    from regard.engine.engine import Engine

    if threads and isinstance(served.translator.engine, Engine):
        served.translator.engine.threads = threads


def _plain(found: "Sequence[Translation]") -> list[Reading]:
    return [Reading(each.text, each.score) for each in found]


def _traced(
    served: Served, texts: Sequence[str], found: "Sequence[Sequence[Translation]]"
) -> list[list[Reading]]:
    """Every reading of every text with its trace, all in one pass."""
    from regard.serving.tracing import trace

    rows = [(text, each) for text, several in zip(texts, found, strict=True) for each in several if each.ids]
    traces = iter(
        trace(served.translator, [text for text, _ in rows], [(each.ids, each.text) for _, each in rows])
        if rows
        else ()
    )
    return [
        [Reading(each.text, each.score, next(traces) if each.ids else None) for each in several]
        for several in found
    ]


def _look(served: Served, glance: Glance, text: str) -> str:
    """The JSON of `regard look`, with the given heads switched off."""
    from regard.look import look

    off = {name: list(heads) for name, heads in glance.off}
    return look(served.translator, text, off=off).to_json()
