"""Hubs are found by id, and an id can be made to be near a meeting point: whoever is a hub may say what it likes."""

import pytest

from p2p_labeldp.facts import Outcome
from p2p_labeldp.protocol import dissemination
from p2p_labeldp.protocol.meeting import hubs, meeting_point
from p2p_labeldp.protocol.messages import Digest, Offer, Topic
from protocol.scenes import Scene


def nothing(offer):
    return Offer((), b"", (), cluster=offer.cluster)


def one_record(offer):
    return Offer(offer.records[:1], b"", (), cluster=offer.cluster)


def reports_with_lying_hubs(study, says):
    """How many report of those that are no hub."""

    def tamper(machine, message, sender, reply):
        lies = isinstance(message, Digest) and machine.peer_id in liars and isinstance(reply, Offer)
        return says(reply) if lies and sender != scene.learner else reply

    scene = Scene(study, tamper=tamper)
    round_id = scene.collector.opened.round_id
    mates = {}
    for peer_id, cluster in zip(scene.ids, scene.collector.opened.clustering.assign(study.features), strict=True):
        mates.setdefault(int(cluster), []).append(peer_id)
    liars = {hub for cluster, ids in mates.items() for hub in hubs(ids, meeting_point(round_id, cluster))}
    ends = scene.play().ends()
    assert len(liars) == len(mates)
    return sum(ends[i] == (Outcome.REPORTED, None) for i, one in enumerate(scene.ids) if one not in liars)


@pytest.mark.parametrize("says", [nothing, one_record])
@pytest.mark.parametrize("seed", [1, 2])
def test_a_hub_that_says_little_keeps_nobody_from_reporting(study_of, says, seed):
    assert reports_with_lying_hubs(study_of(seed=seed, sizes=(20, 20, 20)), says) == 57


def test_a_hub_that_is_visited_as_long_as_it_answers_does(study_of, monkeypatch):
    """The control."""
    monkeypatch.setattr(dissemination, "HUB_VISITS", dict.fromkeys(Topic, 100))
    assert reports_with_lying_hubs(study_of(seed=1, sizes=(20, 20, 20)), one_record) < 57
