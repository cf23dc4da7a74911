"""Engine 3: every peer a process of its own, on this machine; real sockets, signatures and encryption.

The launcher starts two processes and tells them what they need: the zygote, one batch after another, each peer's own
example, the learner's address and its first contacts; the learner, when every peer listens, the terms of the round,
which it then opens. On a machine that took long to start the peers, since others use it too, the phases are lengthened
in proportion. The launcher hands out no roster, no draw and no peer record, and it listens: facts come back through one
pipe. Whatever ends the launcher ends them all, since each process is tied to its parent's life.
"""

from __future__ import annotations

import math
import time

import msgspec

from p2p_labeldp import facts
from p2p_labeldp.crypto.keys import Keys
from p2p_labeldp.facts import Ended, Fact
from p2p_labeldp.network import addresses
from p2p_labeldp.network.conducting import OnFact, conduct, handed_over
from p2p_labeldp.network.study import Collected, PeerSpec, Played, Study, Where, coins_of, draw_secrets, peer_specs

IDLE_START_SECONDS, IDLE_START_SECONDS_A_PEER = 1.0, 0.012  # what it takes on two cores that nobody else uses
MAX_SLOW_DOWN = 4.0
OVERTIME_SECONDS = 60.0  # beyond the last deadline, before the launcher gives up on silent peers


def play(study: Study, *, on_fact: OnFact = lambda _fact: None) -> Played:
    """Plays one round of a study with real processes.

    Args:
        study: The round.
        on_fact: Is told each fact as it arrives.

    Raises:
        TransportError: The learner or the zygote did not start, or died.
    """
    began = time.monotonic()
    block = addresses.claim(len(study) + 1)
    heard = conduct(
        learner="learner_process",
        zygote="zygote",
        block=block,
        peers=len(study),
        order=lambda waited: _order(study, waited),
        specs=lambda where: _specs(study, block, where),
        packed=study.peers_per_process,
        on_fact=on_fact,
    )
    return Played(
        facts=heard.facts,
        collected=handed_over(heard.handed_over, Collected),
        messages=heard.messages,
        bytes=heard.bytes,
        seconds={"start": heard.opened - began, **_phases(heard.facts)},
    )


def _order(study: Study, waited: float) -> tuple[bytes, float]:
    """The terms, of longer phases where it took longer to start the peers than on an idle machine."""
    terms = study.terms
    if study.slow_down:
        processes = math.ceil(len(study) / study.peers_per_process)
        idle = IDLE_START_SECONDS + IDLE_START_SECONDS_A_PEER * processes
        terms = terms.slowed(min(max(waited / idle, 1.0), MAX_SLOW_DOWN))
    return msgspec.msgpack.encode(terms), terms.deadlines.report + OVERTIME_SECONDS


def _specs(study: Study, block: addresses.Block, learner: Where) -> list[PeerSpec]:
    drawn = draw_secrets(study)
    ids = [Keys(coins_of(study.seed, i, secret).identity()).peer_id for i, secret in enumerate(drawn)]
    places = [block.address(i + 1) for i in range(len(study))]
    return peer_specs(study, secrets=drawn, ids=ids, places=places, learner=learner)


def _phases(events: list[Fact]) -> dict[str, float]:
    """Length of each phase as the peers lived it, from the facts."""
    marks = {"join": facts.Committed, "exchange": facts.Ready, "closing": facts.Reported, "report": Ended}
    seconds, before = {}, 0.0
    for name, kind in marks.items():
        last = max((fact.at for fact in events if isinstance(fact, kind)), default=before)
        seconds[name] = max(last - before, 0.0)
        before = max(before, last)
    return seconds
