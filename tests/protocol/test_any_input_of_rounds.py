"""Any state and any input of the machines of private rounds: legal, or it raises and leaves the state unchanged."""

import msgspec
import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import rule, run_state_machine_as_test

from p2p_labeldp.facts import Averaged, Contributed, Ended, Rejected
from p2p_labeldp.protocol import averaging, federation, rounds
from p2p_labeldp.protocol.kept import Checkpoint, ContributedAs
from p2p_labeldp.protocol.messages import (
    Contribute,
    Done,
    GetManifest,
    GetRound,
    ManifestReply,
    Refusal,
    RoundReply,
)
from protocol import little_run as little
from protocol.any_input import MESSAGE_SENDERS, AnyInput, careless
from protocol.little_round import LEARNER, keys
from protocol.test_any_input import SETTINGS
from protocol.test_wire import ANY

OFTEN = little.manifest(sampling_rate=0.9999)
RUN = little.opened()[1]
LAST = little.MANIFEST.rounds
OPENINGS = [little.opening_of(number, of=OFTEN) for number in (0, 0, 1, 2, 3, LAST)]
OPENINGS += [little.opening_of(1, (1.0, 0.0, 0.0), OFTEN), little.opening_of(2, (np.nan, 0.0, 0.0), OFTEN)]
OPENINGS += [little.opening_of(0), b"", b"\0" * 200]
REPLIES = st.one_of(
    ANY,
    st.builds(RoundReply, st.sampled_from(OPENINGS), st.booleans()),
    st.builds(Refusal, st.sampled_from(["another_run", "round_over", "odd"]), st.booleans()),
)


class ContributorUnderAnyInput(AnyInput):
    """A peer that is always sampled and can afford three updates."""

    visited: set = set()  # noqa: RUF012  of all runs

    def make(self):
        self.rounds = 0
        return little.contributor(1, OFTEN, budget=18.0)

    def messages(self):
        return REPLIES

    def right_reply(self, send):
        if isinstance(send.message, GetRound):
            self.rounds += 1
            opened = self.machine.opened
            number = min(self.rounds // 2, LAST)
            parameters = np.full(3, float(number))
            return RoundReply(federation.sign_round(number, parameters, run_id=opened.run_id, keys=LEARNER), False)
        return Done()

    def all_are_answered(self, send_ids):
        super().all_are_answered(send_ids)
        boxes = [send_id for send_id, send in self.sends.items() if isinstance(send.message, Contribute)]
        super().all_are_answered(boxes)  # what the first replies brought about

    def replied(self, message, reply):
        assert isinstance(reply, Refusal)

    def check(self):
        self.visited.add(self.machine.state)
        entries = self.facts_of(ContributedAs)
        assert len({entry.round for entry in entries}) == len(entries)  # one draw a round
        assert [entry.round for entry in entries] == sorted(entry.round for entry in entries)
        assert self.machine.ledger.spent("data") == sum(entry.epsilon for entry in entries) <= 18.0
        contributions = [send.message for send in self.sent if isinstance(send.message, Contribute)]
        boxes = {one.round_id: one.sealed for one in contributions}
        assert all(boxes[one.round_id] == one.sealed for one in contributions)  # a repeat is the same
        assert set(boxes.values()) <= {entry.box for entry in entries}  # on disk before it left
        assert len(self.facts_of(Ended)) == self.machine.over
        assert all(fact.about.isprintable() for fact in self.facts_of(Rejected))

    @rule(opening=st.sampled_from(OPENINGS), answered=st.booleans())
    def hears_of_a_round(self, opening, answered):
        for send_id in [i for i, send in self.sends.items() if isinstance(send.message, GetRound)]:
            self.sends.pop(send_id)
            self.step(lambda i=send_id: self.machine.answered(i, RoundReply(opening, answered), self.now))


UPDATES = st.sampled_from([None, None, np.ones(3), np.full(3, 1e200), np.full(3, np.nan), np.ones(2)])


class AveragerUnderAnyInput(AnyInput):
    """A learner of four peers."""

    visited: set = set()  # noqa: RUF012  of all runs

    def make(self):
        self.openings = {}
        return little.averager()

    def introduce(self):
        for i in range(1, 5):
            self.hears(GetRound(RUN.run_id), i)

    def messages(self):
        return st.one_of(
            ANY, st.builds(GetRound, st.sampled_from([RUN.run_id, RUN.run_id, bytes(32)])), self.contributions()
        )

    def contributions(self):
        round_id = self.machine._round_id
        known = st.sampled_from([round_id, round_id, bytes(32)]) if round_id else st.just(bytes(32))

        def made(ordinal, update, of, sealed_for):
            box = federation.seal_contribution(
                update,
                ordinal=ordinal,
                dimension=3,
                run_key=little.MANIFEST.run_key,
                round_id=sealed_for,
                keys=keys(ordinal),
            )
            return Contribute(of, box)

        return st.builds(made, st.integers(1, 6), UPDATES, known, known)

    def right_reply(self, send):
        raise AssertionError("a learner of rounds asks nobody")

    def replied(self, message, reply):
        assert isinstance(reply, ManifestReply | RoundReply | Done | Refusal)
        if isinstance(reply, RoundReply) and reply.opening:
            assert reply.opening in [fact.opening for fact in self.facts_of(Checkpoint)]  # on disk before it is seen

    def check(self):
        self.visited.add(self.machine.state)
        checkpoints = self.facts_of(Checkpoint)
        openings = dict.fromkeys(one.opening for one in checkpoints)  # a late update is one more checkpoint of a round
        numbers = [federation.open_round(one, of=RUN, keys=LEARNER).number for one in openings]
        assert numbers == list(range(len(numbers)))  # one model a round
        assert not checkpoints or checkpoints[-1].opening == self.machine.opening
        assert len(self.machine.cohorts) == len(self.facts_of(Averaged)) == max(0, len(numbers) - 1)
        assert np.isfinite(self.machine.parameters).all()
        arrived = sum(self.machine.participations.values())  # of the open round, and late ones, too
        assert sum(self.machine.cohorts) <= arrived == len(self.machine._counted)
        assert all(0 <= cohort <= little.MANIFEST.population for cohort in self.machine.cohorts)
        assert len(self.machine._known) <= little.MANIFEST.population
        assert all(fact.about.isprintable() for fact in self.facts_of(Rejected))

    @rule(data=st.data(), sender=MESSAGE_SENDERS)
    def is_contributed_to(self, data, sender):
        self.hears(data.draw(self.contributions()), sender)

    @rule(sender=st.integers(1, 4))
    def gets_what_it_waits_for(self, sender):
        round_id = self.machine._round_id or bytes(32)
        self.hears(little.contribution(np.ones(3), sender, round_id), sender)

    @rule()
    def everybody_answers(self):
        for sender in range(1, 5):
            self.gets_what_it_waits_for(sender)

    @rule(sender=MESSAGE_SENDERS)
    def is_asked_for_a_round(self, sender):
        self.hears(GetRound(RUN.run_id), sender)
        self.hears(GetManifest("peer", 1), sender)


CASES = {ContributorUnderAnyInput: rounds.State, AveragerUnderAnyInput: averaging.State}


@pytest.mark.parametrize("machine", CASES)
def test_any_input_in_any_state_is_legal_or_raises_and_changes_nothing(machine):
    machine.visited.clear()
    run_state_machine_as_test(machine, settings=SETTINGS)
    assert machine.visited == set(CASES[machine])


def test_an_illegal_input_that_changes_anything_is_found(monkeypatch):
    """The control."""
    careless(monkeypatch)
    with pytest.raises(AssertionError):
        run_state_machine_as_test(ContributorUnderAnyInput, settings=SETTINGS)


def test_a_peer_that_privatises_a_round_twice_is_found(monkeypatch):
    """The control of what must hold."""
    monkeypatch.setattr(rounds.UpdateLedger, "last", lambda _self, _run: -1)
    monkeypatch.setattr(rounds.UpdateLedger, "find", lambda _self, _run, _number: None)
    with pytest.raises(AssertionError):
        run_state_machine_as_test(ContributorUnderAnyInput, settings=SETTINGS)


def test_a_learner_that_shows_a_model_before_it_is_on_disk_is_found(monkeypatch):
    """Another."""
    monkeypatch.setattr(averaging.Averager, "_keep", lambda _self, _now: None)
    with pytest.raises(AssertionError):
        run_state_machine_as_test(AveragerUnderAnyInput, settings=SETTINGS)


def test_the_fact_of_a_contribution_does_not_tell_what_it_was():
    assert {field.name for field in msgspec.structs.fields(Contributed)} == {"peer", "at", "round"}
