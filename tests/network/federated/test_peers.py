"""Peers on sockets that are shown a run they can't take part in."""

import asyncio

import msgspec
import pytest

from network.federated.little_study import TERMS, study
from p2p_labeldp.crypto.keys import Keys
from p2p_labeldp.facts import Ended, Outcome, Reason, Rejected
from p2p_labeldp.network.federated import peers
from p2p_labeldp.network.federated.study import specs_of
from p2p_labeldp.network.study import Where
from p2p_labeldp.protocol.federation import sign_manifest
from p2p_labeldp.protocol.messages import ManifestReply

LEARNER, RUN = Keys(b"L" * 32), Keys(b"R" * 32)


async def shown(monkeypatch, **changes):
    """What becomes of a peer whose learner opens such a run, and is then gone."""
    manifest = msgspec.structs.replace(TERMS.manifest(run_key=RUN.sealing_public, opened=0.0), **changes)

    async def fetched(*_args, **_options):
        return ManifestReply(sign_manifest(manifest, LEARNER), 0.0)

    monkeypatch.setattr(peers, "fetch_manifest", fetched)
    facts, stopped = [], asyncio.Event()
    specs = specs_of(study(), learner=Where(LEARNER.peer_id, "127.0.0.1", 1), ordinals=[0])
    await asyncio.wait_for(peers.run_contributors(specs, facts.append, stopped=stopped), 300.0)
    return facts


@pytest.mark.parametrize(
    ("changes", "about"),
    [
        ({"dimension": 5}, "dimension: 5 given"),
        ({"model": "oracle"}, "model: 'oracle' given"),
        ({"epsilon_direction": 1e3}, "above 6"),
        ({"sigma": -1.0}, "policy: manifest"),
    ],
)
async def test_a_run_that_a_peer_can_not_take_part_in_is_refused_by_policy(monkeypatch, changes, about):
    facts = await shown(monkeypatch, **changes)
    (ended,) = [fact for fact in facts if isinstance(fact, Ended)]
    assert (ended.outcome, ended.reason) == (Outcome.REFUSED, Reason.POLICY)
    (rejected,) = [fact for fact in facts if isinstance(fact, Rejected)]
    assert about in rejected.about
