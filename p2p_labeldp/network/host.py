"""The asyncio driver of a protocol machine: deliver, drain, re-arm.

One host per machine: its own server, address, key and clock anchor; the client is shared by all hosts of a process.
Effects are carried out in order, and a reply leaves only after everything before it is carried out, so nothing behind a
``Persist`` overtakes it.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable
from functools import partial

from p2p_labeldp.crypto.identity import SigningKey
from p2p_labeldp.crypto.signatures import ClockSkew
from p2p_labeldp.errors import (
    DeadlineExceeded,
    LocalProtocolError,
    PeerUnreachable,
    ProtocolError,
    RemoteProtocolError,
    TransportError,
)
from p2p_labeldp.facts import Fact
from p2p_labeldp.network.http import HttpClient, HttpServer, Rate
from p2p_labeldp.network.http.server import TOTAL_RATE
from p2p_labeldp.network.tls import Tls
from p2p_labeldp.network.transport import Traffic
from p2p_labeldp.protocol import wire
from p2p_labeldp.protocol.effects import Address, Observed, Persist, Send
from p2p_labeldp.protocol.kept import exported
from p2p_labeldp.protocol.machine import Machine
from p2p_labeldp.protocol.messages import GetManifest, ManifestReply, Refusal

RETRY_SECONDS = 0.5, 4.0  # between tries to get the manifest, growing: hundreds may wait for a round to open
RETRY_GROWTH = 2.0
FIRST_ANSWER_SECONDS = 10.0
SILENT_SECONDS = 3.0  # without a manifest, and whoever waits for one is told why
TIMER_SECONDS = 0.001  # what a timer may ring early: uvloop rounds to the nearest millisecond

Sink = Callable[[Fact], None]

_log = logging.getLogger(__name__)


class Host:
    """Carries one machine.

    Args:
        key: Signs what this party sends.
        client: Sends for it.
        sink: Is told every fact that may leave the party.
        store: Makes a fact durable before it returns; also what may never leave.
        max_connections: Of its server.
        total_rate: Of all requests to its server.
    """

    def __init__(
        self,
        *,
        key: SigningKey,
        client: HttpClient,
        sink: Sink,
        store: Sink = lambda _fact: None,
        max_connections: int = 512,
        total_rate: Rate = TOTAL_RATE,
    ) -> None:
        self.server = HttpServer(key, self._handle, max_connections=max_connections, total_rate=total_rate)
        self._key = key
        self._client = client
        self._sink = sink
        self._store = store
        self._machine: Machine | None = None
        self._opening = 0.0
        self._alarm: asyncio.TimerHandle | None = None
        self._due: float | None = None  # when it rings
        self._tasks: set[asyncio.Task[None]] = set()
        self._over = asyncio.Event()
        self._broken: BaseException | None = None

    async def listen(self, host: str, port: int, *, tls: Tls | None = None) -> int:
        """Starts to listen; until there is a machine everybody is told to try again. Returns the port."""
        return await self.server.start(host, port, tls=None if tls is None else tls.server)

    @property
    def now(self) -> float:
        """Seconds since the round's opening, by this process' monotonic clock."""
        return asyncio.get_running_loop().time() - self._opening

    def start(self, machine: Machine, *, elapsed: float) -> None:
        """The machine enters a round that opened ``elapsed`` seconds ago."""
        self._opening = asyncio.get_running_loop().time() - elapsed
        self._machine = machine
        machine.start(elapsed)
        self._settle()

    async def finished(self) -> None:
        """Returns when the machine has come to its end.

        Raises:
            BaseException: Whatever kept the store from making a fact durable. The machine never speaks again: what it
                would say next might rest on that fact.
        """
        await self._over.wait()
        if self._broken is not None:
            raise self._broken

    @property
    def broken(self) -> str | None:
        """What the party died of, if it did: a disk that takes nothing, say."""
        return None if self._broken is None else f"{type(self._broken).__name__}: {self._broken}"

    @property
    def unready(self) -> str | None:
        """Why others are not served now, if they are not."""
        if self._broken is not None:
            return self.broken
        if self._machine is None:
            return "no round is open"
        return "the round is over" if self._machine.over else self._machine.lacks

    @property
    def records(self) -> int:
        """Peer records known."""
        return 0 if self._machine is None else self._machine.records

    @property
    def sent(self) -> Traffic:
        """What the process has sent of its own accord."""
        return self._client.traffic

    def stop(self) -> None:
        """Ends the machine early, as it knows to."""
        if self._machine is not None and self._broken is None:
            self._machine.close(self.now)
            self._settle()

    async def close(self) -> None:
        """Leaves nothing running."""
        if self._alarm is not None:
            self._alarm.cancel()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.server.close()

    # -- deliver ---------------------------------------------------------------------------------------------------

    def _handle(self, sender: bytes, body: bytes) -> bytes:
        message = wire.decode(body)
        if self._machine is None or self._broken is not None:
            return wire.encode(Refusal("not_ready", retry=True))
        reply = self._machine.receive(message, sender, self.now)
        self._settle()
        return wire.encode(reply)

    async def _carry(self, machine: Machine, send: Send) -> None:
        try:
            body = await self._client.post(self._key, send.to, wire.encode(send.message), timeout=send.timeout)
            reply = wire.decode(body)
        except DeadlineExceeded:
            tell = partial(machine.failed, send.send_id, "timeout")
        except (TransportError, RemoteProtocolError) as exc:  # what cannot be verified or read counts as unreachable
            _log.debug("%s to %s:%d: %s", type(send.message).__name__, send.to.host, send.to.port, exc)
            tell = partial(machine.failed, send.send_id, "unreachable")
        else:
            tell = partial(machine.answered, send.send_id, reply)
        if self._broken is None:
            tell(self.now)
            self._settle()

    def _wake(self) -> None:
        self._alarm = None
        if self._machine is not None and self._broken is None:
            try:
                self._machine.wake(self.now)
            finally:  # whatever broke one alarm, the next one rings, and the last one ends the round
                self._settle()

    # -- drain, re-arm ---------------------------------------------------------------------------------------------

    def _settle(self) -> None:
        machine = self._machine
        assert machine is not None
        try:
            self._carry_out(machine)
        except BaseException as exc:
            self._broken = exc
            self._over.set()
            raise
        if machine.over:
            self._over.set()
        due = machine.wake_at()
        if self._alarm is not None:
            if due == self._due:
                return
            self._alarm.cancel()
            self._alarm = None
        self._due = due
        if due is not None:  # never early: a machine with nothing due yet would be woken again and again until it is
            self._alarm = asyncio.get_running_loop().call_at(self._opening + due + TIMER_SECONDS, self._wake)

    def _carry_out(self, machine: Machine) -> None:
        for effect in machine.effects():
            match effect:
                case Persist(fact):
                    self._store(fact)
                    if (told := exported(fact)) is not None:
                        self._sink(told)
                case Observed(fact):
                    self._sink(fact)
                case Send():
                    task = asyncio.get_running_loop().create_task(self._carry(machine, effect))
                    self._tasks.add(task)
                    task.add_done_callback(self._tasks.discard)


async def fetch_manifest(
    client: HttpClient,
    key: SigningKey,
    learner: Address,
    *,
    host: str,
    port: int,
    patience: float,
    waiting: Callable[[str], None] | None = None,
) -> ManifestReply:
    """Asks the learner for the round until it answers.

    Args:
        client: To ask with.
        key: Who asks.
        learner: Who is asked.
        host: Where the asker can be reached.
        port: There.
        patience: Seconds after which it is given up.
        waiting: Called once with the reason, where ``SILENT_SECONDS`` have passed without a manifest.

    Raises:
        ClockSkew: The two clocks differ by more than is allowed.
        PeerUnreachable: No answer within ``patience`` seconds.
    """
    loop = asyncio.get_running_loop()
    began = loop.time()
    end = began + patience
    question = wire.encode(GetManifest(host, port))
    last: Exception | None = None
    pause, longest = RETRY_SECONDS
    while loop.time() < end:
        try:
            reply = wire.decode(await client.post(key, learner, question, timeout=FIRST_ANSWER_SECONDS))
        except (ClockSkew, LocalProtocolError):
            raise
        except (TransportError, ProtocolError) as exc:
            last = exc
        else:
            if isinstance(reply, ManifestReply):
                return reply
        if waiting is not None and loop.time() - began >= SILENT_SECONDS:
            waiting("it has no round open" if last is None else str(last))
            waiting = None
        await asyncio.sleep(pause * (0.5 + random.random()))  # noqa: S311  so that they don't come together
        pause = min(RETRY_GROWTH * pause, longest)
    raise PeerUnreachable(f"the learner gave no manifest in {patience:g} s: {last}") from last
