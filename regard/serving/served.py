"""The translators that are served, found by their languages, and by name where several have the same.

A folder tells its languages in its config; `en-de=DIR` says them for it. With `auto` the source language is
the likeliest of those that lead to the target (`guess.py`); a text that is surely in another is refused.
Before this file: model folders; after it: `engine.py`, `translating.py`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from regard.config import AT_ONCE
from regard.config.file import read_config
from regard.config.text import PAIR
from regard.errors import UsageError
from regard.serving.family import Loading, Place
from regard.serving.guess import elsewhere, guesses, told
from regard.serving.limits import CACHES, Refusal
from regard.text.directions import Directions, Pair
from regard.text.languages import language_name

if TYPE_CHECKING:
    from regard.tasks.translation.translator import Translator

UNKNOWN = ("src", "tgt")  # what a model is called that does not know its languages


@dataclass(frozen=True)
class Served:
    """A model that is loaded."""

    place: Place
    translator: "Translator"
    then: "Served | None" = None  # what translates its translations on, by way of a pivot

    def to(self, target: str = "") -> "Served":
        """The same, writing this language at its end, where it can write several; "": the first of them."""
        if self.then is not None:
            return replace(self, then=self.then.to(target))
        directions = self.translator.directions
        if directions is None:
            return self
        return replace(self, translator=self.translator.to(target or directions.targets[0]))

    @property
    def limit(self) -> int:
        """Source tokens of the longest sentence that it is given, the end not counted."""
        return self.translator.limit

    def count(self, text: str) -> int:
        """The tokens of a text."""
        return len(self.translator.tokenizer.encode_batch([text])[0])


def pairs_of(place: Place) -> tuple[Pair, ...]:
    """From which language to which: as it was said (`en-de=DIR`), else as the folder has it."""
    if found := PAIR.fullmatch(place.said):
        pair = found[1], found[2]
    else:
        text = read_config(place.folder).text
        if directions := Directions.of(text):
            return directions.pairs
        pair = (text.source, text.target) if text.source and text.target else UNKNOWN
    if pair[0] == pair[1]:
        raise UsageError(f"{place.folder} translates from {pair[0]} to itself; say it as en-de=DIR")
    return (pair,)


def untrained(place: Place) -> tuple[Pair, ...]:
    """What a model of several pairs may be asked for and never saw; not where one pair was said for it."""
    if PAIR.fullmatch(place.said):
        return ()
    directions = Directions.of(read_config(place.folder).text)
    return directions.untrained if directions else ()


def writing_of(place: Place) -> str:
    """How a translator writes, for people who choose between several."""
    kind = read_config(place.folder).model.kind
    return "all at once" if kind in AT_ONCE else "several at once" if kind == "blockwise" else "word by word"


def load_served(place: Place, how: Loading | None = None) -> Served:
    """The model in a folder, ready to translate."""
    # torch is loaded while the server already answers
    from regard.engine.engine import Engine
    from regard.engine.library import bound
    from regard.engine.shortlist import FILE as SHORTLIST
    from regard.tasks.translation.load import load_translator

    how = how or Loading()
    translator = load_translator(
        place.folder,
        device=how.device,
        precision=how.precision,
        engine=how.engine,
        shortlist=how.shortlist and (place.folder / SHORTLIST).is_file(),
    )
    if isinstance(translator.engine, Engine):
        bound(CACHES)
    return Served(place, translator)


class Directory:
    """Models by their pair of languages; of several for one pair the first is meant where none is named."""

    def __init__(self, places: Sequence[Place], pivot: str = "") -> None:
        """By way of the language `pivot`, pairs are translated that have no model."""
        self.places: dict[Pair, list[str]] = {}  # names
        self.models: dict[str, Served] = {}  # by name
        self.pivot = pivot
        for place in places:
            for pair in pairs_of(place):
                self._enter(pair, place)
        self.through = self._through(pivot) if pivot else {}  # the names of both models, by a name for both
        self.zero_shot: dict[Pair, None] = {}  # pairs that a model may be asked for and never saw
        for place in places:
            for pair in untrained(place):
                if pair not in self.places or pair in self.zero_shot:
                    self.zero_shot[pair] = None
                    self._enter(pair, place)

    def _enter(self, pair: Pair, place: Place) -> None:
        names = self.places.setdefault(pair, [])
        if place.name in names:
            raise UsageError(
                f"two models for {'-'.join(pair)} are both called {place.name}; say NAME=DIR, "
                "or other languages as en-de=DIR"
            )
        names.append(place.name)

    def _through(self, pivot: str) -> dict[str, tuple[str, str]]:
        found: dict[str, tuple[str, str]] = {}
        sources = [source for source, target in self.places if target == pivot]
        targets = [target for source, target in self.places if source == pivot]
        for pair in [(source, target) for source in sources for target in targets if source != target]:
            if pair not in self.places:
                name = f"{pair[0]}-{pivot}-{pair[1]}"
                found[name] = self.places[pair[0], pivot][0], self.places[pivot, pair[1]][0]
                self.places[pair] = [name]
        if not found:
            raise UsageError(f"--pivot {pivot}: no two of the models make a new pair by way of {pivot}")
        return found

    def join(self) -> None:
        """All models are loaded: put together those that go by way of a pivot."""
        for name, (first, second) in self.through.items():
            self.models[name] = replace(self.models[first].to(self.pivot), then=self.models[second])

    def languages(self) -> list[dict[str, Any]]:
        """What `/languages` tells."""
        codes = dict.fromkeys(code for pair in self.places for code in pair)
        never = {code: [to for source, to in self.zero_shot if source == code] for code in codes}
        return [
            {
                "code": code,
                "name": language_name(code) if code not in UNKNOWN else code,
                "targets": [target for source, target in self.places if source == code],
                **({"zero_shot": never[code]} if never[code] else {}),
            }
            for code in sorted(codes)
        ]

    def named(self, pair: Pair, name: str = "") -> str:
        """The name of the model for a pair: the one that was asked for, or the first."""
        there = self.places[pair]
        if name and name not in there:
            said = f"no model {name[:100]!a} translates from {pair[0]} to {pair[1]}"
            raise Refusal(400, f"{said}; there are {', '.join(there)}", param="model")
        return name or there[0]

    def find(self, source: str, target: str) -> Pair:
        """The pair that is meant; a refusal names those that there are."""
        wanted = source.lower().replace("_", "-"), target.lower().replace("_", "-")
        for pair in self.places:
            if tuple(code.lower().replace("_", "-") for code in pair) == wanted:
                return pair
        known = {code for pair in self.places for code in pair}
        for code in (source, target):
            if code not in known:
                raise Refusal(400, f"{code} is not supported; there are {', '.join(sorted(known))}")
        there = ", ".join("-".join(pair) for pair in self.places)
        raise Refusal(400, f"no model translates from {source} to {target}; there are {there}")

    def guess(self, text: str, target: str = "") -> list[tuple[str, float]]:
        """Languages that the text may be in, the likeliest first, each with how sure that is, 0 to 100.

        With a target, those that can be translated to it; a refusal where the text is surely in another.
        """
        if not target:
            codes = [code for pair in self.places for code in pair]
            return told(text, codes) or guesses(text, list(dict.fromkeys(codes)), self._fewest)
        sources = [source for source, to in self.places if to == target]
        if sources and (other := elsewhere(text, sources)):
            there = (
                f"no model here translates it to {target}"
                if other[0] != target
                else "it needs no translation"
            )
            raise Refusal(
                400, f"the text is in {other[0]}, by {other[1]:g}%: {there}; say source to insist on another"
            )
        return guesses(text, sources, self._fewest)

    def _fewest(self, code: str, text: str) -> int:
        """The fewest tokens that a model of this language spells the text in."""
        able = [name for pair, names in self.places.items() if code in pair for name in names]
        return min((self.models[name].count(text) for name in able if name in self.models), default=0)
