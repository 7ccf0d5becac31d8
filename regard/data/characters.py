"""Characters that seldom belong in a sentence: controls, U+FFFD, private, unassigned, invisible.

They come from wrong encodings, broken converters and copied web pages. `check.py` counts them; none
of them keeps a pair out of training.
"""

import unicodedata

# The joiners spell words in Persian and Hindi, and emoji; a tab is a space to us.
_ORDINARY = frozenset("\t\u200c\u200d")
_CLASSES = {
    "Cc": "control",
    "Cf": "invisible",
    "Co": "private use",
    "Cn": "unassigned",
    "Zl": "line separator",
    "Zp": "line separator",
}


def odd_characters(text: str) -> set[str]:
    """The odd characters of a line.

    >>> sorted(odd_characters("a\\u200bb\\xa0c\\x07"))
    ['\\x07', '\\u200b']
    """
    if text.isprintable() and "\ufffd" not in text:  # nearly always, and quick
        return set()
    return {
        character
        for character in set(text)
        if character == "\ufffd"
        or (not character.isprintable() and character not in _ORDINARY and _class(character))
    }


def describe(character: str) -> str:
    """A character by number and name.

    >>> describe("\\u200b"), describe("\\x07")
    ('U+200B zero width space', 'U+0007 control')
    """
    name = unicodedata.name(character, "").lower() or _class(character)
    return f"U+{ord(character):04X} {name}"


def _class(character: str) -> str:
    return _CLASSES.get(unicodedata.category(character), "")
