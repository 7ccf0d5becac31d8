"""An endless phrasebook for any two locales, made from CLDR: what `regard demo` learns to translate.

    Tuesday, March 3, 2026: 12.5 kilometers, France and Germany
    Dienstag, 3. März 2026: 12,5 Kilometer, Frankreich und Deutschland

One random value is said in both locales, one to three values make a phrase, and a hash of the source
decides whether it is for training, validation or test. The values and the ways of saying them are in
`phrasebook_values` and `phrasebook_kinds`; what comes out is a corpus like any other.
"""

import difflib
from collections.abc import Iterator
from hashlib import blake2b
from random import Random
from string import Formatter
from typing import Any

from babel import Locale, UnknownLocaleError
from babel.localedata import locale_identifiers

from regard.errors import UsageError
from regard.text.phrasebook_kinds import Kind, shared_kinds

SPLITS = ("train", "valid", "test")
_FORMS = {1: ("{}",), 2: ("{}: {}", "{}, {}", "{} ({})"), 3: ("{}: {}, {}", "{}, {} ({})", "{}: {} ({})")}
_LENGTHS = (1, 1, 2, 2, 2, 3)
# How often a group comes, in the order of a phrase; some phrases go the other way round.
_SHARES = {"when": 6, "span": 2, "quantity": 4, "money": 3, "number": 2, "name": 4}
GROUPS = tuple(_SHARES)


def phrases(
    to: str = "de", *, source: str = "en", split: str = "train", seed: int = 1
) -> Iterator[tuple[str, str]]:
    """Endless pairs of a phrase and its translation; the same arguments and the same Babel give the same.

    A phrase of one split never comes in another; within a split, short ones come again.

    >>> english, german = next(phrases("de", split="test"))
    >>> split_of(english)
    'test'
    """
    if split not in SPLITS:
        raise UsageError(f"split ({split}) must be one of {', '.join(SPLITS)}")
    locales = _locale(source), _locale(to)
    return _stream(_groups(*locales), *locales, split, Random(seed))


def parts(locale: str = "en", *, split: str = "train", seed: int = 1) -> Iterator[list[tuple[str, str]]]:
    """Endless phrases in one locale, each as its parts: a text, and the group of its value or "" for signs.

    >>> found = next(parts("en", split="test"))
    >>> split_of("".join(text for text, _ in found)), {group for _, group in found} <= {*GROUPS, ""}
    ('test', True)
    """
    held = _locale(locale)
    return _parts(_groups(held, held), held, split, Random(seed))


def split_of(phrase: str) -> str:
    """The split that a source phrase belongs to: one in twenty test, one in twenty validation."""
    place = int.from_bytes(blake2b(phrase.encode(), digest_size=8).digest(), "big") % 20
    return {0: "test", 1: "valid"}.get(place, "train")


def _groups(source: Locale, target: Locale) -> dict[str, list[Kind]]:
    """What two locales can both say, by group."""
    groups: dict[str, list[Kind]] = {}
    for kind in shared_kinds(source, target):
        groups.setdefault(kind.group, []).append(kind)
    return groups


def _draws(groups: dict[str, list[Kind]], random: Random) -> Iterator[tuple[str, list[tuple[Kind, Any]]]]:
    """Endless phrases that nobody has said yet: a form, and the values that stand in it."""
    places = [group for group in _SHARES if group in groups for _ in range(_SHARES[group])]
    while True:
        outline = _outline(places, random)
        form = random.choice(_FORMS[len(outline)])
        kinds = [random.choice(groups[group]) for group in outline]
        yield form, [(kind, kind.value(random)) for kind in kinds]


def _stream(
    groups: dict[str, list[Kind]], source: Locale, target: Locale, split: str, random: Random
) -> Iterator[tuple[str, str]]:
    for form, pieces in _draws(groups, random):
        phrase = form.format(*(kind.source(value, source) for kind, value in pieces))
        if split_of(phrase) == split:
            yield phrase, form.format(*(kind.target(value, target) for kind, value in pieces))


def _parts(
    groups: dict[str, list[Kind]], locale: Locale, split: str, random: Random
) -> Iterator[list[tuple[str, str]]]:
    for form, pieces in _draws(groups, random):
        said = iter([(kind.source(value, locale), kind.group) for kind, value in pieces])
        found: list[tuple[str, str]] = []
        for literal, field, *_ in Formatter().parse(form):
            found += [(literal, "")] if literal else []
            found += [next(said)] if field is not None else []
        if split_of("".join(text for text, _ in found)) == split:
            yield found


def _outline(places: list[str], random: Random) -> list[str]:
    """The groups of one phrase in their order: when, how much, where, or from the end."""
    chosen = sorted(random.randrange(len(places)) for _ in range(random.choice(_LENGTHS)))
    groups = list(dict.fromkeys(places[place] for place in chosen))
    return groups[::-1] if random.randrange(3) == 0 else groups


def _locale(name: str) -> Locale:
    """The locale called `name`: `de`, `pt_BR` or `pt-BR`."""
    try:
        return Locale.parse(name.replace("-", "_"))
    except (UnknownLocaleError, ValueError, TypeError) as error:
        codes = locale_identifiers()
        words = {word.lower(): code for code, word in Locale("en").languages.items() if code in codes}
        known = words | {code: code for code in codes}
        near = difflib.get_close_matches(name.lower(), known, n=3, cutoff=0.0)
        few = ", ".join(dict.fromkeys(known[word] for word in near))
        raise UsageError(f"unknown locale {name!r}; the nearest known ones are {few}") from error
