"""One party of a study on a host of its own: a container, a network namespace. Its coins come from a seed.

    python -m p2p_labeldp.network.study_party learner HOST PORT < terms
    python -m p2p_labeldp.network.study_party peer SEED < spec

The learner writes its address as one line, ``id@host:port``, and opens the round when it is told to by SIGUSR1: when
all peers listen. ``terms`` is a ``Terms`` and ``spec`` a ``PeerSpec``, in MessagePack; both parties listen on every
address of their host. Facts go to standard output, one JSON object a line. The round is that of any other engine with
the same seed, and protects nothing from whoever knows it.
"""

from __future__ import annotations

import asyncio
import signal
import sys

import msgspec

from p2p_labeldp import facts, randomness
from p2p_labeldp.crypto.keys import Keys
from p2p_labeldp.facts import Fact
from p2p_labeldp.network.learner_process import serve
from p2p_labeldp.network.party import of_study
from p2p_labeldp.network.peer_process import run_peers
from p2p_labeldp.network.study import PeerSpec, Terms
from p2p_labeldp.network.transport import format_address
from p2p_labeldp.protocol.effects import Address

EVERYWHERE = "0.0.0.0"  # noqa: S104  the host is this party's alone


def main() -> int:
    """Runs one party to its end."""
    match sys.argv[1:]:
        case ["learner", host, port] if port.isdigit():
            terms = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=Terms)
            asyncio.run(_learner(terms, host, int(port)))
        case ["peer", seed] if seed.isdigit():
            spec = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=PeerSpec)
            asyncio.run(_peer(msgspec.structs.replace(spec, seed=randomness.check_seed(int(seed)))))
        case _:
            print("usage: study_party learner HOST PORT | peer SEED; terms or spec on stdin", file=sys.stderr)  # noqa: T201  its usage
            return 2
    return 0


async def _learner(terms: Terms, host: str, port: int) -> None:
    told, stopped = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGUSR1, told.set)
    loop.add_signal_handler(signal.SIGTERM, stopped.set)

    async def when_told() -> Terms:
        await told.wait()
        return terms

    keys = Keys(randomness.secure().identity())
    await serve(
        when_told, keys=keys, host=host, port=port, sink=_say, announce=_announce, stopped=stopped, bind=EVERYWHERE
    )


async def _peer(spec: PeerSpec) -> None:
    keys = Keys(spec.coins().identity())
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    await run_peers([of_study(spec, keys, bind=EVERYWHERE)], _say, stopped=stopped)


def _say(fact: Fact) -> None:
    sys.stdout.buffer.write(facts.encode(fact) + b"\n")
    sys.stdout.buffer.flush()


def _announce(address: Address) -> None:
    sys.stdout.buffer.write(format_address(address).encode() + b"\n")
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    sys.exit(main())
