"""What a peer's ask, answer and report cost, against the bare operations.

Real peers and their learner play one round in this process, over real sockets. In the second half of the exchange
phase there are asks and answers only, in the report window reports and receipts only: the CPU time of these two, a
peer. The floor is what the same takes bare: for each peer two POSTs with aiohttp, each on a new connection, five
Ed25519 signatures and verifications (question and answer of both exchanges, and the receipt), two HPKE boxes sealed and
two opened. It is measured in the same process right before the asks and right after the reports. Expected: at most 2.0
times the floor.

    python benchmarks/exchange_cost.py [--peers 200] [--slow 1]

On a machine that others use, ``--slow 4`` gives every phase four times its length.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Callable

import aiohttp
from aiohttp import web
from packed_peers import study_of

from p2p_labeldp import randomness
from p2p_labeldp.crypto import Keys, SigningKey
from p2p_labeldp.crypto.identity import verify
from p2p_labeldp.facts import Accepted, Ended, Fact, Opened
from p2p_labeldp.network import addresses, lifeline
from p2p_labeldp.network.learner_process import serve
from p2p_labeldp.network.party import of_study
from p2p_labeldp.network.peer_process import run_peers
from p2p_labeldp.network.study import Study, Terms, Where, peer_specs
from p2p_labeldp.protocol.effects import Address
from p2p_labeldp.protocol.exchanging import ASK_SHARES
from p2p_labeldp.protocol.manifest import Deadlines

PEERS = 200
DEADLINES = Deadlines(join=16.0, exchange=26.0, closing=36.0, report=40.0)
GOSSIP_PERIOD = 1.2
ROSTERS_UNTIL, ASKS_UNTIL = 0.42, 0.85  # of the exchange phase; in between all asks begin
ASK_BYTES, REPORT_BYTES, BOX_BYTES, SIGNED_BYTES = 100, 250, 64, 400  # the last two: of a box's content, a signed text
TARGET = 2.0


class Bare:
    """The bare operations, by so many peers as the round has, at moments spread like theirs.

    A machine's caches are colder for work that comes now and then; so the floor must not come all at once.
    """

    def __init__(self, url: str, session: aiohttp.ClientSession) -> None:
        self._url = url
        self._session = session
        self._key = SigningKey(os.urandom(32))
        self._keys = Keys(os.urandom(32))
        self._rng = random.Random(0)  # noqa: S311  draws when to ask, no secret

    async def peer(self, asks: float, reports: float) -> None:
        """One peer's share: an exchange within ``asks`` seconds, and one within ``reports`` seconds after them."""
        when = asks * self._rng.random()
        await asyncio.sleep(when)
        await self._exchange(ASK_BYTES, signatures=2, sealed=1, opened=0)
        await asyncio.sleep(asks - when + reports * self._rng.random())
        await self._exchange(REPORT_BYTES, signatures=3, sealed=1, opened=2)  # one signature is the receipt's

    async def _exchange(self, length: int, *, signatures: int, sealed: int, opened: int) -> None:
        async with self._session.post(self._url, data=bytes(length)) as response:
            await response.read()
        for _ in range(signatures):
            message = os.urandom(SIGNED_BYTES)
            verify(self._key.public, self._key.sign(message), message)
        for _ in range(sealed):
            box = self._keys.seal(self._keys.sealing_public, bytes(BOX_BYTES), info=b"info")
        for _ in range(opened):
            self._keys.open(box, info=b"info")


async def floor(peers: int, asks: float, reports: float) -> float:
    """CPU seconds a peer of the bare operations."""

    async def echo(request: web.BaseRequest) -> web.Response:
        return web.Response(body=await request.read())

    server = web.Server(echo, access_log=None)
    listener = await asyncio.get_running_loop().create_server(server, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}/"
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(force_close=True)) as session:
        bare = Bare(url, session)
        began = time.process_time()
        await asyncio.gather(*(bare.peer(asks, reports) for _ in range(peers)))
        took = time.process_time() - began
    listener.close()
    await server.shutdown()
    return took / peers


async def play(study: Study, *, sink: Callable[[Fact], None]) -> None:
    """The whole round in this process."""
    block = addresses.claim(len(study) + 1)
    host, port = block.address(0)
    learner, stopped = Keys(os.urandom(32)), asyncio.Event()
    announced: asyncio.Future[Address] = asyncio.get_running_loop().create_future()

    async def terms() -> Terms:
        return study.terms

    serving = asyncio.create_task(
        serve(terms, keys=learner, host=host, port=port, sink=sink, announce=announced.set_result, stopped=stopped)
    )
    where = await announced
    rings = [Keys(randomness.replay(study.seed, i).identity()) for i in range(len(study))]
    specs = peer_specs(
        study,
        secrets=[None] * len(study),
        ids=[ring.peer_id for ring in rings],
        places=[block.address(i + 1) for i in range(len(study))],
        learner=Where(where.peer_id, where.host, where.port),
    )
    await run_peers([of_study(spec, ring) for spec, ring in zip(specs, rings, strict=True)], sink)
    stopped.set()
    await serving
    block.claim.close()


async def floor_beside(peers: int, asks: float, reports: float) -> float:
    """The same in a process of its own: in this one the peers' clocks go on."""
    arguments = ("--peers", str(peers), "--floor", str(asks), str(reports))
    child = await asyncio.create_subprocess_exec(sys.executable, __file__, *arguments, stdout=asyncio.subprocess.PIPE)
    said, _ = await child.communicate()
    return float(said)


async def measure(peers: int, slow: float) -> tuple[float, list[float], dict[str, int]]:
    """CPU seconds a peer: of the exchange, and of the floor, twice; and how the peers ended."""
    floors, spent = list[float](), 0.0
    facts: list[Fact] = []
    opened = asyncio.Event()

    def sink(fact: Fact) -> None:
        facts.append(fact)
        if isinstance(fact, Opened):
            opened.set()

    study = study_of(peers, per_process=peers, deadlines=DEADLINES, gossip_period=GOSSIP_PERIOD)
    study = dataclasses.replace(study, terms=study.terms.slowed(slow))
    round_ = asyncio.create_task(play(study, sink=sink))
    await opened.wait()
    loop = asyncio.get_running_loop()
    start, d = loop.time(), study.terms.deadlines
    asks, reports = (ASK_SHARES[1] - ASK_SHARES[0]) * (d.exchange - d.join), d.report - d.closing

    async def until(at: float) -> None:
        await asyncio.sleep(start + at - loop.time())

    await until(d.join + ROSTERS_UNTIL * (d.exchange - d.join))
    began = time.process_time()
    await until(d.join + ASKS_UNTIL * (d.exchange - d.join))
    spent += time.process_time() - began
    floors.append(await floor_beside(peers, asks, reports))
    await until(d.closing + 0.2)
    seen = sum(isinstance(fact, Accepted) for fact in facts)
    began = time.process_time()
    await until(d.report + 1.0)
    spent += time.process_time() - began
    accepted = sum(isinstance(fact, Accepted) for fact in facts) - seen
    floors.append(await floor_beside(peers, asks, reports))
    await round_
    ended = Counter(f"{fact.outcome} {fact.reason or ''}".strip() for fact in facts if isinstance(fact, Ended))
    return spent / peers, floors, {"reports in the window": accepted, **ended}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peers", type=int, default=PEERS)
    parser.add_argument("--slow", type=float, default=1.0, help="times the length of each phase")
    parser.add_argument("--floor", type=float, nargs=2, help="print the floor alone, over so many seconds each")
    options = parser.parse_args()
    if options.floor:
        print(asyncio.run(floor(options.peers, *options.floor)))
        return 0
    lifeline.raise_descriptor_limit()
    took, floors, counts = asyncio.run(measure(options.peers, options.slow))
    least = sum(floors) / len(floors)
    print(f"{options.peers} peers: {counts}")
    print(
        f"floor {', '.join(f'{1000 * one:.2f}' for one in floors)} ms a peer; ask, answer, report {1000 * took:.2f} ms"
    )
    print(f"ratio {took / least:.2f} (target: at most {TARGET})")
    return 0 if took <= TARGET * least and counts.get("reported") == options.peers else 1


if __name__ == "__main__":
    sys.exit(main())
