"""Inputs made from others: bytes turned round, and, where the format is known, its parts exchanged.

A small and deterministic mutator: the same random numbers give the same inputs. It knows JSON, protocol
buffers and safetensors, because a change of their bytes alone seldom passes the first check. Where atheris is
installed it takes turns with atheris's own.
"""

import json
from collections.abc import Sequence
from random import Random
from typing import Any

LONGEST = 1 << 18  # bytes of what is made; larger inputs stand in the corpus themselves
MARK = "~raw~"

# Values that no honest file has, as JSON has them.
_DEEP = "[" * 3000 + "]" * 3000
RAW = (
    *("null", "true", "-1", "0", "1", "1.5", "-0.0", "2147483648", "-9223372036854775809", "1e308", "1e999"),
    *(
        "NaN",
        "-Infinity",
        "9" * 400,
        "-" + "9" * 400,
        "9" * 5000,
        '""',
        '"\\ud800"',
        '"\\u0000"',
        '"\\u001b[31m"',
    ),
    *(f'"{"a" * 3000}"', "[]", "{}", "[[1, 2]]", "[null]", '{"a": {"a": {"a": 1}}}', _DEEP, '{"": ""}'),
)
BYTES = (
    *(b"\0", b"\xff", b"\xff" * 8, b"\x80", b"\x7f", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\r\n", b"\x1b[2J"),
    *(b"9" * 400, b"-", b"nan", b"\xcc\x81", b"\xe2\x80\xa8", b"&#", b"<!--", b'"', b"\\", b"[" * 500, b"{"),
)


def mutated(data: bytes, rng: Random, form: str, words: Sequence[bytes], others: Sequence[bytes]) -> bytes:
    """The input, changed in a few places; `others` are inputs that it may borrow from."""
    for _ in range(rng.choice((1, 1, 2, 3, 5))):
        structured = _FORMS.get(form)
        changed = structured(data, rng) if structured and rng.random() < 0.7 else None
        data = changed if changed is not None else _bytes(data, rng, words, others)
    return data[:LONGEST]


def _bytes(data: bytes, rng: Random, words: Sequence[bytes], others: Sequence[bytes]) -> bytes:
    at, end = sorted((rng.randint(0, len(data)), rng.randint(0, len(data))))
    end = min(end, at + rng.choice((1, 2, 4, 16, 4096)))
    piece = data[at:end]
    word = rng.choice((*words, *BYTES))
    match rng.randrange(8):
        case 0:
            return data[:at] + data[end:]
        case 1:
            return data[:at] + word + data[at:]
        case 2:
            return data[:at] + word + data[end:]
        case 3:
            return data[:at] + piece * rng.choice((2, 3, 50, 1000)) + data[end:]
        case 4:
            return data[:at] + bytes(byte ^ 1 << rng.randrange(8) for byte in piece) + data[end:]
        case 5:
            return data[:at] + word * rng.choice((10, 300, 5000)) + data[end:]
        case 6 if others:
            other = rng.choice(others)
            return data[:at] + other[rng.randint(0, len(other)) :]
        case _:
            return data[:at] + rng.randbytes(end - at) + data[end:]


# JSON ----------------------------------------------------------------------------------------------


def _json(data: bytes, rng: Random) -> bytes | None:
    try:
        tree = json.loads(data)
    except (ValueError, RecursionError):
        return None
    text = _written(_changed(tree, rng))
    return (
        None if text is None else text.replace(f'"{MARK}"', rng.choice(RAW)).encode("utf-8", "surrogatepass")
    )


def _written(tree: Any) -> str | None:
    try:
        return json.dumps(tree, ensure_ascii=False)
    except (ValueError, RecursionError):  # an integer of too many digits
        return None


def _changed(tree: Any, rng: Random) -> Any:
    """The tree with one of its values, or keys, another one."""
    if not isinstance(tree, dict | list) or not tree or rng.random() < 0.1:
        return MARK
    if isinstance(tree, list):
        place = rng.randrange(len(tree))
        match rng.randrange(5):
            case 0:
                return [*tree[:place], *tree[place + 1 :]]
            case 1:
                return [*tree, tree[place]]
            case _:
                return [*tree[:place], _changed(tree[place], rng), *tree[place + 1 :]]
    key = rng.choice(list(tree))
    match rng.randrange(8):
        case 0:
            return {name: value for name, value in tree.items() if name != key}
        case 1:
            return tree | {rng.choice(("", "\ud800", "a" * 2000, "\x1b[31m", "kind")): tree[key]}
        case 2:
            return tree | {key: tree[rng.choice(list(tree))]}
        case _:
            return tree | {key: _changed(tree[key], rng)}


def _safetensors(data: bytes, rng: Random) -> bytes | None:
    """The header changed; its length mostly follows."""
    size = int.from_bytes(data[:8], "little")
    header = _json(data[8 : 8 + size], rng) if size < len(data) else None
    if header is None:
        return None
    said = len(header) if rng.random() < 0.9 else rng.choice((0, 1, 2**32, 2**63, len(header) + 1))
    return said.to_bytes(8, "little") + header + data[8 + size :]


def _json_lines(data: bytes, rng: Random) -> bytes | None:
    lines = data.splitlines(keepends=True)
    place = rng.randrange(len(lines)) if lines else 0
    changed = _json(lines[place], rng) if lines else None
    return None if changed is None else b"".join([*lines[:place], changed, b"\n", *lines[place + 1 :]])


def _request(data: bytes, rng: Random) -> bytes | None:
    """A body changed, its head as it was."""
    head, _, body = data.partition(b"\n")
    changed = _json(body, rng)
    return None if changed is None else head + b"\n" + changed


# Protocol buffers ----------------------------------------------------------------------------------


def _message(data: bytes, rng: Random) -> bytes | None:
    """A message with one of its fields another one, and its length with it."""
    from regard.interop.sentencepiece import field, parse

    try:
        fields = [(number, value) for number, values in parse(data).items() for value in values]
    except ValueError:
        return None
    if not fields:
        return None
    place = rng.randrange(len(fields))
    number, value = fields[place]
    match rng.randrange(6):
        case 0:
            fields[place : place + 1] = []
        case 1:
            fields[place] = rng.choice((1, 2, 3, 5, 24, 35, 40)), value
        case 2:
            fields[place : place + 1] = [fields[place]] * rng.choice((2, 500))
        case 3:
            fields[place] = number, rng.choice((0, 1, 2, 6, 2**31, 2**63, b"", b"\xff", b"a" * 3000))
        case _ if isinstance(value, bytes):
            fields[place] = number, _message(value, rng) or _bytes(value, rng, (), ())
    return b"".join(field(number, value) for number, value in fields)


_FORMS = {
    "json": _json,
    "json lines": _json_lines,
    "request": _request,
    "safetensors": _safetensors,
    "message": _message,
}
