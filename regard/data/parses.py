"""Dependency trees beside the source text: CoNLL-U is read, laid over lines, then over tokens.

A blank line of text has no sentence in the file; every other has one, or several that spell it in turn. Only
ID, FORM and HEAD are read (universaldependencies.org/format). `corpus.py` lays a parse beside each pair,
`store.py` keeps it as a head a token, `regard/attention/structural.py` reads the trees.
"""

import re
from collections.abc import Generator, Iterable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from regard.errors import DataError
from regard.text.normalise import SPACE_MARK, normalise

_COLUMNS = 10
_BYTE = re.compile("<0x([0-9A-F]{2})>")
_SHOWN = 40  # characters of a line in an error


class Parse(NamedTuple):
    """The words of a line as they stand in it, and the number of each one's head, from 1; 0: none."""

    words: tuple[str, ...]
    heads: tuple[int, ...]


class Parses:
    """The sentences of CoNLL-U files, handed out line by line of the text they belong to."""

    def __init__(self, *files: tuple[Iterable[bytes], str]) -> None:
        """The lines and the name of each file."""
        self.name = files[-1][1]
        self._lines = [lines for lines, _ in files]
        self._sentences = chain.from_iterable(_sentences(lines, name) for lines, name in files)

    def of(self, text: str, where: str) -> Parse | None:
        """The parse of the next line of text, None for a blank one; `where` names the line in errors."""
        wanted, spelled = _letters(text), ""
        words: list[str] = []
        heads: list[int] = []
        while len(spelled) < len(wanted):
            found, parse = next(self._sentences, ("", None))
            if parse is None:
                raise DataError(f"{self.name} ends before {where}; it needs a sentence for each line")
            heads += [head + len(words) if head else 0 for head in parse.heads]
            words += parse.words
            spelled += "".join(map(_letters, parse.words))
            if not wanted.startswith(spelled):
                raise DataError(
                    f"{found}: its words are {' '.join(parse.words)[:_SHOWN]!r} and {where} "
                    f"is {text[:_SHOWN]!r}; the parses must spell the lines, in their order"
                )
        return Parse(tuple(words), tuple(heads)) if words else None

    def finish(self, where: str) -> None:
        """Refuse what is left when the text has ended."""
        found, parse = next(self._sentences, ("", None))
        if parse is not None:
            raise DataError(f"{found}: a sentence too many; {where} has ended")

    def close(self) -> None:
        """Let go of the files."""
        for lines in self._lines:
            if isinstance(lines, Generator):
                lines.close()


def _letters(text: str) -> str:
    """What must agree: the characters without the spaces between them."""
    return "".join(normalise(text).split())


def _sentences(lines: Iterable[bytes], name: str) -> Iterator[tuple[str, Parse]]:
    """Every sentence, and where it begins."""
    rows: list[tuple[int, str]] = []
    for number, raw in enumerate(lines, 1):
        try:
            text = raw.decode("utf-8")
        except UnicodeDecodeError:
            raise DataError(f"{name} line {number} is not UTF-8; convert the file to UTF-8") from None
        if text.strip():
            rows += [] if text.startswith("#") else [(number, text)]
        elif rows:
            yield f"{name} line {rows[0][0]}", _parse(rows, name)
            rows = []
    if rows:
        yield f"{name} line {rows[0][0]}", _parse(rows, name)


def _parse(rows: list[tuple[int, str]], name: str) -> Parse:
    """One sentence. A word that stands for several (`2-3 zum`) has the place of the highest of them."""
    forms: list[str] = []
    heads: list[int] = []
    groups: list[int] = []  # for each syntactic word the word of the text, from 1
    covered = 0
    for number, text in rows:
        columns = text.split("\t")
        try:
            if len(columns) != _COLUMNS:
                raise ValueError(f"{len(columns)} columns where CoNLL-U has {_COLUMNS}")
            if "." in columns[0]:
                continue  # an empty node stands in no text
            if "-" in columns[0]:
                first, last = map(int, columns[0].split("-"))
                if covered > len(heads) or first != len(heads) + 1 or last < first:
                    raise ValueError(f"ID {columns[0]} where word {len(heads) + 1} comes next")
                covered = last
                forms.append(columns[1])
                continue
            if int(columns[0]) != len(heads) + 1:
                raise ValueError(f"ID {columns[0]} where {len(heads) + 1} comes next")
            forms += [] if len(heads) < covered else [columns[1]]
            heads.append(int(columns[6]))
            groups.append(len(forms))
        except ValueError as error:
            raise DataError(f"{name} line {number}: {error}; give a CoNLL-U file with heads") from error
    try:
        if covered > len(heads):
            raise ValueError(f"its last words, up to {covered}, are missing")
        return Parse(tuple(forms), tuple(_merged(heads, groups)))
    except ValueError as error:
        raise DataError(f"{name} line {rows[0][0]}: {error}; the heads must make a tree") from error


def _depths(heads: Sequence[int]) -> list[int]:
    """Steps from each word to the root, whose words have 1; each word is walked from once."""
    depths = [0] * len(heads)  # 0: not known yet
    for word in range(1, len(heads) + 1):
        path, up = [], word
        while up and not depths[up - 1]:
            path.append(up)
            up = heads[up - 1]
            if not 0 <= up <= len(heads):
                raise ValueError(f"word {word} has a head that is not in the sentence of {len(heads)}")
            if len(path) > len(heads):
                raise ValueError(f"word {word} never reaches the root")
        above = depths[up - 1] if up else 0
        for depth, each in enumerate(reversed(path), above + 1):
            depths[each - 1] = depth
    return depths


def _merged(heads: Sequence[int], groups: Sequence[int]) -> list[int]:
    """The heads of groups of words, both from 1; a group has the place of its word nearest the root.

    Heads are nearer the root than what hangs on them, so what is merged is still a tree.
    """
    depths = _depths(heads)
    top: dict[int, int] = {}
    for word, group in enumerate(groups, 1):
        if group not in top or depths[word - 1] < depths[top[group] - 1]:
            top[group] = word
    ups = (heads[top[group] - 1] for group in sorted(top))
    return [groups[up - 1] if up else 0 for up in ups]


def token_heads(parse: Parse | None, text: str, tokens: Sequence[str]) -> list[int]:
    """For each token of the line where the word above its own begins, as `Trees.of` takes it.

    The root is the end token, after the last one. A token that goes on with a word has its own place. A
    token belongs to the word of its first character; words that share one are one place in the tree.

    >>> token_heads(Parse(("a", "cat", "sat"), (2, 3, 0)), "a cat sat", ["▁a", "▁ca", "t", "▁sat"])
    [1, 3, 2, 4]
    """
    if parse is None or not tokens:
        return [len(tokens)] * len(tokens)
    begins = _begins(parse.words, text, tokens)  # for each word the token that holds its first character
    places = sorted(set(begins))
    number = {place: group for group, place in enumerate(places, 1)}
    heads = _merged(parse.heads, [number[place] for place in begins])
    found = list(range(len(tokens)))
    for place, head in zip(places, heads, strict=True):
        found[place] = places[head - 1] if head else len(tokens)
    return found


def _begins(words: Sequence[str], text: str, tokens: Sequence[str]) -> list[int]:
    """The token in which each word begins; the space before a word is part of it."""
    holder: list[int] = []  # for each byte of the line, one space before it, its token
    for place, token in enumerate(tokens):
        holder += [place] * (1 if _BYTE.fullmatch(token) else len(token.replace(SPACE_MARK, " ").encode()))
    begins: list[int] = []
    letters = iter([letter == 0 for word in words for letter in range(len(_letters(word)))])
    byte, start = 1, 0  # `start` is where the spaces before the next character begin
    for character in normalise(text):
        if not character.isspace():
            if next(letters):
                begins.append(holder[min(start, len(holder) - 1)])
            start = byte + len(character.encode())
        byte += len(character.encode())
    return begins
