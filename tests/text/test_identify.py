"""Thirty languages and two are told apart on sentences of five words, and nothing is claimed of nothing."""

import pytest
from spoken import SPOKEN

from regard.text.identify import language, languages_in


def test_sentences_of_thirty_languages():
    said = [(code, text) for code, texts in SPOKEN.items() for text in texts]
    assert len(SPOKEN) >= 30
    wrong = [(code, text) for code, text in said if next(iter(languages_in(text))) != code]
    assert len(wrong) <= 0.05 * len(said), wrong


def test_probabilities_are_probabilities():
    for text in ("Where is the station?", "a", "hola"):
        found = languages_in(text)
        assert sum(found.values()) == pytest.approx(1, abs=1e-3)
        assert list(found.values()) == sorted(found.values(), reverse=True)


def test_little_text_claims_little():
    sure = languages_in("The children play in the garden behind the house")["en"]
    assert sure > 0.9
    assert max(languages_in("a b c").values()) < sure
    assert languages_in("") == languages_in("12 - 3 !") == {}


def test_codes():
    assert [language(code) for code in ("en", "pt_BR", "zh-Hans", "DE")] == ["en", "pt", "zh", "de"]
