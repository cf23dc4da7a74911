"""From a run that is over to its statement and evidence."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from p2p_labeldp.config import Config
from p2p_labeldp.crypto.keys import Keys
from p2p_labeldp.network.study import CollectedRoster, Evidence
from p2p_labeldp.results import Noisy, Result
from p2p_labeldp.statement import content, signed
from p2p_labeldp.statement.content import Engine, StatedCluster, Statement

UNSIGNED = {
    Engine.VIRTUAL: "played on an in-memory network whose keys are no secret, by somebody who held every label",
    Engine.POPULATION: "played as arrays, with no learner and no keys, by somebody who held every label",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Basis:
    """What a run knows beside its result.

    Args:
        engine: Who played the round.
        num_classes: K.
        rosters: As the learner has them; none of a mechanism in one place.
        evidence: What the learner signed, if it has a key.
        keys: The learner's, if it has any.
    """

    engine: Engine
    num_classes: int
    rosters: Sequence[CollectedRoster]
    evidence: Evidence | None = None
    keys: Keys | None = None


def files(facts: str, *, result: Result, config: Config, noisy: Noisy, basis: Basis) -> dict[str, str]:
    """The contents of ``guarantee.json``, and of ``evidence.json`` if there is any, by name.

    Args:
        facts: SHA-256 (hex) of the facts that are kept.
        result: Of the run.
        config: Of the run.
        noisy: The reports.
        basis: What else is known.
    """
    statement = state(facts, result=result, config=config, noisy=noisy, basis=basis)
    made = {content.NAME: content.to_file(statement, basis.keys)}
    if basis.evidence is not None:
        made[signed.NAME] = signed.to_file(basis.evidence)
    return made


def state(facts: str, *, result: Result, config: Config, noisy: Noisy, basis: Basis) -> Statement:
    """The statement; arguments as of :func:`files`."""
    evidence, keys = basis.evidence, basis.keys
    digests = {} if evidence is None else {cluster: _digest(envelope) for cluster, envelope in evidence.rosters}
    minima = {roster.cluster: roster.holding_minimum for roster in basis.rosters}
    counts = np.bincount(noisy.clusters, minlength=1 + max((cluster.id for cluster in result.clusters), default=0))
    statement = Statement(
        format=1,
        learner=None if keys is None else keys.peer_id.hex(),
        unsigned_because=UNSIGNED[basis.engine] if keys is None else None,
        engine=basis.engine,
        round=None if evidence is None else _digest(evidence.manifest),
        complete=result.complete,
        seed=result.seed,
        num_classes=basis.num_classes,
        exchange=config.exchange.kind,
        mechanism=config.mechanism,
        policy=config.policy,
        config_hash=result.config_hash,
        versions=result.versions,
        peers=result.peers,
        outcomes=result.outcomes,
        reports=len(noisy.labels),
        clusters=[
            StatedCluster(
                id=cluster.id,
                size=cluster.size,
                flip_probability=cluster.flip_probability,
                holding_minimum=minima.get(cluster.id),
                delta=cluster.delta,
                epsilon=cluster.epsilon,
                local_epsilon=cluster.local_epsilon,
                reports=int(counts[cluster.id]),
                roster=digests.get(cluster.id),
            )
            for cluster in result.clusters
        ],
        views=result.views,
        facts=facts,
        receipts=[] if evidence is None else sorted(_digest(receipt) for _, receipt in evidence.receipts),
    )
    # Once more, so that 1 and 1.0 in a float field become one, as they are when the file is read.
    return msgspec.convert(msgspec.to_builtins(statement), Statement)


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
