"""Which faults a seed draws: each preset names kinds of faults, and ``any`` draws among all of them."""

from __future__ import annotations

import random
from collections.abc import Callable

from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.network.swarm import lies
from p2p_labeldp.network.swarm.faults import (
    LEARNER,
    STRANGER,
    AnyFault,
    Crash,
    Duplication,
    Latency,
    Lie,
    Loss,
    Partition,
    Reordering,
    Skew,
    SlowDisk,
    Stop,
)
from p2p_labeldp.protocol.manifest import Deadlines

FACTS_OF_PEERS = (
    "JoinedAs",
    "GatheredThese",
    "CommittedTo",
    "AskedFor",
    "Flipped",
    "AnsweredWith",
    "HeldBox",
    "Ready",
    "Cleared",
    "ReportedAs",
    "EndedIn",
)
FACTS_OF_THE_LEARNER = ("Heard", "Rostered", "AcceptedFrom", "Closed")
EFFECTS = 60  # about as many as a peer has in a round
NEVER = 0.15  # of crashes from which nobody comes back


def _slow(rng: random.Random, _peers: int, _d: Deadlines) -> list[AnyFault]:
    law = rng.choice(("uniform", "exponential", "pareto"))
    return [Latency(law=law, seconds=round(rng.choice((0.05, 0.2, 0.5)) * (0.2 if law == "pareto" else 1.0), 3))]


def _lossy(rng: random.Random, _peers: int, _d: Deadlines) -> list[AnyFault]:
    return [Loss(probability=rng.choice((0.01, 0.05, 0.2)))]


def _doubled(rng: random.Random, _peers: int, d: Deadlines) -> list[AnyFault]:
    return [Duplication(probability=rng.choice((0.05, 0.3)), seconds=round(rng.choice((0.1, 3.0, d.report)), 3))]


def _reordered(rng: random.Random, _peers: int, _d: Deadlines) -> list[AnyFault]:
    return [Reordering(probability=rng.choice((0.05, 0.3)), seconds=round(rng.choice((0.5, 2.0, 6.0)), 3))]


def _partitioned(rng: random.Random, peers: int, d: Deadlines) -> list[AnyFault]:
    """Full: into two groups; partial: some of one from some of another; either of them perhaps one way only."""
    everybody = list(range(LEARNER, peers))
    rng.shuffle(everybody)
    half = rng.randint(1, len(everybody) - 1)
    one, other = everybody[:half], everybody[half:]
    if rng.random() < 0.5:
        one, other = one[: rng.randint(1, len(one))], other[: rng.randint(1, len(other))]
    return [
        Partition(
            start=round(rng.uniform(0.0, d.report), 3),
            seconds=round(rng.uniform(0.5, d.report / 2), 3),
            sources=tuple(sorted(one)),
            targets=tuple(sorted(other)),
            one_way=rng.random() < 0.4,
        )
    ]


def _crashing(rng: random.Random, peers: int, d: Deadlines) -> list[AnyFault]:
    found: list[AnyFault] = []
    for _ in range(rng.choice((1, 1, 2, 3))):
        party = LEARNER if rng.random() < 0.15 else rng.randrange(peers)
        facts = FACTS_OF_THE_LEARNER if party == LEARNER else FACTS_OF_PEERS
        about = rng.choice(facts) if rng.random() < 0.7 else ""
        away = None if rng.random() < NEVER else round(rng.choice((0.1, 0.3, 1.0, d.report)) * rng.uniform(0.5, 1.0), 3)
        found.append(
            Crash(
                party=party,
                effect=rng.randrange(3) if about else rng.randrange(EFFECTS),
                about=about,
                before=rng.random() < 0.4,
                away=away,
                moved=rng.random() < 0.2,
            )
        )
    return found


def _stopping(rng: random.Random, peers: int, d: Deadlines) -> list[AnyFault]:
    seconds = rng.choice((0.3, 1.0, 3.0, d.report)) * rng.uniform(0.5, 1.0)
    party, start = rng.randrange(LEARNER, peers), rng.uniform(0.5, d.report)
    return [Stop(party=party, start=round(start, 3), seconds=round(seconds, 3))]


def _skewed(rng: random.Random, peers: int, _d: Deadlines) -> list[AnyFault]:
    return [
        Skew(party=rng.randrange(LEARNER, peers), seconds=round(rng.choice((-1, 1)) * rng.choice((0.05, 0.5, 3.0)), 3))
        for _ in range(rng.choice((1, 2)))
    ]


def _slow_disks(rng: random.Random, peers: int, _d: Deadlines) -> list[AnyFault]:
    return [
        SlowDisk(party=rng.randrange(LEARNER, peers), seconds=rng.choice((0.01, 0.1, 0.5)))
        for _ in range(rng.choice((1, 2)))
    ]


def _lying(rng: random.Random, peers: int, _d: Deadlines) -> list[AnyFault]:
    return [Lie(party=rng.randrange(peers), how=rng.choice(lies.OF_PEERS)) for _ in range(rng.choice((1, 1, 2)))]


def _outside(rng: random.Random, _peers: int, _d: Deadlines) -> list[AnyFault]:
    return [Lie(party=STRANGER, how=rng.choice(lies.OF_STRANGERS))]


def _bad_learner(rng: random.Random, _peers: int, _d: Deadlines) -> list[AnyFault]:
    return [Lie(party=LEARNER, how=rng.choice(lies.OF_THE_LEARNER))]


_Draw = Callable[[random.Random, int, Deadlines], list[AnyFault]]
_KINDS: tuple[_Draw, ...] = (
    _slow,
    _lossy,
    _doubled,
    _reordered,
    _partitioned,
    _crashing,
    _crashing,
    _stopping,
    _skewed,
    _slow_disks,
    _lying,
    _outside,
)
PRESETS: dict[str, tuple[_Draw, ...]] = {
    "none": (),
    "network": (_slow, _lossy, _doubled, _reordered),
    "partitions": (_partitioned, _partitioned),
    "crashes": (_crashing, _crashing, _doubled),
    "stops": (_stopping, _skewed, _slow_disks),
    "byzantine": (_lying, _lying, _outside),
    "learner": (_bad_learner, _crashing),
}
ANY = "any"
NAMES = (*PRESETS, ANY)
LARGEST_MIX = 5
BAD_LEARNER_SHARE = 0.1  # a learner that lies leaves little of a round to look at


def draw(preset: str, rng: random.Random, *, peers: int, deadlines: Deadlines) -> tuple[AnyFault, ...]:
    """The faults of one scenario.

    Raises:
        ConfigurationError: No such preset.
    """
    if preset not in NAMES:
        raise ConfigurationError(f"{preset!r} given; one of {', '.join(NAMES)} is allowed", field="--faults")
    if preset == ANY:
        kinds: tuple[_Draw, ...] = tuple(rng.choices(_KINDS, k=rng.randint(1, LARGEST_MIX)))
        if rng.random() < BAD_LEARNER_SHARE:
            kinds = (*kinds, _bad_learner)
    else:
        kinds = PRESETS[preset]
    return tuple(fault for kind in kinds for fault in kind(rng, peers, deadlines))
