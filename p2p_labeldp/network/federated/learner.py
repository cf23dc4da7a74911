"""The learner of a run of private rounds on real sockets.

A study's launcher starts it as a process of its own:

    python -m p2p_labeldp.network.federated.learner PARENT_PID FACTS_FD HOST PORT [SECRET] < order

Its key is fresh without a secret (hex). It writes its address to standard output as one line, ``id@host:port``, and
opens the run when it has read its ``Order`` from standard input; in the end it writes what it trained, as MessagePack.
With a state on disk it can be killed at any instant: started again with the same secret and order it goes on from the
last checkpoint.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec

from p2p_labeldp import randomness
from p2p_labeldp.crypto.identity import SEED_BYTES
from p2p_labeldp.crypto.keys import Keys
from p2p_labeldp.errors import ConfigurationError, MalformedMessage, ProtocolError
from p2p_labeldp.facts import Exchanged, Fact, Traffic
from p2p_labeldp.network import lifeline, loops
from p2p_labeldp.network.fact_pipe import FactPipe
from p2p_labeldp.network.federated.study import PUBLIC_SEED, FederationTerms, TrainedModel, model_of, trained
from p2p_labeldp.network.host import Host, Sink
from p2p_labeldp.network.http import HttpClient
from p2p_labeldp.network.learner_process import MANY, MAX_CONNECTIONS, TOTAL_RATE
from p2p_labeldp.network.store import Store
from p2p_labeldp.network.transport import format_address
from p2p_labeldp.protocol import federation
from p2p_labeldp.protocol.averaging import Averager
from p2p_labeldp.protocol.effects import Address
from p2p_labeldp.protocol.kept import Checkpoint, RunClosed, RunOpened
from p2p_labeldp.randomness import Replay, RoundRandomness

LINGER_SECONDS = 0.5  # for the answers to those who asked last


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """What a learner process is told: its terms, a study's seed, and where its state is.

    Without a seed its noise comes from a secret of its own, without a state it forgets.
    """

    terms: FederationTerms
    seed: int | None = None
    state: str | None = None


async def serve(
    terms: FederationTerms,
    *,
    keys: Keys,
    coins: RoundRandomness,
    host: Host,
    stopped: asyncio.Event,
    store: Store | None = None,
) -> TrainedModel:
    """Opens a run and serves it until everybody has the model, or until ``stopped``; or takes up the one it died in.

    Args:
        terms: The run's.
        keys: The learner's.
        coins: Its noise.
        host: Listens already.
        stopped: Ends the run early; the model is that of the last whole round.
        store: What the learner has on disk; nothing if not given.

    Raises:
        ConfigurationError: The learner died in a run of other terms, or its state is damaged.
    """
    log = [] if store is None else store.facts()
    averager, elapsed = _averager(terms, keys=keys, coins=coins, log=log, store=store or _keep_nothing)
    host.start(averager, elapsed=elapsed)
    waits = [asyncio.ensure_future(host.finished()), asyncio.ensure_future(stopped.wait())]
    await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    for wait in waits:
        wait.cancel()
    if host.broken is not None:
        raise OSError(host.broken)
    if not stopped.is_set():
        await asyncio.sleep(LINGER_SECONDS)
    host.stop()
    return trained(averager)


def _averager(
    terms: FederationTerms, *, keys: Keys, coins: RoundRandomness, log: list[Fact], store: Sink
) -> tuple[Averager, float]:
    """The machine of a fresh run, or of the one in the log; and the seconds since its opening."""
    secret, envelope = _opened(log)
    if envelope is None:
        log = []
        secret = os.urandom(SEED_BYTES)
        manifest = terms.manifest(run_key=Keys(secret).sealing_public, opened=time.time())
        envelope = federation.sign_manifest(manifest, keys)
        store(RunOpened(peer="learner", manifest=envelope, run_secret=secret))
    closed = any(isinstance(fact, RunClosed) for fact in log)  # and its key erased
    try:
        opened = federation.open_federation(envelope, keys=keys, learner=keys.peer_id)
        if not closed and Keys(secret).sealing_public != opened.manifest.run_key:
            raise MalformedMessage("the key of another run")
        for fact in log:
            if isinstance(fact, Checkpoint):
                current = federation.open_round(fact.opening, of=opened, keys=keys)
                if current.number != len(fact.cohorts):
                    raise MalformedMessage("the cohorts of another round")
    except ProtocolError as exc:  # what this learner wrote is not what it reads
        raise ConfigurationError(
            f"damaged: {getattr(exc, 'detail', '') or exc}; a run that was lost is begun anew, with another state",
            field="--state",
        ) from exc
    manifest = opened.manifest
    given = terms.manifest(run_key=manifest.run_key, opened=manifest.opened, nonce=manifest.nonce)
    if given != manifest:
        raise ConfigurationError(
            "the learner died in a run of other terms; start it with the same configuration, or with another state",
            field="--state",
        )
    averager = Averager(
        envelope=envelope,
        opened=opened,
        initial=model_of(manifest).initial(PUBLIC_SEED),
        keys=keys,
        run_keys=Keys(secret),
        randomness=coins,
        log=log,
    )
    return averager, max(time.time() - manifest.opened, 0.0, *(fact.at for fact in log))


def _opened(log: list[Fact]) -> tuple[bytes, bytes | None]:
    """The secret of the run's key, erased if the run is over, and the manifest, from the log."""
    for fact in log:
        if isinstance(fact, RunClosed):
            return bytes(SEED_BYTES), fact.manifest
    for fact in log:
        if isinstance(fact, RunOpened):
            return fact.run_secret, fact.manifest
    return b"", None


def _keep_nothing(_fact: Fact) -> None:
    """A study's memory is its process."""


async def run(
    order: Callable[[Address], Awaitable[Order]],
    *,
    keys: Keys,
    place: tuple[str, int],
    sink: Sink,
    stopped: asyncio.Event,
) -> TrainedModel:
    """Listens, gets its order, and serves.

    Args:
        order: Is told the address, and awaited for the order; who asks before is told to try again.
        keys: The learner's.
        place: Where to listen.
        sink: Is told facts.
        stopped: Ends the run early.
    """
    async with HttpClient() as client:
        store: Store | None = None

        def keep(fact: Fact) -> None:
            if store is not None:
                store(fact)

        host = Host(
            key=keys.signing_key,
            client=client,
            sink=sink,
            store=keep,
            max_connections=MAX_CONNECTIONS,
            total_rate=TOTAL_RATE,
        )
        try:
            port = await host.listen(*place)
            told = await order(Address(keys.peer_id, place[0], port))
            if told.state is not None:
                store = Store(Path(told.state), peer_id=keys.peer_id.hex())
            coins = randomness.secure() if told.seed is None else Replay(told.seed, 0)
            model = await serve(told.terms, keys=keys, coins=coins, host=host, stopped=stopped, store=store)
        finally:
            await host.close()
            if store is not None:
                store.close()
        sent = host.server.traffic
        sink(Traffic(peer="learner", messages=sent.messages_sent, bytes=sent.bytes_sent))
        return model


def main() -> int:
    """The learner of a study, as a process."""
    parent, facts_fd, host, port = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
    lifeline.tie(parent)
    lifeline.raise_descriptor_limit()
    secret = bytes.fromhex(sys.argv[5]) if len(sys.argv) > 5 else randomness.secure().identity()
    pipe = FactPipe(facts_fd)

    def sink(fact: Fact) -> None:
        if not isinstance(fact, Exchanged):
            pipe(fact)

    async def ordered(address: Address) -> Order:
        sys.stdout.buffer.write(format_address(address).encode() + b"\n")
        sys.stdout.buffer.flush()
        data = await asyncio.get_running_loop().run_in_executor(None, sys.stdin.buffer.read)
        return msgspec.msgpack.decode(data, type=Order)

    async def play() -> TrainedModel:
        stopped = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
        return await run(ordered, keys=Keys(secret), place=(host, port), sink=sink, stopped=stopped)

    sys.stdout.buffer.write(msgspec.msgpack.encode(loops.run(play(), parties=MANY)))
    sys.stdout.buffer.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
