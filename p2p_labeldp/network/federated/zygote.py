"""The zygote of a run of private rounds; see ``network.zygote``, whose batches here are of ``ContributorSpec``.

python -m p2p_labeldp.network.federated.zygote PARENT_PID FACTS_FD BATCHES_FD
"""

from __future__ import annotations

import asyncio
import signal
import sys

import msgspec
import numpy as np

from p2p_labeldp import randomness
from p2p_labeldp.crypto.keys import Keys
from p2p_labeldp.network import loops
from p2p_labeldp.network.federated import virtual
from p2p_labeldp.network.federated.peers import run_contributors
from p2p_labeldp.network.federated.study import ContributorSpec, FederationTerms, UpdateStudy
from p2p_labeldp.network.host import Sink
from p2p_labeldp.network.zygote import fork_batches, talk_to_oneself

_decoder = msgspec.msgpack.Decoder(list[ContributorSpec])


def warm_up() -> None:
    """A run of a few peers, so that what it imports and compiles is shared by all children."""
    terms = FederationTerms(
        model="logistic_regression",
        classes=("a", "b"),
        shift=(0.0,),
        scale=(1.0,),
        population=4,
        sampling_rate=1.0,
        rounds=10,
        max_radius=1.0,
        epsilon_direction=1.0,
        epsilon_magnitude=1.0,
        projection=1.0,
        sigma=1.0,
        learning_rate=1.0,
        round_seconds=10.0,
        poll_seconds=1.0,
        study=True,
    )
    rows, labels = np.zeros((4, 1)), np.zeros(4, np.int64)
    virtual.play(UpdateStudy(terms=terms, features=rows, labels=labels, seed=0))
    asyncio.run(talk_to_oneself(Keys(randomness.replay(0, 0).identity())))


def run_batch(data: bytes, sink: Sink) -> None:
    """What a child does."""
    specs = _decoder.decode(data)

    async def run() -> None:
        stopped = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
        await run_contributors(specs, sink, stopped=stopped)

    loops.run(run(), parties=len(specs))


if __name__ == "__main__":
    sys.exit(fork_batches(warm_up, run_batch))
