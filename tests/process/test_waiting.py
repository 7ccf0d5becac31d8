import threading
from pathlib import Path

import pytest
import torch

from regard.process import waiting
from regard.process.waiting import (
    CROWDED,
    FIRST_PAUSE,
    LAST_PAUSE,
    LOOK_EVERY,
    Judge,
    Sleepers,
    find_library,
    waiting_times,
    watched,
)

libgomp = pytest.mark.skipif(
    not any("/libgomp" in line for line in Path("/proc/self/maps").read_text().splitlines()),
    reason="this torch brings no libgomp",
)


def spells(judge: Judge, crowded: list[bool]) -> list[tuple[bool, int]]:
    """What was judged, look by look, as (awake, how many looks in a row)."""
    found: list[tuple[bool, int]] = []
    for number, full in enumerate(crowded):
        awake = judge.look(number * LOOK_EVERY, 2 * CROWDED if full and judge.awake else 0.0)
        if found and found[-1][0] == awake:
            found[-1] = awake, found[-1][1] + 1
        else:
            found.append((awake, 1))
    return found


def test_threads_that_get_their_cores_stay_awake() -> None:
    assert spells(Judge(), [False] * 99) == [(True, 99)]


def test_in_a_crowd_they_sleep_and_try_again_ever_more_rarely() -> None:
    looks = spells(Judge(), [True] * 2000)
    pauses = [count * LOOK_EVERY for awake, count in looks if not awake]
    assert looks[0] == (False, FIRST_PAUSE / LOOK_EVERY)
    assert pauses[:5] == [2, 4, 8, 16, 32]
    assert set(pauses[4:-1]) == {LAST_PAUSE}
    assert all(count == 1 for awake, count in looks if awake)


def test_when_the_others_have_gone_they_wake_and_a_new_crowd_is_judged_anew() -> None:
    judge = Judge()
    looks = spells(judge, [True] * 100 + [False] * 200 + [True] * 7)
    assert looks[-2][0]
    assert looks[-2][1] > 32
    assert looks[-1] == (False, 7)
    assert judge._pause == FIRST_PAUSE


@libgomp
def test_sleepers_come_and_go_and_change_no_bit() -> None:
    library = find_library()
    assert library is not None
    torch.manual_seed(1)
    a, b = torch.randn(311, 257), torch.randn(257, 131)
    threads, whole = torch.get_num_threads(), a @ b
    before, others = (
        set(waiting_times()),
        set(threading.enumerate()),
    )  # a watch of this process may have its own
    sleepers = Sleepers(library)
    try:
        torch.set_num_threads(2)
        two = a @ b
        sleepers.come()
        sleepers.come()
        while len(set(waiting_times()) - before) < library.omp_get_num_procs() + 1:
            pass
        assert torch.equal(a @ b, two)
    finally:
        sleepers.go()
        sleepers.go()
        torch.set_num_threads(threads)
    assert "regard-sleepers" not in [thread.name for thread in set(threading.enumerate()) - others]
    assert torch.equal(a @ b, whole)


@libgomp
def test_a_crowd_is_seen_while_something_computes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole watch, with waiting times as they would be in a crowd."""
    came = threading.Event()
    monkeypatch.setattr(waiting, "waiting_times", lambda: {"1": 9.0 * next(times)})
    monkeypatch.setattr(Sleepers, "come", lambda self: came.set())
    times = iter(range(10**9))
    watch = waiting._Watch()
    watch.enter()
    assert came.wait(60)
    watch.leave()
    assert watch.users == 0


def test_waiting_is_counted_by_thread() -> None:
    times = waiting_times()
    if Path("/proc/self/schedstat").exists():
        assert str(threading.get_native_id()) in times
        assert all(seconds >= 0 for seconds in times.values())


def test_where_nothing_is_counted_nothing_is_done(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(waiting, "TASKS", tmp_path / "none")
    assert waiting_times() == {}
    with watched(), watched():
        assert waiting._watch.users >= 2
    monkeypatch.setenv("OMP_WAIT_POLICY", "PASSIVE")
    assert find_library() is None
