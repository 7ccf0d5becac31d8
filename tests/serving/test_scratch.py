"""Memory in passing: what does not fit waits, and one may always begin."""

import threading
import time

from regard.serving.scratch import Scratch


def test_what_does_not_fit_waits_until_another_is_done() -> None:
    scratch, most, done = Scratch(7), [0], []

    def work(size: int) -> None:
        with scratch.taking(size):
            most[0] = max(most[0], scratch.used)
            time.sleep(0.002)
        done.append(size)

    threads = [threading.Thread(target=work, args=(size,)) for size in [3, 2, 5] * 11]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(done) == 33
    assert 5 <= most[0] <= 7
    assert scratch.used == 0


def test_one_may_always_begin() -> None:
    scratch = Scratch(7)
    with scratch.taking(100):
        assert scratch.used == 100
    assert scratch.used == 0


def test_what_needs_little_waits_for_nobody() -> None:
    scratch = Scratch(160)
    with scratch.taking(1000), scratch.taking(10):  # a wait here would be for ever
        assert scratch.used == 1000
