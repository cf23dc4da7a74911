"""The zygote: imports once what a peer needs, then forks a process for each batch of peers it reads from a pipe.

The launcher never forks itself: it has threads, and it holds everybody's example, which every child would inherit. The
zygote is a fresh single-threaded process that never opens the data and never reads a batch either: it gets each as an
open file, and the child forked for it reads it. So no other process ever has a peer's example in memory, not even in
freed memory. A forked peer shares the imported code with the others, so a thousand fit where thirty would.

    python -m p2p_labeldp.network.zygote PARENT_PID FACTS_FD BATCHES_FD

Over the socket BATCHES_FD come one-byte messages, each with a file descriptor (SCM_RIGHTS) of a MessagePack list of
``PeerSpec``. Facts go to FACTS_FD (``fact_pipe``).
"""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import socket
import sys
from collections.abc import Callable, Sequence

import msgspec
import numpy as np

from p2p_labeldp import randomness
from p2p_labeldp.clustering import Clustering
from p2p_labeldp.crypto.keys import Keys
from p2p_labeldp.network import lifeline, loops, virtual
from p2p_labeldp.network.fact_pipe import FactPipe
from p2p_labeldp.network.host import Sink
from p2p_labeldp.network.http import HttpClient, HttpServer
from p2p_labeldp.network.party import Party, of_study
from p2p_labeldp.network.peer_process import run_peers
from p2p_labeldp.network.study import PeerSpec, Study, Terms
from p2p_labeldp.protocol.effects import Address
from p2p_labeldp.protocol.manifest import Deadlines

WARM_PEERS, WARM_ROUNDS = 12, 20  # the interpreter rewrites a function's bytecode after some eight calls
NICENESS = 5  # of peers: their crowd must starve neither the zygote, which still has to fork, nor their one learner
_decoder = msgspec.msgpack.Decoder(list[PeerSpec])


RunBatch = Callable[[bytes, Sink], None]
"""What a child does with its batch, whose bytes it alone reads."""


def main() -> int:
    """The zygote of a round of labels."""
    return fork_batches(warm_up, _run_batch)


def fork_batches(warm: Callable[[], None], run_batch: RunBatch) -> int:
    """Forks for batches until the socket ends, then waits for the last child.

    Args:
        warm: Does once what every child will do.
        run_batch: What each child does.
    """
    parent, facts_fd, batches_fd = map(int, sys.argv[1:4])
    lifeline.tie(parent)
    lifeline.raise_descriptor_limit()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    me = os.getpid()
    warm()
    gc.collect()
    gc.freeze()  # the collector would write to every shared page
    with socket.socket(fileno=batches_fd) as batches:
        while (batch_fd := _next_batch(batches)) is not None:
            if os.fork() == 0:
                _child(me, facts_fd, batches_fd, batch_fd, run_batch)
            os.close(batch_fd)
            _reap(block=False)
    _reap(block=True)
    return 0


def send_batch(batches: socket.socket, specs: Sequence[msgspec.Struct]) -> None:
    """The launcher's end: hands over a batch as an open file that has no name."""
    batch_fd = os.memfd_create("batch")
    try:
        with os.fdopen(os.dup(batch_fd), "wb") as file:
            file.write(msgspec.msgpack.encode(specs))
        os.lseek(batch_fd, 0, os.SEEK_SET)
        socket.send_fds(batches, [b"b"], [batch_fd])
    finally:
        os.close(batch_fd)


def _next_batch(batches: socket.socket) -> int | None:
    message, descriptors, _, _ = socket.recv_fds(batches, 1, 1)
    return descriptors[0] if message and descriptors else None


def warm_up() -> None:
    """Does before any fork what every peer will do, a few times over.

    Modules that libraries load at first use, bytecode that the interpreter rewrites while it runs warm, and the pages
    that both write to, are then shared instead of made anew in each of a thousand children.
    """
    row = np.zeros((1, 2))
    clustering = Clustering(mean=row[0], scale=row[0] + 1, centroids=row, cluster_of_centroid=np.zeros(1, np.int64))
    terms = Terms(
        classes=("a", "b"),
        clustering=clustering.to_payload(),
        target_epsilon=1.0,
        flip_probability=None,
        tolerated_loss=0.05,
        minimum_size=WARM_PEERS,
        deadlines=Deadlines(join=12.0, exchange=16.0, closing=22.0, report=24.0),
        gossip_period=1.0,
        study=True,
    )
    neighbours = [[(i + 1) % WARM_PEERS] for i in range(WARM_PEERS)]
    features, labels = np.zeros((WARM_PEERS, 2)), np.zeros(WARM_PEERS, np.int64)
    virtual.play(Study(terms=terms, features=features, labels=labels, neighbours=neighbours, seed=0))
    keys = Keys(randomness.replay(0, 0).identity())
    for i in range(WARM_ROUNDS):
        keys.open(keys.seal(keys.sealing_public, b"warm", info=b"up"), info=b"up")
        keys.verify("warm", keys.sign("warm", i.to_bytes(1, "big")))
    asyncio.run(talk_to_oneself(keys))


async def talk_to_oneself(keys: Keys) -> None:
    """Server and client, a few times over."""
    server = HttpServer(keys.signing_key, lambda _sender, body: body)
    try:
        port = await server.start("127.0.0.1", 0)
        async with HttpClient() as client:
            for _ in range(WARM_ROUNDS):
                await client.post(keys.signing_key, Address(keys.peer_id, "127.0.0.1", port), b"warm up", timeout=5.0)
    finally:
        await server.close()


def _reap(*, block: bool) -> None:
    try:
        while os.waitpid(-1, 0 if block else os.WNOHANG) != (0, 0):
            pass
    except ChildProcessError:
        pass


def _child(zygote: int, facts_fd: int, batches_fd: int, batch_fd: int, run_batch: RunBatch) -> None:
    """A process of peers; never returns."""
    status = 1
    try:
        lifeline.tie(zygote)
        os.close(batches_fd)
        os.nice(NICENESS)
        with os.fdopen(batch_fd, "rb") as batch:
            data = batch.read()
        pipe = FactPipe(facts_fd)
        run_batch(data, pipe)
        pipe.flush()
        status = 0
    except BaseException as exc:
        print(f"peer process: {type(exc).__name__}: {exc}", file=sys.stderr, flush=True)  # noqa: T201  its log
    finally:
        os._exit(status)  # no clean-up of what the zygote owns


def _run_batch(data: bytes, sink: Sink) -> None:
    specs = _decoder.decode(data)
    loops.run(_run(specs, sink), parties=len(specs))


def _party(spec: PeerSpec) -> Party:
    return of_study(spec, Keys(spec.coins().identity()))


async def _run(specs: list[PeerSpec], sink: Sink) -> None:
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    await run_peers([_party(spec) for spec in specs], sink, stopped=stopped)


if __name__ == "__main__":
    sys.exit(main())
