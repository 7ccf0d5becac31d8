"""The one form in which a line of text is tokenised: NFC, single spaces, no stray ends.

It changes only what no reader can see, so a translation keeps what its source wrote: no-break
spaces, U+2028 and U+0085 stay. After it comes the tokenizer, whose round trip gives back exactly
this form.
"""

import re
import unicodedata
from functools import cache

SPACE_MARK = "\u2581"  # stands for a space inside tokens, so it may not come from the text itself
LINE_MARK = "\u21b5"  # stands for a line break in tokens that are shown

LONG = 1000  # characters of a line whose marks, however many, NFC sorts fast enough
MARKS = 32  # combining marks in a row that are left to NFC as they are
_ENDS = " \t\r\ufeff"
_BLANKS = re.compile(r"[ \t]+")
_SURROGATES = re.compile("[\ud800-\udfff]")
_LINE_BREAKS = str.maketrans("\n\r", "  ")


def normalise(line: str) -> str:
    r"""`line` in NFC, runs of spaces and tabs as one space, ends bare. Idempotent.

    U+2581 becomes "_". Half a surrogate pair, which is no text at all, becomes U+FFFD.

    >>> normalise("\ufeffCafe\u0301 \t au  lait\r")
    'Café au lait'
    """
    if "  " in line or "\t" in line:
        line = _BLANKS.sub(" ", line)
    if not line.isascii():
        line = line.replace(SPACE_MARK, "_")
        line = _SURROGATES.sub("\ufffd", line)
        line = unicodedata.normalize("NFC", in_order(line) if len(line) > LONG else line)
    return line.strip(_ENDS)


def one_line(text: str) -> str:
    r"""`text` with a space for each line break: a line in is a line out.

    >>> one_line("to be,\nor not")
    'to be, or not'
    """
    return text.translate(_LINE_BREAKS)


def in_order(line: str) -> str:
    """Long runs of combining marks sorted as NFC sorts them: it takes the square of their number for it."""
    return _marks().sub(lambda run: "".join(sorted(_parts(run[0]), key=unicodedata.combining)), line)


def _parts(run: str) -> str:
    """Marks that are made of marks, taken apart."""
    return "".join(unicodedata.normalize("NFD", character) for character in run)


@cache
def _marks() -> re.Pattern[str]:
    """Runs of marks that are longer than any script needs."""
    found = [
        character
        for character in map(chr, range(0x300, 0x1F000))
        if unicodedata.combining(character)
        or unicodedata.combining(unicodedata.normalize("NFD", character)[0])
    ]
    return re.compile(f"[{''.join(map(re.escape, found))}]{{{MARKS},}}")
