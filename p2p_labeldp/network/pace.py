"""How long the phases of a round are, where the configuration leaves it open.

The peers of a study share the cores of one machine, so a round with more of them needs more time for the same work; in
virtual time work costs nothing and only hops count. Each length is a constant, for what happens once (a process starts,
a connection is made), and a part that grows: with the gossip period for what takes a number of hops, with the number of
peers for what every peer does once.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from p2p_labeldp.config import Config
from p2p_labeldp.protocol.manifest import Deadlines

VIRTUAL_PERIOD_SECONDS = 1.0
LEAST_PERIOD_SECONDS = 0.5  # below it a process spends more on waking up than on gossip
TICKS_A_CORE = 100  # gossip ticks a second, of peers in processes of their own: 4 ms of CPU each, and as much to spare
JOIN_SECONDS = 6.0  # in which peers that wait for the round to open notice that it has
JOIN_PERIODS = 9  # of 455 peers in 10 clusters all but a few lack no record by then; a roster fetches the rest
FEW_CLUSTERS = 20  # that many find each other in the time above
CLUSTERS_A_PERIOD = 5  # more of them look for longer: of 5,000 peers in 50 clusters some 500 were lost without
COMMITS_A_SECOND = 40  # fetching, checking and recomputing a roster costs a peer some 15 ms, and an ask as much again
CLOSINGS_A_SECOND = 25  # some six exchanges each, 15 ms, all at once: half of the time has to be spare
REPORTS_A_SECOND = 150


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """Lengths in seconds.

    Args:
        gossip_period: Between two gossip exchanges of a peer.
        join: Until the rosters are signed.
        exchange: In which each peer asks its mate.
        closing: In which the peers tell each other who was able to answer.
        report: Over which the reports leave.
    """

    gossip_period: float
    join: float
    exchange: float
    closing: float
    report: float

    @property
    def total(self) -> float:
        """Length of the round."""
        return self.join + self.exchange + self.closing + self.report

    def deadlines(self) -> Deadlines:
        """The ends of the phases, in seconds after the opening, as a manifest states them."""
        exchange = self.join + self.exchange
        closing = exchange + self.closing
        return Deadlines(join=self.join, exchange=exchange, closing=closing, report=closing + self.report)


def phases(
    *, peers: int, engine: str, clusters: int = 1, gossip_period: float | None = None, cores: float | None = None
) -> Pace:
    """The lengths chosen for a number of peers.

    Args:
        peers: All peers of the round.
        engine: ``processes``, or ``virtual``.
        clusters: Of the round.
        gossip_period: Seconds, where it is given; the phases that gossip fills follow it.
        cores: Of this machine if not given.
    """
    if gossip_period is not None:
        period = gossip_period
    elif engine == "virtual":
        period = VIRTUAL_PERIOD_SECONDS
    else:
        period = max(LEAST_PERIOD_SECONDS, peers / (TICKS_A_CORE * (cores or os.cpu_count() or 1)))
    processes = peers if engine == "processes" else 0  # whose work takes time; virtual time only counts hops
    return Pace(
        gossip_period=period,
        join=JOIN_SECONDS + (JOIN_PERIODS + max(0, clusters - FEW_CLUSTERS) / CLUSTERS_A_PERIOD) * period,
        exchange=5.0 + processes / COMMITS_A_SECOND,
        closing=4.0 + processes / CLOSINGS_A_SECOND,
        report=4.0 + processes / REPORTS_A_SECOND,
    )


def configured(config: Config, *, peers: int, engine: str, clusters: int) -> Pace:
    """The lengths a configuration gives, and ``phases`` for those it leaves open."""
    given = config.exchange.deadlines
    chosen = phases(
        peers=peers,
        engine=engine,
        clusters=clusters,
        gossip_period=config.network.gossip_period,
    )
    return Pace(
        gossip_period=chosen.gossip_period,
        join=chosen.join if given.join is None else given.join,
        exchange=chosen.exchange if given.exchange is None else given.exchange,
        closing=chosen.closing if given.closing is None else given.closing,
        report=chosen.report if given.report is None else given.report,
    )
