"""The learner's network side: opens a round, serves it, keeps what was reported.

``serve`` is what the ``learner`` command runs; a study's launcher starts the same thing as a process of its own:

    python -m p2p_labeldp.network.learner_process PARENT_PID FACTS_FD HOST PORT < terms

It writes its address to standard output as one line, ``id@host:port``, and opens the round when it has read the terms
from standard input. When told to end by SIGTERM or by the end of the round it writes what it collected, as MessagePack.
No study seed reaches it: its keys are drawn from the operating system.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import msgspec

from p2p_labeldp import facts, randomness
from p2p_labeldp.crypto.keys import Keys
from p2p_labeldp.facts import Fact, Traffic
from p2p_labeldp.network import lifeline, loops
from p2p_labeldp.network.host import Host, Sink
from p2p_labeldp.network.http import HttpClient
from p2p_labeldp.network.study import Collected, Terms, collected
from p2p_labeldp.network.transport import format_address
from p2p_labeldp.protocol import manifest as manifests
from p2p_labeldp.protocol.collector import Collector
from p2p_labeldp.protocol.effects import Address

CHECK_SECONDS = 0.2  # between two looks whether all reports are in
LINGER_SECONDS = 5.0  # a peer without a receipt asks again within a gossip period
MANY = 1000  # parties that a learner deals with
MAX_CONNECTIONS = 4096  # its peers come all at once, at the join deadline


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedRound:
    """A round that can be served.

    Args:
        envelope: The signed manifest.
        secret: Of the round's key, 32 bytes; whoever has it opens the round's boxes.
        elapsed: Seconds since the opening.
    """

    envelope: bytes
    secret: bytes = field(repr=False)
    elapsed: float = 0.0


def sign_round(terms: Terms, keys: Keys) -> SignedRound:
    """A round that opens now, with a key of its own."""
    secret = os.urandom(32)
    manifest = terms.manifest(round_key=Keys(secret).sealing_public, opened=time.time())
    return SignedRound(envelope=manifests.sign(manifest, keys), secret=secret)


async def serve(
    opening: Callable[[], Awaitable[SignedRound]],
    *,
    keys: Keys,
    host: str,
    port: int,
    sink: Sink,
    announce: Callable[[Address], None],
    stopped: asyncio.Event,
    linger: float | None = None,
) -> Collected:
    """Opens a round and serves it until its end, or until ``stopped``.

    Args:
        opening: Awaited for the round, when the learner listens; who asks before is told to try again. The round's key
            is forgotten with the round.
        keys: The learner's.
        host: Where to listen.
        port: Where to listen.
        sink: Is told facts.
        announce: Is told the address once the learner listens.
        stopped: Ends the round early.
        linger: Seconds to repeat receipts that got lost once every rostered peer's report is in; by default to the
            round's end.
    """
    async with HttpClient() as client:
        server = Host(key=keys.signing_key, client=client, sink=sink, max_connections=MAX_CONNECTIONS)
        try:
            bound = await server.listen(host, port)
            announce(Address(keys.peer_id, host, bound))
            signed = await opening()
            collector = Collector(
                envelope=signed.envelope,
                opened=manifests.open_manifest(signed.envelope, keys=keys, learner=keys.peer_id),
                keys=keys,
                round_keys=Keys(signed.secret),
                rng=random.SystemRandom(),
            )
            server.start(collector, elapsed=signed.elapsed)
            del signed  # the collector alone has the round's key from here on, and drops it in the end
            waits = [asyncio.ensure_future(server.finished()), asyncio.ensure_future(stopped.wait())]
            while not any(wait.done() for wait in waits):
                await asyncio.wait(waits, timeout=CHECK_SECONDS, return_when=asyncio.FIRST_COMPLETED)
                if collector.complete:
                    await asyncio.wait(waits, timeout=linger, return_when=asyncio.FIRST_COMPLETED)
                    break
            for wait in waits:
                wait.cancel()
            server.stop()
        finally:
            await server.close()
        messages = client.traffic.messages_sent + server.server.traffic.messages_sent
        sent = client.traffic.bytes_sent + server.server.traffic.bytes_sent
        sink(Traffic(peer="learner", messages=messages, bytes=sent))
        return collected(collector)


async def serve_until_interrupted(
    opening: Callable[[], SignedRound],
    *,
    keys: Keys,
    host: str,
    port: int,
    sink: Sink,
    announce: Callable[[Address], None],
) -> Collected:
    """``serve`` for a command: SIGINT or SIGTERM ends the round, and what was reported until then is kept."""
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)

    async def at_once() -> SignedRound:
        return opening()

    return await serve(
        at_once,
        keys=keys,
        host=host,
        port=port,
        sink=sink,
        announce=announce,
        stopped=stopped,
        linger=LINGER_SECONDS,
    )


def main() -> int:
    """The learner of a study, as a process."""
    parent, facts_fd = int(sys.argv[1]), int(sys.argv[2])
    lifeline.tie(parent)
    lifeline.raise_descriptor_limit()
    host, port = sys.argv[3], int(sys.argv[4])

    def sink(fact: Fact) -> None:
        os.write(facts_fd, facts.encode(fact) + b"\n")

    async def run() -> Collected:
        stopped = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
        keys = Keys(randomness.secure().identity())

        async def opening() -> SignedRound:
            return sign_round(await _read_terms(), keys)

        return await serve(opening, keys=keys, host=host, port=port, sink=sink, announce=_announce, stopped=stopped)

    sys.stdout.buffer.write(msgspec.msgpack.encode(loops.run(run(), parties=MANY)))
    sys.stdout.buffer.flush()
    return 0


async def _read_terms() -> Terms:
    data = await asyncio.get_running_loop().run_in_executor(None, sys.stdin.buffer.read)
    return msgspec.msgpack.decode(data, type=Terms)


def _announce(address: Address) -> None:
    sys.stdout.buffer.write(format_address(address).encode() + b"\n")
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    sys.exit(main())
