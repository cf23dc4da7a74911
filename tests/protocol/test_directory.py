"""The directory keeps its cluster's records, a few contacts elsewhere, and believes nothing that is not signed."""

import random

import pytest

from p2p_labeldp.errors import AuthenticationFailed, MalformedMessage
from p2p_labeldp.protocol import directory as module
from p2p_labeldp.protocol.directory import (
    CONTACTS_ELSEWHERE,
    CONTACTS_PER_CLUSTER,
    MATES_FOR_A_STRANGER,
    Directory,
    open_record,
)
from p2p_labeldp.protocol.gossip import short_id
from protocol.little_round import DEADLINES, OPENED, keys, open_round, record

OTHER_ROUND = open_round(nonce=b"\1" * 16)


def make(*records, cluster=0, clusters=3, now=1.0):
    found = Directory(
        cluster=cluster, clusters=clusters, keys=keys(1), round_id=OPENED.round_id, expires_by=DEADLINES.report
    )
    assert found.absorb(records, now)[1] == []
    return found


def bad_signature(envelope):
    return envelope[:60] + bytes([envelope[60] ^ 1]) + envelope[61:]


BAD = {
    "of another round": record(2, opened=OTHER_ROUND),
    "expired": record(2, expires=0.5),
    "expiring this very moment": record(2, expires=1.0),
    "outliving its round": record(2, expires=DEADLINES.report + 0.1),
    "valid for ever": record(2, expires=float("inf")),
    "never valid": record(2, expires=float("nan")),
    "unsigned": record(2)[97:],
    "forged": bad_signature(record(2)),
    "somebody else's, readdressed": record(3)[:1] + keys(2).public + record(3)[33:],
    "signed for another purpose": keys(2).sign("ready", record(2)[97:]),
    "too long": keys(2).sign("peer", record(2)[97:] + bytes(1024)),
    "cut short": record(2)[:-1],
    "with trailing bytes": keys(2).sign("peer", record(2)[97:] + b"\0"),
    "of a cluster that does not exist": record(2, cluster=3),
    "with an empty host": record(2, host=""),
    "with an impossible port": record(2, port=0),
    "of a negative ordinal": record(2, ordinal=-1),
    "empty": b"",
}


@pytest.mark.parametrize("why", BAD)
def test_a_bad_record_is_refused_and_never_fatal(why):
    found = make(record(4))
    news, refused = found.absorb((BAD[why], record(5)), 1.0)
    assert news == 1  # what comes with it is taken all the same
    assert len(refused) == 1
    assert keys(2).peer_id not in found.mates
    assert found.contacts == {}


def test_a_good_record_is_taken():
    found = make()
    assert found.absorb((record(2),), 1.0) == (1, [])
    assert found.find(keys(2).peer_id).content.host == "peer-2"
    assert found.absorb((record(2),), 1.0) == (0, [])


def test_a_record_is_verified_before_it_is_decoded(monkeypatch):
    def never(*_):
        raise AssertionError("decoded before it was verified")

    monkeypatch.setattr(module, "_decoded", never)
    terms = {"keys": keys(1), "round_id": OPENED.round_id, "expires_by": 40.0, "now": 0.0}
    with pytest.raises(AuthenticationFailed):
        open_record(bad_signature(record(2)), **terms)
    with pytest.raises(AssertionError):
        open_record(record(2), **terms)


def test_a_restarted_mate_replaces_its_record_and_an_older_one_does_not_return():
    found = make(record(2))
    assert found.absorb((record(2, sequence=1, port=7001),), 1.0) == (1, [])
    assert found.absorb((record(2),), 1.0) == (0, [])
    assert found.find(keys(2).peer_id).content.port == 7001


def test_an_equivocating_mate_is_struck_out():
    found = make(record(2), record(3))
    _, refused = found.absorb((record(2, port=7001),), 1.0)
    assert len(refused) == 1
    assert found.find(keys(2).peer_id) is None
    assert found.find(keys(3).peer_id) is not None


def test_a_contact_is_opened_once_while_it_is_kept(monkeypatch):
    found, opened = make(), []
    real = module.open_record
    monkeypatch.setattr(
        module, "open_record", lambda envelope, **terms: opened.append(envelope) or real(envelope, **terms)
    )
    others = [record(i, cluster=1) for i in range(2, 12)]  # ten for eight places: the first two are pushed out
    found.absorb((*others, *others[2:]), 1.0)
    assert opened == others
    found.absorb((others[0], others[0], others[2]), 1.0)
    assert opened[len(others) :] == [others[0], others[2]]
    found.absorb((record(5, cluster=1, sequence=1), others[3]), 1.0)  # an older one of a contact is no contact
    assert opened[-1] == others[3]


def test_contacts_are_bounded_per_cluster_and_the_freshest_stay():
    numbers = range(10, 10 + CONTACTS_PER_CLUSTER + 5)
    found = make(*(record(i, cluster=1) for i in numbers))
    kept = [entry.signer for entry in found.contacts[1].values()]
    assert kept == [keys(i).peer_id for i in numbers][-CONTACTS_PER_CLUSTER:]
    assert len(found.mates) == 0


def test_contacts_are_bounded_in_clusters(monkeypatch):
    monkeypatch.setattr(module, "MAX_CONTACT_CLUSTERS", 3)
    found = make(*(record(10 + c, cluster=c) for c in (1, 2, 3)), clusters=9)
    _, refused = found.absorb((record(20, cluster=4), record(21, cluster=3)), 1.0)
    assert len(refused) == 1
    assert sorted(found.contacts) == [1, 2, 3]
    assert len(found.contacts[3]) == 2


def test_an_older_record_of_a_contact_does_not_replace_a_newer_one():
    found = make(record(2, cluster=1, sequence=3, port=7003))
    found.absorb((record(2, cluster=1, sequence=2),), 1.0)
    assert [entry.content.port for entry in found.contacts[1].values()] == [7003]
    found.absorb((record(2, cluster=1, sequence=4, port=7004),), 1.0)
    assert [entry.content.port for entry in found.contacts[1].values()] == [7004]


def replied(found, cluster, have=b"", own=1, seed=0):
    return found.reply(cluster, have, record(own), random.Random(seed))


def test_a_mate_gets_the_whole_cluster():
    found = make(*(record(i) for i in range(1, 31)))
    offered, wanted = replied(found, 0, have=short_id(record(5)) + b"8 bytes.")
    assert set(offered) == {record(i) for i in range(1, 31)} - {record(5)}
    assert wanted == b"8 bytes."


def test_a_stranger_gets_contacts_of_its_cluster_and_somebody_to_ask_next():
    found = make(
        *(record(i) for i in range(1, 31)),
        *(record(i, cluster=1) for i in range(40, 44)),
        *(record(i, cluster=2) for i in range(50, 54)),
    )
    offered, wanted = replied(found, 1)
    assert wanted == b""
    assert offered[0] == record(1)
    assert {record(i, cluster=1) for i in range(40, 44)} <= set(offered)
    assert any(record(i, cluster=2) in offered for i in range(50, 54))
    assert len(set(offered)) == len(offered)


def test_a_stranger_is_not_told_what_it_has():
    found = make(record(1), *(record(i, cluster=1) for i in (40, 41)))
    offered, _ = replied(found, 1, have=short_id(record(40, cluster=1)) + short_id(record(1)))
    assert offered == (record(41, cluster=1),)


def test_nobody_hands_out_a_whole_foreign_cluster():
    found = make(*(record(i) for i in range(1, 31)), *(record(i, cluster=1) for i in range(100, 140)))
    mates = {record(i) for i in range(1, 31)}
    for seed in range(20):
        offered, _ = replied(found, 1, seed=seed)
        foreign = [envelope for envelope in offered if envelope not in mates]
        assert len(foreign) == CONTACTS_PER_CLUSTER  # of forty
        assert len(offered) <= 1 + CONTACTS_PER_CLUSTER + CONTACTS_ELSEWHERE + MATES_FOR_A_STRANGER
        assert len(mates.intersection(offered)) <= 1 + MATES_FOR_A_STRANGER  # nor its own cluster, to a stranger


def test_a_strangers_search_walks_on():
    found = make(*(record(i) for i in range(1, 31)))
    named = {envelope for seed in range(40) for envelope in replied(found, 1, seed=seed)[0]}
    assert len(named) > 20


def test_a_digest_that_is_none_is_malformed():
    found = make(record(1))
    for cluster in (0, 1):
        assert replied(found, cluster, have=bytes(8))
        with pytest.raises(MalformedMessage):
            replied(found, cluster, have=bytes(7))
