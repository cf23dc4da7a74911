"""What a driver owes the machines it carries: the sans-IO contract from the host's side.

A driver is tried with scripted machines. Whoever implements the ``Driver`` protocol below subclasses ``DriverContract``
in a test module and gives it a ``driver`` fixture. Everything that happens is written into one journal, by the machines
themselves and by the driver's store and sink, so order can be told across them.
"""

from collections.abc import Callable, Mapping
from typing import Protocol

import pytest

from p2p_labeldp.facts import Answered, Asked, Fact, Held, Joined, Ready
from p2p_labeldp.protocol.effects import Address, Observed, Persist, Send
from p2p_labeldp.protocol.messages import Done, GetRoster, Refusal

ASK, REPLY = GetRoster(bytes(32), 7), Refusal("any reply")

Journal = list[tuple]


class StoreFailed(OSError):
    """The disk is full."""


class Driver(Protocol):
    """A driver under test.

    ``unit`` is a length of time, in seconds, long against what the driver needs to carry a message.
    """

    unit: float

    def play(
        self,
        machines: Mapping[str, Callable[[Journal], "Scripted"]],
        *,
        until: float,
        absent: tuple[str, ...] = (),
        silent: tuple[str, ...] = (),
        broken_store: bool = False,
    ) -> Journal:
        """Carries machines for ``until`` seconds and returns the journal.

        Before a machine starts its ``addresses`` are set: name -> where it is reached, ``absent`` and ``silent`` ones
        included. Nobody listens at an absent address; a silent one takes messages and never replies. The driver adds
        ``("persisted" | "observed", name, fact)`` when a fact reaches its store or sink; a broken store raises
        ``StoreFailed`` instead.
        """
        ...


class Scripted:
    """A machine whose every step is in its script.

    Args:
        journal: Where it writes what happens to it: (what, name, detail, now).
        name: Its name.
        alarms: Moments at which it wants to be woken.
        on: What it does: event (``start``, ``wake``, ``receive``, ``answered``, ``failed``) -> its effects; each list
            is used once.
        hasten: At the first message an alarm is set to this moment.
        send_id: Of its one request.
    """

    def __init__(self, journal, name, *, alarms=(), on=None, hasten=None):
        self.addresses: dict[str, Address] = {}
        self._journal, self._name = journal, name
        self._alarms, self._on, self._hasten = sorted(alarms), dict(on or {}), hasten
        self._out = []

    def _note(self, what, detail, now):
        undrained = len(self._out)
        self._journal.append((what, self._name, detail, now))
        if undrained:
            self._journal.append(("undrained", self._name, undrained, now))
        for effect in self._on.pop(what, ()):
            self._out.append(effect(self) if callable(effect) else effect)

    def _who(self, peer_id):
        return next((name for name, address in self.addresses.items() if address.peer_id == peer_id), "a stranger")

    @property
    def over(self):
        return False

    def start(self, now):
        self._note("start", None, now)

    def receive(self, message, sender, now):
        if self._hasten is not None:
            self._alarms, self._hasten = sorted([*self._alarms, self._hasten]), None
        self._note("receive", (message, self._who(sender)), now)
        return REPLY

    def answered(self, send_id, reply, now):
        self._note("answered", (send_id, reply), now)

    def failed(self, send_id, reason, now):
        self._note("failed", (send_id, reason), now)

    def wake(self, now):
        rung = [at for at in self._alarms if at <= now]
        self._alarms = [at for at in self._alarms if at > now]
        self._note("wake", rung, now)

    def wake_at(self):
        return self._alarms[0] if self._alarms else None

    def close(self, now):
        self._note("close", None, now)

    def effects(self):
        out, self._out = self._out, []
        return out


def to(name, *, send_id=0, message=ASK, timeout=5.0):
    """A send whose address is known once the machine runs."""
    return lambda machine: Send(send_id, machine.addresses[name], message, timeout)


def fact(kind, **fields) -> Fact:
    return kind(peer="ada", **fields)


def steps(journal, *names):
    """The journal without times: (what, name), of these events."""
    return [entry[:2] for entry in journal if not names or entry[0] in names]


def index(journal, what, name):
    """Where an event stands; it has to be there once."""
    (at,) = (i for i, entry in enumerate(journal) if entry[:2] == (what, name))
    return at


class DriverContract:
    """The suite."""

    @pytest.fixture
    def driver(self) -> Driver:
        raise NotImplementedError("a subclass names its driver")

    def test_a_request_gets_its_reply_and_both_ends_know_each_other(self, driver):
        journal = driver.play(
            {
                "ada": lambda j: Scripted(j, "ada", alarms=[driver.unit], on={"wake": [to("ben", send_id=41)]}),
                "ben": lambda j: Scripted(j, "ben"),
            },
            until=4 * driver.unit,
        )
        assert journal[index(journal, "receive", "ben")][2] == (ASK, "ada")
        assert journal[index(journal, "answered", "ada")][2] == (41, REPLY)
        assert steps(journal, "receive", "answered", "failed") == [("receive", "ben"), ("answered", "ada")]

    def test_a_machine_may_ask_itself(self, driver):
        journal = driver.play(
            {"ada": lambda j: Scripted(j, "ada", alarms=[driver.unit], on={"wake": [to("ada")]})},
            until=4 * driver.unit,
        )
        assert journal[index(journal, "receive", "ada")][2] == (ASK, "ada")
        assert journal[index(journal, "answered", "ada")][2] == (0, REPLY)

    def test_effects_are_carried_out_in_order(self, driver):
        facts = [fact(Joined, cluster=1), fact(Asked, mate="ben"), fact(Held), fact(Ready, holding=True)]
        journal = driver.play(
            {
                "ada": lambda j: Scripted(
                    j,
                    "ada",
                    on={"start": [Observed(facts[0]), Persist(facts[1]), Observed(facts[2]), Persist(facts[3])]},
                )
            },
            until=driver.unit,
        )
        told = [entry for entry in journal if entry[0] in ("persisted", "observed")]
        assert [entry[2] for entry in told] == facts

    def test_a_fact_is_persisted_before_the_send_behind_it_leaves(self, driver):
        journal = driver.play(
            {
                "ada": lambda j: Scripted(
                    j, "ada", alarms=[driver.unit], on={"wake": [Persist(fact(Asked, mate="ben")), to("ben")]}
                ),
                "ben": lambda j: Scripted(j, "ben"),
            },
            until=4 * driver.unit,
        )
        assert index(journal, "persisted", "ada") < index(journal, "receive", "ben")

    def test_a_fact_is_persisted_before_the_reply_leaves(self, driver):
        journal = driver.play(
            {
                "ada": lambda j: Scripted(j, "ada", alarms=[driver.unit], on={"wake": [to("ben")]}),
                "ben": lambda j: Scripted(j, "ben", on={"receive": [Persist(fact(Answered, asker="ada"))]}),
            },
            until=4 * driver.unit,
        )
        assert index(journal, "persisted", "ben") < index(journal, "answered", "ada")

    @pytest.mark.parametrize("broken", [True, False])
    def test_nothing_behind_a_fact_that_cannot_be_persisted_leaves(self, driver, broken):
        journal = driver.play(
            {
                "ada": lambda j: Scripted(
                    j, "ada", alarms=[driver.unit], on={"wake": [Persist(fact(Asked, mate="ben")), to("ben")]}
                ),
                "ben": lambda j: Scripted(j, "ben"),
            },
            until=4 * driver.unit,
            broken_store=broken,
        )
        assert steps(journal, "receive") == ([] if broken else [("receive", "ben")])

    @pytest.mark.parametrize("broken", [True, False])
    def test_no_reply_leaves_when_its_fact_cannot_be_persisted(self, driver, broken):
        journal = driver.play(
            {
                "ada": lambda j: Scripted(j, "ada", alarms=[driver.unit], on={"wake": [to("ben")]}),
                "ben": lambda j: Scripted(j, "ben", on={"receive": [Persist(fact(Answered, asker="ada"))]}),
            },
            until=4 * driver.unit,
            broken_store=broken,
        )
        assert steps(journal, "receive") == [("receive", "ben")]
        assert steps(journal, "answered") == ([] if broken else [("answered", "ada")])

    def test_alarms_ring_when_due_and_in_order(self, driver):
        due = [driver.unit, 2 * driver.unit, 3 * driver.unit]
        journal = driver.play({"ada": lambda j: Scripted(j, "ada", alarms=due)}, until=5 * driver.unit)
        wakes = [entry for entry in journal if entry[0] == "wake"]
        assert [at for entry in wakes for at in entry[2]] == due
        assert all(entry[3] >= max(entry[2]) for entry in wakes if entry[2])

    def test_an_alarm_in_the_past_rings_at_once(self, driver):
        journal = driver.play({"ada": lambda j: Scripted(j, "ada", alarms=[-1.0])}, until=2 * driver.unit)
        assert [entry[2] for entry in journal if entry[0] == "wake"] == [[-1.0]]

    def test_an_alarm_that_a_message_brings_forward_rings_sooner(self, driver):
        sooner = 3 * driver.unit
        journal = driver.play(
            {
                "ada": lambda j: Scripted(j, "ada", alarms=[driver.unit], on={"wake": [to("ben")]}),
                "ben": lambda j: Scripted(j, "ben", alarms=[1000 * driver.unit], hasten=sooner),
            },
            until=5 * driver.unit,
        )
        assert [entry[2] for entry in journal if entry[:2] == ("wake", "ben")] == [[sooner]]

    def test_without_an_alarm_nobody_is_woken(self, driver):
        journal = driver.play({"ada": lambda j: Scripted(j, "ada")}, until=3 * driver.unit)
        assert steps(journal) == [("start", "ada")]

    def test_an_absent_peer_is_unreachable(self, driver):
        journal = driver.play(
            {"ada": lambda j: Scripted(j, "ada", alarms=[driver.unit], on={"wake": [to("ben")]})},
            until=4 * driver.unit,
            absent=("ben",),
        )
        assert journal[index(journal, "failed", "ada")][2] == (0, "unreachable")

    def test_a_silent_peer_times_out(self, driver):
        journal = driver.play(
            {
                "ada": lambda j: Scripted(
                    j, "ada", alarms=[driver.unit], on={"wake": [to("ben", timeout=2 * driver.unit)]}
                )
            },
            until=6 * driver.unit,
            silent=("ben",),
        )
        failed = journal[index(journal, "failed", "ada")]
        assert failed[2] == (0, "timeout")
        assert failed[3] >= 3 * driver.unit

    def test_effects_are_drained_after_every_event(self, driver):
        noise = [Observed(fact(Held))]
        journal = driver.play(
            {
                "ada": lambda j: Scripted(
                    j,
                    "ada",
                    alarms=[driver.unit, 2 * driver.unit],
                    on={
                        "start": noise,
                        "wake": [*noise, to("ben", send_id=1), to("cyd", send_id=2)],
                        "answered": noise,
                        "failed": noise,
                        "receive": noise,
                    },
                ),
                "ben": lambda j: Scripted(
                    j, "ben", on={"receive": [*noise, to("ada", message=Done())], "answered": noise}
                ),
            },
            until=6 * driver.unit,
            absent=("cyd",),
        )
        assert steps(journal, "undrained") == []
        assert {what for what, name in steps(journal) if name == "ada"} == {
            "start", "wake", "answered", "failed", "receive", "observed",
        }  # fmt: skip
        assert len(steps(journal, "observed")) == 7

    def test_time_never_runs_backwards(self, driver):
        journal = driver.play(
            {
                "ada": lambda j: Scripted(j, "ada", alarms=[driver.unit, 2 * driver.unit], on={"wake": [to("ben")]}),
                "ben": lambda j: Scripted(j, "ben", alarms=[2 * driver.unit]),
            },
            until=4 * driver.unit,
        )
        for name in ("ada", "ben"):
            times = [entry[3] for entry in journal if entry[1] == name and len(entry) == 4]
            assert times == sorted(times)
            assert len(times) >= 2
