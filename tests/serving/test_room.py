"""Who comes in, what may be held for them, and when there is room again."""

import asyncio

import pytest

from regard.serving.limits import Limits, Refusal
from regard.serving.room import Room


def refused(call, *arguments, **options):
    with pytest.raises(Refusal) as caught:
        call(*arguments, **options)
    return caught.value


def test_who_finds_it_full_is_told_when_to_come_back():
    room = Room(Limits(requests=3), lambda: 2.5)
    places = [room.enter() for _ in range(3)]
    refusal = refused(room.enter)
    assert (refusal.status, refusal.retry_after) == (429, 3)
    assert refusal.message == "too many requests at once (3); try again in 3 s"
    assert room.refusal() is not None
    places[0].computed()
    places[0].computed()  # once is enough
    assert room.refusal() is None
    room.enter()
    assert room.refusal() is not None


def test_long_requests_leave_room_for_short_ones():
    room = Room(Limits(requests=6), lambda: 0.0)
    long = [room.enter(long=True) for _ in range(3)]
    assert "long requests" in refused(room.enter, long=True).message
    room.enter()
    long[0].leave()
    room.enter(long=True)


def test_who_would_be_given_up_in_the_end_is_told_at_once():
    room = Room(Limits(seconds=10), lambda: 0.0)
    room.check_ahead(3.0, 2.0)
    refusal = refused(room.check_ahead, 5.5, 0.0)
    assert (refusal.status, refusal.retry_after) == (429, 6)
    assert refused(room.check_ahead, 3.0, 2.5).retry_after == 4
    room.check_ahead(0.0, 99.0)  # nobody is before it: its time will show


def test_bytes_are_held_until_the_answer_is_sent():
    room = Room(Limits(held=999), lambda: 0.0)
    places = [room.enter() for _ in range(5)]
    for place in places[:3]:
        place.hold(333)
    assert refused(places[4].hold, 1).status == 429
    places[0].computed()
    assert refused(places[4].hold, 1).status == 429
    places[0].leave()
    places[4].hold(250)
    for place in places:
        place.leave()
        place.leave()
    assert (room.inside, room.long, room.held) == (0, 0, 0)


def test_a_request_may_have_half():
    room = Room(Limits(held=999), lambda: 0.0)
    place = room.enter()
    assert refused(place.hold, 500).status == 413
    place.hold(499)


def test_a_late_one_is_given_up_and_one_in_time_is_not():
    async def main():
        room, said = Room(Limits(), lambda: 0.0), []
        late, early = room.enter(), room.enter()
        late.within(0.0, lambda: said.append("late"))
        early.within(0.0, lambda: said.append("early"))
        early.computed()
        await asyncio.sleep(0.05)
        return said

    assert asyncio.run(main()) == ["late"]
