"""The directory keeps its cluster's records, a few contacts elsewhere, and believes nothing that is not signed."""

import random

import pytest
from altering import altered

from p2p_labeldp.errors import AuthenticationFailed, MalformedMessage
from p2p_labeldp.protocol import directory as module
from p2p_labeldp.protocol import gossip
from p2p_labeldp.protocol.directory import CONTACTS_PER_CLUSTER, FAR, NEAR, OWN, Directory, open_record
from p2p_labeldp.protocol.gossip import salted_id, short_id
from p2p_labeldp.protocol.meeting import distance, meeting_point
from p2p_labeldp.protocol.messages import MAX_CONTACTS, Contact, Digest, Place, Topic
from protocol.little_round import DEADLINES, OPENED, keys, open_round, record

OTHER_ROUND = open_round(nonce=b"\1" * 16)


def make(*records, cluster=0, clusters=3, now=1.0):
    found = Directory(
        cluster=cluster, clusters=clusters, keys=keys(1), round_id=OPENED.round_id, expires_by=DEADLINES.report
    )
    assert found.absorb(records, now)[1] == []
    return found


def bad_signature(envelope):
    return altered(envelope, 60)


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

    monkeypatch.setattr(gossip, "decode_payload", never)
    gossip.open_entry.cache_clear()
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


def test_a_record_of_another_cluster_is_refused():
    found = make(record(2))
    assert found.absorb((record(3, cluster=1),), 1.0) == (0, ["a record of another cluster"])
    assert found.absorb((record(4),), 1.0) == (1, [])


def test_who_names_two_clusters_is_a_mate_in_neither_whatever_comes_first():
    for first, second in ((0, 1), (1, 0)):
        found = make(record(2))
        found.absorb((record(3, cluster=first),), 1.0)
        assert found.absorb((record(3, cluster=second),), 1.0) == (0, ["records in two clusters"])
        assert found.absorb((record(3, sequence=9),), 1.0)[0] == 0
        assert [entry.signer for entry in found.mates] == [keys(2).peer_id]
    assert found.contacts == {}


# -- contacts -------------------------------------------------------------------------------------------------------


def place(number):
    return Place(f"peer-{number}", 7000)


def meet(found, numbers, *, cluster):
    for i in numbers:
        found.meet(keys(i).peer_id, cluster, place(i))


def asked(found, cluster, *, number=90, seed=0, have=b"", at=None):
    digest = Digest(OPENED.round_id[:8], Topic.DIRECTORY, cluster, have, (), 5, at)
    return found.reply(digest, keys(number).peer_id, random.Random(seed))


def named(offer):
    return [one.peer_id for one in offer.contacts]


def test_contacts_are_bounded_per_cluster_and_the_nearest_and_the_freshest_stay():
    found, numbers = make(), range(10, 10 + CONTACTS_PER_CLUSTER + 5)
    meet(found, numbers, cluster=1)
    met = [keys(i).peer_id for i in numbers]
    nearest = min(met, key=lambda one: distance(one, meeting_point(OPENED.round_id, 1)))
    freshest = [one for one in met if one != nearest][1 - CONTACTS_PER_CLUSTER :]
    assert set(found.contacts[1]) == {nearest, *freshest}
    assert len(found.contacts[1]) == CONTACTS_PER_CLUSTER
    assert len(found.mates) == 0


def test_contacts_are_bounded_in_clusters(monkeypatch):
    monkeypatch.setattr(module, "MAX_CONTACT_CLUSTERS", 3)
    found = make(clusters=9)
    for cluster in (1, 2, 3, 4):
        meet(found, (10 + cluster,), cluster=cluster)
    meet(found, (20,), cluster=3)
    assert {cluster: len(known) for cluster, known in found.contacts.items()} == {1: 1, 2: 1, 3: 2}


@pytest.mark.parametrize("cluster", [0, 3, 1_000_000])
def test_nobody_is_a_contact_for_the_own_cluster_or_for_none(cluster):
    found = make(clusters=3)
    meet(found, (10,), cluster=cluster)
    assert found.contacts == {}


def test_a_peer_is_where_it_says_last_that_it_is():
    found = make()
    found.meet(keys(2).peer_id, 1, place(2))
    found.meet(keys(2).peer_id, 1, place(3))
    assert [one.at for one in found.contacts[1].values()] == [place(3)]


def test_who_asks_is_remembered_under_its_authenticated_id_if_it_says_where_it_is():
    found = make(record(1))
    asked(found, 1, number=91)
    assert found.contacts == {}
    asked(found, 1, number=91, at=place(91))
    assert found.contacts == {1: {keys(91).peer_id: Contact(keys(91).peer_id, 1, place(91))}}


def test_a_mate_gets_the_whole_cluster():
    found = make(*(record(i) for i in range(1, 31)))
    offer = asked(found, 0, have=salted_id(short_id(record(5)), 5) + b"odd")
    assert set(offer.records) == {record(i) for i in range(1, 31)} - {record(5)}
    assert offer.wanted == b"odd"
    assert offer.contacts == ()


def test_a_stranger_is_told_of_its_cluster_and_of_somebody_to_ask_next_and_gets_no_record():
    found = make(*(record(i) for i in range(1, 31)))
    meet(found, range(40, 44), cluster=1)
    meet(found, range(50, 54), cluster=2)
    offer = asked(found, 1)
    assert (offer.records, offer.wanted, offer.cluster) == ((), b"", 0)
    assert set(named(offer)[:OWN]) <= {keys(i).peer_id for i in range(40, 44)}
    assert len(set(named(offer))) == OWN + NEAR + FAR
    assert not set(named(offer)[OWN:]) & {keys(i).peer_id for i in range(40, 44)}


def test_the_nearest_to_the_meeting_point_of_either_kind_is_always_named_and_one_of_any():
    found = make(*(record(i) for i in range(1, 31)))
    meet(found, range(40, 44), cluster=1)
    meet(found, range(50, 54), cluster=2)
    point = meeting_point(OPENED.round_id, 1)
    for numbers, named_there in ((range(40, 44), slice(OWN)), ((*range(1, 31), *range(50, 54)), slice(OWN, None))):
        nearest = min((keys(i).peer_id for i in numbers), key=lambda one: distance(one, point))
        names = [named(asked(found, 1, seed=seed))[named_there] for seed in range(20)]
        assert all(one[0] == nearest for one in names)
        assert len({one[1] for one in names}) > 2


def test_a_stranger_is_not_told_of_itself():
    found = make(record(1))
    meet(found, (40, 41), cluster=1)
    assert all(keys(40).peer_id not in named(asked(found, 1, number=40, seed=seed)) for seed in range(10))


def test_a_stranger_of_no_cluster_is_refused():
    found = make(record(1))
    asked(found, 2)
    with pytest.raises(MalformedMessage):
        asked(found, 3, at=place(90))
    assert found.contacts == {}


def test_nobody_hands_out_a_whole_cluster_to_a_stranger():
    found = make(*(record(i) for i in range(1, 31)))
    meet(found, range(100, 140), cluster=1)
    assert all(len(asked(found, 1, seed=seed).contacts) <= MAX_CONTACTS for seed in range(20))


def test_somebody_elsewhere_is_named_if_there_is_anybody():
    found = make(record(1))
    assert found.some_contact(random.Random(0)) is None
    meet(found, (40,), cluster=1)
    assert found.some_contact(random.Random(0)) == Contact(keys(40).peer_id, 1, place(40))


def test_half_an_id_is_malformed():
    found = make(record(1))
    for have in (b"", b"123"):
        asked(found, 0, have=have)
    with pytest.raises(MalformedMessage):
        asked(found, 0, have=b"1234")
