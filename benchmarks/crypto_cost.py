"""What security costs: one signed POST exchange against its bare parts, both sides in one process.

The floor of an exchange is what a plain one with aiohttp takes: two Ed25519 signatures, two verifications, and one bare
POST on a new connection (a handler that returns the body, a session with ``force_close``). Ours is not on aiohttp and
can be below it. Expected: at most 1.5 times the floor, in CPU time, which other programs on the machine change little.

    python benchmarks/crypto_cost.py [exchanges]
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import aiohttp
from aiohttp import web

from p2p_labeldp.crypto import KeyRing, Keys, SigningKey, box_info, envelope
from p2p_labeldp.crypto.identity import verify
from p2p_labeldp.crypto.signatures import sign_request, sign_response, verify_request, verify_response
from p2p_labeldp.network.http import CONTENT_TYPE, ROUTE, HttpClient, HttpServer, Rate

BODY = os.urandom(300)  # an ask has about 150 bytes, a gossip digest about 1,000
ROUNDS = 5  # the best of which counts
TARGET = 1.5


@dataclass(frozen=True)
class Place:
    peer_id: bytes
    host: str
    port: int


def cpu(work: Callable[[], object], repeats: int) -> float:
    """Microseconds of CPU a call, the best of ``ROUNDS``."""
    best = float("inf")
    for _ in range(ROUNDS):
        start = time.process_time()
        for _ in range(repeats):
            work()
        best = min(best, (time.process_time() - start) / repeats)
    return best * 1e6


async def cpu_of_both(
    one: Callable[[], Awaitable[object]], other: Callable[[], Awaitable[object]], repeats: int
) -> list[float]:
    """The same for two coroutines, in turns, so that a slow minute of the machine hits both."""
    best = [float("inf")] * 2
    for _ in range(ROUNDS):
        for i, work in enumerate((one, other)):
            start = time.process_time()
            for _ in range(repeats):
                await work()
            best[i] = min(best[i], (time.process_time() - start) / repeats * 1e6)
    return best


def primitives(ada: SigningKey, ben: SigningKey) -> tuple[float, float]:
    message = os.urandom(400)
    signature = ada.sign(message)
    sign = cpu(lambda: ada.sign(message), 500)
    check = cpu(lambda: verify(ada.public, signature, message), 500)
    print(f"Ed25519 sign {sign:.0f} us, verify {check:.0f} us")

    question = {"method": "POST", "authority": "127.0.0.1:1", "path": ROUTE, "body": BODY, "recipient": ben.peer_id}
    now = time.time()
    request = sign_request(ada, content_type=CONTENT_TYPE, nonce=bytes(16), now=now, **question)
    answer = {"status": 200, "body": BODY, "recipient": ada.peer_id, "request_signature": request["signature"]}
    response = sign_response(ben, content_type=CONTENT_TYPE, now=now, **answer)
    costs = [
        cpu(lambda: sign_request(ada, content_type=CONTENT_TYPE, nonce=bytes(16), now=now, **question), 500),
        cpu(lambda: verify_request(request, now=now, **question), 500),
        cpu(lambda: sign_response(ben, content_type=CONTENT_TYPE, now=now, **answer), 500),
        cpu(lambda: verify_response(response, sender=ben.peer_id, **answer), 500),
    ]
    print(
        "RFC 9421: request sign {:.0f} us, verify {:.0f} us; response sign {:.0f} us, verify {:.0f} us".format(*costs)
    )

    keys: KeyRing = Keys(bytes(32))
    info = box_info("label", bytes(32), bytes(32))
    box = keys.seal(keys.sealing_public, b"\x01", info=info)
    record = keys.sign("record", BODY)
    print(
        f"HPKE seal {cpu(lambda: keys.seal(keys.sealing_public, b'1', info=info), 500):.0f} us, "
        f"open {cpu(lambda: keys.open(box, info=info), 500):.0f} us; "
        f"envelope sign {cpu(lambda: keys.sign('record', BODY), 500):.0f} us, "
        f"open again {cpu(lambda: envelope.open(record, 'record'), 500):.1f} us"
    )
    return sign, check


async def exchanges(ada: SigningKey, ben: SigningKey, repeats: int) -> list[float]:
    """A POST on a new connection with nothing around it, and a signed one."""

    async def echo(request: web.BaseRequest) -> web.Response:
        return web.Response(body=await request.read())

    bare = web.Server(echo, access_log=None)
    listener = await asyncio.get_running_loop().create_server(bare, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}{ROUTE}"
    unlimited = Rate(per_second=1e9, burst=1e9)
    server = HttpServer(ben, lambda _, body: body, sender_rate=unlimited, total_rate=unlimited)
    place = Place(ben.peer_id, "127.0.0.1", await server.start("127.0.0.1", 0))
    async with (
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(force_close=True)) as session,
        HttpClient() as client,
    ):

        async def post() -> None:
            async with session.post(url, data=BODY) as response:
                await response.read()

        costs = await cpu_of_both(post, lambda: client.post(ada, place, BODY, timeout=10), repeats)
    listener.close()
    await bare.shutdown()
    await server.close()
    return costs


def main(repeats: int) -> None:
    ada, ben = SigningKey(os.urandom(32)), SigningKey(os.urandom(32))
    sign, check = primitives(ada, ben)
    post, whole = asyncio.run(exchanges(ada, ben, repeats))
    floor = 2 * (sign + check) + post
    print(f"bare POST {post:.0f} us; floor {floor:.0f} us; signed exchange {whole:.0f} us")
    print(f"ratio {whole / floor:.2f} (target: at most {TARGET})")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 300)
