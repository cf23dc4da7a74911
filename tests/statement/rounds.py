"""Rounds with real keys in this process, kept as a run keeps them."""

import dataclasses
import json
from functools import partial

import numpy as np
from protocol.scenes import Scene

from p2p_labeldp import config, promise
from p2p_labeldp.config import config_hash
from p2p_labeldp.crypto.keys import Keys
from p2p_labeldp.experiment.keeping import keep
from p2p_labeldp.experiment.running import Run, _Shareable, versions
from p2p_labeldp.facts import Accepted, Listed
from p2p_labeldp.network.store import KeptReceipt
from p2p_labeldp.network.study import collected, evidence_of
from p2p_labeldp.results import Accuracy, Noisy, Result, claimed, count_outcomes
from p2p_labeldp.statement import Basis, Engine, content
from p2p_labeldp.statement.signed import from_file

CONFIG = config.from_mapping({"data": {"name": "digits"}, "mechanism": {"flip_probability": 0.1}})


def play(study_of, *, engine=Engine.PROCESSES, nonce=bytes(16), lost=(), sizes=(5, 8)):
    """A round of 13 peers in two clusters, as one without a seed is kept, and its run; ``lost`` are gone at 20 s."""
    deployed = engine is Engine.DEPLOYMENT
    study = study_of(seed=3, sizes=sizes, study=not deployed, minimum_size=3)

    def own(_ordinal, party):
        return dataclasses.replace(party, ordinal=0, study=False) if deployed else party

    scene = Scene(study, ring=Keys, nonce=nonce, own=own)
    for ordinal in lost:
        scene.network.at(20.0, partial(scene.network.remove, scene.ids[ordinal]))
    scene.play()
    return scene, kept_of(scene, engine)


def kept_of(scene, engine):
    """What ``experiment`` makes of such a round."""
    found = collected(scene.collector)
    facts = scene.network.facts
    members = sum(roster.size for roster in found.rosters)
    if engine is Engine.DEPLOYMENT:
        facts = [fact for fact in facts if fact.peer == "learner" or isinstance(fact, Listed | Accepted)]
        counts = {"reported": len(found.reports), "unreachable": members - len(found.reports)}
        outcomes = {name: count for name, count in counts.items() if count}
    else:
        facts = _Shareable(facts)
        outcomes = count_outcomes(facts, len(scene.study))
    noisy = Noisy(
        peers=[report.peer for report in found.reports],
        clusters=np.array([report.cluster for report in found.reports], dtype=np.int64),
        features=np.array([report.features for report in found.reports]).reshape(len(found.reports), 2),
        labels=np.array([report.label for report in found.reports], dtype=np.int64),
    )
    clusters = promise.of_clusters(found.rosters, CONFIG, 2)
    result = Result(
        peers=members if engine is Engine.DEPLOYMENT else len(scene.study),
        outcomes=outcomes,
        clusters=clusters,
        views=promise.of_views(found.rosters, clusters, CONFIG, 2),
        accuracy=Accuracy(private=0.5, non_private=None, majority=None),
        seconds={"total": 1.0},
        messages=scene.network.messages,
        bytes=1,
        config_hash=config_hash(CONFIG),
        seed=None,
        versions=versions(),
    )
    basis = Basis(
        engine=engine,
        num_classes=2,
        rosters=found.rosters,
        evidence=evidence_of(scene.collector),
        keys=scene.collector._keys,
    )
    return Run(result=result, facts=facts, noisy=noisy, config=CONFIG, basis=basis)


def write(run, path):
    """Keeps a run; the directory."""
    with claimed(path) as directory:
        keep(run, directory)
    return path


def sign(statement, directory, keys):
    """What a learner that lies does."""
    (directory / content.NAME).write_text(content.to_file(statement, keys))


def document(directory):
    return json.loads((directory / content.NAME).read_text())


def receipt_of(scene, directory, ordinal):
    """What the state of that peer holds."""
    evidence = from_file((directory / "evidence.json").read_bytes())
    statement = content.from_file((directory / content.NAME).read_bytes()).statement
    me = scene.ids[ordinal]
    names = {ordinal, me.hex()}
    [receipt] = [receipt for name, receipt in evidence.receipts if name in names]
    cluster = next(roster for roster in scene.collector.rosters.values() if me in roster.members)
    return KeptReceipt(
        peer_id=me.hex(),
        round_id=statement.round,
        receipt=receipt,
        flips={cluster.digest.hex(): cluster.plan.flip_probability},
    )
