"""Forged peer records in a round on the virtual network: refused, logged, never fatal; with the check off they get in.

One peer of twelve does not play fair. What it says reaches its mates as gossip does, and through them the learner.
"""

import hashlib
from collections import OrderedDict

import msgspec
import pytest

from p2p_labeldp.crypto import envelope as envelopes
from p2p_labeldp.errors import ProtocolError
from p2p_labeldp.facts import Outcome, Reason, Rejected
from p2p_labeldp.network import virtual
from p2p_labeldp.protocol import directory
from p2p_labeldp.protocol.census import Census
from p2p_labeldp.protocol.directory import KIND, Directory, PeerRecord, sign_record
from p2p_labeldp.protocol.gossip import Entry, GossipSet, open_entry
from p2p_labeldp.protocol.messages import MAX_RECORD_BYTES, Push, Topic
from protocol.little_round import gathered, keys, record
from protocol.scenes import Scene

LIAR = 4
REPORTED = (Outcome.REPORTED, None)
SAID_AT = 5.0  # in the join phase, of 16 s


@pytest.fixture
def study(study_of):
    """One cluster of twelve, of which two may be lost."""
    return study_of(seed=5, sizes=(12,), tolerated_loss=0.2, minimum_size=6)


def content_of(peer):
    """What the record of a running peer says."""
    entry = peer.directory.find(peer.keys.peer_id)
    return entry.content


def told(study, forge, *, at=SAID_AT, to=range(12), **scene_options):
    """``forge`` makes records of the liar's scene and machine; its mates are told them."""
    scene = Scene(study, **scene_options)

    def say():
        records = tuple(forge(scene, scene.peers[LIAR]))
        for mate in to:
            if mate != LIAR and mate in scene.peers:
                message = Push(scene.collector.opened.round_id, Topic.DIRECTORY, records)
                scene.network.request(scene.ids[mate], message, scene.ids[LIAR])

    scene.network.at(at, say)
    return scene.play()


def changed(scene, liar, **changes):
    """Another record of the liar's."""
    return sign_record(msgspec.structs.replace(content_of(liar), **changes), scene.rings[LIAR])


def members(scene):
    return scene.collector.rosters[0].members


def abouts(scene, *, by=None):
    return {fact.about for fact in scene.facts(Rejected) if by is None or fact.peer == by}


def honest_ends(scene):
    return {end for i, end in scene.ends().items() if i != LIAR}


# -- equivocation ---------------------------------------------------------------------------------------------------


def contradicting(scene, liar):
    return [changed(scene, liar, port=2)]


@pytest.mark.parametrize("told_to", [[0], range(12)])
def test_an_equivocating_record_strikes_its_signer_out_everywhere_and_the_others_go_on(study, told_to):
    """Also if only one peer ever hears the second record: whoever has one of the two gets the other."""
    scene = told(study, contradicting, to=told_to)
    assert scene.ids[LIAR] not in members(scene)
    assert len(members(scene)) == 11
    assert honest_ends(scene) == {REPORTED}
    refused_by = {f.peer for f in scene.facts(Rejected) if "two different records" in f.about}
    assert {"learner", *range(12)} - {LIAR} <= refused_by


def test_with_histories_not_checked_an_equivocator_stays_in(study, monkeypatch):
    monkeypatch.setattr(GossipSet, "_check_history", lambda *_: None)
    scene = told(study, contradicting, to=range(12))
    assert scene.ids[LIAR] in members(scene)
    assert REPORTED in honest_ends(scene)


def in_two_clusters(study_of):
    """Two clusters, of 5 and 12; the liar is in the larger one, and its record for the other is told there too."""
    study = study_of(seed=5, sizes=(5, 12), tolerated_loss=0.2, minimum_size=4)
    probe = Scene(study).play()
    cluster = {i: peer.cluster for i, peer in probe.peers.items()}
    assert cluster[LIAR] == 1
    small = [i for i in cluster if cluster[i] == 0]
    return study, small, [i for i in cluster if cluster[i] == 1]


def a_second_cluster(small):
    """The liar's record for the small cluster, told to members that never heard of it, as most in a large network."""

    def forge(scene, liar):
        for mate in small:
            scene.peers[mate].directory.contacts.clear()
        return [changed(scene, liar, cluster=0, sequence=7)]

    return forge


def test_a_record_in_a_second_cluster_is_equivocation_for_both_rosters(study_of):
    study, small, large = in_two_clusters(study_of)
    scene = told(study, a_second_cluster(small), to=small)
    rosters = scene.collector.rosters
    assert all(scene.ids[LIAR] not in roster.members for roster in rosters.values())
    assert (len(rosters[0].members), len(rosters[1].members)) == (5, 11)
    assert {scene.ends()[i] for i in small + large if i != LIAR} == {REPORTED}  # the learner's proof reached them all
    assert "records in two clusters" in abouts(scene, by="learner")
    assert "records in two clusters" in {f.about for f in scene.facts(Rejected) if f.peer in large}


def test_with_clusters_not_compared_it_gets_into_both_rosters(study_of, monkeypatch):
    study, small, _ = in_two_clusters(study_of)
    monkeypatch.setattr(Directory, "_check_one_cluster", lambda *_: None)

    def add(self, entry):
        return self._clusters.setdefault(entry.content.cluster, GossipSet()).add(entry)

    monkeypatch.setattr(Census, "add", add)
    scene = told(study, a_second_cluster(small), to=small)
    assert all(scene.ids[LIAR] in roster.members for roster in scene.collector.rosters.values())


def test_without_the_learners_proofs_those_who_know_one_record_refuse_its_roster(study_of, monkeypatch):
    """Why the roster comes with them."""
    study, small, large = in_two_clusters(study_of)
    monkeypatch.setattr(Census, "_proofs", property(lambda _: {}, lambda *_: None), raising=False)
    scene = told(study, a_second_cluster(small), to=small)
    ends = {scene.ends()[i] for i in small + large if i != LIAR}
    assert (Outcome.REFUSED, Reason.ROSTER_MISMATCH) in ends


# -- older sequences ------------------------------------------------------------------------------------------------


def older(scene, liar):
    """First a newer record, as after a restart; then one of the time before, as a replayer has it."""
    return [
        changed(scene, liar, sequence=9, host="after"),
        changed(scene, liar, sequence=3, host="before"),
    ]


def hosts_known(scene):
    """Where the honest peers take the liar to be."""
    found = set()
    for i, peer in scene.peers.items():
        entry = peer.directory.find(scene.ids[LIAR])
        if i != LIAR and entry is not None:
            found.add(entry.content.host)
    return found


def test_a_record_of_an_older_sequence_does_not_come_back(study):
    scene = told(study, older)
    assert hosts_known(scene) == {"after"}
    assert {f.peer for f in scene.facts(Rejected) if "older" in f.about} == set(range(12)) - {LIAR}
    assert scene.ids[LIAR] in members(scene)
    assert honest_ends(scene) == {REPORTED}


def test_with_sequences_not_compared_an_older_record_comes_back(study, monkeypatch):
    add = GossipSet.add

    def latest_wins(self, entry):
        known = self.get(entry.signer)
        if known is not None:
            self._drop(known)
        return add(self, entry)

    monkeypatch.setattr(GossipSet, "add", latest_wins)
    monkeypatch.setattr(GossipSet, "knows", lambda *_: False)
    scene = told(study, older, at=15.9)  # the last word; gossip would go on swapping them
    assert "before" in hosts_known(scene)


# -- expired, oversized, malformed -----------------------------------------------------------------------------------

NOBODY = virtual.transparent_keys(b"nobody")


def nobodys(_, liar, **changes):
    """The record of somebody who is not there."""
    return NOBODY.sign(KIND, msgspec.msgpack.encode(msgspec.structs.replace(content_of(liar), **changes)))


FORGED = {
    "expired": lambda *there: nobodys(*there, expires=SAID_AT - 1),
    "outliving its round": lambda *there: nobodys(*there, expires=1e6),
    "of another round": lambda *there: nobodys(*there, round_id=bytes(32)),
    "signed for another purpose": lambda *there: NOBODY.sign("ready", nobodys(*there)[32 + len(KIND) + 1 :]),
    "oversized": lambda *there: nobodys(*there, host="x" * (MAX_RECORD_BYTES + 1)),
    "malformed": lambda *_: NOBODY.sign(KIND, b"\xc1garbage"),
    "empty": lambda *_: b"",
}


@pytest.mark.parametrize("why", FORGED)
def test_a_forged_record_is_refused_logged_and_not_fatal(study, why):
    scene = told(study, lambda *there: [FORGED[why](*there)])
    usual = Scene(study).play()
    assert NOBODY.peer_id not in members(scene)
    assert scene.ends() == usual.ends() == dict.fromkeys(range(12), REPORTED)
    assert {fact.peer for fact in scene.facts(Rejected)} == set(range(12)) - {LIAR}
    assert not usual.facts(Rejected)


@pytest.mark.parametrize("why", [why for why in FORGED if why not in ("malformed", "empty")])
def test_with_records_not_judged_a_forged_one_counts(study, monkeypatch, why):
    judged = directory.open_record
    loose = msgspec.defstruct("Loose", [(name, object) for name in PeerRecord.__struct_fields__], array_like=True)

    def unjudged(envelope, **terms):
        try:
            return judged(envelope, **terms)
        except ProtocolError:
            values = msgspec.msgpack.decode(envelope[32:].partition(b"\0")[2], type=loose)
            record = PeerRecord(**{name: getattr(values, name) for name in values.__struct_fields__})
            return Entry(hashlib.sha256(envelope[:32]).digest(), envelope, record)

    monkeypatch.setattr(directory, "open_record", unjudged)
    scene = told(study, lambda *there: [FORGED[why](*there)])
    assert all(NOBODY.peer_id in peer.directory.mates for peer in scene.peers.values())


@pytest.mark.parametrize("why", FORGED)
def test_with_refusals_not_caught_a_forged_record_is_fatal(study, monkeypatch, why):
    monkeypatch.setattr(directory, "ProtocolError", ZeroDivisionError)
    with pytest.raises(ProtocolError):
        told(study, lambda *there: [FORGED[why](*there)])


# -- ids that don't derive from their key ----------------------------------------------------------------------------


def readdressed():
    """A record of party 3 under the key, and so the id, of party 2; real keys."""
    return record(3)[:1] + keys(2).public + record(3)[33:]


def test_an_id_cannot_be_claimed_without_its_key():
    hand = gathered(records=[record(i) for i in (3, 4, 5)])
    hand.tell(readdressed())
    assert keys(2).peer_id not in hand.machine.directory.mates
    assert "signature does not verify" in hand.facts(Rejected)[-1].about


def test_with_signatures_not_checked_an_id_is_claimed(monkeypatch):
    monkeypatch.setattr(envelopes, "_verified", OrderedDict())  # what is believed here is not remembered
    monkeypatch.setattr(directory, "open_entry", open_entry.__wrapped__)
    monkeypatch.setattr(envelopes, "verify", lambda *_: None)
    hand = gathered(records=[record(i) for i in (3, 4, 5)])
    hand.tell(readdressed())
    assert hand.machine.directory.find(keys(2).peer_id).content.host == "peer-3"
