"""What the phrasebook talks about: days, hours, amounts, countries, drawn from a random stream.

No words here: a value is what two locales then say each in its own way (`phrasebook_kinds`). The
tables hold what is well known, so that a small model can learn them by heart within a minute.
"""

from datetime import date, datetime, time, timedelta
from decimal import Decimal
from random import Random

from babel.numbers import get_currency_precision

# CLDR's codes, a string a table: a list would take a line for each.
_COUNTRIES = (
    "AR AT AU BE BG BR CA CH CL CN CO CU CZ DE DK EG ES ET FI FR GB GR HR HU ID IE IL IN IR IS IT JM JP KE "
    "KR LT LU MA MG MT MX MY NG NL NO NP NZ PE PH PK PL PT RO RS RU SA SE SG SK TH TN TR UA US UY VE VN ZA"
)
_LANGUAGES = (
    "ar bg bn cs da de el en es et fa fi fr he hi hr hu id is it ja ko lt lv ms nl no pl pt ro ru sk sl sr "
    "sv sw th tr uk ur vi zh"
)
_CURRENCIES = "USD EUR GBP JPY CHF CNY INR KRW BRL CAD AUD SEK PLN TRY"
_UNITS = (
    "length-kilometer length-meter length-centimeter length-mile length-foot length-inch mass-kilogram "
    "mass-gram mass-tonne mass-pound mass-ounce volume-liter volume-milliliter area-hectare "
    "area-square-meter area-square-kilometer speed-kilometer-per-hour temperature-celsius "
    "temperature-fahrenheit digital-megabyte digital-gigabyte power-watt power-kilowatt duration-second "
    "duration-minute duration-hour duration-day duration-week duration-month duration-year"
)
COUNTRIES, LANGUAGES = _COUNTRIES.split(), _LANGUAGES.split()
CURRENCIES, UNITS = _CURRENCIES.split(), _UNITS.split()

# Seconds in a unit, and the largest count that Babel does not turn into the next unit.
SPANS = {
    "year": (31_536_000, 98),
    "month": (2_592_000, 12),
    "week": (604_800, 4),
    "day": (86_400, 6),
    "hour": (3_600, 23),
    "minute": (60, 59),
    "second": (1, 59),
}
FIRST, LAST = date(1950, 1, 1).toordinal(), date(2050, 1, 1).toordinal()
FIRST_SHORT = date(2000, 1, 1).toordinal()  # a year in two digits is one of this century


def day(random: Random) -> date:
    """Any day of a hundred years."""
    return date.fromordinal(random.randrange(FIRST, LAST))


def new_day(random: Random) -> date:
    """A day whose year two digits can tell."""
    return date.fromordinal(random.randrange(FIRST_SHORT, LAST))


def clock(random: Random) -> time:
    """A time of the day."""
    return time(random.randrange(24), random.randrange(60), random.randrange(60))


def moment(random: Random) -> datetime:
    """A day and a time."""
    return datetime.combine(new_day(random), clock(random))


def days(random: Random) -> tuple[date, date]:
    """The first and the last day of a stay."""
    first = day(random)
    return first, first + timedelta(random.randrange(1, 29))


def hours(random: Random) -> tuple[time, time]:
    """When something opens and closes."""
    opens, closes = sorted(random.sample(range(24 * 12), 2))
    return time(opens // 12, opens % 12 * 5), time(closes // 12, closes % 12 * 5)


def span(random: Random) -> tuple[str, int]:
    """A unit of time and how many of them from now; before now if negative."""
    unit = random.choice(list(SPANS))
    return unit, random.choice((-1, 1)) * random.randrange(1, SPANS[unit][1] + 1)


def quantity(random: Random) -> Decimal:
    """Small and whole, larger, or with one decimal."""
    whole = random.randrange(1, random.choice((10, 100, 2000)))
    tenths = random.randrange(10) if random.randrange(3) == 0 else 0
    return Decimal(whole * 10 + tenths) / 10


def number(random: Random) -> Decimal:
    """One to seven digits, some of them behind the point."""
    return Decimal(random.randrange(1, 10 ** random.randrange(3, 8))) / random.choice((1, 1, 100))


def share(random: Random) -> Decimal:
    """A part of one: whole or tenths of a per cent."""
    return Decimal(random.choice((10, 10, 1)) * random.randrange(1, 101)) / 1000


def price(random: Random) -> tuple[str, Decimal]:
    """A currency and an amount with its cents, if it has any."""
    currency = random.choice(CURRENCIES)
    smallest = random.randrange(1, 10 ** random.randrange(3, 7))
    return currency, Decimal(smallest) / 10 ** get_currency_precision(currency)


def round_price(random: Random) -> tuple[str, Decimal]:
    """A currency and an amount without cents."""
    return random.choice(CURRENCIES), Decimal(random.randrange(1, 10 ** random.randrange(1, 5)))
