"""What was said in another round, or comes too late, is refused; with rounds or phases not looked at it is served."""

import msgspec
import pytest

from p2p_labeldp.facts import Accepted, Held, Outcome, Reason, transcript
from p2p_labeldp.protocol import exchange
from p2p_labeldp.protocol.collector import Collector
from p2p_labeldp.protocol.effects import Send
from p2p_labeldp.protocol.exchanging import Exchanging
from p2p_labeldp.protocol.messages import Answer, Ask, Digest, GetRoster, Push, Receipt, Refusal, Report
from p2p_labeldp.protocol.peer import Peer, State
from protocol.scenes import Scene

REPORTED = (Outcome.REPORTED, None)
IN_EXCHANGE = 23.0  # all have their roster, and the exchange (16 to 24 s) still runs
NEXT_ROUND = b"\1" * 16
VICTIM = 3


@pytest.fixture
def study(study_of):
    """One cluster of twelve."""
    return study_of(seed=5, sizes=(12,))


# -- other rounds ---------------------------------------------------------------------------------------------------

BOUND = Digest | Push | GetRoster | Ask | Report


def replayed(study, into, *, late=0.0, said=BOUND):
    """All that was said in one round is said again in another, at the same times; the replies by kind of message."""
    before = Scene(study).play()
    scene, replies = Scene(study, nonce=into), []

    def say(to, message, sender):
        replies.append((message, scene.network.request(to, message, sender)))

    for when, sender, to, message, _ in before.traffic:
        if isinstance(message, said):
            scene.network.at(when + late, lambda to=to, message=message, sender=sender: say(to, message, sender))
    return scene.play(), replies


def test_what_was_said_in_another_round_is_refused_in_this_one_and_changes_nothing(study):
    scene, replies = replayed(study, NEXT_ROUND)
    kinds = {type(message) for message, _ in replies}
    assert kinds >= {Digest, GetRoster, Ask, Report}
    assert {reply for _, reply in replies} == {Refusal("another_round")}
    assert scene.ends() == dict.fromkeys(range(12), REPORTED)
    undisturbed = Scene(study, nonce=NEXT_ROUND).play()
    assert transcript(scene.network.facts) == transcript(undisturbed.network.facts)


def test_the_same_said_again_in_its_own_round_is_served_and_still_changes_nothing(study):
    """The control: these messages are right but for their round."""
    scene, replies = replayed(study, bytes(16), late=0.3)
    served = {type(message) for message, reply in replies if not isinstance(reply, Refusal)}
    assert served >= {Digest, GetRoster, Ask, Report}
    assert transcript(scene.network.facts) == transcript(Scene(study).play().network.facts)


def test_an_ask_of_a_phase_that_is_over_is_too_late(study):
    scene, replies = replayed(study, bytes(16), late=8.0)
    asks = {reply for message, reply in replies if isinstance(message, Ask)}
    assert asks == {Refusal("too_late")}
    assert scene.ends() == dict.fromkeys(range(12), REPORTED)


def believed(monkeypatch):
    """The check switched off: every message is taken for one of this round, and its roster for ours."""

    def of_this_round(message, round_id, roster):
        changes = {"round_id": round_id} if hasattr(message, "round_id") else {}
        if isinstance(message, Ask | Report) and roster is not None:
            changes["roster"] = roster
        return msgspec.structs.replace(message, **changes)

    peers_receive, learner_receive = Peer.receive, Collector.receive

    def at_a_peer(self, message, sender, now):
        roster = None if self.part is None else self.part.roster.digest
        return peers_receive(self, of_this_round(message, self.opened.round_id, roster), sender, now)

    def at_the_learner(self, message, sender, now):
        cluster = self._cluster_of.get(sender)
        roster = None if cluster is None else self.rosters[cluster].digest
        return learner_receive(self, of_this_round(message, self.opened.round_id, roster), sender, now)

    monkeypatch.setattr(Peer, "receive", at_a_peer)
    monkeypatch.setattr(Collector, "receive", at_the_learner)


def test_with_rounds_not_compared_what_was_said_in_another_one_is_served(study, monkeypatch):
    believed(monkeypatch)
    _, replies = replayed(study, NEXT_ROUND, late=0.3)
    assert Refusal("another_round") not in {reply for _, reply in replies}
    served = {type(message) for message, reply in replies if not isinstance(reply, Refusal)}
    assert served >= {Digest, GetRoster}
    _, replies = replayed(study, NEXT_ROUND, late=-0.2, said=Ask)  # before this round's own asks of the same mates
    assert any(isinstance(reply, Answer) for _, reply in replies)


# -- late -----------------------------------------------------------------------------------------------------------


def test_with_phases_not_looked_at_an_ask_that_is_too_late_is_answered(study, monkeypatch):
    """The control of ``test_an_ask_of_a_phase_that_is_over_is_too_late``."""
    answer = Exchanging.reply

    def any_time(self, message, sender, now):
        peer = self._peer
        if peer.part is None or peer.state is State.EXCHANGING:
            return answer(self, message, sender, now)
        state, peer.state = peer.state, State.EXCHANGING
        try:
            return answer(self, message, sender, now)
        finally:
            peer.state = state

    monkeypatch.setattr(Exchanging, "reply", any_time)
    _, replies = replayed(study, bytes(16), late=8.0)
    assert any(isinstance(reply, Answer) for message, reply in replies if isinstance(message, Ask))


AFTER_EXCHANGE = 24.5


def late_answers(study):
    """The mate of one asker answers only when the exchange is over, though it was asked in time."""
    held_back = []

    def tamper(machine, message, sender, reply):
        if isinstance(message, Ask) and isinstance(reply, Answer) and sender == scene.ids[VICTIM]:
            held_back.append(reply)
            return Refusal("not_ready", retry=True)
        return reply

    def deliver():
        victim = scene.peers[VICTIM]
        victim._exchanging._take_answer(held_back[0], "", scene.network.now)

    scene = Scene(study, tamper=tamper)
    scene.network.at(AFTER_EXCHANGE, deliver)
    return scene.play()


@pytest.fixture
def tolerant(study_of):
    """One cluster of twelve that goes on while eight hold an answer."""
    return study_of(seed=5, sizes=(12,), tolerated_loss=0.4)


def test_an_answer_that_comes_when_the_exchange_is_over_is_not_held(tolerant):
    scene = late_answers(tolerant)
    assert scene.ends()[VICTIM] == (Outcome.ABSTAINED, Reason.MATE_TIMEOUT)
    assert VICTIM not in {fact.peer for fact in scene.facts(Held)}
    assert {end for i, end in scene.ends().items() if i != VICTIM} == {REPORTED}


def test_with_phases_not_looked_at_a_late_answer_is_held_and_reported(tolerant, monkeypatch):
    def any_time(self, reply, reason, now):
        if isinstance(reply, Answer):
            self._peer.my.exchange.take(reply)
            self._peer.observe(Held(peer=self._peer.name, at=now))

    monkeypatch.setattr(Exchanging, "_take_answer", any_time)
    monkeypatch.setitem(exchange.TRANSITIONS, (exchange.Asking.EMPTY, "box"), exchange.Asking.HOLDING)
    scene = late_answers(tolerant)
    assert VICTIM in {fact.peer for fact in scene.facts(Held)}
    assert scene.ends()[VICTIM] == REPORTED


def late_reports(study):
    """One report is held back until the round is over; the reply to it."""
    held_back, replies = [], []

    class Mute:
        """The victim's reports don't arrive."""

        def __init__(self, machine):
            self._machine = machine

        def __getattr__(self, name):
            return getattr(self._machine, name)

        def effects(self):
            effects = self._machine.effects()
            held_back.extend(e for e in effects if isinstance(e, Send) and isinstance(e.message, Report))
            return [e for e in effects if not (isinstance(e, Send) and isinstance(e.message, Report))]

    scene = Scene(study)

    def silence():
        node = scene.network._nodes[scene.ids[VICTIM]]
        node.machine = Mute(node.machine)

    scene.network.at(IN_EXCHANGE, silence)
    scene.network.at(45.5, lambda: replies.append(request_of(scene, held_back)))
    return scene.play(), replies


def request_of(scene, held_back):
    return scene.network.request(scene.learner, held_back[0].message, scene.ids[VICTIM])


def test_a_report_that_comes_when_the_round_is_over_is_not_accepted(study):
    scene, replies = late_reports(study)
    assert replies == [Refusal("too_late")]
    assert VICTIM not in {fact.peer for fact in scene.facts(Accepted)}
    assert scene.ends()[VICTIM] == (Outcome.FAILED, Reason.NO_RECEIPT)


def test_with_phases_not_looked_at_a_late_report_is_accepted(study, monkeypatch):
    monkeypatch.setattr(Collector, "_on_end", lambda *_: None)
    scene, replies = late_reports(study)
    assert [type(reply) for reply in replies] == [Receipt]
    assert VICTIM in {fact.peer for fact in scene.facts(Accepted)}
