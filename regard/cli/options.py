"""How a verb says what it takes: a frozen dataclass of annotated fields instead of a dozen parameters.

typer reads a function's signature; `takes` gives the function the signature of its options.
"""

import inspect
import math
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from regard.errors import UsageError, shown

LARGEST = 2**53  # whole number that a flag takes; more than there are of anything

OVERFLOW = ("cut", "refuse")

Options = TypeVar("Options")

# Flags that several verbs have, in the same words.
Model = Annotated[Path, typer.Option("-m", "--model", metavar="DIR", help="A model folder.")]
Overflow = Annotated[
    str, typer.Option(help="A text that is longer than the model reads: cut (and say so) or refuse.")
]
Precision = Annotated[str, typer.Option(help="int8, bf16, fp32; auto: the fastest that is as good.")]
Engine = Annotated[str, typer.Option(help="native, readable; auto: native where it knows the model.")]
From = Annotated[
    str, typer.Option("--from", metavar="LANG", help="The text's language, for a model of several pairs.")
]
To = Annotated[
    str, typer.Option("--to", metavar="LANG", help="The language to write, for a model of several pairs.")
]
Part = Annotated[
    str | None,
    typer.Option(
        "--part",
        metavar="I/N",
        help="The I-th of N shares of the lines, into F.I-of-N; one that is there is not made again.",
    ),
]
On = Annotated[
    str | None,
    typer.Option(
        "--on",
        metavar="ray",
        help="Share the lines out by Ray: over this machine's cores, or the cluster that RAY_ADDRESS names.",
        show_default="this process",
    ),
]
Device = Annotated[str | None, typer.Option(help="cpu, cuda, cuda:1, mps; found by itself.")]


def takes(options: type[Options]) -> Callable[[Callable[[Options], None]], Callable[..., None]]:
    """Let typer call `verb(options)` with the fields of `options` as its arguments and flags."""

    def decorate(verb: Callable[[Options], None]) -> Callable[..., None]:
        def call(**given: object) -> None:
            for name, value in given.items():
                _refuse_odd_number(name, value)
            verb(options(**given))

        call.__name__ = verb.__name__
        call.__doc__ = verb.__doc__
        call.__signature__ = inspect.signature(options)  # type: ignore[attr-defined]
        return call

    return decorate


def _refuse_odd_number(name: str, value: object) -> None:
    """Refuse what is a number to Python and to nobody else, before any work is done."""
    flag = f"--{name.replace('_', '-')}"
    if isinstance(value, float) and not math.isfinite(value):
        raise UsageError(f"{flag} ({value}) must be a finite number")
    if isinstance(value, int) and abs(value) > LARGEST:
        raise UsageError(f"{flag} ({shown(value)}) must be between -{LARGEST} and {LARGEST}")


def refuse_sharing(
    part: str | None, on: str | None, why: str = "shares out the lines of a file; give it with -i FILE"
) -> None:
    """Refuse --part and --on where there is nothing to share out; `why` follows the flag."""
    for flag, given in (("--part", part), ("--on", on)):
        if given:
            raise UsageError(f"{flag} {why}")


def refuse_overflow(word: str) -> None:
    """Refuse a word that --overflow does not know."""
    if word not in OVERFLOW:
        raise UsageError(f"--overflow ({word}) must be one of {', '.join(OVERFLOW)}")
