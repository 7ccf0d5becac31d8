"""Which of some languages a text is in, and how sure that is.

A small identifier tells (`regard.text.identify`). Of languages that it does not know, letters have a script,
and a vocabulary learned from a language spells it in fewer tokens than others do; what that does not part
gets equal shares. Used by `served.py`.
"""

import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence

from regard.text.identify import READ, language, languages_in
from regard.text.languages import script_of

ODDS = 8  # of a language that is served, before anything is read
LEAST = 0.05  # probability of a language that is still told
SURE = 0.8  # probability from which a text is said to be in a language
# The names that Unicode gives to letters, and the scripts that are written with them.
_SCRIPTS = {
    "LATIN": {"Latn"},
    "CYRILLIC": {"Cyrl"},
    "GREEK": {"Grek"},
    "ARABIC": {"Arab"},
    "HEBREW": {"Hebr"},
    "DEVANAGARI": {"Deva"},
    "BENGALI": {"Beng"},
    "THAI": {"Thai"},
    "HANGUL": {"Kore"},
    "HIRAGANA": {"Jpan"},
    "KATAKANA": {"Jpan"},
    "CJK": {"Hans", "Hant", "Jpan"},
    "GEORGIAN": {"Geor"},
    "ARMENIAN": {"Armn"},
    "TAMIL": {"Taml"},
}


def weighed(text: str, codes: Sequence[str]) -> dict[str, float]:
    """How likely a text is in each language; those of `codes`, which are served, are asked for more often."""
    mine = {language(code) for code in codes}
    found = {code: share * (ODDS if code in mine else 1) for code, share in languages_in(text).items()}
    total = sum(found.values())
    return {code: share / total for code, share in sorted(found.items(), key=lambda each: -each[1])}


def guesses(text: str, codes: Sequence[str], count: Callable[[str, str], int]) -> list[tuple[str, float]]:
    """Those of `codes` that the text may be in, the likeliest first, each with how sure that is, 0 to 100."""
    found = weighed(text, codes)
    if found and all(language(code) in found for code in codes):
        return sorted(((code, _percent(found[language(code)])) for code in codes), key=lambda each: -each[1])
    best = likeliest(text, codes, count)
    return [(code, _percent(1 / len(best)) if found else 0.0) for code in best]


def told(text: str, codes: Sequence[str]) -> list[tuple[str, float]]:
    """The languages that a text may be in, among `codes` or not; the likeliest first."""
    names = {language(code): code for code in codes}
    likely = [(code, share) for code, share in weighed(text, codes).items() if share >= LEAST]
    return [(names.get(code, code), _percent(share)) for code, share in likely]


def elsewhere(text: str, codes: Sequence[str]) -> tuple[str, float] | None:
    """The language that a text is surely in, if that is none of `codes`."""
    found = weighed(text, codes)
    if not found or not all(language(code) in found for code in codes):
        return None
    best, share = next(iter(found.items()))
    mine = {language(code) for code in codes}
    return (best, _percent(share)) if share >= SURE and best not in mine else None


def _percent(share: float) -> float:
    return round(100 * share, 1)


def likeliest(text: str, codes: Sequence[str], count: Callable[[str, str], int]) -> list[str]:
    """Those of `codes` that the text may be in; count(code, text) is the fewest tokens it can be spelled in.

    >>> likeliest("Привет", ["en", "ru", "bg"], lambda code, text: 3 if code == "ru" else 5)
    ['ru']
    """
    text = text[:READ]
    most = _script_name(text)
    written = [code for code in codes if _written_in(most, code)] or list(codes)
    sizes = {code: count(code, text) for code in written}
    least = min(sizes.values(), default=0)
    return [code for code in written if sizes[code] == least]


def _script_name(text: str) -> str:
    """What Unicode calls the script of most letters of a text; nothing where there are none."""
    letters = Counter(
        unicodedata.name(character, "").partition(" ")[0].partition("-")[0]
        for character in text
        if character.isalpha()
    )
    return letters.most_common(1)[0][0] if letters else ""


def _written_in(most: str, code: str) -> bool:
    """Whether that is the script of a language, as far as it is known."""
    script = script_of(code)
    return not (most and script) or script in _SCRIPTS.get(most, {script})
