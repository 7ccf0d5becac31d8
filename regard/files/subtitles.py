"""Subtitles, SubRip and WebVTT: times, numbers, settings and notes are kept; lines stay as long as they were.

A sentence that goes on in the next cue is translated as a whole, then shared out between its cues at blanks,
by the length that each part had. Cues with tags or with speakers' dashes are translated by themselves.
"""

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from regard.errors import DataError
from regard.files.file import bytes_of, text_of

_TIMES = re.compile(r"\s*(?:\d+:)?\d{1,2}:\d{2}[.,]\d{1,3}[ \t]*-->[ \t]*(?:\d+:)?\d{1,2}:\d{2}[.,]\d{1,3}")
_TAG = re.compile(r"</?[A-Za-z0-9][^<>\n]{0,200}>|\{\\[^{}\n]{0,80}\}")
_DASH = re.compile(r"\s*[-\u2010-\u2015]")
_WORDS = re.compile(r"(?:</?[A-Za-z0-9][^<>\n]*>|\S)+")  # blanks in a tag part no words
_NARROWEST = 32  # characters of a line that may always be filled
_END = re.compile(r"[.!?…。！？\"'”»)\]♪♫:;]\s*$")


@dataclass
class _Cue:
    """The lines of one cue; `own` are numbers of segments that are its alone."""

    lines: list[str]
    own: list[int] = field(default_factory=list)
    shared: tuple[int, int] | None = None  # a segment, and which part of it

    @property
    def text(self) -> str:
        return " ".join(line.strip() for line in self.lines)

    @property
    def plain(self) -> bool:
        """Whether it may be joined with others."""
        return not any(_TAG.search(line) or _DASH.match(line) for line in self.lines)


class _Subtitles:
    def __init__(self, data: bytes) -> None:
        self._data, self.segments = data, list[str]()
        self._parts: list[str | _Cue] = []
        text = text_of(data)
        self._end = "\r\n" if "\r\n" in text else "\n"
        self._read(re.split(r"\r\n|\n|\r", text))
        self._cues = [part for part in self._parts if isinstance(part, _Cue)]
        if not self._cues:
            raise DataError("it holds no cue with its times; it is no file of subtitles")
        lines = [len(_TAG.sub("", line)) for cue in self._cues for line in cue.lines]
        self._width = max(_NARROWEST, *lines)
        self._shares: dict[int, list[_Cue]] = {}
        self._segment()

    def _read(self, lines: Sequence[str]) -> None:
        at = 0
        while at < len(lines):
            self._parts.append(lines[at])
            at += 1
            if _TIMES.match(lines[at - 1]):
                begin = at
                while at < len(lines) and lines[at].strip() and not _TIMES.match(lines[at]):
                    at += 1
                if begin < at:
                    self._parts.append(_Cue(list(lines[begin:at])))

    def _segment(self) -> None:
        waiting: list[_Cue] = []
        for cue in self._cues:
            if waiting and not (cue.plain and cue.text[:1].islower() and not _END.search(waiting[-1].text)):
                self._share(waiting)
                waiting = []
            if cue.plain:
                waiting.append(cue)
            else:
                self._alone(cue)
        self._share(waiting)

    def _alone(self, cue: _Cue) -> None:
        dashes = all(_DASH.match(line) for line in cue.lines)
        for text in cue.lines if dashes else [cue.text]:
            cue.own.append(len(self.segments))
            self.segments.append(self._html(text))

    def _share(self, cues: list[_Cue]) -> None:
        if not cues:
            return
        for number, cue in enumerate(cues):
            cue.shared = len(self.segments), number
        self._shares[len(self.segments)] = cues
        self.segments.append(self._html(" ".join(cue.text for cue in cues)))

    def written(self, texts: Sequence[str]) -> bytes:
        """The cues in their places, wrapped as they were."""
        plain = [self._plain(text) for text in texts]
        shares = {
            number: shared_out(plain[number], [len(cue.text) for cue in cues])
            for number, cues in self._shares.items()
        }
        found: list[str] = []
        for part in self._parts:
            if isinstance(part, str):
                found.append(part)
            elif part.shared is not None:
                number, place = part.shared
                found += wrapped(shares[number][place], len(part.lines), self._width)
            elif len(part.own) > 1:
                found += [line for number in part.own for line in wrapped(plain[number], 1, self._width)]
            else:
                found += wrapped(plain[part.own[0]], len(part.lines), self._width)
        return bytes_of(self._end.join(found), self._data)

    def _html(self, text: str) -> str:
        raise NotImplementedError

    def _plain(self, text: str) -> str:
        raise NotImplementedError


class Vtt(_Subtitles):
    """WebVTT: tags and references as HTML has them."""

    def _html(self, text: str) -> str:
        return text

    def _plain(self, text: str) -> str:
        return text.replace("-->", "--&gt;")


class Srt(_Subtitles):
    """SubRip: some tags, and no references."""

    def _html(self, text: str) -> str:
        found, at = [], 0
        for tag in _TAG.finditer(text):
            raw = tag[0] if tag[0].startswith("<") else f"<img alt='{html.escape(tag[0])}'>"
            found += [html.escape(text[at : tag.start()], quote=False), raw]
            at = tag.end()
        return "".join([*found, html.escape(text[at:], quote=False)])

    def _plain(self, text: str) -> str:
        text = re.sub(r"<img alt='([^'<>]*)'>", lambda found: found[1], text)
        return html.unescape(text).replace("-->", "->")


def shared_out(text: str, sizes: Sequence[int]) -> list[str]:
    """A text cut at blanks into as many parts as there are sizes, in about their proportion.

    Where there are words enough, no part is empty. Tags are not cut, and have no width.

    >>> shared_out("eins zwei drei vier", [10, 10])
    ['eins zwei', 'drei vier']
    """
    words = _WORDS.findall(text)
    ends = [0, *accumulate(len(_TAG.sub("", word)) + 1 for word in words)]
    found, at, passed = [], 0, 0
    for left, size in zip(range(len(sizes) - 1, -1, -1), sizes, strict=True):
        passed += size
        wanted = ends[-1] * passed / max(1, sum(sizes))
        first = min(at + 1, len(words))
        cuts = range(first, max(first, len(words) - left) + 1) if left else [len(words)]
        cut = min(cuts, key=lambda place: abs(ends[place] - wanted))
        found.append(" ".join(words[at:cut]))
        at = cut
    return found


def wrapped(text: str, lines: int, width: int) -> list[str]:
    """A text in so many lines, or in as many more as the width asks for.

    >>> wrapped("one two three four", 2, 40)
    ['one two', 'three four']
    """
    size = len(_TAG.sub("", text.strip()))
    count = max(lines, -(-size // width))
    return [line for line in shared_out(text, [1] * count) if line]
