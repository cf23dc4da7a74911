"""The learner's network side: opens a round, serves it, keeps what was reported.

``serve`` is what the ``learner`` command runs; a study's launcher starts the same thing as a process of its own:

    python -m p2p_labeldp.network.learner_process PARENT_PID FACTS_FD HOST PORT < terms

It writes its address to standard output as one line, ``id@host:port``, and opens the round when it has read the terms
from standard input. When told to end by SIGTERM or by the end of the round it writes what it collected, as MessagePack,
and with it the secret of its key, which nobody else has use for: the launcher signs with it what the round came to.
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
from dataclasses import dataclass

import msgspec

from p2p_labeldp import randomness
from p2p_labeldp.crypto.identity import SEED_BYTES
from p2p_labeldp.crypto.keys import Keys
from p2p_labeldp.crypto.signatures import ALLOWED_SKEW_SECONDS
from p2p_labeldp.errors import ConfigurationError, ProtocolError
from p2p_labeldp.facts import Fact, Traffic
from p2p_labeldp.network import lifeline, loops
from p2p_labeldp.network.fact_pipe import FactPipe
from p2p_labeldp.network.host import Host, Sink
from p2p_labeldp.network.http import HttpClient, Rate
from p2p_labeldp.network.peer_process import Watcher
from p2p_labeldp.network.stopping import Stopping
from p2p_labeldp.network.store import Store
from p2p_labeldp.network.study import Collected, Terms, collected, evidence_of
from p2p_labeldp.network.tls import Tls
from p2p_labeldp.network.transport import format_address
from p2p_labeldp.protocol import manifest as manifests
from p2p_labeldp.protocol.collector import Collector
from p2p_labeldp.protocol.effects import Address
from p2p_labeldp.protocol.kept import Closed, OpenedWith
from p2p_labeldp.protocol.manifest import Manifest

CHECK_SECONDS = 0.2  # between two looks whether all reports are in
LINGER_SECONDS = 5.0  # a peer without a receipt asks again within a gossip period
MANY = 1000  # parties that a learner deals with
MAX_CONNECTIONS = 4096  # its peers come all at once, at the join deadline
TOTAL_RATE = Rate(per_second=400.0, burst=16_000.0)  # ... and a large cluster has 10,000; the nonces fit their cache


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A round whose manifest was signed beforehand.

    Args:
        envelope: The signed manifest.
        secret: Reads the secret of the round's key, 32 bytes; whoever has it opens the round's boxes.
        begun: Called once the secret is in use, and kept if anything is: what there is of it elsewhere can go.
    """

    envelope: bytes
    secret: Callable[[], bytes]
    begun: Callable[[], None]


def _keep_nothing(_fact: Fact) -> None:
    """A study's memory is its process."""


async def serve(
    terms: Callable[[], Awaitable[Terms]],
    *,
    keys: Keys,
    host: str,
    port: int,
    sink: Sink,
    announce: Callable[[Address], None],
    stopped: asyncio.Event,
    linger: float | None = None,
    store: Store | None = None,
    proposal: Proposal | None = None,
    watcher: Watcher | None = None,
    bind: str | None = None,
    tls: Tls | None = None,
    retold: Sink = _keep_nothing,
) -> Collected:
    """Opens a round and serves it until its end, or until ``stopped``; or takes up the one that it died in.

    Args:
        terms: Awaited for the terms of the round, when the learner listens; who asks before is told to try again.
        keys: The learner's; the round gets a fresh key of its own, which is forgotten with it.
        host: Where to listen.
        port: Where to listen.
        sink: Is told facts.
        announce: Is told the address once the learner listens.
        stopped: Ends the round early.
        linger: Seconds to repeat receipts that got lost once every rostered peer's report is in; by default to the
            round's end.
        store: What the learner has on disk; nothing if not given.
        proposal: The round, if it was signed beforehand; otherwise one is signed that opens now.
        watcher: Is told of the host.
        bind: Address to listen on instead, where ``host`` is one that only others know.
        tls: Serves and calls by TLS, if given.
        retold: Is told the facts of earlier lives, once, in a round that is taken up.

    Raises:
        ConfigurationError: The learner died in a round of other terms, or the proposal is of other terms or too old.
        OSError: The store can't keep what has to be kept.
    """
    log = [] if store is None else store.facts()
    async with HttpClient(tls=None if tls is None else tls.client) as client:
        server = Host(
            key=keys.signing_key,
            client=client,
            sink=sink,
            store=store or _keep_nothing,
            max_connections=MAX_CONNECTIONS,
            total_rate=TOTAL_RATE,
        )
        try:
            bound = await server.listen(bind or host, port, tls=tls)
            if watcher is not None:
                watcher.watch(server)
            announce(Address(keys.peer_id, host, bound))
            collector, elapsed = _collector(
                await terms(), keys=keys, log=log, store=store or _keep_nothing, proposal=proposal
            )
            server.start(collector, elapsed=elapsed)
            for fact in collector.retell(log):
                retold(fact)
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
        return msgspec.structs.replace(collected(collector), evidence=evidence_of(collector))


def _collector(
    terms: Terms, *, keys: Keys, log: list[Fact], store: Sink, proposal: Proposal | None
) -> tuple[Collector, float]:
    """The machine of a fresh round, of the proposed one, or of the one in the log; and the seconds since its opening.

    A round that was opened before is timed by the wall clock, the only one that outlives a process, and never runs
    backwards past what the log tells of it.
    """
    secret, envelope = _opened(log)
    if envelope is None:
        if proposal is not None:
            check_proposal(proposal, terms=terms, keys=keys)
            envelope, secret = proposal.envelope, proposal.secret()
        else:
            secret = os.urandom(SEED_BYTES)
            manifest = terms.manifest(round_key=Keys(secret).sealing_public, opened=time.time())
            envelope = manifests.sign(manifest, keys)
        store(OpenedWith(peer="learner", manifest=envelope, round_secret=secret))  # before anybody has a manifest whose
        # key can get lost
        if proposal is not None:
            proposal.begun()
    elif proposal is not None and envelope != proposal.envelope:
        raise ConfigurationError("the learner died in another round; another state is needed", field="--state")
    opened = manifests.open_manifest(envelope, keys=keys, learner=keys.peer_id)
    if log:
        _check_same(terms, opened.manifest)
    elapsed = max(time.time() - opened.manifest.opened, 0.0, *(fact.at for fact in log))
    collector = Collector.restore(
        log, envelope=envelope, opened=opened, keys=keys, round_keys=Keys(secret), rng=random.SystemRandom()
    )
    return collector, elapsed


def in_a_round(store: Store | None) -> bool:
    """Whether a learner with this state died in a round, and takes that up."""
    return store is not None and _opened(store.facts())[1] is not None


def check_proposal(proposal: Proposal, *, terms: Terms, keys: Keys) -> Manifest:
    """The manifest, if this learner can open its round now.

    Raises:
        ConfigurationError: It can't.
    """
    try:
        manifest = manifests.open_manifest(proposal.envelope, keys=keys, learner=keys.peer_id).manifest
    except ProtocolError as exc:
        about = getattr(exc, "detail", "") or exc
        raise ConfigurationError(f"not one that this learner signed: {about}", field="--manifest") from exc
    differing = [name for name in terms.__struct_fields__ if getattr(manifest, name) != getattr(terms, name)]
    if differing:
        raise ConfigurationError(
            f"{', '.join(differing)} not as configured; the configuration that it was created from is needed",
            field="--manifest",
        )
    if manifest.round_key != Keys(proposal.secret()).sealing_public:
        raise ConfigurationError("the round key beside it belongs to another round", field="--manifest")
    elapsed = time.time() - manifest.opened
    last = manifest.newcomers_until
    if not -ALLOWED_SKEW_SECONDS <= elapsed < last:
        useless = "" if elapsed < last else "; delete the round key beside this one"
        raise ConfigurationError(
            f"created {elapsed:.0f} s ago; peers join within {last:.0f} s, so another manifest is needed{useless}",
            field="--manifest",
        )
    return manifest


def _opened(log: list[Fact]) -> tuple[bytes, bytes | None]:
    """The secret of the round's key and the manifest, from the log. The key of a round that is over is erased."""
    for fact in log:
        if isinstance(fact, Closed):
            return bytes(SEED_BYTES), fact.manifest
    for fact in log:
        if isinstance(fact, OpenedWith):
            return fact.round_secret, fact.manifest
    return b"", None


def _check_same(terms: Terms, manifest: Manifest) -> None:
    """Raises a ``ConfigurationError`` if the round in the log has other terms than those given."""
    given = terms.manifest(round_key=manifest.round_key, opened=manifest.opened)
    given = msgspec.structs.replace(given, nonce=manifest.nonce)
    if msgspec.msgpack.encode(given) != msgspec.msgpack.encode(manifest):
        raise ConfigurationError(
            "the learner died in a round of other terms; start it with the same configuration, or with another state",
            field="--state",
        )


async def serve_until_told(
    terms: Terms,
    *,
    stopping: Stopping,
    keys: Keys,
    host: str,
    port: int,
    sink: Sink,
    announce: Callable[[Address], None],
    store: Store | None = None,
    proposal: Proposal | None = None,
    operator: tuple[str, int] | None = None,
    watcher: Watcher | None = None,
    bind: str | None = None,
    tls: Tls | None = None,
    retold: Sink = _keep_nothing,
) -> Collected:
    """``serve`` for a command: told to end it ends the round, and what was reported until then is kept."""

    async def at_once() -> Terms:
        return terms

    from p2p_labeldp.network.operator import operating  # a study's learner has none, and needs no counters

    async with operating(operator, sink) as (asked, heard):
        return await serve(
            at_once,
            keys=keys,
            host=host,
            port=port,
            sink=heard,
            announce=announce,
            stopped=stopping.event(),
            linger=LINGER_SECONDS,
            store=store,
            proposal=proposal,
            watcher=_Watchers(asked, watcher),
            bind=bind,
            tls=tls,
            retold=retold,
        )


class _Watchers:
    """Several, some of them None."""

    def __init__(self, *watchers: Watcher | None) -> None:
        self._watchers = watchers

    def watch(self, host: Host) -> None:
        for watcher in self._watchers:
            if watcher is not None:
                watcher.watch(host)


def main() -> int:
    """The learner of a study, as a process."""
    parent, facts_fd = int(sys.argv[1]), int(sys.argv[2])
    lifeline.tie(parent)
    lifeline.raise_descriptor_limit()
    host, port = sys.argv[3], int(sys.argv[4])
    pipe = FactPipe(facts_fd)

    async def run() -> Collected:
        stopped = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
        identity = randomness.secure().identity()
        handed_over = await serve(
            _read_terms,
            keys=Keys(identity),
            host=host,
            port=port,
            sink=pipe,
            announce=_announce,
            stopped=stopped,
        )
        return msgspec.structs.replace(handed_over, identity=identity)

    outcome = loops.run(run(), parties=MANY)
    pipe.flush()
    sys.stdout.buffer.write(msgspec.msgpack.encode(outcome))
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
