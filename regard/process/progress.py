"""What a person sees while it trains: one live line on a terminal, plain lines elsewhere, on stderr.

The loop calls `started`, `stepped`, `validated` and `said`; it knows nothing of how they are shown.
"""

import sys
from types import TracebackType
from typing import Protocol, TextIO

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

PLAIN_EVERY = 30.0  # seconds between plain lines


class Standing(Protocol):
    """Where some training stands: what of its state is shown here."""

    @property
    def step(self) -> int: ...
    @property
    def epoch(self) -> int: ...
    @property
    def seconds(self) -> float: ...
    @property
    def began(self) -> float: ...
    @property
    def standing(self) -> str: ...


def duration(seconds: float) -> str:
    """Seconds as a person says them.

    >>> duration(8), duration(95), duration(2880), duration(7500)
    ('8 s', '1 min 35 s', '48 min', '2 h 05 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 600:
        return f"{whole // 60} min {whole % 60:02d} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"


def left(state: Standing, progress: float) -> float | None:
    """Seconds to go, judged by the share that is done; None before anything is."""
    spent = state.seconds - state.began
    return spent * (1 - progress) / progress if progress > 0 else None


def describe(
    state: Standing, progress: float, loss: float | None, speed: float | None, unit: str = "tokens"
) -> str:
    """The line: step, epoch, loss, speed in what is learned from, validation, time left."""
    parts = [f"step {state.step}", f"epoch {state.epoch + 1}"]
    parts += [f"loss {loss:.3f}"] if loss is not None else []
    parts += [f"{speed:,.0f} {unit}/s"] if speed else []
    parts += [state.standing] if state.standing else []
    to_go = left(state, progress)
    parts += [f"{duration(to_go)} left"] if to_go is not None else []
    return "  ".join(parts)


class Reporter:
    """What work tells a person meanwhile; where a kind does not say how, nothing is told."""

    unit = "tokens"  # what is learned from, a second

    def said(self, text: str) -> None:
        """A message of its own."""

    def stepped(self, state: Standing, progress: float, loss: float | None, speed: float | None) -> None:
        """A step is done; `loss` and `speed` are those since the last line of metrics."""

    def advanced(self, seconds: float, progress: float, text: str) -> None:
        """Some other work has come this far after so many seconds."""

    def __enter__(self) -> "Reporter":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None


class Silent(Reporter):
    """Says nothing."""


class Plain(Reporter):
    """A line now and then, for files and pipes."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self.next = 0.0

    def said(self, text: str) -> None:
        print(text, file=self.stream, flush=True)

    def stepped(self, state: Standing, progress: float, loss: float | None, speed: float | None) -> None:
        if loss is not None and state.seconds >= self.next:
            self.next = state.seconds + PLAIN_EVERY
            self.said(f"{progress:4.0%}  {describe(state, progress, loss, speed, self.unit)}")

    def advanced(self, seconds: float, progress: float, text: str) -> None:
        if seconds >= self.next:
            self.next = seconds + PLAIN_EVERY
            self.said(f"{progress:4.0%}  {text}")


class Bar(Reporter):
    """A bar that stays in its place, with messages above it."""

    def __init__(self, stream: TextIO) -> None:
        columns = (
            BarColumn(bar_width=24),
            TextColumn("{task.percentage:3.0f}%"),
            TextColumn("{task.description}"),
        )
        self.console = Console(file=stream, highlight=False)  # honours NO_COLOR
        self.bar = Progress(*columns, console=self.console, transient=True, refresh_per_second=4)
        self.task = self.bar.add_task("", total=1.0, visible=False)
        self.shown: tuple[float | None, float | None] = (None, None)

    def said(self, text: str) -> None:
        self.console.print(text, markup=False, soft_wrap=True)

    def stepped(self, state: Standing, progress: float, loss: float | None, speed: float | None) -> None:
        if loss is not None:
            self.shown = loss, speed
        text = describe(state, progress, *self.shown, self.unit)
        self.bar.update(self.task, completed=progress, description=text, visible=True)

    def advanced(self, seconds: float, progress: float, text: str) -> None:
        self.bar.update(self.task, completed=progress, description=text, visible=True)

    def __enter__(self) -> "Bar":
        self.bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.bar.stop()


def build_reporter(*, quiet: bool = False) -> Reporter:
    """The one that suits where stderr goes."""
    if quiet or sys.stderr is None:
        return Silent()
    return Bar(sys.stderr) if sys.stderr.isatty() else Plain(sys.stderr)
