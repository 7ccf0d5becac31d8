"""What somebody else wrote: the bounds that its readers share, and the one reader of its JSON.

A small file may ask for much: a number of a million digits, lists in lists, one line that unpacks to a
gigabyte. Each bound is here, with what it keeps; docs/limits.md lists them. Before this file: `errors.py`;
after it: whoever opens a file that a stranger may have made.
"""

import json
import os
import re
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from regard.errors import ModelError, UsageError, shown

LONGEST_LINE = 2**22  # bytes of a line of text; the longest novels have fewer
MOST_SETTINGS = 2**22  # bytes of a file of settings
MOST_JSON = 2**28  # bytes of any other JSON: a vocabulary
MOST_VALUES = 3_000_000  # in one JSON; each may take a hundred bytes of memory
MOST_DIGITS = 40  # of a whole number
MOST_DEPTH = 32  # of lists in lists
LONGEST_TOKEN = 512  # characters of a piece, or of what is rewritten or comes of it
MOST_SPELLED = 2**22  # characters of all pieces of a vocabulary, or of all that is rewritten
MOST_NODES = 750_000  # of the tree that a unigram vocabulary is kept in; each takes 340 bytes
MOST_MERGES = 700_000  # of a byte-pair vocabulary
MOST_MERGED = 2**24  # characters of all of them
MOST_PICTURE = 2**28  # bytes of a picture's file
MOST_PIXELS = 2**26  # of a picture: 8,192 x 8,192; a file of a hundred bytes may claim billions
MOST_PICTURES = 2**24  # of one array of pictures
LONGEST_WORD = 1000  # characters; the vocabulary is learned from longer ones in parts

_SURROGATE = re.compile("[\ud800-\udfff]")


def loads(data: bytes | str) -> Any:
    """The value that JSON spells; ValueError for what is no JSON, or too much of it.

    >>> loads('{"a": [1, 2]}')
    {'a': [1, 2]}
    """
    text = data.decode() if isinstance(data, bytes) else data
    if len(text) > MOST_VALUES and sum(map(text.count, ",:[{")) > MOST_VALUES:
        raise ValueError(f"more than {MOST_VALUES:,} values")
    try:
        tree = json.loads(text, parse_int=_whole)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    _refuse_depth(tree)
    return tree


def read_json(path: Path, what: str = "an object", *, most: int = MOST_SETTINGS) -> dict[str, Any]:
    """The object in a JSON file of a model folder; ModelError names the file and what is wrong with it."""
    try:
        tree = loads(read_bytes(path, most))
    except ValueError as error:
        if isinstance(error, ModelError):
            raise
        reason = str(error).splitlines()[0]
        raise ModelError(f"{path} is no JSON ({reason}); mend it or copy the folder again") from error
    if not isinstance(tree, dict):
        raise ModelError(f"{path} holds a {type(tree).__name__}, not {what}; copy the folder again")
    return tree


def check_strings(strings: Iterable[str], what: str) -> None:
    """Refuse strings of a tokenizer that are no text, too long, or too many; ModelError."""
    spelled = 0
    for string in strings:
        if not isinstance(string, str) or (not string.isascii() and _SURROGATE.search(string)):
            raise ModelError(f"tokenizer.json is broken: a {what} must be text, not {shown(string)}")
        if len(string) > LONGEST_TOKEN:
            raise ModelError(
                f"the {what} {shown(string)} has {len(string)} characters; "
                f"more than {LONGEST_TOKEN} are not read"
            )
        spelled += len(string)
    if spelled > MOST_SPELLED:
        raise ModelError(f"its {what}s have {spelled:,} characters; more than {MOST_SPELLED:,} are not read")


def read_bytes(path: Path, most: int) -> bytes:
    """A whole file of a model folder that may be so many bytes long; it must be a regular file."""
    try:
        if not path.is_file():
            raise ModelError(f"{path} is no file; copy the folder again")
        with path.open("rb") as file:
            data = file.read(min(most, os.fstat(file.fileno()).st_size) + 1)  # room is made for all of it
    except OSError as error:
        raise ModelError(f"cannot read {path}: {error.strerror}") from error
    if len(data) > most:
        raise ModelError(f"{path} has more than {most:,} bytes; it is not what its name says")
    return data


def read_toml_file(path: Path) -> dict[str, Any]:
    """The tables of a TOML file; UsageError where there are none."""
    try:
        with path.open("rb") as file:
            data = file.read(MOST_SETTINGS + 1)
        if len(data) > MOST_SETTINGS:
            raise UsageError(
                f"config {path} has more than {MOST_SETTINGS:,} bytes; it is no file of settings"
            )
        return tomllib.loads(data.decode())
    except OSError as error:
        raise UsageError(f"cannot read config {path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        if isinstance(error, UsageError):
            raise
        raise UsageError(f"config {path} is not TOML: {error}") from error


def toml_value(text: str) -> Any:
    """A value as TOML has it, or a word.

    >>> toml_value("3"), toml_value("true"), toml_value("pre")
    (3, True, 'pre')
    """
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{shown(text)} is no value of a setting") from error


def _whole(digits: str) -> int:
    if len(digits) > MOST_DIGITS:
        raise ValueError(f"a number of {len(digits)} digits")
    return int(digits)


def _refuse_depth(tree: Any) -> None:
    level = [tree] if isinstance(tree, dict | list) else []
    depth = 0
    while level and depth < MOST_DEPTH:
        depth += 1
        level = [
            child
            for node in level
            for child in (node.values() if type(node) is dict else node)
            if type(child) is dict or type(child) is list
        ]
    if level:
        raise ValueError("it is nested too deeply")
