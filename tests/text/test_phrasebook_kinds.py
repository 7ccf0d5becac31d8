"""What is said, against the words themselves; and what the sieve lets through."""

from collections.abc import Callable
from datetime import date, datetime, time
from decimal import Decimal
from random import Random
from typing import Any

import pytest
from babel import Locale

from regard.text.phrasebook_kinds import Kind, shared_kinds, sift

EN, DE, JA = Locale("en"), Locale("de"), Locale("ja")


def said(group: str, value: Any, source: Locale = EN, target: Locale = DE) -> set[tuple[str, str]]:
    """All ways of saying `value` that the kinds of a group have."""
    pairs = set()
    for kind in shared_kinds(source, target):
        if (
            kind.group == group
            and type(kind.samples[0]) is type(value)
            and kind.slot(value) not in kind.barred
        ):
            pairs.add((kind.source(value, source), kind.target(value, target)))
    return pairs


@pytest.mark.parametrize(
    ("group", "value", "pairs"),
    [
        (
            "when",
            date(2026, 3, 3),
            {
                ("Tuesday, March 3, 2026", "Dienstag, 3. März 2026"),
                ("March 3, 2026", "3. März 2026"),
                ("Mar 3, 2026", "03.03.2026"),
                ("3/3/26", "03.03.26"),
                ("Tue, Mar 3, 2026", "Di., 3. März 2026"),
                ("Tue, Mar 3", "Di., 3. März"),
                ("March 2026", "März 2026"),
                ("March 3", "3. März"),
                ("1st quarter 2026", "1. Quartal 2026"),
                ("Q1 2026", "Q1 2026"),
            },
        ),
        ("when", time(15, 5, 7), {("3:05 PM", "15:05"), ("3:05:07 PM", "15:05:07"), ("15:05", "15:05")}),
        (
            "when",
            datetime(2026, 3, 3, 0, 5, 7),
            {
                ("3/3/26, 12:05 AM", "03.03.26, 00:05"),
                ("Mar 3, 2026, 12:05:07 AM", "03.03.2026, 00:05:07"),
                ("Tue 00:05", "Di., 00:05"),
            },
        ),
        ("span", ("day", -3), {("3 days ago", "vor 3 Tagen")}),
        ("span", ("hour", 1), {("in 1 hour", "in 1 Stunde")}),
        (
            "money",
            ("EUR", Decimal("1234.5")),
            {
                ("€1,234.50", "1.234,50\u00a0€"),
                ("1,234.50 euros", "1.234,50 Euro"),
                ("1,234.5 euros", "1.234,5 Euro"),
            },
        ),
        (
            "name",
            ["FR", "DE"],
            {
                ("France and Germany", "Frankreich und Deutschland"),
                ("France or Germany", "Frankreich oder Deutschland"),
            },
        ),
    ],
)
def test_english_and_german(group: str, value: Any, pairs: set[tuple[str, str]]) -> None:
    found = said(group, value) if group != "name" else set(names(value))
    assert found == pairs


def names(codes: list[str]) -> list[tuple[str, str]]:
    kinds = [
        kind for kind in shared_kinds(EN, DE) if kind.group == "name" and isinstance(kind.samples[0], list)
    ]
    return [(kind.source(codes, EN), kind.target(codes, DE)) for kind in kinds if "AR" in kind.samples[0]]


def test_units_take_the_plural() -> None:
    one, many = said("quantity", Decimal(1)), said("quantity", Decimal("12.5"))
    assert {("1 month", "1 Monat"), ("1 mile", "1 Meile"), ("1 km", "1 km")} < one
    assert {("12.5 months", "12,5 Monate"), ("12.5 miles", "12,5 Meilen"), ("12.5 km", "12,5 km")} < many


def test_stretches_of_days() -> None:
    assert ("Mar 3 – 7, 2026", "3.–7. März 2026") in said("when", (date(2026, 3, 3), date(2026, 3, 7)))


def test_english_may_is_said_in_one_form_only() -> None:
    forms = dict(said("when", date(2026, 5, 5)))
    assert forms["May 5, 2026"] == "5. Mai 2026"
    assert len(forms) == len(said("when", date(2026, 5, 5)))


def test_no_code_is_said_for_a_word() -> None:
    for target in (JA, Locale("sw"), Locale("zu")):
        for source, meant in said("quantity", Decimal(5), EN, target):
            assert "-" not in meant, source


def kind(say: Callable[[Any, Locale], str], samples: list[int]) -> Kind:
    return Kind("x", lambda random: random.choice(samples), say, samples, slot=lambda value: value)


def test_sift_leaves_out_what_could_mean_two_things() -> None:
    plain = kind(lambda value, locale: f"{locale}{value}" if locale == DE else f"say {value}", [1, 2, 3])
    other = kind(
        lambda value, locale: f"other {locale}{value}" if locale == DE else f"say {min(value, 4)}",
        [2, 4, 5, 6],
    )
    first, second = sift([plain, other], EN, DE, {})
    assert first.barred == frozenset()
    assert second.barred == {2, 5, 6}
    assert {second.value(Random(n)) for n in range(20)} == {4}


def test_sift_leaves_out_what_a_locale_lacks() -> None:
    def lacking(value: int, locale: Locale) -> str:
        if locale == JA:
            raise KeyError(value)
        return "" if value == 3 else str(value)

    assert sift([kind(lacking, [1, 3])], EN, JA, {}) == []
    (kept,) = sift([kind(lacking, [1, 3])], EN, DE, {})
    assert kept.barred == {3}
