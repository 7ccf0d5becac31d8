"""Lines in, lines out, for every verb that answers line by line: whole, a part of them, or on Ray.

A verb hands over its options and what makes of them a function from lines to lines. On Ray that function is
made in one process a core, here or on the machines of a cluster; blocks of lines go round to them and come
back in order, and what one had when it died is done again. Before this file: `streams.py`, `parts.py`.
"""

import os
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from itertools import cycle, islice
from pathlib import Path
from typing import Any, Protocol, TypeVar

from regard.cli.console import counted
from regard.cli.parts import part_of
from regard.cli.streams import is_standard, reading, refuse_same_file, writing
from regard.errors import RegardError, StorageError, UsageError

PLACES = ("ray",)
BLOCK = 256  # lines that go to a process together
AHEAD = 3  # blocks that each may have: it never waits, and a long input is not all under way
TRIALS = 20  # deaths over one block, after which it is given up

Answer = Callable[[Iterable[str]], Iterator[str]]


class Bulk(Protocol):
    """What the options of such a verb have."""

    @property
    def model(self) -> Path: ...
    @property
    def source(self) -> Path: ...
    @property
    def output(self) -> Path: ...
    @property
    def part(self) -> str | None: ...
    @property
    def on(self) -> str | None: ...


Options = TypeVar("Options", bound=Bulk)


def answer_lines(
    options: Options, load: Callable[[Options], Answer], lines: Iterable[str] | None = None
) -> None:
    """Answer the lines of the input, or those that are given. Nothing is written before a model is loaded."""
    refuse_same_file(options.source, options.output)
    part = part_of(options.part, options.source, options.output)
    if part and part.there(options.model):
        return
    check_place(options.on, options.output)
    seen = is_standard(options.output) and sys.stdout is not None and sys.stdout.isatty()
    whole = part.reading() if part else reading(options.source)
    with whole if lines is None else nullcontext(lines) as given:
        answer = on_ray(options, load, BLOCK) if options.on else load(options)
        with part.writing() if part else writing(options.output) as write:
            for line in counted(answer(given), "lines", on=None if seen else sys.stderr):
                write(line)


def check_place(on: str | None, output: Path | None) -> None:
    """Refuse a word that --on does not know, and what cannot be put together of lines."""
    if on is None:
        return
    if on not in PLACES:
        raise UsageError(f"--on ({on}) must be {', '.join(PLACES)}")
    if output is not None and output.suffix == ".npy":
        raise UsageError("--on gives lines; name an output (-o) that does not end with .npy")


class Answerer:
    """One process of Ray's: the model is loaded when the first lines come, so that what is wrong is told."""

    def __init__(self, load: Callable[[Any], Answer], options: Any) -> None:
        self.load, self.options = load, options
        self.made: Answer | None = None

    def answers(self, lines: list[str]) -> list[str]:
        """Of each line, in order."""
        self.made = self.made or self.load(self.options)
        return list(self.made(lines))


def on_ray(options: Any, load: Callable[[Any], Answer], block: int) -> Answer:
    """`load(options)`, by as many processes as Ray has cores; RAY_ADDRESS names a cluster of machines."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nobody is told
    try:
        import ray
    except ImportError as error:
        raise UsageError("ray is not installed; pip install 'regard[ray]'") from error

    def answer(lines: Iterable[str]) -> Iterator[str]:
        try:
            _begin(ray)
            yield from _round(ray, options, load, _blocks(lines, block))
        finally:
            ray.shutdown()

    return answer


def _begin(ray: Any) -> None:
    try:
        quiet = {} if os.environ.get("RAY_ADDRESS") else {"include_dashboard": False}
        ray.init(log_to_driver=False, logging_level="ERROR", **quiet)
    except Exception as error:  # of many kinds
        raise StorageError(f"Ray does not begin: {' '.join(str(error).split())[:300]}") from error


def _blocks(lines: Iterable[str], size: int) -> Iterator[list[str]]:
    left = iter(lines)
    while block := list(islice(left, size)):
        yield block


def _round(
    ray: Any, options: Any, load: Callable[[Any], Answer], blocks: Iterator[list[str]]
) -> Iterator[str]:
    """The answers, in the order of the lines."""
    cores = max(1, int(ray.cluster_resources().get("CPU", 1)))
    kind = ray.remote(num_cpus=1, max_restarts=-1, max_task_retries=TRIALS)(Answerer)
    workers = cycle([kind.remote(load, options) for _ in range(cores)])
    under_way: deque[Any] = deque()
    while True:
        for block in islice(blocks, AHEAD * cores - len(under_way)):
            under_way.append(next(workers).answers.remote(block))
        if not under_way:
            return
        try:
            yield from ray.get(under_way.popleft())
        except ray.exceptions.RayTaskError as error:
            raise error.cause if isinstance(error.cause, RegardError) else error from None
        except ray.exceptions.RayError as error:
            raise StorageError(f"Ray gave up: {' '.join(str(error).split())[:300]}") from error
