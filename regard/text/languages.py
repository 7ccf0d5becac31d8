"""Language codes: their names, and what the names of files say about them.

A code is a BCP 47 tag such as `en` or `pt-BR`; Babel (CLDR) knows the names. Training writes the codes of a
model into its config; the server finds a model by them.
"""

from collections.abc import Sequence
from pathlib import PurePath

from babel import Locale, UnknownLocaleError
from babel.core import get_global

_TABLES = (".tsv", ".txt")


def _locale(code: str) -> Locale | None:
    try:
        locale = Locale.parse(code.replace("-", "_"))
    except (UnknownLocaleError, ValueError, TypeError):
        return None
    # Babel takes some codes for others that were once written so: src for Sardinian.
    same = locale.language == code.replace("-", "_").partition("_")[0].lower()
    return locale if same else None


def language_name(code: str) -> str:
    """The English name of a language; of an unknown one its code.

    >>> language_name("de"), language_name("pt-BR"), language_name("qqq")
    ('German', 'Portuguese (Brazil)', 'qqq')
    """
    locale = _locale(code)
    name = locale.get_display_name("en") if locale else None
    return name or code


def script_of(code: str) -> str:
    """The script that a language is mostly written in, as ISO 15924 calls it: Latn, Cyrl; empty: unknown.

    >>> script_of("de"), script_of("ru")
    ('Latn', 'Cyrl')
    """
    locale = _locale(code)
    if locale is not None and locale.script:
        return str(locale.script)
    likely = get_global("likely_subtags").get(locale.language if locale else code, "")
    return next((part for part in likely.split("_") if len(part) == 4), "")


def languages_of(files: Sequence[str | PurePath]) -> tuple[str, str] | None:
    """The languages that file names tell: `a.en a.de`, or `a.en-de.tsv`; None where they do not.

    >>> languages_of(["train.en.gz", "train.de.gz"])
    ('en', 'de')
    >>> languages_of(["phrases.en-pt-BR.tsv"])
    ('en', 'pt-BR')
    >>> languages_of(["source.txt", "target.txt"])
    """
    names = [PurePath(file).name.removesuffix(".gz") for file in files]
    if len(names) == 1:
        for ending in _TABLES:
            names[0] = names[0].removesuffix(ending)
        first, _, second = names[0].rpartition(".")[2].partition("-")
    elif len(names) == 2:
        first, second = (name.rpartition(".")[2] for name in names)
    else:
        return None
    known = "" not in (first, second) and _locale(first) and _locale(second)
    return (first, second) if known and first != second else None
