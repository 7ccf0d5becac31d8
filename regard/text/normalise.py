"""The one form in which a line of text is tokenised: NFC, single spaces, no stray ends.

It changes only what no reader can see, so a translation keeps what its source wrote: no-break
spaces, U+2028 and U+0085 stay. After it comes the tokenizer, whose round trip gives back exactly
this form.
"""

import re
import unicodedata

SPACE_MARK = "\u2581"  # stands for a space inside tokens, so it may not come from the text itself

_ENDS = " \t\r\ufeff"
_BLANKS = re.compile(r"[ \t]+")
_SURROGATES = re.compile("[\ud800-\udfff]")


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
        line = unicodedata.normalize("NFC", _SURROGATES.sub("\ufffd", line))
    return line.strip(_ENDS)
