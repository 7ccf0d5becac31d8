"""Every error a person can meet, and the exit code it ends the command with.

    RegardError (1)
    ├── UsageError (2)        a flag, a config key or a rule broken
    ├── DataError (2)         a text file that cannot be used, with file and line
    ├── ModelError (2)        a model folder that is missing, broken or foreign
    ├── QualityError (3)      a quality gate missed
    ├── DivergedError (4)     training met too many non-finite steps in a row
    └── StorageError (5)      the disk or the network

The message is one line: what, where, what to do. The command line prints it without a traceback. Whatever a
stranger's file or flag put into it, it is short and a terminal can show it.
"""

from collections.abc import Iterable

LONGEST_VALUE = 80  # characters of a stranger's value in a message
LONGEST_MESSAGE = 1000  # of a whole one; paths may be long
_LARGEST_SHOWN = 10**40


def printable(text: str) -> str:
    """`text` with whatever a terminal might act on, or hide, spelled out.

    A byte of a file name that is no UTF-8 is shown as a byte.

    >>> printable("a\\x1b[2J\\u202eb\\udcff")
    'a<U+001B>[2J<U+202E>b<0xFF>'
    """
    return text if text.isprintable() else "".join(map(_visible, text))


def _visible(one: str) -> str:
    if one.isprintable():
        return one
    return f"<0x{ord(one) - 0xDC00:02X}>" if "\udc80" <= one <= "\udcff" else f"<U+{ord(one):04X}>"


def shown(value: object, most: int = LONGEST_VALUE) -> str:
    """A stranger's value as a message may name it: a few printable characters.

    >>> shown("ab" * 99, 7), shown(-2), shown(10**400), shown([[1]])
    ('abab...', '-2', 'a number of 401 digits', 'a list')
    """
    if isinstance(value, int) and abs(value) >= _LARGEST_SHOWN:
        return f"a number of {int(abs(value).bit_length() * 0.30103) + 1} digits"
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, str):
        text = value[: most + 1]
    else:
        text = str(value) if isinstance(value, int | None) else f"a {type(value).__name__}"
    text = printable(text)
    return text if len(text) <= most else text[: most - 3] + "..."


def one_line(message: str, most: int = LONGEST_MESSAGE) -> str:
    """A whole message as a terminal may have it; of a long one the middle is left out."""
    line = printable(" ".join(_ends(message, most).splitlines()))
    return _ends(line, most)


def _ends(text: str, most: int) -> str:
    half = (most - 5) // 2
    return text if len(text) <= most else f"{text[:half]} ... {text[-half:]}"


def error_line(error: BaseException) -> str:
    """What another's error says, on one line."""
    return one_line(" ".join(f"{type(error).__name__}: {error}".split()))


class RegardError(Exception):
    """The root of the tree; `exit_code` is what the command ends with."""

    exit_code = 1

    def __str__(self) -> str:
        return one_line(super().__str__())


class UsageError(RegardError, ValueError):
    """A flag, a config key or a rule was broken."""

    exit_code = 2


class DataError(RegardError, ValueError):
    """A data file cannot be used as it is."""

    exit_code = 2


class ModelError(RegardError, ValueError):
    """A model folder is missing, broken, or not ours."""

    exit_code = 2


class QualityError(RegardError):
    """A score stayed below the gate that was asked for."""

    exit_code = 3


class DivergedError(RegardError):
    """Too many steps in a row had a loss or gradient that was not finite."""

    exit_code = 4


class StorageError(RegardError, OSError):
    """The disk or the network failed; what was saved before is intact."""

    exit_code = 5


def refuse_unknown(given: Iterable[str], known: Iterable[str], whom: str) -> None:
    """Refuse keywords that nobody reads: a slip of the pen that would change nothing, and say nothing."""
    known = sorted(known)
    if strange := [name for name in given if name not in known]:
        raise UsageError(f"{shown(strange[0])} means nothing to {whom}, which also takes {', '.join(known)}")
