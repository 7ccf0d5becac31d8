"""A dataclass as the signature of a verb."""

import inspect
from dataclasses import dataclass
from typing import Annotated

import typer

from regard.cli.options import takes


@dataclass(frozen=True)
class Wanted:
    name: Annotated[str, typer.Argument()]
    times: Annotated[int, typer.Option("--times")] = 2


def test_the_verb_gets_its_options_and_typer_their_signature():
    got: list[Wanted] = []

    @takes(Wanted)
    def greet(options: Wanted) -> None:
        """Say hello."""
        got.append(options)

    greet(name="Ada", times=3)
    assert got == [Wanted("Ada", 3)]
    assert (greet.__name__, greet.__doc__) == ("greet", "Say hello.")
    assert list(inspect.signature(greet).parameters) == ["name", "times"]
    assert inspect.signature(greet).parameters["times"].default == 2
