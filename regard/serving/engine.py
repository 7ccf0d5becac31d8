"""The model work of the server: batches of sentences in, translations out. It runs in a thread of its own.

What is asked of a batch is one value (`Order`, `Glance`), so that only sentences that want the same are put
together. Before this file: `batcher.py`; beneath it: `regard.decoding`, `regard.look`.
"""

import difflib
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from regard.errors import DataError, UsageError
from regard.serving.answers import in_json
from regard.serving.limits import LOOK_BYTES, LOOK_NUMBERS
from regard.serving.scratch import SHARED
from regard.serving.served import Served
from regard.tasks.translation.reading import Reading, readings

if TYPE_CHECKING:
    from regard.decoding.search import Hypothesis, Rules
    from regard.decoding.way import Wanted
    from regard.engine.engine import Engine
    from regard.tasks.translation.translator import Translator


@dataclass(frozen=True)
class Order:
    """Translate."""

    model: str
    n_best: int = 1
    traced: bool = False  # with the alignment and the probabilities
    target: str = ""  # the language, where the model writes several


@dataclass(frozen=True)
class Glance:
    """Translate one sentence and keep what every head looked at."""

    model: str
    off: tuple[tuple[str, tuple[int, ...]], ...] = ()
    target: str = ""


def run(models: dict[str, Served], key: Order | Glance, texts: Sequence[str], threads: int = 0) -> list[Any]:
    """What was wished of each text: a list of readings, the best first; or the JSON of a look.

    `threads` are those that the native engine may use here; it gives the same translations with any number.
    """
    served = models[key.model].to(key.target)
    if isinstance(key, Glance):
        return [_look(served, key, text) for text in texts]
    if served.then is not None:
        best = _read(served, Order(key.model), texts, threads)
        return _read(served.then, key, [each[0].text for each in best], threads)
    return _read(served, key, texts, threads)


def _read(served: Served, key: Order, texts: Sequence[str], threads: int) -> list[list[Reading]]:
    """The readings of each text by one model."""
    once = list(dict.fromkeys(texts))
    found = readings(
        _limited(served.translator, threads),
        once,
        traced=key.traced,
        taking=SHARED.taking,
        n_best=key.n_best,
        beam=max(served.translator.decode.beam, key.n_best),
        batch_size=max(1, len(once)),
    )
    by_text = dict(zip(once, found, strict=True))
    return [by_text[text] for text in texts]


@dataclass(frozen=True)
class _Limited:
    """The native engine with so many threads for each call."""

    engine: "Engine"
    threads: int

    def answer(
        self, sources: Any, rules: "Rules", wanted: "Wanted", *, batch_size: int
    ) -> "list[list[Hypothesis]]":
        return self.engine.search(
            sources,
            rules,
            beam=wanted.decode.beam,
            n_best=wanted.n_best,
            batch_size=batch_size,
            threads=self.threads,
        )


def _limited(translator: "Translator", threads: int) -> "Translator":
    """The same translator with so many of the engine's threads; others may be using it with more."""
    from regard.engine.engine import Engine

    if not threads or not isinstance(translator.engine, Engine):
        return translator
    limited = copy(translator)
    limited.engine = _Limited(translator.engine, threads)
    return limited


def check_glance(served: Served, off: Mapping[str, Sequence[int]], tokens: int) -> None:
    """That there are such heads, and not too much to tell; UsageError or DataError."""
    heads = check_heads(served.translator.model, off)
    weights = sum(heads.values()) * (tokens + 1) ** 2
    if weights > LOOK_NUMBERS:
        raise DataError(
            f"q has {tokens} tokens and {weights:,} weights in this model; at most {LOOK_NUMBERS:,} are "
            f"told, take a shorter sentence"
        )


def check_heads(model: Any, off: Mapping[str, Sequence[int]]) -> dict[str, int]:
    """How many heads each attention of a model has; UsageError where `off` names others."""
    from regard.attention.record import attentions

    heads = {each.site.name: each.n_heads for each in attentions(model)}
    for name, numbers in off.items():
        if name not in heads:
            near = difflib.get_close_matches(name[:100], heads, 1, 0) or ["none"]
            raise UsageError(f"heads_off: there is no {name[:100]!a}; the nearest is {near[0]}")
        if wrong := [number for number in numbers if number >= heads[name]]:
            raise UsageError(f"heads_off: {name} has {heads[name]} heads; there is no {wrong[0]}")
    return heads


def _look(served: Served, glance: Glance, text: str) -> bytes:
    """The JSON of `regard look`, with the given heads switched off; without the walk where that is long."""
    from regard.look import look

    off = {name: list(heads) for name, heads in glance.off}
    found = look(served.translator, text, off=off, most=LOOK_NUMBERS)
    weights = sum(each.weights.numel() for each in found.maps)
    if weights > 2 * LOOK_NUMBERS:  # the translation is much longer than the sentence
        raise DataError(f"q has {weights:,} weights with its translation; take a shorter sentence")
    with SHARED.taking(LOOK_BYTES * (weights + LOOK_NUMBERS)):
        return in_json(found.to_dict())
