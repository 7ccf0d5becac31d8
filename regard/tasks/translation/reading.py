"""What a model makes of sentences: the readings of each, with their traces where something hangs on words.

Before this file: `document.py`, which cuts a text into sentences; beneath it: `translator.py`, `tracing.py`;
after it: `texts.py`, and the server's engine.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from regard.tasks.translation.align import Traced
    from regard.tasks.translation.tracing import Taking
    from regard.tasks.translation.translator import Translation, Translator


@dataclass(frozen=True, slots=True)
class Reading:
    """One way to translate a sentence."""

    text: str
    score: float
    trace: "Traced | None" = None
    truncated: bool = False
    tokens: int = 0


def readings(
    translator: "Translator",
    sentences: Sequence[str],
    *,
    traced: bool = False,
    taking: "Taking | None" = None,
    **search: Any,
) -> list[list[Reading]]:
    """The readings of each sentence, the best first; `search` are the options of `hypotheses`."""
    found = translator.hypotheses(sentences, **search)
    if not traced:
        return [[_reading(each) for each in several] for several in found]
    from regard.tasks.translation.tracing import trace

    rows = [(text, each) for text, several in zip(sentences, found, strict=True) for each in several]
    rows = [(text, each) for text, each in rows if each.ids]
    written = [(each.ids, each.text) for _, each in rows]
    traces = iter(trace(translator, [text for text, _ in rows], written, taking) if rows else ())
    return [[_reading(each, next(traces) if each.ids else None) for each in several] for several in found]


def _reading(each: "Translation", trace: "Traced | None" = None) -> Reading:
    return Reading(each.text, each.score, trace, each.truncated, each.tokens)
