"""Runs peers on real sockets: each with its own host, server, address, key and coins; only the client is shared."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Coroutine, Iterable, Sequence
from contextlib import suppress
from typing import Protocol, TypeVar

from p2p_labeldp.crypto.keys import Keys
from p2p_labeldp.crypto.signatures import ClockSkew
from p2p_labeldp.errors import ConfigurationError, LabelDPError, PrivacyError, ProtocolError
from p2p_labeldp.facts import Ended, Fact, Listening, Outcome, Reason, Rejected, Traffic
from p2p_labeldp.network.host import Host, Sink, fetch_manifest
from p2p_labeldp.network.http import HttpClient
from p2p_labeldp.network.party import Party
from p2p_labeldp.network.tls import Tls
from p2p_labeldp.protocol.kept import exported
from p2p_labeldp.protocol.manifest import open_manifest

_log = logging.getLogger(__name__)

T = TypeVar("T")

FINISH_SECONDS = 1.0  # for a receipt on its way, when told to end; SIGTERM leaves three in all
PATIENCE_SECONDS = 600.0  # for a learner that is busy, or not there yet, or has not opened its round


class Watcher(Protocol):
    """Is told of each host of the process."""

    def watch(self, host: Host) -> None: ...


async def run_peers(
    parties: Sequence[Party],
    sink: Sink,
    *,
    stopped: asyncio.Event | None = None,
    watcher: Watcher | None = None,
    tls: Tls | None = None,
) -> None:
    """Runs the peers of one process until each has its outcome.

    Args:
        parties: The peers.
        sink: Is told what happens.
        stopped: Ends them early: whoever has not reported abstains.
        watcher: Is told of the hosts.
        tls: Serves and calls by TLS, if given.
    """
    scout = Scout()
    learners = frozenset((party.learner.host, party.learner.port) for party in parties)
    async with HttpClient(apart=learners, tls=None if tls is None else tls.client) as client:
        await asyncio.gather(*(_run_peer(party, client, sink, stopped, scout, watcher, tls) for party in parties))
        sent = client.traffic
        sink(Traffic(peer=parties[0].name, messages=sent.messages_sent, bytes=sent.bytes_sent))


class Scout:
    """Lets the first who comes go alone, and the others when it is back: with the round's opening, or without.

    So of a thousand peers in a process one asks again and again whether the round is open, and the others ask once.
    """

    def __init__(self) -> None:
        self._sent = False
        self._said = False
        self._back = asyncio.Event()

    async def __aenter__(self) -> None:
        if self._sent:
            await self._back.wait()
        self._sent = True

    async def __aexit__(self, *_: object) -> None:
        self._back.set()

    def waits(self, why: str) -> None:
        """Says once that there is no round yet, and why."""
        if not self._said:
            self._said = True
            _log.warning("no round of the learner so far, asking on: %s", why)


def _keep_nothing(_fact: Fact) -> None:
    """A study's memory is its process."""


async def _run_peer(
    party: Party,
    client: HttpClient,
    sink: Sink,
    stopped: asyncio.Event | None,
    scout: Scout,
    watcher: Watcher | None,
    tls: Tls | None,
) -> None:
    assert isinstance(party.keys, Keys)  # transparent keys have no place on a wire
    store = party.store or _keep_nothing
    host = Host(key=party.keys.signing_key, client=client, sink=sink, store=store)
    try:
        if _abandoned(party, store, sink):
            return
        await host.listen(party.bind or party.host, party.port, tls=tls)
        if watcher is not None:
            watcher.watch(host)
        sink(Listening(peer=party.name))
        end = await _take_part(party, host, client, stopped, scout, sink)
        if end is not None and not _abandoned(party, store, sink):  # by now the round that it died in may be over
            _keep_and_tell(party.gives_up(*end), store, sink)
    except ConfigurationError:
        raise  # the user's to put right, before any round
    except (PrivacyError, OSError) as exc:  # a label that can't be recorded as spent does not leave
        _log.error("this peer can't keep its state: %s", exc)
        sink(Ended(peer=party.name, outcome=Outcome.FAILED, reason=Reason.CRASHED))
    finally:
        await host.close()
        sent = host.server.traffic
        sink(Traffic(peer=party.name, messages=sent.messages_sent, bytes=sent.bytes_sent))


async def _take_part(
    party: Party, host: Host, client: HttpClient, stopped: asyncio.Event | None, scout: Scout, sink: Sink
) -> tuple[Outcome, Reason | None] | None:
    """Plays the round to its end; how it ends instead, if it comes to no round."""
    assert isinstance(party.keys, Keys)
    patience = party.patience(time.time(), usual=PATIENCE_SECONDS)
    key = party.keys.signing_key
    waiting = scout.waits if party.store is not None else None  # nobody watches a single peer of a study
    asking = fetch_manifest(
        client, key, party.learner, host=party.host, port=party.port, patience=patience, waiting=waiting
    )
    try:
        async with scout:
            reply = await _unless(stopped, asking)
        if reply is None:
            return Outcome.ABSTAINED, Reason.NOT_READY
        try:
            opened = open_manifest(reply.manifest, keys=party.keys, learner=party.learner.peer_id)
        except ProtocolError as exc:  # the learner itself gave it: its answer is signed
            sink(Rejected(peer=party.name, about=f"policy: manifest: {getattr(exc, 'detail', '') or exc}"))
            return Outcome.REFUSED, Reason.POLICY
        peer = party.peer(opened)
        host.start(peer, elapsed=reply.elapsed)
        if await _unless(stopped, _told(host.finished())) is None and peer.waits_for_its_receipt:
            with suppress(TimeoutError):
                await asyncio.wait_for(host.finished(), FINISH_SECONDS)
        host.stop()
    except (ConfigurationError, PrivacyError):
        raise
    except ClockSkew:
        return Outcome.FAILED, Reason.CLOCK_SKEW
    except LabelDPError:  # the learner is gone
        return Outcome.UNREACHABLE, None
    return None


def _abandoned(party: Party, store: Sink, sink: Sink) -> bool:
    """Ends a round that the party died in, if it is over."""
    left = party.left_behind(time.time())
    if left:
        _keep_and_tell([*left, Ended(peer=party.name, outcome=Outcome.FAILED, reason=Reason.CRASHED)], store, sink)
    return bool(left)


def _keep_and_tell(ends: Iterable[Fact], store: Sink, sink: Sink) -> None:
    """What is told is on disk, or a restart would tell another end."""
    for fact in ends:
        store(fact)
        if (told := exported(fact)) is not None:
            sink(told)


async def _told(done: Coroutine[None, None, None]) -> bool:
    await done
    return True


async def _unless(stopped: asyncio.Event | None, task: Coroutine[None, None, T]) -> T | None:
    """What ``task`` returns; None if ``stopped`` comes first, and then the task is cancelled."""
    if stopped is None:
        return await task
    working, stop = asyncio.ensure_future(task), asyncio.ensure_future(stopped.wait())
    try:
        await asyncio.wait((working, stop), return_when=asyncio.FIRST_COMPLETED)
        return working.result() if working.done() else None
    finally:
        working.cancel()
        stop.cancel()
