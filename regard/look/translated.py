"""What a translator looked at: the translation is made as `regard translate` makes it, with cache and beam.

The weights are those of that very search (`trace.py`). Before this file: `regard.tasks.translation`; after
it: `look.py`.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

import torch

from regard.attention.record import record
from regard.attention.switch import heads_off
from regard.data.inputs import Tokens
from regard.decoding.beam import witnessed
from regard.errors import DataError, ModelError
from regard.look.at_once import look_at_once, writes_at_once
from regard.look.inside import watching
from regard.look.look import MOST_NUMBERS, Guess, Look, check_size, opened
from regard.look.maps import maps
from regard.look.outlook import outlooks
from regard.look.trace import RUNNERS, Trace, Watched, follow
from regard.look.tree import grow
from regard.look.words import Side
from regard.tasks.translation.translator import Translator, load_readable


def look_at_translation(
    model: Any,
    text: str,
    *,
    beam: int | None = None,
    vectors: bool = True,
    off: Mapping[str, Iterable[int]] | None = None,
    only: Collection[str] | None = None,
    most: int = MOST_NUMBERS,
    source: str = "",
    target: str = "",
) -> Look:
    """Translate `text` and keep what every head looked at while it was translated.

    `model` is a folder or a `Translator`. `vectors` keeps queries, keys and values too, for the walk through
    a head. `off` switches heads off: {"decoder.1.cross": [0, 3]}. `only` names the attentions to keep.
    There are at most `most` weights, or it is refused, and as many numbers in vectors, or they are left out.
    `source` and `target` are languages, for a model of several pairs.
    """
    translator, origin = opened(model, load_readable)
    translator = _directed(translator, source, target)
    tokenizer = translator.tokenizer
    ids = tokenizer.encode(text)
    if not ids:
        raise DataError("there is nothing to look at: the text is empty")
    keep = None if only is None else frozenset(only).__contains__
    numbers = check_size(translator.model, len(ids) + 1, keep, most)
    silent = {name: sorted(set(heads)) for name, heads in (off or {}).items()}
    if writes_at_once(translator.model):
        with heads_off(silent):
            seen = look_at_once(translator, text, vectors=vectors and numbers <= most, keep=keep)
        return replace(seen, origin=origin, off=silent)
    begin, end = tokenizer.begin_id, tokenizer.end_id
    vectors = vectors and numbers <= most
    watched = Watched(translator.model, end=end, vectors=vectors, keep=keep)
    with heads_off(silent), witnessed() as rounds:
        (found,) = Translator(watched, tokenizer, translator.decode).stream([text], beam=beam)
    written = [*found.ids, *([] if found.truncated else [end])]
    trace = follow(watched, written, begin=begin)
    taped = maps(trace)
    if not taped:
        raise ModelError(f"{origin.name} has no attention to look at: its model taped nothing")
    read = [begin, *written[:-1]]
    model = translator.model if vectors else None
    with heads_off(silent), record(), torch.inference_mode(), watching(model) as inside:
        if model is not None:  # the same once more: what was read and written, in one pass
            model(Tokens(torch.tensor([trace.source])), torch.tensor([read]))
    return Look(
        text=text,
        answer=found.text,
        sides={
            "source": Side.of(trace.source, tokenizer),
            "target": Side.of(written, tokenizer, target=True),
            "read": Side.of(read, tokenizer, target=True),
        },
        maps=taped,
        guesses=_guesses(written, trace, tokenizer),
        outlook=outlooks(trace.tops, [0] * len(written), tokenizer, target=True),
        entered=inside.entered(["source", "read"], tokenizer),
        fed=inside.fed(tokenizer),
        tree=grow(rounds, tokenizer, penalty=translator.decode.length_penalty),
        score=found.score,
        truncated=found.truncated,
        beam=translator.decode.beam if beam is None else beam,
        titles={"source": "Source", "target": "Translation", "read": "Written so far"},
        origin=origin,
        off=silent,
    )


def _directed(translator: Translator, source: str, target: str) -> Translator:
    """From and to these languages, where there are several."""
    several = translator.directions is not None and translator.pair is None
    return translator.to(target, source) if source or target or several else translator


def _guesses(written: list[int], trace: Trace, tokenizer: Any) -> tuple[Guess, ...]:
    """How sure each token was, and what else could have stood there."""
    told = zip(written, trace.confidence, trace.best, strict=True)
    return tuple(Guess(sure, others(best, number, tokenizer, target=True)) for number, sure, best in told)


def others(
    best: Iterable[tuple[int, float]], chosen: int, tokenizer: Any, *, target: bool = False
) -> tuple[tuple[str, float], ...]:
    """The likeliest ids with their probabilities as pieces, without the one that was taken."""
    kept = [(number, sure) for number, sure in best if number != chosen]
    pieces = tokenizer.shown([number for number, _ in kept], target=target)
    return tuple((piece, sure) for piece, (_, sure) in zip(pieces, kept, strict=True))[:RUNNERS]
