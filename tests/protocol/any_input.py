"""A protocol machine under any sequence of inputs: what every step must leave as it was, or legal.

``AnyInput`` is a Hypothesis state machine around one machine of the protocol. A step either raises
``LocalProtocolError``, and then nothing at all has changed, or is legal: its reply is a message that survives the wire,
and its effects can be carried out. Any other exception fails.
"""

import random
import types
from enum import Enum

import msgspec
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from p2p_labeldp.crypto.keys import Keys
from p2p_labeldp.errors import LocalProtocolError
from p2p_labeldp.protocol import wire
from p2p_labeldp.protocol.effects import Observed, Persist, Send
from p2p_labeldp.protocol.machine import Machine
from protocol.little_round import keys

OPAQUE = (Keys, types.ModuleType)
MOMENTS = 1.0, 10.0, 18.0, 20.0, 22.0, 25.0, 33.0, 36.0, 41.0  # of a round of 16, 24, 32 and 40 s
MESSAGE_SENDERS = st.integers(1, 9)  # five members, and strangers


def snapshot(value, known=None):
    """Everything that a machine remembers, however deep, as a value that can be compared."""
    known = {} if known is None else known
    if value is None or isinstance(value, int | float | str | bytes | Enum):
        return value
    if isinstance(value, OPAQUE) or id(value) in known:
        return type(value).__name__
    if isinstance(value, random.Random):
        return value.getstate()
    known[id(value)] = value
    if isinstance(value, dict):
        return [(snapshot(key, known), snapshot(content, known)) for key, content in value.items()]
    if isinstance(value, list | tuple):
        return [snapshot(content, known) for content in value]
    if isinstance(value, set | frozenset):
        return sorted(map(repr, value))
    if isinstance(value, msgspec.Struct):
        return repr(value)
    if callable(value):
        return value.__qualname__
    if type(value).__module__.startswith("p2p_labeldp"):
        names = [*getattr(value, "__dict__", {}), *getattr(type(value), "__slots__", ())]
        return [type(value).__name__, [(name, snapshot(getattr(value, name, None), known)) for name in names]]
    return repr(value)


def careless(patch):
    """A seeded bug: a machine that hears of what it never sent remembers that."""
    hear = Machine._hear

    def hears(self, send_id, *reply):
        if send_id not in self._sent:
            self._next_send += 1
        return hear(self, send_id, *reply)

    patch.setattr(Machine, "_hear", hears)


class AnyInput(RuleBasedStateMachine):
    """Drives one machine; subclasses make it, say what the right replies are, and what must hold."""

    def __init__(self):
        super().__init__()
        self.now = 0.0
        self.sends = {}  # what was sent and not yet answered
        self.facts = []
        self.sent = []

    def make(self):
        raise NotImplementedError

    def messages(self):
        """A strategy of what anybody might say to it."""
        raise NotImplementedError

    def right_reply(self, send):
        """What an honest party replies."""
        raise NotImplementedError

    def introduce(self):
        """How the others come to be known to it."""

    def check(self):
        """What holds after each step."""

    @initialize(until=st.sampled_from([None, *MOMENTS]))
    def begin(self, until):
        """A round goes well until some moment; whatever comes then, comes to a machine that has got so far."""
        self.machine = self.make()
        if until is None:
            return
        self.starts()
        self.introduce()
        while (due := self.machine.wake_at()) is not None and due <= until:
            self.now = due
            self.step(lambda: self.machine.wake(self.now))
            self.all_are_answered(list(self.sends))
        self.now = max(self.now, until)

    def all_are_answered(self, send_ids):
        for send_id in send_ids:
            reply = self.right_reply(self.sends.pop(send_id))
            self.step(lambda i=send_id, r=reply: self.machine.answered(i, r, self.now))

    def step(self, action):
        """One input. Returns what the machine returned, or None if it raised."""
        before = snapshot(self.machine)
        try:
            result = action()
        except LocalProtocolError:
            assert snapshot(self.machine) == before
            assert self.machine.effects() == []
            return None
        for effect in self.machine.effects():
            match effect:
                case Send(send_id, _, message, timeout):
                    assert send_id not in self.sends
                    assert timeout > 0
                    assert wire.decode(wire.encode(message)) == message
                    self.sends[send_id] = effect
                    self.sent.append(effect)
                case Persist(fact) | Observed(fact):
                    self.facts.append(fact)
        due = self.machine.wake_at()
        assert due is None or not self.machine.over
        self.check()
        return result

    def facts_of(self, *kinds):
        return [fact for fact in self.facts if isinstance(fact, kinds)]

    # -- inputs -----------------------------------------------------------------------------------------------------

    @rule()
    def starts(self):
        self.step(lambda: self.machine.start(self.now))

    @rule(seconds=st.floats(0, 9))
    def time_passes(self, seconds):
        self.now += seconds

    @rule(times=st.integers(1, 12))
    def alarms_ring(self, times):
        for _ in range(times):
            due = self.machine.wake_at()
            if due is None:
                return
            self.now = max(self.now, due)
            self.step(lambda: self.machine.wake(self.now))

    @rule()
    def is_woken(self):
        self.step(lambda: self.machine.wake(self.now))

    @rule(data=st.data(), sender=MESSAGE_SENDERS)
    def is_told(self, data, sender):
        self.hears(data.draw(self.messages()), sender)

    def hears(self, message, sender):
        reply = self.step(lambda: self.machine.receive(message, keys(sender).peer_id, self.now))
        assert wire.decode(wire.encode(reply)) == reply
        self.replied(message, reply)

    def replied(self, message, reply):
        """Told of each reply."""

    @rule(data=st.data())
    def all_get_their_right_reply(self, data):
        self.all_are_answered([send_id for send_id in self.sends if data.draw(st.integers(0, 9))])

    @rule(data=st.data())
    def one_gets_any_reply(self, data):
        send_id = data.draw(st.sampled_from([*self.sends, 0, 10_000]))
        self.sends.pop(send_id, None)
        message = data.draw(self.messages())
        self.step(lambda: self.machine.answered(send_id, message, self.now))

    @rule(data=st.data(), reason=st.sampled_from(["timeout", "unreachable"]))
    def one_fails(self, data, reason):
        send_id = data.draw(st.sampled_from([*self.sends, 0, 10_000]))
        self.sends.pop(send_id, None)
        self.step(lambda: self.machine.failed(send_id, reason, self.now))

    @rule(sure=st.integers(0, 19))
    def is_closed(self, sure):
        if sure == 0:  # else no round would come far
            self.step(lambda: self.machine.close(self.now))
