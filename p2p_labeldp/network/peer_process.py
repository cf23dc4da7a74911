"""A process of peers: each with its own host, server, address, key and coins; only the client is shared."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence

from p2p_labeldp import randomness
from p2p_labeldp.crypto.keys import Keys
from p2p_labeldp.crypto.signatures import ClockSkew
from p2p_labeldp.errors import LabelDPError
from p2p_labeldp.facts import Ended, Fact, Outcome, Reason, Traffic
from p2p_labeldp.network.host import Host, Sink, fetch_manifest
from p2p_labeldp.network.http import HttpClient
from p2p_labeldp.network.study import PeerSpec
from p2p_labeldp.protocol.manifest import open_manifest

PATIENCE_SECONDS = 60.0  # for a learner that is busy or not there yet


async def run_peers(specs: Sequence[PeerSpec], sink: Sink, *, stopped: asyncio.Event | None = None) -> None:
    """Runs the peers of one process of a study until each has its outcome.

    ``stopped`` ends them early: whoever has not reported abstains.
    """
    async with HttpClient() as client:
        await asyncio.gather(*(_run_peer(spec, client, sink, stopped) for spec in specs))
        sent = client.traffic
        sink(Traffic(peer=specs[0].ordinal, messages=sent.messages_sent, bytes=sent.bytes_sent))


async def _run_peer(spec: PeerSpec, client: HttpClient, sink: Sink, stopped: asyncio.Event | None) -> None:
    keys = Keys(randomness.replay(spec.seed, spec.ordinal).identity())
    host = Host(key=keys.signing_key, client=client, sink=sink)
    try:
        await host.listen(spec.host, spec.port)
        reply = await fetch_manifest(
            client,
            keys.signing_key,
            spec.learner.address(),
            host=spec.host,
            port=spec.port,
            patience=PATIENCE_SECONDS,
        )
        opened = open_manifest(reply.manifest, keys=keys, learner=spec.learner.peer_id)
        host.start(spec.make(opened, keys), elapsed=reply.elapsed)
        await _either(host.finished(), stopped)
        host.stop()
    except (LabelDPError, OSError) as exc:
        sink(_failure(spec.ordinal, exc))
    finally:
        await host.close()
        sent = host.server.traffic
        sink(Traffic(peer=spec.ordinal, messages=sent.messages_sent, bytes=sent.bytes_sent))


async def _either(finished: Coroutine[None, None, None], stopped: asyncio.Event | None) -> None:
    waits = [asyncio.ensure_future(finished)]
    if stopped is not None:
        waits.append(asyncio.ensure_future(_until(stopped)))
    await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    for wait in waits:
        wait.cancel()


async def _until(event: asyncio.Event) -> None:
    await event.wait()


def _failure(ordinal: int, exc: Exception) -> Fact:
    if isinstance(exc, ClockSkew):
        return Ended(peer=ordinal, outcome=Outcome.FAILED, reason=Reason.CLOCK_SKEW)
    return Ended(peer=ordinal, outcome=Outcome.UNREACHABLE)
