"""Markdown: paragraphs, headings, items, quotes and cells of tables are translated; the rest is kept.

Code, HTML blocks, front matter and the addresses of links are kept to the letter. Bold, italics and links are
what hangs on words. A paragraph is one segment however it was wrapped, and is wrapped again as wide.
"""

import re
import textwrap

from regard.files.file import Parts, text_of
from regard.files.inline import Marks, back, guarded

_FENCE = re.compile(r"\s*(`{3,}|~{3,})")
_LEAD = re.compile(r"\s*(?:(?:>|[-*+]|\d{1,9}[.)]|#{1,6})[ \t]+|\[[ xX]\][ \t]+|>)*[ \t]*")
_KEPT = re.compile(
    r"\s*$|\s*([-*_=])[ \t]*(\1[ \t]*)*$|\s*<[/!?A-Za-z]|\s*\[[^\]]{1,200}\]:|(?: {4}|\t)"
    r"|\s*\|?[ \t:|-]*-[ \t:|-]*$|:::"
)
_INLINE = re.compile(
    r"(?P<code>(?P<tick>`+)(?!`).{1,1000}?(?<!`)(?P=tick)(?!`))"
    r"|(?P<image>!\[[^\[\]]{0,500}\]\([^()\s]{0,1000}(?:[ \t][^()]{0,200})?\))"
    r"|(?P<link>\[(?P<words>[^\[\]]{1,500})\](?P<to>\([^()]{0,1000}\)|\[[^\[\]]{0,200}\]))"
    r"|(?P<address><[a-z]{2,8}:[^<>\s]{1,1000}>|https?://[^\s<>()]{1,1000})"
    r"|(?P<strong>(?P<stars>\*\*|__|~~)(?=\S)(?P<bold>.{1,1000}?)(?<=\S)(?P=stars))"
    r"|(?P<soft>(?P<star>[*])(?=[^\s*])(?P<slant>[^*]{1,1000}?)(?<=\S)\*(?!\*))"
)


class Markdown(Parts):
    """An .md."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self._marks: list[Marks[tuple[str, str]]] = []
        self._widths: list[tuple[int, str]] = []  # of each segment: the widest line, and what begins the next
        self._text: list[str] = []  # of the paragraph that is being read
        self._lead = ""
        fence = ""
        lines = text_of(data).splitlines(keepends=True)
        front = bool(lines) and lines[0].strip() == "---" and any(line.strip() == "---" for line in lines[1:])
        for number, line in enumerate(lines):
            mark = _FENCE.match(line)
            if front or fence or mark:
                self._finish()
                self.keep(line)
                front = front and not (number and line.strip() == "---")
                if mark and not front:
                    fence = "" if fence and mark[1].startswith(fence) else fence or mark[1]
            elif _KEPT.match(line) and not (self._text and line.startswith(("    ", "\t")) and line.strip()):
                self._finish()
                self.keep(line)
            elif line.lstrip().startswith("|"):
                self._finish()
                self._row(line)
            else:
                self._line(line)
        self._finish()

    def _line(self, line: str) -> None:
        """One more line of a paragraph, or the first of another."""
        lead = _LEAD.match(line)
        found = lead[0] if lead else ""
        marker = bool(found.strip())
        if marker or not self._text:
            quoted = self._text and found.strip() == ">" and self._lead.strip().startswith(">")
            if not quoted:
                self._finish()
                self.keep(found)
                self._lead = found
        self._text.append(line[len(found) :])
        if line.rstrip("\r\n").endswith(("  ", "\\")) or found.lstrip().startswith("#"):
            self._finish()

    def _finish(self) -> None:
        if not self._text:
            return
        whole = "".join(self._text)
        bare = whole.rstrip()
        bare = bare[:-1].rstrip() if bare.endswith("\\") else bare
        rest = "> " if self._lead.strip().startswith(">") else " " * len(self._lead)
        width = max(len(line.rstrip()) for line in self._text) if len(self._text) > 1 else 0
        self._add(" ".join(bare.split()), width, rest)
        self.keep(whole[len(bare) :])
        self._text = []

    def _row(self, line: str) -> None:
        """The cells of a table's row."""
        for part in re.split(r"(\s*(?<!\\)\|\s*)", line):
            if any(map(str.isalpha, part)):
                self._add(part.rstrip(), 0, "")
                self.keep(part[len(part.rstrip()) :])
            else:
                self.keep(part)

    def _add(self, text: str, width: int, rest: str) -> None:
        self._marks.append(Marks())
        self._widths.append((width, rest))
        self.segment(_melted(text, self._marks[-1]))

    def shown(self, number: int, text: str) -> str:
        """Wrapped as it was."""
        found = back(text, self._marks[number])
        width, rest = self._widths[number]
        if not width:
            return found
        return ("\n" + rest).join(
            textwrap.wrap(found, max(20, width), break_long_words=False, break_on_hyphens=False) or [found]
        )


def _melted(text: str, marks: "Marks[tuple[str, str]]", depth: int = 0) -> str:
    """Text with its marks as HTML."""
    found, at = [], 0
    for each in _INLINE.finditer(text) if depth < 4 else ():
        found.append(guarded(text[at : each.start()], marks))
        at = each.end()
        if each["code"] or each["address"]:
            found.append(marks.instead((each[0], ""), each[0].strip("`<>")))
        elif each["image"]:
            found.append(marks.between((each[0], "")))
        else:
            inner = each["words"] or each["bold"] or each["slant"]
            sign = each["stars"] or each["star"]
            pair = ("[", "]" + each["to"]) if each["link"] else (sign, sign)
            found.append(marks.around(pair, _melted(inner, marks, depth + 1)))
    return "".join([*found, guarded(text[at:], marks)])
