"""What a layer costs on this machine: processor time over growing length and width, and its exponents.

A cost c · L^a · d^b is a straight line in log-log; a and b are fitted on the largest sizes, where the leading
term rules. Time is that of one thread's processor, so neither other programs nor a second core blur it.
Before this file: `layers.py`, `reach.py`; after it: `report.py`, `picture.py`.
"""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from statistics import fmean
from typing import Any

import torch
from torch import Tensor

from regard.compare.layers import Contender, contenders
from regard.compare.reach import chain, longest_path

LENGTHS = (64, 128, 256, 512, 1024, 2048, 4096)
WIDTHS = (64, 128, 256, 512, 1024)
TAIL = 3  # points that an exponent is fitted on: the largest ones
ROUNDS = 3  # each point is timed in every round; its least disturbed time counts
LEAST = 0.02  # seconds that a point is repeated for
# Lengths at which operations are counted and paths are probed. Those of attention are longer: a window or a
# block of the long kinds is wider than a short sequence, and for such a one they take another way.
CHAINS, LONG_CHAINS = (16, 32, 64, 128), (1024, 2048)
PATHS, LONG_PATHS = (8, 32, 128), (8, 32, 128, 1024)

Point = tuple[int, int]  # L, d


@dataclass
class Measured:
    """What was found out about one layer. Times in seconds, by (L, d)."""

    contender: Contender
    layer: dict[Point, float] = field(default_factory=dict)
    core: dict[Point, float] = field(default_factory=dict)  # attention without its projections
    chains: dict[int, int] = field(default_factory=dict)  # operations in a row, by L
    paths: dict[int, int | None] = field(default_factory=dict)  # layers or steps, by L
    failed: str = ""

    @property
    def term(self) -> dict[Point, float]:
        """The times of what the theory speaks of: the attention itself, or the whole layer."""
        return self.core or self.layer


@dataclass(frozen=True)
class Sizes:
    """Which points are measured: a sweep over L at one width, and one over d at one length."""

    lengths: tuple[int, ...] = LENGTHS
    widths: tuple[int, ...] = WIDTHS

    @property
    def width(self) -> int:
        """The width of the sweep over L: small, so that L² d soon outgrows the projections' L d²."""
        return self.widths[min(1, len(self.widths) - 1)]

    def length(self, contender: Contender) -> int:
        """The length of the sweep over d: the longest for attention, for the same reason."""
        return self.lengths[-1 if contender.core else min(1, len(self.lengths) - 1)]

    def points(self, contender: Contender) -> list[Point]:
        """Both sweeps, small ones first."""
        over_length = {(length, self.width) for length in self.lengths}
        over_width = {(self.length(contender), width) for width in self.widths}
        return sorted(over_length | over_width, key=lambda point: (point[0] * point[1], point))


def fit(sizes: Sequence[float], seconds: Sequence[float]) -> float:
    """The exponent a of seconds = c · size^a, by least squares in log-log.

    >>> round(fit([1, 2, 4], [3.0, 12.0, 48.0]), 3)
    2.0
    """
    x, y = [math.log(size) for size in sizes], [math.log(second) for second in seconds]
    mean = fmean(x)
    return sum((a - mean) * b for a, b in zip(x, y, strict=True)) / sum((a - mean) ** 2 for a in x)


def sweep(times: dict[Point, float], axis: int, fixed: int) -> dict[int, float]:
    """The times along L (axis 0) or d (axis 1), the other being `fixed`, in order of size."""
    return {point[axis]: times[point] for point in sorted(times) if point[1 - axis] == fixed}


def exponent(times: dict[int, float]) -> float | None:
    """Fitted on the tail; None where there are fewer than two points."""
    tail = list(times.items())[-TAIL:]
    return fit([size for size, _ in tail], [seconds for _, seconds in tail]) if len(tail) > 1 else None


def exponents(
    measured: Measured, sizes: Sizes, times: dict[Point, float]
) -> tuple[float | None, float | None]:
    """Those of L and d in `times`."""
    length = sizes.length(measured.contender)
    return exponent(sweep(times, 0, sizes.width)), exponent(sweep(times, 1, length))


def clock(function: Callable[[Tensor], Any], x: Tensor) -> float:
    """Processor seconds of one call: the mean of as many as fill LEAST, after one that warms up.

    A call that fills it alone is its own measure: what a first call costs more is nothing beside it.
    """
    began = time.thread_time()
    function(x)
    first = time.thread_time() - began
    if first >= LEAST:
        return first
    calls, began = 0, time.thread_time()
    while (took := time.thread_time() - began) < LEAST:
        function(x)
        calls += 1
    return took / calls


def measure(
    sizes: Sizes, *, seconds: float, said: Callable[..., None] = lambda text, share, **_: None
) -> list[Measured]:
    """Every layer at every size. After `seconds` no further point is begun; `said` hears what is next."""
    end = time.monotonic() + seconds
    longest = max(*sizes.lengths, *LONG_PATHS)
    found = [Measured(contender) for contender in contenders(longest)]
    with _one_thread():
        for number, each in enumerate(found):
            said(f"probing {each.contender.name}", 0.1 * number / len(found))
            _guarded(each, _probe)
        # Small points of all layers first: when time is up, what is missing is the largest of each.
        points = [(point, each) for each in found for point in sizes.points(each.contender)]
        points.sort(key=lambda pair: (pair[0][0] * pair[0][1], pair[0]))
        for turn in range(ROUNDS):
            said(f"timing, round {turn + 1} of {ROUNDS}", 0.1 + 0.9 * turn / ROUNDS, lasting=True)
            for number, (point, each) in enumerate(points):
                if time.monotonic() > end:
                    return found
                share = 0.1 + 0.9 * (turn + number / len(points)) / ROUNDS
                said(f"round {turn + 1} of {ROUNDS}: {each.contender.name} at L = {point[0]:,}", share)
                _guarded(each, partial(_time, point=point))
    return found


def _guarded(each: Measured, work: Callable[[Measured], None]) -> None:
    """One layer that fails does not end the rest; its reason is kept."""
    if not each.failed:
        try:
            work(each)
        except Exception as error:
            each.failed = " ".join(f"{type(error).__name__}: {error}".split())


def _probe(each: Measured) -> None:
    for length in LONG_CHAINS if each.contender.core else CHAINS:
        torch.manual_seed(1)
        each.chains[length] = chain(each.contender.build(8).eval(), length, 8)
    for length in LONG_PATHS if each.contender.core else PATHS:
        each.paths[length] = longest_path(each.contender, length)


def _time(each: Measured, point: Point) -> None:
    """One point of a layer; the least time of all rounds is kept."""
    length, width = point
    torch.manual_seed(1)
    x = torch.randn(each.contender.batch, length, width)
    ways: list[tuple[dict[Point, float], Callable[[Tensor], Any]]]
    ways = [(each.layer, each.contender.build(width).eval())]
    if each.contender.core is not None:
        ways.append((each.core, each.contender.core(width)))
    for times, function in ways:
        with torch.inference_mode():
            took = clock(function, x) / each.contender.batch
        times[point] = min(took, times.get(point, took))


@contextmanager
def _one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
