"""The values: within their bounds, and of codes that CLDR knows."""

from datetime import timedelta
from random import Random

import pytest
from babel import Locale
from babel.dates import format_timedelta
from babel.numbers import get_currency_precision

from regard.text import phrasebook_values as draw

EN = Locale("en")


def test_tables_hold_known_codes_once() -> None:
    for table, known in (
        (draw.COUNTRIES, EN.territories),
        (draw.LANGUAGES, EN.languages),
        (draw.CURRENCIES, EN.currencies),
    ):
        assert len(set(table)) == len(table)
        assert set(table) <= set(known)


@pytest.mark.parametrize("unit", draw.SPANS)
def test_no_span_is_told_in_another_unit(unit: str) -> None:
    seconds, most = draw.SPANS[unit]
    for count in range(1, most + 1):
        said = format_timedelta(
            timedelta(seconds=count * seconds), threshold=1, add_direction=True, locale=EN
        )
        assert said == f"in {count} {unit}{'s' if count > 1 else ''}"


@pytest.mark.parametrize("seed", range(40))
def test_bounds(seed: int) -> None:
    random = Random(seed)
    for _ in range(50):
        assert 1950 <= draw.day(random).year <= 2049
        assert 2000 <= draw.new_day(random).year <= 2049
        first, last = draw.days(random)
        assert 0 < (last - first).days < 29
        opens, closes = draw.hours(random)
        assert opens < closes
        assert 0 < draw.share(random) <= 1
        quantity = draw.quantity(random)
        assert 1 <= quantity < 2000
        assert quantity * 10 % 1 == 0
        currency, amount = draw.price(random)
        assert amount > 0
        assert amount * 10 ** get_currency_precision(currency) % 1 == 0
