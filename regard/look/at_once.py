"""What a translator that writes all at once looked at, pass by pass, and where each of its tokens came from.

`Overheard` stands between a way of decoding and its model and notes every pass. The maps are those of the
last one; `passes` tell what stood at each place after every one of them. Of CTC, whose places say a token or
nothing, a token's row is the mean of the places that say it, and maps of kind `places` show all of them.
Before this file: `regard.decoding`; after it: `translated.py`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from regard.attention.record import Vectors, record
from regard.attention.site import Site
from regard.decoding.lattice import collapse
from regard.errors import DataError
from regard.look.look import Guess, Look, Passed
from regard.look.maps import maps_of
from regard.look.trace import Heard, Keep, heard
from regard.look.words import SILENT, Side
from regard.tasks.translation.retrace import writes_at_once
from regard.tasks.translation.translator import Translation, Translator


@dataclass(frozen=True)
class Pass:
    """One call of `guess`: what was known of R outputs (R, T), what they say now, and the tape."""

    known: Tensor
    real: Tensor
    said: Tensor
    logp: Tensor
    heard: dict[str, list[Heard]]


class Overheard(nn.Module):
    """A model under watch; it answers as the model does."""

    def __init__(self, model: Any, *, vectors: bool, keep: Keep | None = None) -> None:
        super().__init__()
        self.training = getattr(model, "training", False)
        self.model, self.vectors, self.keep = model, vectors, keep
        self.way, self.max_length = model.way, model.max_length
        self.started: dict[str, list[Heard]] = {}
        self.passes: list[Pass] = []

    @property
    def output_weight(self) -> Tensor:
        """The model's."""
        weight: Tensor = self.model.output_weight
        return weight

    def start(self, inputs: Any) -> Any:
        """Read the sources; what was noted of earlier ones is forgotten."""
        self.passes = []
        with record(vectors=self.vectors) as tape:
            state = self.model.start(inputs)
        self.started = heard(tape, self.keep)
        return state

    def places(self, state: Any, unknown: int) -> Any:
        """The model's."""
        return self.model.places(state, unknown)

    def lengths(self, state: Any) -> Any:
        """The model's."""
        return self.model.lengths(state)

    def guess(self, ids: Tensor, real: Tensor, state: Any, banned: Tensor) -> tuple[Tensor, Tensor]:
        """One pass of the model, noted."""
        with record(vectors=self.vectors) as tape:
            said, logp = self.model.guess(ids, real, state, banned)
        self.passes.append(Pass(ids, real, said, logp, heard(tape, self.keep)))
        return said, logp


def look_at_once(translator: Translator, text: str, *, vectors: bool, keep: Keep | None) -> Look:
    """Translate `text` and keep what every head looked at; what the caller knows better is put in by it."""
    tokenizer = translator.tokenizer
    watched = Overheard(translator.model, vectors=vectors, keep=keep)
    (found,) = Translator(watched, tokenizer, translator.decode).stream([text], beam=1)
    if not found.ids:
        raise DataError("there is nothing to look at: the model wrote nothing")
    source = [*tokenizer.encode(text), tokenizer.end_id]
    row = _row_of(watched.passes[-1], found)
    places = int(watched.passes[-1].real[row].sum())
    states = [_state(each, row, places) for each in watched.passes]
    calls = {name: _cut(each[-1], row, places) for name, each in watched.passes[-1].heard.items()}
    read = [*([_row(call) for call in several] for several in watched.started.values())]
    ids, sure = states[-1][0], states[-1][1]
    blank = tokenizer.specials.blank
    sides = {"source": Side.of(source, tokenizer), "target": Side.of(found.ids, tokenizer, target=True)}
    if len(ids) == len(found.ids):
        taped, guesses = maps_of([*read, *([call] for call in calls.values())]), sure[: len(found.ids)]
    else:
        shown = Side.of(ids, tokenizer, target=True)
        tokens = tuple(SILENT if i == blank else t for i, t in zip(ids, shown.tokens, strict=True))
        sides["places"] = replace(shown, tokens=tokens)
        spans = spoken(ids, blank) if collapse(ids, blank) == list(found.ids) else _first(len(found.ids))
        taped = maps_of([*read, *([each] for each in _by_token(calls.values(), spans))])
        guesses = [max(sure[place] for place in span) for span in spans]
    return Look(
        text=text,
        answer=found.text,
        sides=sides,
        maps=taped,
        guesses=tuple(Guess(each) for each in guesses),
        score=found.score,
        truncated=found.truncated,
        titles={"source": "Source", "target": "Translation", "places": "Places"},
        passes=tuple(
            _passed(state, each, row, tokenizer) for state, each in zip(states, watched.passes, strict=True)
        ),
    )


def _row_of(last: Pass, found: Translation) -> int:
    """Which of several outputs it is: the one of that length, where several were tried."""
    lengths = last.real.sum(1).tolist()
    return lengths.index(len(found.ids)) if len(found.ids) in lengths else 0


def _state(one: Pass, row: int, places: int) -> tuple[list[int], list[float], list[bool]]:
    """What stands at the places after a pass, how likely it is, and what of it was written now."""
    known, said = one.known[row, :places].tolist(), one.said[row, :places].tolist()
    unknown = {int(one.known[row, 0])} if len(set(known)) == 1 else _unknown(known, said)
    now = [token in unknown for token in known]
    ids = [new if fresh else old for old, new, fresh in zip(known, said, now, strict=True)]
    return ids, one.logp[row, :places].exp().tolist(), now


def _unknown(known: Sequence[int], said: Sequence[int]) -> set[int]:
    """The sign of a place that is not written yet: what is known and never said."""
    return set(known) - set(said) if set(known) - set(said) else set()


def _passed(state: tuple[list[int], list[float], list[bool]], one: Pass, row: int, tokenizer: Any) -> Passed:
    ids, sure, now = state
    blank = tokenizer.specials.blank
    tokens = tokenizer.shown(ids, target=True)
    cross = [calls[-1] for calls in one.heard.values() if calls[-1].site.kind == "cross"]
    looked = max((call.weights[row].mean(0)[: len(ids)] for call in cross), key=_sharpness) if cross else None
    return Passed(
        tokens=tuple(SILENT if i == blank else t for i, t in zip(ids, tokens, strict=True)),
        written=tuple(now),
        confidence=tuple(sure),
        looked=looked,
    )


def _sharpness(weights: Tensor) -> float:
    return float(weights.amax(-1).mean())


def spoken(path: Sequence[int], blank: int) -> list[range]:
    """The places that say each token of a path."""
    spans: list[range] = []
    for place, label in enumerate(path):
        if label == blank:
            continue
        if place and path[place - 1] == label:
            spans[-1] = range(spans[-1].start, place + 1)
        else:
            spans.append(range(place, place + 1))
    return spans


def _first(count: int) -> list[range]:
    return [range(place, place + 1) for place in range(count)]


def _row(call: Heard) -> Heard:
    vectors = None if call.vectors is None else call.vectors.row(0)
    return Heard(call.site, call.weights[:1].cpu(), vectors)


def _cut(call: Heard, row: int, places: int) -> Heard:
    """One output of a call, without its padding."""
    own = slice(None) if call.site.kind == "cross" else slice(places)
    weights = call.weights[row : row + 1, :, :places, own].cpu()
    if call.vectors is None:
        return Heard(call.site, weights, None)
    one = call.vectors.row(row)
    vectors = Vectors(
        q=one.q[:, :, :places],
        k=one.k[:, :, own],
        scores=one.scores[:, :, :places, own],
        v=one.v[:, :, own],
        out=one.out[:, :places],
        bias=None if one.bias is None else one.bias[:, :, :places, own],
    )
    return Heard(call.site, weights, vectors)


def _by_token(calls: Any, spans: Sequence[range]) -> list[Heard]:
    """Calls whose rows are places, as calls whose rows are tokens, and the places beside them."""
    found = []
    for call in calls:
        if call.site.kind != "cross":
            found.append(replace(call, site=replace(call.site, queries="places", keys="places")))
            continue
        rows = [call.weights[:, :, list(span)].mean(2) for span in spans]
        found.append(Heard(call.site, torch.stack(rows, 2), None))
        found.append(replace(call, site=Site("places", call.site.layer, queries="places"), vectors=None))
    return found


__all__ = ["Overheard", "look_at_once", "spoken", "writes_at_once"]
