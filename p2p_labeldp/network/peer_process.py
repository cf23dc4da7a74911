"""Runs peers on real sockets: each with its own host, server, address, key and coins; only the client is shared."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Sequence

from p2p_labeldp.crypto.keys import Keys
from p2p_labeldp.crypto.signatures import ClockSkew
from p2p_labeldp.errors import ConfigurationError, LabelDPError, PrivacyError, ProtocolError
from p2p_labeldp.facts import Ended, Fact, Listening, Outcome, Reason, Rejected, Traffic
from p2p_labeldp.network.host import Host, Sink, fetch_manifest
from p2p_labeldp.network.http import HttpClient
from p2p_labeldp.network.party import Party
from p2p_labeldp.protocol.manifest import open_manifest

_log = logging.getLogger(__name__)

PATIENCE_SECONDS = 600.0  # for a learner that is busy, or not there yet, or has not opened its round


async def run_peers(parties: Sequence[Party], sink: Sink, *, stopped: asyncio.Event | None = None) -> None:
    """Runs the peers of one process until each has its outcome.

    ``stopped`` ends them early: whoever has not reported abstains.
    """
    scout = Scout()
    async with HttpClient() as client:
        await asyncio.gather(*(_run_peer(party, client, sink, stopped, scout) for party in parties))
        sent = client.traffic
        sink(Traffic(peer=parties[0].name, messages=sent.messages_sent, bytes=sent.bytes_sent))


class Scout:
    """Lets the first who comes go alone, and the others when it is back: with the round's opening, or without.

    So of a thousand peers in a process one asks again and again whether the round is open, and the others ask once.
    """

    def __init__(self) -> None:
        self._sent = False
        self._back = asyncio.Event()

    async def __aenter__(self) -> None:
        if self._sent:
            await self._back.wait()
        self._sent = True

    async def __aexit__(self, *_: object) -> None:
        self._back.set()


def _keep_nothing(_fact: Fact) -> None:
    """A study's memory is its process."""


async def _run_peer(party: Party, client: HttpClient, sink: Sink, stopped: asyncio.Event | None, scout: Scout) -> None:
    assert isinstance(party.keys, Keys)  # transparent keys have no place on a wire
    key = party.keys.signing_key
    host = Host(key=key, client=client, sink=sink, store=party.store or _keep_nothing)
    try:
        await host.listen(party.host, party.port)
        sink(Listening(peer=party.name))
        async with scout:
            reply = await fetch_manifest(
                client, key, party.learner, host=party.host, port=party.port, patience=PATIENCE_SECONDS
            )
        try:
            opened = open_manifest(reply.manifest, keys=party.keys, learner=party.learner.peer_id)
        except ProtocolError as exc:  # the learner itself gave it: its answer is signed
            sink(Rejected(peer=party.name, about=f"policy: manifest: {getattr(exc, 'detail', '') or exc}"))
            sink(Ended(peer=party.name, outcome=Outcome.REFUSED, reason=Reason.POLICY))
            return
        host.start(party.peer(opened), elapsed=reply.elapsed)
        await _either(host.finished(), stopped)
        host.stop()
    except ConfigurationError:
        raise  # the user's to put right, before any round
    except ClockSkew:
        sink(Ended(peer=party.name, outcome=Outcome.FAILED, reason=Reason.CLOCK_SKEW))
    except (PrivacyError, OSError) as exc:  # a label that can't be recorded as spent does not leave
        _log.error("this peer can't keep its state: %s", exc)
        sink(Ended(peer=party.name, outcome=Outcome.FAILED, reason=Reason.CRASHED))
    except LabelDPError:
        sink(Ended(peer=party.name, outcome=Outcome.UNREACHABLE))
    finally:
        await host.close()
        sent = host.server.traffic
        sink(Traffic(peer=party.name, messages=sent.messages_sent, bytes=sent.bytes_sent))


async def _either(finished: Coroutine[None, None, None], stopped: asyncio.Event | None) -> None:
    waits = [asyncio.ensure_future(finished)]
    if stopped is not None:
        waits.append(asyncio.ensure_future(_until(stopped)))
    done, _ = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    for wait in waits:
        wait.cancel()
    for wait in done:
        wait.result()


async def _until(event: asyncio.Event) -> None:
    await event.wait()
