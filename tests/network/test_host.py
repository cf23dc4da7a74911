"""What can't be made durable does not leave: a host whose store fails never speaks again. And no machine is woken in
vain."""

import asyncio
import contextlib
from types import SimpleNamespace

import pytest

from p2p_labeldp.crypto.identity import SigningKey
from p2p_labeldp.errors import PeerUnreachable
from p2p_labeldp.facts import Answered, Flipped
from p2p_labeldp.network import host as module
from p2p_labeldp.network.host import Host
from p2p_labeldp.network.http import HttpClient
from p2p_labeldp.protocol import wire
from p2p_labeldp.protocol.effects import Address
from p2p_labeldp.protocol.machine import Machine
from p2p_labeldp.protocol.messages import Answer, Done, Refusal

SERVER, CLIENT = SigningKey(b"S" * 32), SigningKey(b"C" * 32)
FLIP = Flipped(peer=0, label_id="label", flip_probability=0.1, flipped_label=1, round_id="", roster="")


class Answering(Machine):
    """Flips at the first message and answers each with the same box, as a peer does."""

    def __init__(self):
        super().__init__()
        self.flipped = False

    over = False

    def start(self, now):
        pass

    def close(self, now):
        pass

    def receive(self, message, sender, now):
        if not self.flipped:
            self.flipped = True
            self.persist(FLIP)
        self.persist(Answered(peer=0, asker=1))
        return Answer(b"box")


async def replies(store, count):
    """The replies to so many equal messages, what the sink heard, and the host."""
    heard = []
    async with HttpClient() as client:
        host = Host(key=SERVER, client=client, sink=heard.append, store=store)
        try:
            to = Address(SERVER.peer_id, "127.0.0.1", await host.listen("127.0.0.1", 0))
            host.start(Answering(), elapsed=0.0)
            found = []
            for _ in range(count):
                try:
                    found.append(wire.decode(await client.post(CLIENT, to, wire.encode(Done()), timeout=60.0)))
                except PeerUnreachable as exc:
                    found.append(exc)
            finished = asyncio.ensure_future(host.finished())
            done, _ = await asyncio.wait([finished], timeout=0.0 if len(heard) else 60.0)
            finished.cancel()
            host.stop()
            return found, heard, [one.exception() for one in done]
        finally:
            await host.close()


async def test_an_answer_whose_flip_was_not_stored_never_leaves_nor_does_its_repeat():
    def full(_fact):
        raise OSError(28, "No space left on device")

    (first, *repeats), heard, ended = await replies(full, 3)
    assert isinstance(first, PeerUnreachable)
    assert repeats == [Refusal("not_ready", retry=True)] * 2
    assert heard == []
    assert [type(error) for error in ended] == [OSError]


async def test_with_a_store_that_works_the_answer_leaves_after_it():
    stored = []
    found, heard, ended = await replies(stored.append, 2)
    assert found == [Answer(b"box")] * 2
    assert [type(fact) for fact in stored] == [Flipped, Answered, Answered]
    assert [type(fact) for fact in heard] == [Answered, Answered]  # the flip is kept by its own peer
    assert ended == []


async def test_a_failing_store_is_not_asked_again():
    asked = []

    def failing(fact):
        asked.append(fact)
        raise OSError(5, "Input/output error")

    await replies(failing, 3)
    assert asked == [FLIP]


async def test_with_the_check_switched_off_the_repeat_leaves(monkeypatch):
    """The control: a host that forgets that its store failed gives the box away at the second ask."""
    carry_out = Host._carry_out

    def forgetful(self, machine):
        with contextlib.suppress(OSError):
            carry_out(self, machine)

    monkeypatch.setattr(Host, "_carry_out", forgetful)
    failures = iter([True])

    def once(_fact):
        if next(failures, False):
            raise OSError(28, "No space left on device")

    found, _, _ = await replies(once, 2)
    assert Answer(b"box") in found


class Alarms(Answering):
    """Has so many alarms, at odd times."""

    def __init__(self, count):
        super().__init__()
        self.wakes, self._left = 0, count
        self._handlers = {"alarm": self._ring}

    def start(self, now):
        self.set_alarm("alarm", now + 0.0123)

    def _ring(self, now):
        self._left -= 1
        if self._left:
            self.set_alarm("alarm", now + 0.0123)

    def wake(self, now):
        self.wakes += 1
        super().wake(now)


class Rounding:
    """A loop that tells and keeps time in whole milliseconds, the nearest ones, as uvloop does."""

    def __init__(self):
        self._milliseconds, self._timers = 5, []

    def time(self):
        return self._milliseconds / 1000

    def call_at(self, when, call):
        self._timers.append((self._milliseconds + max(round((when - self.time()) * 1000), 0), call))
        return SimpleNamespace(cancel=self._timers.clear)

    def run(self, most):
        """Calls what is due, one after the other; a millisecond passes with every ten calls."""
        for i in range(most):
            if not self._timers:
                return
            at, call = self._timers.pop()
            self._milliseconds = max(self._milliseconds + (i % 10 == 9), at)
            call()


@pytest.mark.parametrize(("early", "in_vain"), [(None, 0), (0.0, 20)])
async def test_no_machine_is_woken_before_its_alarm_is_due(monkeypatch, early, in_vain):
    """The control: a timer that rings half a millisecond early rings again and again."""
    if early is not None:
        monkeypatch.setattr(module, "TIMER_SECONDS", early)
    async with HttpClient() as client:
        host, machine, loop = Host(key=SERVER, client=client, sink=print), Alarms(20), Rounding()
        monkeypatch.setattr(module, "asyncio", SimpleNamespace(get_running_loop=lambda: loop))
        host.start(machine, elapsed=0.0004)
        loop.run(1000)
        assert machine.wake_at() is None
        assert machine.wakes - 20 >= in_vain
        assert in_vain or machine.wakes == 20


class Breaking(Answering):
    """Has an alarm whose handler raises, and one that ends it."""

    def __init__(self):
        super().__init__()
        self._handlers = {"breaks": self._break, "end": self._end}

    def start(self, now):
        self.set_alarm("breaks", now + 0.01)
        self.set_alarm("end", now + 0.02)

    def _break(self, _now):
        raise ZeroDivisionError

    def _end(self, _now):
        self.over = True


async def test_an_alarm_whose_handler_breaks_is_told_of_and_the_next_one_still_ends_the_round():
    told = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(type(context["exception"])))
    async with HttpClient() as client:
        host = Host(key=SERVER, client=client, sink=print)
        host.start(Breaking(), elapsed=0.0)
        await asyncio.wait_for(host.finished(), 60.0)  # the control is this bound: it was never over
    assert told == [ZeroDivisionError]
