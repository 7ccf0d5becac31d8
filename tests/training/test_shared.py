"""Work that processes share out: each thing is done once, and all are told the same, in order."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

from regard.errors import UsageError
from regard.training import objective
from regard.training.objective import Limit, shared
from regard.training.several import Several


class Beside(Several):
    """One of several that are threads of this process."""

    def __init__(self, rank: int, held: list[Any], barrier: threading.Barrier) -> None:
        super().__init__(rank, len(held), rank)
        self.held, self.barrier = held, barrier

    def gather(self, value: Any) -> list[Any]:
        self.held[self.rank] = value
        self.barrier.wait(10)
        found = list(self.held)
        self.barrier.wait(10)
        return found


def in_threads(size: int, work: Callable[[int], Any], monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What `work` gives for each rank, run as worlds of threads."""
    local, held, barrier = threading.local(), [None] * size, threading.Barrier(size)
    found: list[Any] = [None] * size
    monkeypatch.setattr(objective, "here", lambda: local.world)

    def run(rank: int) -> None:
        local.world = Beside(rank, held, barrier)
        try:
            found[rank] = work(rank)
        except (UsageError, SystemExit) as error:
            found[rank] = error

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    return found


def test_each_is_done_once_and_all_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[tuple[int, int]] = []

    def work(rank: int) -> list[int]:
        return list(shared(lambda item: done.append((rank, item)) or item**2, range(7), Limit()))  # type: ignore[func-returns-value]

    assert in_threads(3, work, monkeypatch) == [[item**2 for item in range(7)]] * 3
    assert sorted(done) == [(0, 0), (0, 3), (0, 6), (1, 1), (1, 4), (2, 2), (2, 5)]


def test_the_clock_of_the_first_ends_it_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    def work(rank: int) -> list[int]:
        ticks = iter(range(100))
        until = 1.0 if rank == 0 else 90.0
        return list(shared(lambda item: item, range(11), Limit(until, lambda: next(ticks))))

    assert in_threads(2, work, monkeypatch) == [[0, 1, 2, 3]] * 2


def test_what_fails_in_one_fails_in_all_and_the_first_says_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def work(rank: int) -> list[int]:
        def refuse(item: int) -> int:
            if item == 4:
                raise UsageError("four is too many")
            return item

        return list(shared(refuse, range(5), Limit()))

    first, second, third = in_threads(3, work, monkeypatch)
    assert str(first) == "process 1: four is too many"
    assert (second.code, third.code) == (2, 2)


def test_alone_it_is_a_loop_that_the_clock_ends() -> None:
    ticks = iter(range(100))
    assert list(shared(str, range(5), Limit(1.0, lambda: next(ticks)))) == ["0", "1"]
    assert list(shared(str, [], Limit())) == []
