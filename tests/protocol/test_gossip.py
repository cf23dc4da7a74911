"""A gossip set is the same whatever the order in which its records came, and a liar harms nobody but itself."""

import contextlib
import hashlib
import math
import random
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2p_labeldp.errors import AuthenticationFailed, MalformedMessage, ProtocolError
from p2p_labeldp.protocol import gossip
from p2p_labeldp.protocol.gossip import MAX_OLDER, Entry, GossipSet, bounded, draw_salt, salted_id, short_id
from p2p_labeldp.protocol.messages import MAX_EAGER_BYTES, MAX_OFFER_BYTES, MAX_OFFER_RECORDS, Digest, Offer, Topic


@dataclass(frozen=True)
class Content:
    sequence: int


def entry(signer, sequence=0, variant=0, padding=0):
    envelope = f"{signer}/{sequence}/{variant}".encode() + bytes(padding)
    return Entry(hashlib.sha256(str(signer).encode()).digest(), envelope, Content(sequence))


def merged(entries, into=None):
    found = GossipSet() if into is None else into
    for one in entries:
        if found.knows(one):
            continue
        with contextlib.suppress(ProtocolError):
            found.add(one)
    return found


def says(found):
    return {one.signer: one.envelope for one in found}


ENTRIES = st.lists(st.builds(entry, st.integers(0, 3), st.integers(0, 4), st.integers(0, 1)), max_size=24)

HONEST = st.lists(st.builds(entry, st.integers(0, 5), st.integers(0, 4)), max_size=24)


@given(ENTRIES, st.randoms(use_true_random=False))
def test_merging_is_commutative(entries, rng):
    shuffled = list(entries)
    rng.shuffle(shuffled)
    assert says(merged(entries)) == says(merged(shuffled))


@given(ENTRIES)
def test_merging_is_idempotent(entries):
    once = merged(entries)
    before = says(once)
    assert says(merged(entries, into=once)) == before == says(merged(entries + entries))


@given(HONEST, HONEST, HONEST)
def test_merging_sets_is_associative(a, b, c):
    first = merged([*merged([*merged(a), *merged(b)]), *merged(c)])
    last = merged([*merged(a), *merged([*merged(b), *merged(c)])])
    assert says(first) == says(last) == says(merged(a + b + c))


@given(ENTRIES)
def test_a_signer_counts_with_its_newest_record_unless_it_equivocated(entries):
    expected = {}
    for signer in {one.signer for one in entries}:
        own = {one.envelope: one for one in entries if one.signer == signer}
        sequences = [one.content.sequence for one in own.values()]
        if len(set(sequences)) == len(sequences):
            expected[signer] = max(own.values(), key=lambda one: one.content.sequence).envelope
    assert says(merged(entries)) == expected


def test_a_newer_sequence_replaces_and_an_older_one_does_not():
    found = GossipSet()
    assert found.add(entry(1, 5))
    assert found.add(entry(1, 7))
    with pytest.raises(MalformedMessage, match="older"):
        found.add(entry(1, 6))
    assert says(found) == {entry(1, 7).signer: entry(1, 7).envelope}
    assert found.knows(entry(1, 5))
    assert found.knows(entry(1, 6))


def test_the_same_record_again_changes_nothing():
    found = GossipSet()
    assert found.add(entry(1))
    assert not found.add(entry(1))
    assert len(found) == 1


def test_two_records_of_one_sequence_strike_their_signer_out_for_good():
    found = merged([entry(1), entry(2)])
    with pytest.raises(AuthenticationFailed):
        found.add(entry(1, 0, variant=1))
    assert entry(1).signer not in found
    with pytest.raises(AuthenticationFailed):
        found.add(entry(1, 9))
    for refused in (entry(1), entry(1, 0, 1), entry(1, 9)):
        assert found.knows(refused)
    assert says(found) == {entry(2).signer: entry(2).envelope}


def test_an_old_lie_is_found_after_a_newer_record_came():
    found = merged([entry(1, 1), entry(1, 2)])
    with pytest.raises(AuthenticationFailed):
        found.add(entry(1, 1, variant=1))
    assert entry(1).signer not in found


def test_a_signer_may_restart_but_not_for_ever():
    found = GossipSet()
    for sequence in range(MAX_OLDER + 1):
        assert found.add(entry(1, sequence))
    with pytest.raises(AuthenticationFailed, match=r"."):
        found.add(entry(1, MAX_OLDER + 1))
    assert len(found) == 0


def test_a_full_set_refuses_newcomers_and_still_takes_updates():
    found = GossipSet(capacity=3)
    for signer in range(3):
        found.add(entry(signer))
    with pytest.raises(MalformedMessage):
        found.add(entry(3))
    assert found.add(entry(0, 1))
    assert {one.signer for one in found} == {entry(s).signer for s in range(3)}


def test_liars_count_towards_the_capacity():
    found = merged([entry(1), entry(1, 0, 1), entry(2)], into=GossipSet(capacity=2))
    with pytest.raises(MalformedMessage):
        found.add(entry(3))
    assert says(found) == {entry(2).signer: entry(2).envelope}


def test_a_hostile_record_never_evicts_a_good_one(monkeypatch):
    good = entry("good")
    found = merged([good], into=GossipSet(capacity=50))
    for signer in range(200):
        merged([entry(signer), entry(signer, 1), entry(signer, 1, 1)], into=found)
    assert found.get(good.signer) == good
    monkeypatch.setattr(gossip, "short_id", lambda _: b"the same")  # as if somebody had found a collision
    found = GossipSet()
    for one in (entry("good"), entry("hostile")):
        found.add(one)
    assert found.get(good.signer) == good


def test_what_a_liar_can_make_a_set_remember_is_bounded():
    found = GossipSet(capacity=10)
    for variant in range(200):
        merged([entry(1, 0, variant)], into=found)
    assert len(found._refused) <= 40


# -- exchanging -----------------------------------------------------------------------------------------------------


@given(ENTRIES, ENTRIES)
def test_one_push_pull_exchange_makes_two_honest_sets_equal(left, right):
    a, b = merged(left), merged(right)
    offered, wanted = b.missing_from(a.have(7), 7)
    pushed = a.select(wanted, 7)
    by_envelope = {one.envelope: one for one in left + right}
    merged([by_envelope[e] for e in offered], into=a)
    merged([by_envelope[e] for e in pushed], into=b)
    liars = {s for s in says(a).keys() | says(b).keys() if says(a).get(s) != says(b).get(s)}
    for signer in liars:  # the proof against a liar does not travel, so only its record may differ
        own = {one.envelope for one in left + right if one.signer == signer}
        assert len(own) > len({by_envelope[e].content.sequence for e in own})


def test_a_digest_names_each_record_in_three_bytes():
    found = merged([entry(s) for s in range(5)])
    assert found.have(9) == b"".join(salted_id(short_id(entry(s).envelope), 9) for s in range(5))
    assert len(found.have(9)) == 15
    assert short_id(b"a") == hashlib.sha256(b"a").digest()[:16]


def test_a_salted_id_is_the_top_of_an_odd_multiple():
    name = bytes(7) + b"\3" + bytes(8)
    assert salted_id(name, 0) == bytes(3)
    assert salted_id(name, (1 << 63) - 1) == (((1 << 64) - 3) >> 40).to_bytes(3, "big")  # 3 * (2^64 - 1) mod 2^64
    assert salted_id(b"\xff" * 16, 0) == b"\xff" * 3


@given(st.binary(min_size=8, max_size=8), st.binary(min_size=8, max_size=8))
def test_any_two_names_are_told_apart_by_nearly_every_salt(one, other):
    """Each of 200 salts makes them equal with probability 2^-23 at most: three or more do with less than 1e-14."""
    rng = random.Random(1)
    salts = [draw_salt(rng) for _ in range(200)]
    equal = sum(salted_id(one, salt) == salted_id(other, salt) for salt in salts)
    assert equal == 200 if one == other else equal <= 2


def test_a_record_that_hides_an_honest_one_under_one_salt_does_not_under_the_next(monkeypatch):
    names = {entry("honest").envelope: b"abc" + bytes(13), entry("hostile").envelope: b"abc" + b"\1" * 13}
    monkeypatch.setattr(gossip, "short_id", names.__getitem__)
    honest, hostile = entry("honest"), entry("hostile")
    both, poor = GossipSet(), GossipSet()
    both.add(honest)
    both.add(hostile)
    poor.add(hostile)
    assert both.missing_from(poor.have(0), 0) == ((), b"")  # the control: hidden, if the salt is known in advance
    rng = random.Random(1)
    for _ in range(100):
        salt = draw_salt(rng)
        assert both.missing_from(poor.have(salt), salt) == ((honest.envelope,), b"")
        assert poor.missing_from(both.have(salt), salt)[1] == salted_id(names[honest.envelope], salt)


@given(ENTRIES, ENTRIES, st.integers(0, (1 << 63) - 1))
def test_sets_have_one_root_if_and_only_if_they_are_equal(left, right, salt):
    a, b = merged(left), merged(right)
    assert (a.root(salt) == b.root(salt)) == (says(a) == says(b))
    assert a.root(salt) == merged(reversed(list(a))).root(salt)


def test_a_root_changes_with_the_salt_and_with_every_change_of_the_set():
    found, roots = merged([entry(1)]), set()
    roots |= {found.root(1), found.root(2)}
    for one in (entry(2), entry(2, 1), entry(1, 0, 1)):
        merged([one], into=found)
        roots.add(found.root(1))
    assert len(roots) == 5


def digest_of(found, *, root):
    return Digest(
        bytes(8), Topic.DIRECTORY, 0, b"" if root else found.have(3), (), 3, None, found.root(3) if root else b""
    )


def test_a_root_is_answered_by_yes_or_no_and_ids_by_records():
    a, b = merged([entry(1), entry(2)]), merged([entry(2), entry(3)])
    assert a.answer(digest_of(a, root=True)) == Offer((), b"")
    assert b.answer(digest_of(a, root=True)) == Offer((), b"", differs=True)
    offer = b.answer(digest_of(a, root=False))
    assert offer == Offer((entry(3).envelope,), salted_id(short_id(entry(1).envelope), 3))
    assert a.select(offer.wanted, 3) == (entry(1).envelope,)


def test_a_digest_of_half_an_id_is_malformed():
    found = merged([entry(1)])
    assert found.missing_from(found.have(1), 1) == ((), b"")
    for use in (found.missing_from, found.select):
        with pytest.raises(MalformedMessage):
            use(found.have(1)[:-1], 1)


def test_what_was_refused_is_not_wanted_again():
    found = merged([entry(1), entry(1, 0, 1)])
    ids = [salted_id(short_id(entry(s).envelope), 4) for s in (1, 2)]
    assert found.missing_from(b"".join(ids), 4) == ((entry(1, 0, 1).envelope,), ids[1])


def test_who_has_one_of_two_contradicting_records_gets_the_other_and_nobody_else_does():
    found = merged([entry(1), entry(1, 0, 1), entry(2)])
    for has, gets in ((entry(1), entry(1, 0, 1)), (entry(1, 0, 1), entry(1))):
        other = merged([has])
        offered, _ = found.missing_from(other.have(7), 7)
        assert set(offered) == {gets.envelope, entry(2).envelope}
        merged([gets], into=other)
        assert says(other) == {}
    assert found.missing_from(b"", 7)[0] == (entry(2).envelope,)


def test_proofs_are_bounded(monkeypatch):
    monkeypatch.setattr(gossip, "MAX_PROOFS", 3)
    found = merged([entry(s, 0, v) for s in range(9) for v in (0, 1)])
    assert says(found) == {}
    assert len(found._contradicted) == 6


def test_a_signer_that_is_struck_out_is_gone_and_stays_so():
    found = merged([entry(1), entry(2)])
    found.strike(entry(1).signer)
    found.strike(entry(3).signer)
    merged([entry(1), entry(1, 1), entry(3), entry(4)], into=found)
    assert says(found) == {entry(s).signer: entry(s).envelope for s in (2, 4)}


def test_an_offer_is_bounded_in_records_and_in_bytes():
    many = merged([entry(s) for s in range(MAX_OFFER_RECORDS + 10)])
    assert len(many.missing_from(b"", 1)[0]) == MAX_OFFER_RECORDS
    assert len(many.select(many.have(1), 1)) == MAX_OFFER_RECORDS
    large = [bytes(1000)] * 1000
    assert sum(map(len, bounded(large))) <= MAX_OFFER_BYTES < sum(map(len, bounded(large))) + 1000
    assert bounded(large[:10]) == tuple(large[:10])


def test_bounded_offers_bring_everything_in_the_end():
    source, sink = merged([entry(s, padding=900) for s in range(700)]), GossipSet()
    by_envelope = {one.envelope: one for one in source}
    exchanges = 0
    while len(sink) < len(source):
        offered, _ = source.missing_from(sink.have(exchanges), exchanges)
        assert offered
        merged([by_envelope[e] for e in offered], into=sink)
        exchanges += 1
    assert exchanges == 3  # 262,144 bytes hold 287 records of 907
    assert says(sink) == says(source)


def rounds_to_convergence(count, *, fan_out, loss, seed):
    """Rounds until all of ``count`` sets, each with one record at first, are equal; every set knows whom to ask."""
    rng = random.Random(seed)
    by_envelope = {entry(s).envelope: entry(s) for s in range(count)}
    sets = [merged([one]) for one in by_envelope.values()]
    rounds = 0
    while any(len(found) < count for found in sets):
        rounds += 1
        for me in range(count):
            for _ in range(fan_out):
                other, salt = sets[rng.randrange(count)], draw_salt(rng)
                if rng.random() < loss:
                    continue
                offered, wanted = other.missing_from(sets[me].have(salt), salt)
                if rng.random() < loss:
                    continue
                pushed = sets[me].select(wanted, salt)
                merged([by_envelope[e] for e in offered], into=sets[me])
                if rng.random() >= loss:
                    merged([by_envelope[e] for e in pushed], into=other)
    return rounds


def test_a_hundred_sets_converge_within_log2_and_four_rounds_at_fan_out_two_and_five_percent_loss():
    assert max(rounds_to_convergence(100, fan_out=2, loss=0.05, seed=seed) for seed in range(3)) <= math.log2(100) + 4
    assert rounds_to_convergence(100, fan_out=2, loss=0.9, seed=1) > math.log2(100) + 4  # the control


def test_only_a_small_set_travels_with_its_digest():
    assert len(merged([entry(1)]).if_small(of=2)) == 1  # one's own record always does
    few = merged([entry(s, padding=100) for s in range(2)])
    assert len(few.if_small(of=8)) == 2
    assert few.if_small(of=7) == ()
    large = merged([entry(s, padding=1000) for s in range(5)])
    assert sum(len(one.envelope) for one in large) > MAX_EAGER_BYTES
    assert large.if_small(of=100) == ()


@pytest.mark.parametrize("count", [0, 1, 7, gossip.MANY_IDS, gossip.MANY_IDS + 1])
def test_salted_ids_are_cut_one_by_one_however_many(count):
    ids = [i.to_bytes(3, "big") for i in range(count)]
    assert list(gossip.split_ids(b"".join(ids))) == ids
    with pytest.raises(MalformedMessage):
        gossip.split_ids(b"".join(ids) + b"x")
