"""Which of some languages a text is in, told by its script and by how well their models spell it.

No library and no data: letters have a script, and a vocabulary learned from a language spells it in fewer
tokens than others do. What cannot be told apart so is not: it gets equal shares. Used by `served.py`.
"""

import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence

from regard.text.languages import script_of

READ = 2000  # characters that a guess reads
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
