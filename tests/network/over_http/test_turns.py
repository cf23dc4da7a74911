"""A process that talks to thousands: no place has all its connections, and waiting for a turn costs nobody its time."""

import asyncio

import pytest

from network.over_http.wire import ADA, client, listening
from p2p_labeldp.errors import DeadlineExceeded
from p2p_labeldp.network.http.turns import Turns

HERE, THERE = ("127.0.0.1", 1), ("127.0.0.1", 2)


class Crowd:
    """Those who have a turn, by place."""

    def __init__(self, turns):
        self.turns = turns
        self.at = []
        self.go = asyncio.Event()
        self.tasks = []

    async def _ask(self, place):
        async with self.turns.taken(place):
            self.at.append(place)
            await self.go.wait()

    async def ask(self, *places):
        self.tasks += [asyncio.create_task(self._ask(place)) for place in places]
        for _ in range(10):
            await asyncio.sleep(0)
        return sorted(self.at)

    async def end(self):
        self.go.set()
        await asyncio.gather(*self.tasks, return_exceptions=True)


@pytest.mark.parametrize(("to_one", "served"), [(2, [HERE, HERE, THERE]), (9, [HERE, HERE, HERE, HERE])])
async def test_a_place_that_everybody_asks_leaves_turns_for_others(to_one, served):
    """Without a bound for each place it has them all."""
    crowd = Crowd(Turns(in_all=4, to_one=to_one))
    assert await crowd.ask(*[HERE] * 8, THERE) == served
    await crowd.end()
    assert len(crowd.at) == 9


@pytest.mark.parametrize(("apart", "served"), [(frozenset([THERE]), [HERE, HERE, THERE]), (frozenset(), [HERE, HERE])])
async def test_a_place_apart_waits_for_nobody_else(apart, served):
    """And for all who came before, where it is not."""
    crowd = Crowd(Turns(in_all=2, to_one=2, apart=apart))
    assert await crowd.ask(HERE, HERE, HERE, THERE) == served
    await crowd.end()


async def test_a_place_apart_has_no_more_turns_than_any():
    crowd = Crowd(Turns(in_all=4, to_one=2, apart=frozenset([HERE])))
    assert await crowd.ask(HERE, HERE, HERE) == [HERE, HERE]
    await crowd.end()


async def test_no_more_connections_are_open_than_in_all():
    crowd = Crowd(Turns(in_all=3, to_one=2))
    assert await crowd.ask(HERE, HERE, THERE, THERE, HERE) == [HERE, HERE, THERE]
    await crowd.end()
    assert len(crowd.at) == 5


async def test_places_that_nobody_asks_are_forgotten_also_by_those_who_gave_up_waiting():
    turns = Turns(in_all=1, to_one=1)
    crowd = Crowd(turns)
    await crowd.ask(HERE, HERE, THERE)
    crowd.tasks[1].cancel()
    crowd.tasks[2].cancel()
    await crowd.ask()
    assert set(turns._lines) == {HERE}
    await crowd.end()
    assert crowd.at == [HERE]
    assert not turns._lines


async def test_who_waits_for_its_place_keeps_no_turn_from_others():
    """Ten wait for a place that two talk to, and none of them stands before who came later for another place."""
    crowd = Crowd(Turns(in_all=4, to_one=2))
    assert await crowd.ask(*[HERE] * 12) == [HERE, HERE]
    assert await crowd.ask(THERE, THERE) == [HERE, HERE, THERE, THERE]
    await crowd.end()
    assert len(crowd.at) == 14


async def test_who_waits_in_a_long_line_for_any_turn_keeps_none_of_its_place():
    """A place that many ask is talked to by as many as may be, however long the line for other places is."""
    crowd = Crowd(Turns(in_all=2, to_one=2))
    others = [("127.0.0.1", port) for port in range(10, 18)]
    assert await crowd.ask(others[0], others[1]) == others[:2]
    await crowd.ask(HERE, *others[2:], HERE, HERE)
    await crowd.end()
    assert crowd.at == [*others[:2], HERE, *others[2:], HERE, HERE]  # in the order in which they came


async def test_who_waits_for_a_turn_has_the_whole_time_for_its_answer(monkeypatch):
    """A process that is late with everything would else give up whatever it has just begun."""
    moved, begun, waiting, go = [], [], asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    class Noted(asyncio.Timeout):
        async def __aenter__(self):
            if begun:
                waiting.set()  # the second; the first has its turn
            return await super().__aenter__()

        def reschedule(self, when):
            moved.append(when)
            super().reschedule(when)

    async def exchange(key, to, body):
        begun.append(body)
        await go.wait()
        return body

    monkeypatch.setattr(asyncio, "timeout", lambda delay: Noted(loop.time() + delay))
    async with listening() as (_, ben), client(max_connections=1) as c:
        c._exchange = exchange
        posts = [asyncio.create_task(c.post(ADA, ben, body, timeout=3600)) for body in (b"first", b"second")]
        await waiting.wait()
        released = loop.time()
        go.set()
        assert await asyncio.gather(*posts) == [b"first", b"second"]
    assert len(moved) == 4  # entering sets a limit, and having a turn sets it anew
    assert moved[-1] >= released + 3600


async def test_a_turn_that_never_comes_is_given_up():
    begun = asyncio.Event()

    async def exchange(key, to, body):
        begun.set()
        await asyncio.Future()

    async with listening() as (_, ben), client(max_connections=1) as c:
        c._exchange = exchange
        first = asyncio.create_task(c.post(ADA, ben, b"first", timeout=3600))
        await begun.wait()
        with pytest.raises(DeadlineExceeded):
            await c.post(ADA, ben, b"second", timeout=0.01)
        first.cancel()
