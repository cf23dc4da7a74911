"""The processes engine of private rounds: a learner, a zygote, and a process for each peer it forks.

As in ``network.launcher``: peers get their own example and the learner's address, nothing else; facts come back through
one pipe; whatever ends the launcher ends them all.
"""

from __future__ import annotations

import time

import msgspec

from p2p_labeldp.network import addresses
from p2p_labeldp.network.conducting import OnFact, conduct, handed_over
from p2p_labeldp.network.federated.learner import Order
from p2p_labeldp.network.federated.study import Trained, TrainedModel, UpdateStudy, specs_of


def play(study: UpdateStudy, *, on_fact: OnFact = lambda _fact: None) -> Trained:
    """Plays a run with real processes.

    Args:
        study: The run.
        on_fact: Is told each fact as it arrives.

    Raises:
        TransportError: The learner or the zygote did not start, or died.
    """
    order = msgspec.msgpack.encode(Order(terms=study.terms, seed=study.seed))
    heard = conduct(
        learner="federated.learner",
        zygote="federated.zygote",
        block=addresses.claim(1),
        peers=len(study),
        order=lambda _waited: (order, None),  # how long rounds take is the learner's to say
        specs=lambda where: specs_of(study, learner=where),
        packed=study.peers_per_process,
        on_fact=on_fact,
    )
    return Trained(
        model=handed_over(heard.handed_over, TrainedModel),
        facts=heard.facts,
        messages=heard.messages,
        bytes=heard.bytes,
        seconds=time.monotonic() - heard.opened,
    )
