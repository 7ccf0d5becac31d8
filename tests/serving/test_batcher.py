"""Who is translated with whom, who waits, who is sent away, and what happens when the engine fails."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from regard.serving.batcher import LATE, MEMORY, Batcher
from regard.serving.limits import Limits


class Nobody:
    """Counts nothing but what was dropped."""

    gone = 0

    def batch(self, rows: int, seconds: float) -> None: ...
    def dropped(self, sentences: int) -> None:
        self.gone += sentences


class Engine:
    """Writes down its batches; works only while the gate is open."""

    def __init__(self) -> None:
        self.batches: list[tuple[Any, list[str]]] = []
        self.gate, self.busy = threading.Event(), threading.Event()
        self.gate.set()

    def __call__(self, key: Any, texts: Any, alone: bool) -> list[str]:
        self.busy.set()
        self.gate.wait()
        self.batches.append((key, list(texts)))
        if "poison" in texts:
            raise ValueError("cannot")
        return [text.upper() for text in texts]


def run(scenario: Callable[[Batcher, Engine], Any], **limits: Any) -> tuple[Engine, Nobody]:
    """A scenario in an event loop of its own, with a batcher that has begun."""
    engine, counts = Engine(), Nobody()
    batcher = Batcher(engine, Limits(**limits), counts)

    async def main() -> None:
        batcher.start()
        await asyncio.wait_for(scenario(batcher, engine), 60)

    try:
        asyncio.run(main())
    finally:
        engine.gate.set()
        batcher.close()
        for thread in batcher.threads:
            thread.join()
    return engine, counts


async def occupy(batcher: Batcher, engine: Engine) -> Any:
    """Keep the engine busy with one sentence until the gate is opened."""
    engine.gate.clear()
    engine.busy.clear()
    job = batcher.submit("k", ["first"], [1])
    await asyncio.to_thread(engine.busy.wait)
    return job


def test_a_lone_request_is_not_delayed_and_results_keep_their_places():
    async def scenario(batcher, engine):
        assert await batcher.submit("k", ["a", "b"], [1, 1]).all() == ["A", "B"]
        assert await batcher.submit("k", [], []).all() == []

    engine, _ = run(scenario)
    assert engine.batches == [("k", ["a", "b"])]


def test_what_has_waited_for_long_waits_for_no_newcomer():
    async def scenario(batcher, engine):
        first = await occupy(batcher, engine)
        jobs = [batcher.submit("k", [name + "1", name + "2"], [1, 1]) for name in "abc"]
        jobs[1].since -= 0.9 * LATE * batcher.limits.seconds
        jobs[2].since -= 1.1 * LATE * batcher.limits.seconds
        engine.gate.set()
        for job in (first, *jobs):
            await job.all()

    engine, _ = run(scenario, rows=2)
    assert [texts for _, texts in engine.batches] == [["first"], ["c1", "c2"], ["a1", "b1"], ["a2", "b2"]]


def test_what_is_ahead_is_what_has_not_begun():
    async def scenario(batcher, engine):
        await batcher.submit("k", ["a"], [7]).all()
        first = await occupy(batcher, engine)
        little = batcher.submit("k", ["a"], [50])
        assert batcher.ahead == 0.0  # nothing is known yet that one could go by
        engine.gate.set()
        await first.all()
        await little.all()
        await batcher.submit("k", ["a"], [MEMORY]).all()
        first = await occupy(batcher, engine)
        jobs = [batcher.submit("k", ["a", "b"], [50, 50]) for _ in range(2)]
        both = batcher.ahead
        batcher.cancel(jobs[0])
        assert 0 < batcher.ahead < both
        assert batcher.ahead == pytest.approx(both / 2)
        engine.gate.set()
        await first.all()
        await jobs[1].all()
        assert batcher.ahead == 0.0

    run(scenario)


def test_what_waits_goes_together_a_sentence_of_each_in_turn():
    async def scenario(batcher, engine):
        first = await occupy(batcher, engine)
        long = batcher.submit("k", [f"long{n}" for n in range(5)], [1] * 5)
        short = batcher.submit("k", ["short"], [1])
        engine.gate.set()
        assert await short.all() == ["SHORT"]
        assert await long.all() == [f"LONG{n}" for n in range(5)]
        assert await first.all() == ["FIRST"]

    engine, _ = run(scenario, rows=3)
    assert [texts for _, texts in engine.batches] == [
        ["first"],
        ["long0", "short", "long1"],
        ["long2", "long3", "long4"],
    ]


def test_only_those_that_want_the_same_go_together_and_none_starves():
    async def scenario(batcher, engine):
        await occupy(batcher, engine)
        jobs = [batcher.submit(key, [f"{key}{n}" for n in range(2)], [1, 1]) for key in ("a", "b")]
        engine.gate.set()
        for job in jobs:
            await job.all()

    engine, _ = run(scenario, rows=1)
    assert [key for key, _ in engine.batches] == ["k", "a", "b", "a", "b"]


def test_batches_are_bounded_by_tokens_but_one_sentence_always_fits():
    async def scenario(batcher, engine):
        await occupy(batcher, engine)
        jobs = [batcher.submit("k", [str(size)], [size]) for size in (3, 4, 50, 1)]
        engine.gate.set()
        for job in jobs:
            await job.all()

    engine, _ = run(scenario, tokens=8)
    assert [texts for _, texts in engine.batches[1:]] == [["3", "4"], ["50"], ["1"]]


def test_what_nobody_waits_for_is_not_begun():
    async def scenario(batcher, engine):
        first = await occupy(batcher, engine)
        gone, stays = (batcher.submit("k", [name] * 3, [1] * 3) for name in ("gone", "stays"))
        batcher.cancel(gone)
        batcher.cancel(gone)
        engine.gate.set()
        await stays.all()
        await first.all()
        assert batcher.idle

    engine, counts = run(scenario)
    assert "gone" not in {text for _, texts in engine.batches for text in texts}
    assert counts.gone == 3


def test_a_sentence_that_breaks_the_engine_harms_no_other():
    async def scenario(batcher, engine):
        await occupy(batcher, engine)
        bad, good = (batcher.submit("k", [name], [1]) for name in ("poison", "good"))
        engine.gate.set()
        assert await good.all() == ["GOOD"]
        with pytest.raises(ValueError, match="cannot"):
            await bad.all()
        assert await batcher.submit("k", ["next"], [1]).all() == ["NEXT"]

    run(scenario)


def test_whoever_is_in_a_broken_batch_is_answered_at_once():
    """The last one's own work begins only when all before it have been answered, or it fails."""

    async def scenario(batcher, engine):
        first = await occupy(batcher, engine)
        jobs = [batcher.submit("same", [text], [1]) for text in ("a", "poison", "b", "gone", "last")]
        jobs[3].give_up(ValueError("went away"))
        answered = threading.Event()
        plain = engine.__call__

        def work(key, texts, alone):
            if texts == ["last"]:
                assert answered.wait(30), "somebody was not answered yet"
            return plain(key, texts, alone)

        batcher.work = work
        engine.gate.set()
        await first.all()
        assert [await jobs[0].all(), await jobs[2].all()] == [["A"], ["B"]]
        with pytest.raises(ValueError, match="cannot"):
            await jobs[1].all()
        answered.set()
        assert await jobs[4].all() == ["LAST"]
        assert batcher.idle

    engine, _ = run(scenario)
    assert ("same", ["gone"]) not in engine.batches


def test_too_few_results_are_a_fault_that_is_told():
    async def scenario(batcher, engine):
        batcher.work = lambda key, texts, alone: []
        with pytest.raises(AssertionError):
            await batcher.submit("same", ["a", "b"], [1, 1]).all()

    run(scenario)


def test_results_are_told_as_they_come():
    async def scenario(batcher, engine):
        job = batcher.submit("k", ["a", "b", "c"], [1, 1, 1])
        assert [number async for number in job.numbers()] == [0, 1, 2]

    run(scenario, rows=1)


def test_two_threads_share_the_work_and_one_alone_knows_it():
    class Both(Engine):
        together = threading.Barrier(2, timeout=60)

        def __call__(self, key, texts, alone):
            self.batches.append((alone, list(texts)))
            if not alone:
                self.together.wait()  # two batches at a time, or this breaks
            return [text.upper() for text in texts]

    engine = Both()
    batcher = Batcher(engine, Limits(), Nobody())

    async def main():
        batcher.start(2)
        assert await batcher.submit("k", ["lone"], [1]).all() == ["LONE"]
        texts = [str(number) for number in range(8)]
        assert await batcher.submit("k", texts, [1] * 8).all() == texts

    asyncio.run(main())
    batcher.close()
    for thread in batcher.threads:
        thread.join()
    assert engine.batches[0] == (True, ["lone"])
    assert [(alone, len(texts)) for alone, texts in engine.batches[1:]] == [(False, 4)] * 2
