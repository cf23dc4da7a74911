"""Runs as they were kept, and what can be changed of them."""

import math

import msgspec

from p2p_labeldp.facts import (
    Accepted,
    Answered,
    Asked,
    Ended,
    Exchanged,
    Held,
    Joined,
    Listed,
    Opened,
    Outcome,
    Ready,
    Reason,
    Rejected,
    Reported,
    Signed,
    Tallied,
)
from p2p_labeldp.reports.kept_run import KeptRun, add_up
from p2p_labeldp.results import Accuracy, ClusterResult, Result, ViewResult

CONFIG = {
    "data": {"name": "breast-cancer"},
    "mechanism": {"kind": "resampling", "tolerated_loss": 0.05},
    "exchange": {"kind": "resample"},
}


def cluster(**changes):
    values = {
        "id": 0,
        "size": 100,
        "flip_probability": 0.2,
        "epsilon": 0.3,
        "delta": 1e-4,
        "local_epsilon": math.log(4),
    }
    return ClusterResult(**{**values, **changes})


def view(name, epsilon, delta=0.0):
    return ViewResult(view=name, epsilon=epsilon, delta=delta, method="told <by> this test")


PRIVATE = Result(
    peers=200,
    outcomes={"reported": 199, "abstained": 1},
    clusters=[cluster(), cluster(id=1)],
    views=[view("learner", 0.3, 1e-4), view("mates", 0.0)],
    accuracy=Accuracy(private=0.9, non_private=None, majority=None, held_out=50),
    seconds={"total": 9.5},
    messages=1234,
    bytes=567890,
    config_hash="0" * 64,
    seed=None,
    versions={"p2p_labeldp": "0.1.0"},
)
"""Calls for no warning."""
IDS = [f"{n:02d}feedfacecafe{n:02d}" for n in range(6)]


def facts(mates, labels):
    """Of six peers of a deployment, everything that anybody could have kept."""
    yield Opened(peer="learner", id="aa" * 8)
    yield Signed(peer="learner", cluster=0, size=100, flip_probability=0.2, delta=1e-4, holding_minimum=98, at=5.0)
    for peer, mate, label in zip(IDS, mates, labels, strict=True):
        yield Joined(peer=peer, cluster=0, id=peer, at=1.0)
        yield Listed(peer=peer, cluster=0, at=5.0)
        yield Asked(peer=peer, mate=mate, at=6.0)
        yield Answered(peer=mate, asker=peer, at=6.5)
        yield Exchanged(peer=peer, to=mate, about="Ask", sent=100, received=200, at=6.0)
        yield Held(peer=peer, at=7.0)
        yield Ready(peer=peer, holding=True, at=8.0)
        yield Tallied(peer=peer, ready=b"?", holding=b"?", at=9.0)
        yield Reported(peer=peer, at=9.5)
        yield Accepted(peer=peer, cluster=0, label=label, at=10.0)
        yield Ended(peer=peer, outcome=Outcome.REPORTED, at=10.0)
    yield Rejected(peer=IDS[0], about=f"{IDS[1]} asked twice", at=6.0)
    yield Ended(peer="late", outcome=Outcome.ABSTAINED, reason=Reason.MATE_TIMEOUT, at=10.0)


def kept(result=PRIVATE, *, happened=None, name="one", **config):
    facts_of = facts(IDS, [0, 1] * 3) if happened is None else happened
    return KeptRun(name=name, result=result, config={**CONFIG, **config}, happened=add_up(facts_of))


def changed(**changes):
    return msgspec.structs.replace(PRIVATE, **changes)
