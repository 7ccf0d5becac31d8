"""The ways of saying a value in a locale, and which of them two locales share.

Babel holds the words and patterns of CLDR (unicode.org/reports/tr35): a kind is a draw of
`phrasebook_values` beside one call of Babel. `sift` keeps what both locales can say and what the
source says without ambiguity, so that a phrase has one translation. `phrasebook` joins the pieces.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import lru_cache
from itertools import cycle
from random import Random
from typing import Any, Literal, get_args

from babel import Locale, dates, lists, numbers, units

from regard.text import phrasebook_values as draw
from regard.text.normalise import normalise

Say = Callable[[Any, Locale], str]
Names = Callable[[Locale], Any]
Slot = Callable[[Any], Hashable]
Length = Literal["long", "short"]
Style = Literal["standard", "or"]

# People type plain spaces, so a source has no other; a translation keeps those of its language.
_PLAIN = {ord(space): " " for space in "\u00a0\u2009\u202f"}
_COUNTS = [Decimal(count) for count in ("1", "2", "5", "1.5")]  # one, few, many and a fraction


@dataclass(frozen=True)
class Kind:
    """One way of saying one sort of value.

    `samples` meet all that can differ; what is found out about one holds for all values of its `slot`.
    """

    group: str  # a phrase has at most one piece of a group
    draw: Callable[[Random], Any]
    say: Say
    samples: Sequence[Any]
    slot: Slot = lambda value: None
    barred: frozenset[Hashable] = frozenset()

    def value(self, random: Random) -> Any:
        """A value that both locales can say."""
        value = self.draw(random)
        while self.slot(value) in self.barred:
            value = self.draw(random)
        return value

    def source(self, value: Any, locale: Locale) -> str:
        """How a person would type it."""
        return normalise(self.say(value, locale).translate(_PLAIN))

    def target(self, value: Any, locale: Locale) -> str:
        """How it is printed."""
        return normalise(self.say(value, locale))


@lru_cache(maxsize=8)
def shared_kinds(source: Locale, target: Locale) -> tuple[Kind, ...]:
    """All that can be said in both locales; kept, for the three splits of a corpus ask for the same."""
    told: dict[str, str] = {}
    kinds = sift([*_whens(), *_spans(), *_amounts(), *_single_names()], source, target, told)
    return (*kinds, *sift(_name_lists(kinds), source, target, told))


def sift(kinds: Iterable[Kind], source: Locale, target: Locale, told: dict[str, str]) -> list[Kind]:
    """`kinds` without what one locale lacks, or what in the source could mean two things.

    `told` remembers what the samples before said. In English "May 3, 2026" may be the long or the short
    form, which German tells apart: the second one to come is left out, in May.
    """
    kept = []
    for kind in kinds:
        barred = {kind.slot(value) for value in kind.samples if not _clear(kind, value, source, target, told)}
        if barred < {kind.slot(value) for value in kind.samples}:
            kept.append(replace(kind, barred=frozenset(barred)))
    return kept


def _clear(kind: Kind, value: Any, source: Locale, target: Locale, told: dict[str, str]) -> bool:
    """Whether both locales can say `value`, and the source has not said the same for another meaning."""
    try:
        said, meant = kind.source(value, source), kind.target(value, target)
    except (LookupError, ValueError, AttributeError, TypeError):  # Babel, where CLDR has no data
        return False
    return bool(said and meant) and told.setdefault(said, meant) == meant


def _whens() -> Iterator[Kind]:
    """Dates and times."""
    weeks = [date(2027, month, number) for month in range(1, 13) for number in range(9, 16)]
    for form in ("full", "long", "medium", "short"):
        drawn = draw.new_day if form == "short" else draw.day
        yield Kind("when", drawn, _date(form), *(_by_weekday(weeks) if form == "full" else _by_month(weeks)))
    for skeleton in ("yMMMEd", "MMMEd"):
        yield Kind("when", draw.day, _skeleton(skeleton), *_by_weekday(weeks))
    for skeleton in ("yMMMM", "MMMMd", "yQQQQ", "yQQQ"):
        yield Kind("when", draw.day, _skeleton(skeleton), *_by_month(weeks))
    stays = [(day, day + timedelta(length)) for day in weeks[::7] for length in (2, 20)]
    yield Kind("when", draw.days, _interval("yMMMd"), stays, lambda stay: stay[0].month)

    clocks = [time(hour, 5, 7) for hour in range(24)]
    moments = [datetime.combine(day, clock) for day, clock in zip(weeks, cycle(clocks), strict=False)]
    for form in ("short", "medium"):
        yield Kind("when", draw.clock, _time(form), clocks)
        yield Kind("when", draw.moment, _moment(form), *_by_month(moments))
    yield Kind("when", draw.clock, _skeleton("Hm"), clocks)
    yield Kind("when", draw.moment, _skeleton("EHm"), *_by_weekday(moments))
    yield Kind("when", draw.hours, _interval("Hm"), [(clock, clock.replace(minute=30)) for clock in clocks])


def _by_month(days: Sequence[date]) -> tuple[Sequence[date], Slot]:
    """Samples and slots where month names are said: May is the same in long and short."""
    return days[::3], lambda day: day.month


def _by_weekday(days: Sequence[date]) -> tuple[Sequence[date], Slot]:
    """Samples and slots where weekdays are said too."""
    return days, lambda day: (day.month, day.weekday())


def _spans() -> Iterator[Kind]:
    """Some time ago, or ahead."""
    samples = [(unit, sign * count) for unit in draw.SPANS for sign in (-1, 1) for count in (1, 2, 4)]
    yield Kind("span", draw.span, _span, samples, _first)


def _amounts() -> Iterator[Kind]:
    """Quantities, money, numbers and shares."""
    for length in get_args(Length):
        for unit in draw.UNITS:
            yield Kind("quantity", draw.quantity, _unit(unit, length), _COUNTS)
    prices = [(currency, count) for currency in draw.CURRENCIES for count in _COUNTS]
    yield Kind("money", draw.price, _money(), prices, _first)
    yield Kind("money", draw.price, _money(format_type="name"), prices, _first)
    rounded = [(currency, count) for currency, count in prices if count % 1 == 0]
    yield Kind("money", draw.round_price, _money(format_type="name", currency_digits=False), rounded, _first)
    yield Kind("number", draw.number, lambda value, at: numbers.format_decimal(value, locale=at), _COUNTS)
    yield Kind("number", draw.share, _percent, [count / 1000 for count in _COUNTS])


def _single_names() -> Iterator[Kind]:
    for names, codes in ((_countries, draw.COUNTRIES), (_languages, draw.LANGUAGES)):
        yield Kind("name", _choice(codes), _name(names), codes, lambda code: code)


def _name_lists(kinds: Iterable[Kind]) -> Iterator[Kind]:
    """Lists of the single names that were kept."""
    for single in [kind for kind in kinds if kind.group == "name"]:
        codes = [code for code in single.samples if code not in single.barred]
        for style in get_args(Style):
            samples = [codes[:length] for length in (2, 3, 4)]
            yield Kind("name", _some(codes), _list(single.say, style), samples)


def _first(value: tuple[str, Any]) -> Hashable:
    return value[0]


def _countries(locale: Locale) -> Any:
    return locale.territories


def _languages(locale: Locale) -> Any:
    return locale.languages


def _choice(codes: Sequence[str]) -> Callable[[Random], str]:
    return lambda random: random.choice(codes)


def _some(codes: Sequence[str]) -> Callable[[Random], list[str]]:
    return lambda random: random.sample(codes, min(len(codes), random.choice((2, 2, 3, 4))))


def _date(form: str) -> Say:
    return lambda day, locale: dates.format_date(day, form, locale=locale)


def _time(form: str) -> Say:
    return lambda clock, locale: dates.format_time(clock, form, locale=locale)


def _moment(form: str) -> Say:
    return lambda moment, locale: dates.format_datetime(moment, form, locale=locale)


def _skeleton(skeleton: str) -> Say:
    return lambda moment, locale: dates.format_skeleton(skeleton, moment, locale=locale)


def _interval(skeleton: str) -> Say:
    return lambda ends, locale: dates.format_interval(ends[0], ends[1], skeleton, locale=locale)


def _span(span: tuple[str, int], locale: Locale) -> str:
    unit, count = span
    delta = timedelta(seconds=count * draw.SPANS[unit][0])
    return dates.format_timedelta(delta, threshold=1, add_direction=True, locale=locale)


def _unit(unit: str, length: Length) -> Say:
    def say(value: Decimal, locale: Locale) -> str:
        said = units.format_unit(value, unit, length, locale=locale)
        if unit in said:  # its answer where a locale has no word: "5 duration-year"
            raise LookupError(unit)
        return said

    return say


def _money(**form: Any) -> Say:
    return lambda price, locale: numbers.format_currency(price[1], price[0], locale=locale, **form)


def _percent(value: Decimal, locale: Locale) -> str:
    return numbers.format_percent(value, locale=locale, decimal_quantization=False)


def _name(names: Names) -> Say:
    return lambda code, locale: names(locale)[code]


def _list(say: Say, style: Style) -> Say:
    return lambda codes, locale: lists.format_list(
        [say(code, locale) for code in codes], style, locale=locale
    )
