"""The machines of a run on the in-memory network: one seed, one trace."""

from __future__ import annotations

import hashlib
import random
from functools import partial

from p2p_labeldp import randomness
from p2p_labeldp.crypto.keys import KeyRing
from p2p_labeldp.network.federated.study import (
    PUBLIC_SEED,
    ContributorSpec,
    Trained,
    UpdateStudy,
    model_of,
    specs_of,
    trained,
)
from p2p_labeldp.network.study import Where
from p2p_labeldp.network.virtual import DEFAULT_LATENCY, VirtualNetwork, joins_at, transparent_keys
from p2p_labeldp.protocol import federation
from p2p_labeldp.protocol.averaging import Averager
from p2p_labeldp.protocol.effects import Address
from p2p_labeldp.protocol.federation import OpenedFederation
from p2p_labeldp.randomness import Replay, Stream

LEARNER = Where(transparent_keys(b"learner").peer_id, "learner", 1)


def cast(study: UpdateStudy) -> tuple[Averager, list[tuple[ContributorSpec, KeyRing]]]:
    """The learner and the peers of a study; the same in any process."""
    keys, run_keys = transparent_keys(b"learner"), transparent_keys(b"run")
    nonce = None if study.seed is None else study.seed.to_bytes(16, "big")  # a seed gives one trace
    manifest = study.terms.manifest(run_key=run_keys.sealing_public, opened=0.0, nonce=nonce)
    envelope = federation.sign_manifest(manifest, keys)
    opened = federation.open_federation(envelope, keys=keys, learner=keys.peer_id)
    averager = Averager(
        envelope=envelope,
        opened=opened,
        initial=model_of(manifest).initial(PUBLIC_SEED),
        keys=keys,
        run_keys=run_keys,
        randomness=randomness.secure() if study.seed is None else Replay(study.seed, 0),
    )
    specs = specs_of(study, learner=LEARNER)
    return averager, [(spec, transparent_keys(spec.coins().identity())) for spec in specs]


def play(study: UpdateStudy, *, latency: tuple[float, float] = DEFAULT_LATENCY) -> Trained:
    """Plays a run on a network without faults."""
    rng = random.Random(randomness.study_word(study.seed, Stream.FAULTS, 0))  # noqa: S311  latencies are no secret
    network = VirtualNetwork(rng=rng, latency=latency)
    averager, peers = cast(study)
    network.add(averager, LEARNER.address())
    for spec, keys in peers:
        network.at(joins_at(study.seed, spec.ordinal), partial(join, network, averager.opened, spec, keys))
    terms = study.terms
    network.run(until=(terms.rounds + 2) * (terms.round_seconds + terms.poll_seconds) + 10.0)
    over = max(fact.at for fact in network.facts)  # the network's own clock went on to alarms that nobody waits for
    return Trained(model=trained(averager), facts=network.facts, messages=network.messages, seconds=over)


def join(network: VirtualNetwork, opened: OpenedFederation, spec: ContributorSpec, keys: KeyRing) -> None:
    """A peer starts, now."""
    name = hashlib.sha256(keys.peer_id).hexdigest()[:8]
    network.add(spec.contributor(opened, keys=keys), Address(keys.peer_id, f"peer-{name}", 1))
