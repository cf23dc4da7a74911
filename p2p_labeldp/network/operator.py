"""What whoever runs a party may ask it, on an address of its own: whether it lives, whether it serves, what it counts.

    GET /healthz   200 while the party runs and its disk takes what has to be kept; else 503
    GET /readyz    200 while others are served, which takes a round and, at a peer, a mate it knows; else 503 and why
    GET /metrics   the numbers of ``metrics``

Nothing here is signed, and anybody who can reach it is answered: it listens where it is told to, and nowhere by itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web

from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.facts import Fact
from p2p_labeldp.network.host import Host, Sink
from p2p_labeldp.network.metrics import CONTENT_TYPE, Metrics

SHUTDOWN_SECONDS = 0.2  # for answers under way; who keeps a connection open is hung up on
KEEPALIVE_SECONDS = 15.0


class Operator:
    """The listener of one process, and what it answers from. Facts go to ``metrics``."""

    def __init__(self) -> None:
        self.metrics = Metrics()
        self._hosts: list[Host] = []
        self._web: web.Server | None = None
        self._listener: asyncio.Server | None = None

    def watch(self, host: Host) -> None:
        """A party whose condition is asked for; of several, each has to be well."""
        self._hosts.append(host)

    async def start(self, host: str, port: int) -> int:
        """Listens; returns the port.

        Raises:
            ConfigurationError: The address can't be listened on.
        """
        self._web = web.Server(self._answer, access_log=None, keepalive_timeout=KEEPALIVE_SECONDS)
        try:
            self._listener = await asyncio.get_running_loop().create_server(self._web, host, port)
        except OSError as error:
            raise ConfigurationError(f"{host}:{port} can't be listened on: {error}", field="--operator") from error
        return int(self._listener.sockets[0].getsockname()[1])

    async def close(self) -> None:
        """Hangs up on everybody."""
        if self._listener is not None and self._web is not None:
            self._listener.close()
            self._web.pre_shutdown()
            await self._web.shutdown(SHUTDOWN_SECONDS)
            await self._listener.wait_closed()
            self._listener = self._web = None

    async def _answer(self, request: web.BaseRequest) -> web.Response:
        if request.method not in ("GET", "HEAD"):
            return _text(405, "GET only")
        match request.path:
            case "/healthz":
                return _verdict(next((host.broken for host in self._hosts if host.broken), None))
            case "/readyz":
                unready = next((host.unready for host in self._hosts if host.unready), None)
                return _verdict(unready if self._hosts else "it does not listen yet")
            case "/metrics" if self._hosts:
                records = sum(host.records for host in self._hosts)
                page = self.metrics.page(records=records, sent=self._hosts[0].sent)
                return web.Response(body=page, headers={"content-type": CONTENT_TYPE})
            case _:
                return _text(404, "/healthz, /readyz and /metrics are here")


@asynccontextmanager
async def operating(place: tuple[str, int] | None, sink: Sink) -> AsyncIterator[tuple[Operator | None, Sink]]:
    """An operator that listens, and a sink that counts for it and hands on; neither, if there is no place for it."""
    if place is None:
        yield None, sink
        return
    operator = Operator()

    def heard(fact: Fact) -> None:
        operator.metrics(fact)
        sink(fact)

    await operator.start(*place)
    try:
        yield operator, heard
    finally:
        await operator.close()


def _verdict(why_not: str | None) -> web.Response:
    return _text(200, "ok") if why_not is None else _text(503, why_not)


def _text(status: int, text: str) -> web.Response:
    return web.Response(status=status, text=text + "\n")
