import io

import pytest

from regard.measure.score import Score
from regard.process.progress import Bar, Plain, Silent, build_reporter, describe, left
from regard.training.state import State


def test_the_line_says_what_was_promised() -> None:
    state = State(
        step=30,
        epoch=1,
        seconds=70,
        began=10,
        scores={"loss": Score(1.0), "bleu": Score(12.34, label="BLEU", digits=1)},
    )
    line = describe(state, 0.25, 2.5, 3456.7)
    assert line == "step 30  epoch 2  loss 2.500  3,457 tokens/s  valid BLEU 12.3  3 min 00 s left"
    assert "3,457 pictures/s" in describe(state, 0.25, 2.5, 3456.7, "pictures")


def test_time_left_is_unknown_before_anything_is_done() -> None:
    assert left(State(), 0.0) is None
    assert left(State(seconds=30, began=20), 0.1) == pytest.approx(90)


def test_plain_lines_come_now_and_then() -> None:
    stream = io.StringIO()
    with Plain(stream) as reporter:
        for second in range(100):
            reporter.stepped(State(step=second, seconds=second), second / 100, 1.0, 2.0)
        reporter.said("hello [bold]")
    lines = stream.getvalue().splitlines()
    assert [line.split()[2] for line in lines[:-1]] == ["0", "30", "60", "90"]
    assert lines[-1] == "hello [bold]"


def test_a_terminal_gets_a_bar_and_no_colour_where_none_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    stream = Terminal()
    monkeypatch.setattr("sys.stderr", stream)
    reporter = build_reporter()
    assert isinstance(reporter, Bar)
    with reporter:
        reporter.stepped(State(step=5, seconds=9), 0.5, 1.5, 100.0)
        reporter.said("a [message]")
        reporter.bar.refresh()
    shown = stream.getvalue()
    assert "step 5" in shown
    assert "a [message]" in shown
    assert "\x1b[3" not in shown.replace("\x1b[?25", "")  # no colours


def test_quiet_and_pipes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", io.StringIO())
    assert type(build_reporter()) is Plain
    assert type(build_reporter(quiet=True)) is Silent
