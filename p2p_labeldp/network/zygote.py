"""The zygote: imports once what a peer needs, then forks a process for each batch of peers it reads from a pipe.

The launcher never forks itself: it has threads, and it holds everybody's example, which every child would inherit. The
zygote is a fresh single-threaded process that never opens the data; it forgets a batch as soon as it has forked for
it. A forked peer shares the imported code with the others, so a thousand fit where thirty would.

    python -m p2p_labeldp.network.zygote PARENT_PID FACTS_FD < batches

A batch is a 4-byte big-endian length and a MessagePack list of ``PeerSpec``. Facts go to FACTS_FD as JSON lines, each
written at once and below PIPE_BUF, so that lines of different peers never mix.
"""

from __future__ import annotations

import asyncio
import gc
import os
import select
import signal
import sys
from typing import BinaryIO

import msgspec
import numpy as np

from p2p_labeldp import facts, randomness
from p2p_labeldp.accounting import planning
from p2p_labeldp.clustering import Clustering
from p2p_labeldp.crypto.keys import Keys
from p2p_labeldp.facts import Fact
from p2p_labeldp.network import lifeline
from p2p_labeldp.network.host import Sink
from p2p_labeldp.network.http import HttpClient, HttpServer
from p2p_labeldp.network.party import Party, of_study
from p2p_labeldp.network.peer_process import run_peers
from p2p_labeldp.network.study import PeerSpec
from p2p_labeldp.protocol.effects import Address

LENGTH_BYTES = 4
_decoder = msgspec.msgpack.Decoder(list[PeerSpec])


def main() -> int:
    """Reads batches until the pipe ends, then waits for the last child."""
    parent, facts_fd = int(sys.argv[1]), int(sys.argv[2])
    lifeline.tie(parent)
    lifeline.raise_descriptor_limit()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    me = os.getpid()
    warm_up()
    gc.collect()
    gc.freeze()  # the collector would write to every shared page
    stdin = sys.stdin.buffer
    while (batch := _read_batch(stdin)) is not None:
        if os.fork() == 0:
            _child(me, facts_fd, batch)
        del batch
        _reap(block=False)
    _reap(block=True)
    return 0


def warm_up() -> None:
    """Does once, before any fork, what every peer will do: modules that libraries load at first use, and the pages that
    first use writes to, are then shared instead of made anew in each of a thousand children."""
    keys = Keys(randomness.replay(0, 0).identity())
    keys.open(keys.seal(keys.sealing_public, b"warm", info=b"up"), info=b"up")
    keys.verify("warm", keys.sign("warm", b"up"))
    row = np.zeros((1, 1))
    clustering = Clustering(mean=row[0], scale=row[0] + 1, centroids=row, cluster_of_centroid=np.zeros(1, np.int64))
    Clustering.from_payload(clustering.to_payload()).assign(row)
    planning.roster_fits(20, 19, 0.06, 1.0, planning.roster_delta(20))
    asyncio.run(_talk_to_oneself(keys))


async def _talk_to_oneself(keys: Keys) -> None:
    server = HttpServer(keys.signing_key, lambda _sender, body: body)
    try:
        port = await server.start("127.0.0.1", 0)
        async with HttpClient() as client:
            await client.post(keys.signing_key, Address(keys.peer_id, "127.0.0.1", port), b"warm up", timeout=5.0)
    finally:
        await server.close()


def _read_batch(stdin: BinaryIO) -> bytes | None:
    head = stdin.read(LENGTH_BYTES)
    if len(head) < LENGTH_BYTES:
        return None
    return stdin.read(int.from_bytes(head, "big"))


def _reap(*, block: bool) -> None:
    try:
        while os.waitpid(-1, 0 if block else os.WNOHANG) != (0, 0):
            pass
    except ChildProcessError:
        pass


def _child(zygote: int, facts_fd: int, batch: bytes) -> None:
    """A process of peers; never returns."""
    status = 1
    try:
        lifeline.tie(zygote)
        os.close(0)
        specs = _decoder.decode(batch)

        def sink(fact: Fact) -> None:
            line = facts.encode(fact) + b"\n"
            assert len(line) <= select.PIPE_BUF
            os.write(facts_fd, line)

        asyncio.run(_run(specs, sink))
        status = 0
    except BaseException as exc:
        print(f"peer process: {type(exc).__name__}: {exc}", file=sys.stderr, flush=True)  # noqa: T201  its log
    finally:
        os._exit(status)  # no clean-up of what the zygote owns


def _party(spec: PeerSpec) -> Party:
    return of_study(spec, Keys(randomness.replay(spec.seed, spec.ordinal).identity()))


async def _run(specs: list[PeerSpec], sink: Sink) -> None:
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    await run_peers([_party(spec) for spec in specs], sink, stopped=stopped)


if __name__ == "__main__":
    sys.exit(main())
