"""Whom a peer gossips with about the directory. By hand: peer 1, what it asks, and what comes back."""

import pytest

from p2p_labeldp.protocol import dissemination, strangers
from p2p_labeldp.protocol.dissemination import FEW_MATES, HUB_VISITS, JITTER
from p2p_labeldp.protocol.messages import Contact, Digest, Offer, Place, Topic
from protocol.little_round import Hand, address, keys, peer, record

MATES = range(2, 12)
HUB = 7
SEEDS = range(1, 9)  # of what peer 1 draws


def nothing(_number):
    return Offer((), b"")


def naming(*numbers, cluster=1):
    """What a stranger says that names peers of the own cluster."""
    named = tuple(Contact(keys(i).peer_id, 0, Place(f"peer-{i}", 7000)) for i in numbers)
    return Offer((), b"", named, cluster=cluster)


def asked(*, knows=(), contacts=(), hub=HUB, seed=1, reply=nothing, until=15.0):
    """Whom peer 1 asks, in order; ``reply`` says what each answers, None that it does not."""
    hand = Hand(peer(1, contacts=tuple(address(i) for i in contacts), seed=seed))
    hand.start()
    hand.machine._gossip._point = keys(hub).peer_id
    if knows:
        hand.tell(*(record(i) for i in knows), now=0.0)
    asked, now = [], 0.0
    while now <= until:
        for send in hand.sent(Digest)[len(asked) :]:
            asked.append(int(send.to.host.removeprefix("peer-")))
            offer = reply(asked[-1])
            hand.fail(send, "timeout", now) if offer is None else hand.answer(send, offer, now)
        if len(hand.sent(Digest)) == len(asked):
            now = hand.machine.wake_at()
            hand.machine.wake(now)
            hand.settle()
    return asked


@pytest.mark.parametrize("seed", SEEDS)
def test_a_hub_is_asked_first_and_a_few_times_only(seed):
    everybody, visits = asked(knows=MATES, seed=seed), HUB_VISITS[Topic.DIRECTORY]
    assert everybody[:visits] == [HUB] * visits
    assert len(set(everybody[visits:])) > 1


def test_a_hub_that_does_not_answer_is_not_visited_again():
    """So one that is dead holds nobody up."""
    found = [
        asked(knows=MATES, seed=seed, reply=lambda number: None if number == HUB else nothing(number)) for seed in SEEDS
    ]
    assert {everybody[0] for everybody in found} == {HUB}
    assert sum(everybody[1] == HUB for everybody in found) < len(SEEDS) / 2  # one in ten is drawn like any other


def test_the_only_hub_asks_any(monkeypatch):
    """And one of many the others."""
    assert len({asked(knows=MATES, hub=1, seed=seed)[0] for seed in SEEDS}) > 1
    monkeypatch.setattr("p2p_labeldp.protocol.meeting.MEMBERS_A_HUB", 6)
    assert len({asked(knows=MATES, hub=1, seed=seed)[0] for seed in SEEDS}) == 1


@pytest.mark.parametrize("kept", [False, True])
def test_who_was_named_and_is_a_mate_by_now_is_not_asked_again_as_a_stranger(kept, monkeypatch):
    """One stranger names two; the one has the other's record, too. The control still takes it for a stranger."""
    if kept:

        def first(self, **_):
            return self._leads.pop(0) if self._leads else None

        monkeypatch.setattr(strangers.Strangers, "_lead", first)
    monkeypatch.setattr(dissemination, "FOLLOW_UPS", 1)

    def reply(number):
        if number == 20:
            return naming(2, 3)
        return Offer((record(2), record(3)), b"") if number in (2, 3) else nothing(number)

    everybody = asked(contacts=(20,), hub=2, reply=reply, until=3.0)
    assert everybody[:3] == [20, 2, 2]  # the stranger, whom it named first, and that one as a mate and hub
    assert everybody[3] == (3 if kept else 20)


@pytest.mark.parametrize("seed", SEEDS)
def test_who_did_not_answer_is_not_asked_on_the_word_of_the_next(seed):
    """The nearest to a meeting point is named by everybody, dead or not."""
    everybody = asked(contacts=(20, 21, 22), seed=seed, reply=lambda number: None if number == 2 else naming(2))
    assert everybody.count(2) == 1
    assert {20, 21, 22} <= set(everybody)


def test_of_many_mates_some_ask_strangers_and_of_few_each_does(monkeypatch):
    """The fewer there are, the likelier others are unknown to them all; what one hears all do."""

    def share(mates):
        found = [asked(knows=mates, contacts=(90,), seed=seed, reply=lambda _: None, until=12.0) for seed in range(40)]
        return sum(90 in everybody for everybody in found) / len(found)

    assert share(range(2, 1 + FEW_MATES)) == 1.0
    many = share(range(2, 80))
    monkeypatch.setattr(dissemination, "SEEKERS", 1000)
    assert many < share(range(2, 80))


def test_who_waits_for_a_reply_lets_one_tick_pass_and_has_two_questions_open_at_most():
    hand = Hand(peer(1))
    hand.start()
    hand.tell(*(record(i) for i in MATES), now=0.0)
    sent = []
    while (now := hand.machine.wake_at()) < 15.0:
        before = len(hand.sent(Digest))
        hand.machine.wake(now)
        hand.settle()
        sent += [now] * (len(hand.sent(Digest)) - before)
    first, second = sent
    shortest, _ = JITTER
    assert second - first >= 2 * shortest  # seconds, of periods of one


def test_who_knows_nobody_lets_no_tick_pass():
    hand = Hand(peer(1, contacts=(address(20), address(21))))
    hand.start()
    sent = []
    while len(sent) < 2:
        before, now = len(hand.sent(Digest)), hand.machine.wake_at()
        hand.machine.wake(now)
        hand.settle()
        sent += [now] * (len(hand.sent(Digest)) - before)
    assert sent[1] - sent[0] <= JITTER[1]
