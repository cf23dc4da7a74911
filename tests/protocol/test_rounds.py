"""A peer of private rounds: one draw a round, nothing beyond the budget, and silence about its data."""

import itertools

import msgspec
import numpy as np
import pytest

from p2p_labeldp import randomness
from p2p_labeldp.errors import LocalProtocolError, MalformedMessage
from p2p_labeldp.facts import Ended, Outcome, Reason, Rejected
from p2p_labeldp.protocol import federation
from p2p_labeldp.protocol.effects import Persist, Send
from p2p_labeldp.protocol.kept import ContributedAs
from p2p_labeldp.protocol.messages import MAX_ENVELOPE_BYTES, Contribute, Done, GetRound, Refusal, RoundReply
from p2p_labeldp.protocol.rounds import TRANSITIONS, State
from p2p_labeldp.protocol.update_ledger import UpdateLedger, UpdatePolicy
from protocol.little_run import (
    LEARNER,
    MANIFEST,
    SEED,
    box_in,
    contributor,
    facts_of,
    keys,
    manifest,
    nothing_finite,
    opened,
    opening_of,
    pull,
)

EVERYBODY = manifest(sampling_rate=1.0)


def polled(peer, opening, *, answered=False, now=0.0):
    """Has the peer ask, and hear of a round; its effects after the reply."""
    if peer.wake_at() is None:
        peer.start(now)
    peer.wake(max(now, peer.wake_at()))
    (question,) = [e for e in peer.effects() if isinstance(e, Send)]
    assert isinstance(question.message, GetRound)
    peer.answered(question.send_id, RoundReply(opening, answered), now)
    return peer.effects()


def sent(effects):
    """The contribution among effects, which is behind what was persisted of it."""
    kinds = [type(e) for e in effects if isinstance(e, Send | Persist)]
    assert kinds in ([], [Persist, Send], [Send])
    return next((e for e in effects if isinstance(e, Send)), None)


def first_box(peer, opening=None):
    return sent(polled(peer, opening or opening_of(of=peer.opened.manifest))).message


def test_a_sampled_peer_sends_its_privatised_update_once_it_is_on_disk():
    peer = contributor(of=EVERYBODY)
    effects = polled(peer, opening_of(of=EVERYBODY))
    message = sent(effects).message
    assert isinstance(message, Contribute)
    ordinal, update = box_in(message, of=EVERYBODY)
    coins = randomness.replay(SEED, 0).update_generator(round_id=b"", number=0)
    assert ordinal == 0
    assert (update == EVERYBODY.mechanism.privatise(pull(np.zeros(3)), coins)).all()
    (entry,) = facts_of(effects, ContributedAs)
    assert (entry.epsilon, entry.box) == (6.0, message.sealed)


def test_the_peers_own_coin_samples_with_the_rate_of_the_manifest():
    counts = 0
    for i in range(400):
        _, update = box_in(first_box(contributor(i % 200, coins=randomness.replay(i, i % 200))), i % 200)
        counts += update is not None
    assert 150 < counts < 250  # 5 deviations: fails with probability 6e-7
    assert MANIFEST.takes_part(2**63 - 1)
    assert not MANIFEST.takes_part(2**63)
    assert EVERYBODY.takes_part(2**64 - 1)


def test_whether_a_peer_takes_part_shows_in_nothing_but_the_open_box():
    lengths, holds = set(), set()
    for i in range(20):
        message = first_box(contributor(i))
        lengths.add(len(message.sealed))
        holds.add(box_in(message, i)[1] is not None)
    assert holds == {True, False}
    assert len(lengths) == 1


def test_who_is_not_sampled_computes_as_long_as_who_is():
    computed = []

    def compute(parameters):
        computed.append(1)
        return pull(parameters)

    holds = [box_in(first_box(contributor(i, compute=compute)), i)[1] is not None for i in range(10)]
    assert set(holds) == {True, False}
    assert len(computed) == 10


def test_a_zero_update_is_released_like_any_other():
    def box(compute):
        return box_in(first_box(contributor(of=EVERYBODY, compute=compute)), of=EVERYBODY)[1]

    assert np.isfinite(box(np.zeros_like)).all()
    draws = [
        EVERYBODY.mechanism.privatise(np.zeros(3), randomness.replay(i, 0).update_generator(round_id=b"", number=0))
        for i in range(4000)
    ]
    deviation = np.std(draws, axis=0) / 4000**0.5
    assert (np.abs(np.mean(draws, axis=0)) < 5 * deviation).all()  # unbiased: no direction is made up
    with np.errstate(invalid="ignore"):
        assert np.isnan(np.zeros(3) / np.linalg.norm(np.zeros(3))).all()  # what normalising it would send


def test_a_nan_update_is_refused_and_what_leaves_does_not_show_it():
    broken = contributor(of=EVERYBODY, compute=nothing_finite)
    effects = polled(broken, opening_of(of=EVERYBODY))
    _, update = box_in(sent(effects).message, of=EVERYBODY)
    (refused,) = facts_of(effects, Rejected)
    assert "update refused" in refused.about
    assert broken.ledger.spent("data") == 6.0
    zero = box_in(first_box(contributor(of=EVERYBODY, compute=np.zeros_like)), of=EVERYBODY)[1]
    assert (update == zero).all()
    usual = polled(contributor(of=EVERYBODY), opening_of(of=EVERYBODY))  # a finite one is neither refused nor zero
    assert not facts_of(usual, Rejected)
    assert (box_in(sent(usual).message, of=EVERYBODY)[1] != zero).any()


def test_the_mechanism_itself_refuses_a_nan_that_nobody_noticed():
    broken = contributor(of=EVERYBODY, compute=lambda parameters: parameters + np.nan)
    effects = polled(broken, opening_of(of=EVERYBODY))
    assert facts_of(effects, Rejected)
    assert np.isfinite(box_in(sent(effects).message, of=EVERYBODY)[1]).all()


def test_the_same_round_gets_the_same_box_in_another_life_too():
    first = contributor(of=EVERYBODY)
    box = first_box(first)
    (entry,) = first.ledger._entries.values()
    again = contributor(of=EVERYBODY, ledger=UpdateLedger([entry]))
    effects = polled(again, opening_of(of=EVERYBODY))
    assert sent(effects).message == box
    assert not facts_of(effects, ContributedAs)
    lost = first_box(contributor(of=EVERYBODY))  # without its ledger: another seal, around the same draw
    assert lost.sealed != box.sealed
    assert (box_in(lost, of=EVERYBODY)[1] == box_in(box, of=EVERYBODY)[1]).all()
    other = first_box(contributor(of=EVERYBODY, coins=randomness.replay(SEED + 1, 0)))  # another secret: another draw
    assert (box_in(other, of=EVERYBODY)[1] != box_in(box, of=EVERYBODY)[1]).any()


def test_a_second_model_of_one_round_gets_no_second_draw():
    other = opening_of(parameters=(1.0, 0.0, 0.0), of=EVERYBODY)
    peer = contributor(of=EVERYBODY)
    first = sent(polled(peer, opening_of(of=EVERYBODY)))
    peer.answered(first.send_id, Done(), 0.1)
    peer.effects()
    effects = polled(peer, other, now=1.0)
    assert sent(effects) is None
    assert "second model" in facts_of(effects, Rejected)[0].about
    assert peer.ledger.spent("data") == 6.0
    assert first_box(contributor(of=EVERYBODY), other)  # a peer that has not answered the round takes either


def test_a_deployed_peers_coins_are_bound_to_the_model_it_was_sent():
    secret = randomness.Secret(bytes(32))
    rounds = [opening_of(of=EVERYBODY), opening_of(parameters=(1e-9, 0.0, 0.0), of=EVERYBODY)]
    draws = [
        box_in(first_box(contributor(of=EVERYBODY, coins=secret, compute=np.zeros_like), one), of=EVERYBODY)[1]
        for one in (*rounds, rounds[0])
    ]
    assert (draws[0] != draws[1]).any()
    assert (draws[0] == draws[2]).all()


def test_nothing_leaves_beyond_the_budget_and_the_boxes_go_on():
    def play(budget):
        peer, holds, now = contributor(of=EVERYBODY, budget=budget), [], 0.0
        for number in range(5):
            send = sent(polled(peer, opening_of(number, of=EVERYBODY), now=now))
            holds.append(box_in(send.message, of=EVERYBODY)[1] is not None)
            now += 1.0
            peer.answered(send.send_id, Done(), now)
            peer.effects()
        return holds, peer.ledger.spent("data")

    assert play(12.0) == ([True, True, False, False, False], 12.0)
    assert play(17.9) == ([True, True, False, False, False], 12.0)
    assert play(None) == ([True] * 5, 30.0)


def test_a_box_that_got_lost_is_sent_again_and_one_that_arrived_is_not():
    peer = contributor(of=EVERYBODY)
    send = sent(polled(peer, opening_of(of=EVERYBODY)))
    peer.failed(send.send_id, "timeout", 1.0)
    again = sent(polled(peer, opening_of(of=EVERYBODY), now=2.0))
    assert again.message == send.message
    peer.answered(again.send_id, Done(), 3.0)
    peer.effects()
    assert sent(polled(peer, opening_of(of=EVERYBODY), answered=True, now=4.0)) is None


def test_the_last_opening_ends_the_run_with_the_model():
    peer = contributor(of=EVERYBODY)
    send = sent(polled(peer, opening_of(of=EVERYBODY)))
    peer.answered(send.send_id, Done(), 1.0)
    peer.effects()
    effects = polled(peer, opening_of(6, (3.0, 2.0, 1.0), of=EVERYBODY), now=2.0)
    assert peer.over
    assert peer.model.tolist() == [3.0, 2.0, 1.0]
    assert facts_of(effects, Ended)[0].outcome is Outcome.REPORTED


def test_a_learner_that_is_gone_is_given_up_and_one_that_restarts_is_not():
    peer = contributor()
    peer.start(0.0)
    now = 0.0
    while not peer.over and now < 1000.0:
        now = max(now, peer.wake_at())
        peer.wake(now)
        for effect in peer.effects():
            if isinstance(effect, Send):
                peer.failed(effect.send_id, "unreachable", now)
    assert 60.0 < now < 70.0
    assert peer.outcome.outcome is Outcome.UNREACHABLE


def test_forged_openings_are_not_answered():
    run = opened(EVERYBODY)[1]
    forged = federation.sign_round(0, np.zeros(3), run_id=run.run_id, keys=keys(7))
    elsewhere = federation.sign_round(0, np.zeros(3), run_id=bytes(32), keys=LEARNER)
    huge = opening_of(parameters=(1e101, 0.0, 0.0), of=EVERYBODY)
    nan = opening_of(parameters=(np.nan, 0.0, 0.0), of=EVERYBODY)
    for opening in (forged, elsewhere, huge, nan, b"nothing"):
        effects = polled(contributor(of=EVERYBODY), opening)
        assert sent(effects) is None
        assert facts_of(effects, Rejected)
    assert sent(polled(contributor(of=EVERYBODY), opening_of(of=EVERYBODY)))


@pytest.mark.parametrize(
    ("policy", "about"),
    [
        (UpdatePolicy(epsilon=5.9), "epsilon 6 of a report above 5.9"),
        (UpdatePolicy(classes=("b", "a")), "another label space"),
        (UpdatePolicy(features=3), "2 features instead of 3"),
        (UpdatePolicy(learner=bytes(32)), "instead of 0000"),
    ],
)
def test_a_run_that_is_not_to_the_peers_mind_is_refused_before_anything_is_asked(policy, about):
    peer = contributor(policy=policy)
    peer.start(0.0)
    effects = peer.effects()
    assert about in facts_of(effects, Rejected)[0].about
    assert facts_of(effects, Ended)[0].reason is Reason.POLICY
    assert not [e for e in effects if isinstance(e, Send)]
    content = UpdatePolicy(epsilon=6.0, classes=("a", "b"), features=2, learner=LEARNER.peer_id)
    willing = contributor(policy=content)
    willing.start(0.0)
    assert not willing.over


def test_a_study_is_refused_by_a_deployed_peer():
    assert "deployment" in UpdatePolicy().against(opened()[1], study=False)


def test_the_largest_model_that_is_allowed_fits_the_messages_that_carry_it():
    """With one of twice as many features the signed manifest would not."""

    def length(features):
        return len(
            msgspec.msgpack.encode(msgspec.structs.replace(MANIFEST, shift=(0.1,) * features, scale=(0.1,) * features))
        )

    slack = 10_000  # of the rest, and the envelope
    assert length(federation.MAX_DIMENSION) + slack < MAX_ENVELOPE_BYTES < length(2 * federation.MAX_DIMENSION)
    assert 8 * federation.MAX_DIMENSION + slack < MAX_ENVELOPE_BYTES


def test_every_move_that_the_table_lacks_raises_and_changes_nothing():
    events = {event for _, event in TRANSITIONS}
    for state, event in itertools.product(State, events):
        peer = contributor()
        peer.state = state
        if (state, event) in TRANSITIONS:
            peer._go(event)
            assert peer.state is TRANSITIONS[state, event]
        else:
            with pytest.raises(LocalProtocolError):
                peer._go(event)
            assert peer.state is state


def test_a_peer_of_rounds_serves_nobody_and_ends_when_told():
    peer = contributor()
    peer.start(0.0)
    assert isinstance(peer.receive(GetRound(bytes(32)), bytes(32), 0.0), Refusal)
    peer.close(1.0)
    assert peer.outcome.outcome is Outcome.ABSTAINED
    peer.close(2.0)
    assert msgspec.structs.asdict(peer.outcome)["at"] == 1.0


def test_a_run_whose_key_shares_no_secret_is_none():
    opened(manifest())
    with pytest.raises(MalformedMessage):
        opened(manifest(run_key=bytes(32)))
