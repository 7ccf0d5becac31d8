"""Where the sentences of a text are; what lies between them is kept as it is.

A sentence ends at a line break, after a stop of Chinese or Japanese, or after `.!?…` and its closing quotes
where a space and no small letter follows. Abbreviations, initials, ordinals and numbers end none: two
sentences in one are translated well, half of one is not. A sentence too long for the model is cut near its
middle, at punctuation, at a space, or anywhere. After this file: `regard.tasks.translation.document`.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator

Span = tuple[int, int]  # of characters, the end not counted

_LINES = re.compile(r"[^\n\r\v\f\x1c-\x1e\x85\u2028\u2029]+")
_CLOSING = r"[\"'”’»›)\]}」』】〉》）］]*"
_WIDE = "。！？｡．"  # stops that need no space behind them
# Every match takes what it has looked at, whether it ends a sentence or not: so the whole is linear.
_STOP = re.compile(rf"(?:[{_WIDE}]+|[.!?…]+|[।॥؟۔։።។။]+){_CLOSING}")
_NEXT = re.compile(r"\s+[\"'“‘«‹(\[{„‚¿¡\-–—*•]*")  # what stands before the first letter of a sentence
_LAST_WORD = re.compile(r"[^\s\"'“‘«‹(\[{„‚]+$")
_SHORTENED = """
    mr mrs ms dr prof rev hon st jr sr gen col sgt capt lt gov sen rep pres mt ft vs etc eg ie cf al ca no nos
    vol fig figs ed eds pp p ch sec dept inc ltd co corp est approx jan feb mar apr jun jul aug sep sept oct
    nov dec mon tue wed thu fri sat sun am pm
    bzw usw bspw ggf evtl inkl nr str abs abt allg dipl ing mio mrd tel vgl hrsg jh geb gest sog zzgl
    mme mlle m mm av env sra sres srta ud uds avda dott sig sigra ecc dhr mevr bijv enz dra exmo
"""  # of English, German and their neighbours
_ABBREVIATIONS = frozenset(_SHORTENED.split())
_CUTS = (re.compile(r"[;:；：—–]+\s*"), re.compile(r"[,、，)）]+\s*"), re.compile(r"\s+"))
_CHARACTERS_A_TOKEN = 8  # a sentence with more for every token it may have is cut before it is tokenised


def sentences(text: str) -> list[Span]:
    r"""The spans of the sentences in `text`, in order, without the blanks around them.

    >>> text = "Dr. Lee paid 3.50. Why?\n\nNobody knows."
    >>> [text[start:end] for start, end in sentences(text)]
    ['Dr. Lee paid 3.50.', 'Why?', 'Nobody knows.']
    """
    found = []
    for line in _LINES.finditer(text):
        start = line.start()
        for end in [*_ends(line[0], line.start()), line.end()]:
            span = trimmed(text, (start, end))
            if span[0] < span[1]:
                found.append(span)
            start = end
    return found


def trimmed(text: str, span: Span) -> Span:
    """The span without the blanks at its ends."""
    piece = text[span[0] : span[1]]
    start = span[0] + len(piece) - len(piece.lstrip())
    return start, max(start, span[1] - (len(piece) - len(piece.rstrip())))


def _ends(line: str, offset: int) -> Iterator[int]:
    for stop in _STOP.finditer(line):
        if stop[0][0] in _WIDE or _is_end(line, stop):
            yield offset + stop.end()


def _is_end(line: str, found: re.Match[str]) -> bool:
    """Whether a stop ends a sentence: there is a space behind it, and no small letter."""
    after = _NEXT.match(line, found.end())
    if after is None or line[after.end() : after.end() + 1].islower():
        return False
    stop = found[0]
    if not stop.startswith(".") or stop.startswith(".."):
        return True
    word = _LAST_WORD.search(line[max(0, found.start() - 32) : found.start()])  # no abbreviation is longer
    last = word[0] if word else ""
    initial = len(last) == 1 and last.isalpha() and last != "I"
    ordinal = last.isdecimal() and len(last) <= 2
    spelled = "." in last and all(len(part) == 1 for part in last.split("."))  # U.S., z.B.
    return not (initial or ordinal or spelled or last.rstrip(".").lower().replace(".", "") in _ABBREVIATIONS)


def fitting(text: str, span: Span, count: Callable[[str], int], limit: int) -> list[Span]:
    """The span, or the pieces of it that have at most `limit` tokens each by `count`.

    >>> text = "one two three, four five six"
    >>> [text[a:b] for a, b in fitting(text, (0, len(text)), lambda t: len(t.split()), 3)]
    ['one two three,', 'four five six']
    """
    waiting, done = [trimmed(text, span)], []
    while waiting:
        start, end = waiting.pop()
        short = end - start <= max(1, _CHARACTERS_A_TOKEN * limit)
        if end - start <= 1 or (short and count(text[start:end]) <= limit):
            done.append((start, end))
            continue
        middle = start + _cut(text[start:end])
        waiting += [trimmed(text, (middle, end)), trimmed(text, (start, middle))]
    return [(start, end) for start, end in done if start < end]


def _cut(piece: str) -> int:
    """The best place to cut: punctuation in the middle half, a space, or the middle itself."""
    middle = len(piece) // 2
    for pattern in _CUTS:
        places = [found.end() for found in pattern.finditer(piece, len(piece) // 4, 3 * len(piece) // 4)]
        if places:
            return min(places, key=lambda place: abs(place - middle))
    base = middle
    while base > len(piece) // 4 and unicodedata.combining(piece[base]):
        base -= 1
    # Without a letter near, marks are parted: what is cut off must be a good part, or the cuts are too many.
    return max(1, base if base > len(piece) // 4 else middle)
