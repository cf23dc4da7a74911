"""Attacks on a round, played on the virtual network: each is refused, and each works with its check switched off."""

import collections

import pytest

from p2p_labeldp.errors import ProtocolError
from p2p_labeldp.facts import Accepted, Answered, Asked, Ended, Outcome, Reason, Rejected, transcript
from p2p_labeldp.protocol import collector, exchange, report
from p2p_labeldp.protocol.exchange import Exchange
from p2p_labeldp.protocol.messages import Answer, Ask, GetManifest, GetRoster, Receipt, Refusal, Report
from protocol.scenes import Scene

REPORTED, BAD_BOX = (Outcome.REPORTED, None), (Outcome.INVALID, Reason.BAD_BOX)
IN_EXCHANGE = 23.0  # all have their roster, and the exchange (16 to 24 s) still runs
NEXT_ROUND = b"\1" * 16


@pytest.fixture
def study(study_of):
    """One cluster of twelve."""
    return study_of(seed=5, sizes=(12,))


def unbound(monkeypatch, *, binds):
    """The check switched off: a box is bound to what ``binds`` leaves of (round, roster, asker)."""
    bound = exchange.answer_info

    def loose(round_id, roster, asker):
        return bound(
            *(value if kept else bytes(32) for value, kept in zip((round_id, roster, asker), binds, strict=True))
        )

    for module in (exchange, report):
        monkeypatch.setattr(module, "answer_info", loose)


def outcomes(scene):
    return collections.Counter(scene.ends().values())


def abouts(scene):
    return collections.Counter(fact.about.rpartition(": ")[2] for fact in scene.facts(Rejected))


# -- answers in other hands -----------------------------------------------------------------------------------------


def swapped(scene_of):
    """Every mate gives each asker but its first the box that it made for its first one."""
    first = {}

    def tamper(machine, message, sender, reply):
        if isinstance(message, Ask) and isinstance(reply, Answer):
            owner, box = first.setdefault(machine.peer_id, (sender, reply))
            return reply if owner == sender else box
        return reply

    return scene_of(tamper)


def robbed(scene):
    """Who did not come first to its mate."""
    found, seen = set(), set()
    for fact in scene.facts(Answered):
        if fact.peer in seen:
            found.add(fact.asker)
        seen.add(fact.peer)
    return found


def test_an_answer_moved_to_another_asker_is_of_no_use_to_it(study):
    scene = swapped(lambda tamper: Scene(study, tamper=tamper).play())
    thieves = robbed(scene)
    assert len(thieves) >= 2
    assert scene.ends() == {i: BAD_BOX if i in thieves else REPORTED for i in range(12)}
    assert abouts(scene)["bad_box"] == len(thieves)


def test_with_boxes_bound_to_no_asker_moved_answers_are_accepted(study, monkeypatch):
    unbound(monkeypatch, binds=(True, True, False))
    scene = swapped(lambda tamper: Scene(study, tamper=tamper).play())
    assert len(robbed(scene)) >= 2
    assert outcomes(scene) == {REPORTED: 12}


def from_another_round(study):
    """Each asker gets the box that the same mate gave it one round before."""
    before = Scene(study).play()
    boxes = {(to, sender): reply for _, sender, to, ask, reply in before.traffic if isinstance(ask, Ask)}
    used = []

    def tamper(machine, message, sender, reply):
        old = boxes.get((machine.peer_id, sender))
        if isinstance(message, Ask) and isinstance(reply, Answer) and isinstance(old, Answer):
            used.append(sender)
            return old
        return reply

    scene = Scene(study, tamper=tamper, nonce=NEXT_ROUND).play()
    return scene, {scene.ids.index(sender) for sender in used}


def test_an_answer_of_another_round_is_of_no_use_in_this_one(study):
    scene, victims = from_another_round(study)
    assert victims  # a study's coins draw alike in both rounds
    assert scene.ends() == {i: BAD_BOX if i in victims else REPORTED for i in range(12)}


def test_with_boxes_bound_to_no_round_old_answers_are_accepted(study, monkeypatch):
    unbound(monkeypatch, binds=(False, False, True))
    scene, victims = from_another_round(study)
    assert victims
    assert outcomes(scene) == {REPORTED: 12}


VICTIM = 3


def garbled(study, box):
    """One asker gets this box from its mate."""

    def tamper(_, message, sender, reply):
        mine = isinstance(message, Ask) and sender == scene.ids[VICTIM]
        return Answer(box) if mine else reply

    scene = Scene(study, tamper=tamper)
    return scene.play()


@pytest.mark.parametrize("box", [b"", b"garbage", bytes(96), bytes(256)])
def test_a_garbage_box_costs_its_asker_the_round_and_nobody_else(study, box):
    scene = garbled(study, box)
    assert scene.ends() == {i: BAD_BOX if i == VICTIM else REPORTED for i in range(12)}
    assert len(scene.facts(Accepted)) == 11


def test_with_boxes_not_opened_a_garbage_box_is_accepted(study, monkeypatch):
    """The control: a learner that takes what it can't open for some label."""
    opened = report.open_report

    def lax(message, reporter, *, keys, dimension, num_classes):
        class Gullible:
            def open(self, box, *, info):
                try:
                    return keys.open(box, info=info)
                except ProtocolError:
                    return b"\0"

        return opened(message, reporter, keys=Gullible(), dimension=dimension, num_classes=num_classes)

    monkeypatch.setattr(collector.reports, "open_report", lax)
    scene = garbled(study, b"garbage")
    assert outcomes(scene) == {REPORTED: 12}
    assert len(scene.facts(Accepted)) == 12


# -- asks -----------------------------------------------------------------------------------------------------------


def asked_again(study):
    """Every answered asker asks the same mate once more, under another id; the replies."""
    scene, replies = Scene(study), []

    def again():
        for _, sender, to, ask, reply in list(scene.traffic):
            if isinstance(ask, Ask) and isinstance(reply, Answer):
                replies.append(scene.network.request(to, Ask(ask.round_id, ask.roster, bytes(16)), sender))

    scene.network.at(IN_EXCHANGE, again)
    return scene.play(), replies


def test_a_second_ask_is_refused_logged_and_disturbs_nobody(study):
    scene, replies = asked_again(study)
    assert replies == [Refusal("second_ask")] * 12
    assert abouts(scene) == {"second_ask": 12}
    assert outcomes(scene) == {REPORTED: 12}
    assert len(scene.facts(Answered)) == 12


def test_with_answers_forgotten_a_second_ask_is_answered(study, monkeypatch):
    remember = Exchange.answer

    def forgetful(self, asker, ask):
        self._given.clear()
        return remember(self, asker, ask)

    monkeypatch.setattr(Exchange, "answer", forgetful)
    _, replies = asked_again(study)
    assert [type(reply) for reply in replies] == [Answer] * 12


def test_an_ask_said_by_somebody_else_gives_no_box_of_use_to_it(study):
    """Whoever the transport took the sender to be is whom the box is for; a stranger gets none at all."""
    scene, replies = Scene(study), []

    def forge():
        _, sender, to, ask, reply = next(
            said for said in scene.traffic if isinstance(said[3], Ask) and isinstance(said[4], Answer)
        )
        other = next(one for one in scene.ids if one != sender and not asked_before(scene, one, to))
        replies.append(reply)
        replies.extend(scene.network.request(to, ask, name) for name in (sender, other, b"stranger" * 4))

    scene.network.at(IN_EXCHANGE, forge)
    assert outcomes(scene.play()) == {REPORTED: 12}
    given, again, others, strangers = replies
    assert again == given  # the control: the right sender's repeat
    assert isinstance(others, Answer)
    assert others != given
    assert strangers == Refusal("not_in_roster")


def asked_before(scene, sender, to):
    return any(isinstance(said[3], Ask) and said[1:3] == (sender, to) for said in scene.traffic)


def doubled(study):
    """Each request arrives twice, as after an HTTP client's retry; both replies."""
    pairs = []
    scene = Scene(study)

    def tamper(machine, message, sender, reply):
        if not isinstance(message, GetManifest):
            pairs.append((message, reply, machine._machine.receive(message, sender, scene.network.now)))
        return reply

    scene.tamper = tamper
    return scene.play(), pairs


def test_a_request_that_arrives_twice_counts_once_and_gets_the_same_bytes(study):
    scene, pairs = doubled(study)
    repeats = [(first, second) for message, first, second in pairs if isinstance(message, Ask | Report | GetRoster)]
    assert len(repeats) >= 36
    assert all(first == second for first, second in repeats)
    assert {Answer, Receipt} <= {type(first) for first, _ in repeats}
    counts = collections.Counter(type(fact) for fact in scene.network.facts)
    assert counts[Answered] == counts[Accepted] == counts[Asked] == counts[Ended] == 12
    assert transcript(scene.network.facts) == transcript(Scene(study).play().network.facts)


def test_with_answers_forgotten_a_request_that_arrives_twice_counts_twice(study, monkeypatch):
    monkeypatch.setattr(Exchange, "has_answered", lambda *_: False)
    scene, _ = doubled(study)
    assert len(scene.facts(Answered)) > 12
