"""Sends the page and what changes on it, from a thread of its own: the round waits for no viewer.

    GET /         the page
    GET /events   server-sent events (HTML standard, section 9.2): ``state`` with cells of the board, ``end`` at the end

A viewer is told at most every ``TELL_SECONDS`` what changed since it was last told, and not again before it took that:
a slow one costs what one event costs. An event's id names its version, so whoever comes back gets what it missed.

Nothing here is signed or encrypted: it listens on the loopback unless told otherwise. There a web page of somebody
else's could still reach it under a name of its own that it lets point here (DNS rebinding); so of names only the one
that it listens on and ``localhost`` are answered, and numbers, which nobody can let point elsewhere.
"""

from __future__ import annotations

import asyncio
import ipaddress
import os
import re
import secrets
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import msgspec
from aiohttp import web

from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.facts import Fact
from p2p_labeldp.network.transport import authority
from p2p_labeldp.reports.dashboard.board import Board, Kind
from p2p_labeldp.reports.dashboard.closing import closing_of
from p2p_labeldp.reports.dashboard.page import page
from p2p_labeldp.reports.dashboard.resources import look
from p2p_labeldp.results import Result

if TYPE_CHECKING:
    from p2p_labeldp.network.host import Host
    from p2p_labeldp.network.pace import Pace

LOOPBACK = "127.0.0.1"
PORT = 7880
"""Where it listens if nobody says where; elsewhere if that is taken."""
MAX_VIEWERS = 16
MAX_CONNECTIONS = 64  # the round's own descriptors are of the same process
TELL_SECONDS = 0.25
HEARTBEAT_SECONDS = 10.0  # without a change; a viewer that has gone is noticed by writing to it
SLOW_SECONDS = 30.0  # in which a viewer has to take what it is sent
RETRY_MILLISECONDS = 1000  # before a viewer that lost its connection comes back
FAREWELL_SECONDS = 0.5  # for viewers to take the end
LOOK_SECONDS, LOOK_SHARE = 1.0, 0.02  # between two looks at resources, and how much of a core they may take

_HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class _Server(web.Server):
    """Of whose connections a further one takes the place of the oldest that no viewer has.

    Args:
        answer: To a request.
        viewers: Of each viewer its connection.
        options: Of the server.
    """

    def __init__(
        self,
        answer: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]],
        viewers: Mapping[asyncio.Task[None], web.RequestHandler],
        **options: Any,
    ) -> None:
        super().__init__(answer, **options)
        self._watching = viewers

    def connection_made(self, handler: web.RequestHandler, transport: asyncio.Transport) -> None:
        super().connection_made(handler, transport)
        others = [one for one in self.connections if one is not handler and one not in self._watching.values()]
        for one in others[: max(len(self.connections) - MAX_CONNECTIONS, 0)]:
            if one.transport is not None:
                one.transport.abort()


class Dashboard:
    """The page of one round. Made by :func:`serving`, and told what happens by whoever plays: a ``Progress``.

    Args:
        board: What is shown.
        host: Address or name to listen on.
    """

    def __init__(self, board: Board, *, host: str) -> None:
        self._board = board
        self._host = host
        self._lock = threading.Lock()  # of the board: one thread plays, another one serves
        self._token = secrets.token_hex(8)  # a version is one of this command's
        self._viewers: dict[asyncio.Task[None], web.RequestHandler] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop = asyncio.Event()
        self._thread: threading.Thread | None = None
        self._hosts: list[Host] = []
        self._spent = 0.0, 0.0  # CPU seconds of the processes, and when

    # -- what is told ----------------------------------------------------------------------------------------------

    def playing(self, *, peers: int, clusters: int, engine: str, pace: Pace) -> None:
        """The round begins."""
        d = pace.deadlines()
        with self._lock:
            self._board.playing(peers=peers, clusters=clusters, ends=(d.join, d.exchange, d.closing, d.report))

    def happened(self, fact: Fact) -> None:
        """A fact arrived."""
        records = sum(host.records for host in self._hosts)  # here: a host is its own thread's
        with self._lock:
            self._board.hear(fact, time.monotonic())
            if self._hosts:
                self._board.know(records)

    def watch(self, host: Host) -> None:
        """A party whose directory is shown, as far as its size."""
        self._hosts.append(host)

    def learning(self) -> None:
        """The round is over; models are trained."""
        with self._lock:
            self._board.training()

    def finished(self, result: Result) -> None:
        """What came of it, to stay on the page."""
        if self._viewers:
            self._look()
        with self._lock:
            self._board.finish(closing_of(result))

    # -- the thread ------------------------------------------------------------------------------------------------

    def start(self, port: int) -> int:
        """Listens, on any port if ``port`` is 0; returns the port.

        Raises:
            OSError: The address can't be listened on.
        """
        started: Future[int] = Future()
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._serve(port, started)), name="dashboard", daemon=True
        )
        self._thread.start()
        return started.result()

    def close(self) -> None:
        """Tells viewers that this was all, and is gone."""
        with self._lock:
            self._board.break_off()
        if self._thread is not None and self._loop is not None:
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join()
        self._thread = None

    async def _serve(self, port: int, started: Future[int]) -> None:
        self._loop = loop = asyncio.get_running_loop()
        server = _Server(self._answer, self._viewers, access_log=None)
        try:
            listener = await loop.create_server(server, self._host, port)
        except OSError as error:
            started.set_exception(error)
            return
        looking = loop.create_task(self._keep_looking())
        started.set_result(int(listener.sockets[0].getsockname()[1]))
        await self._stop.wait()
        looking.cancel()
        listener.close()
        if self._viewers:
            await asyncio.wait(self._viewers, timeout=FAREWELL_SECONDS)
        server.pre_shutdown()
        await server.shutdown(0.0)
        await listener.wait_closed()

    # -- resources -------------------------------------------------------------------------------------------------

    async def _keep_looking(self) -> None:
        """While somebody watches. The more processes, the longer the pause."""
        while True:
            took = await asyncio.to_thread(self._look) if self._viewers else 0.0
            await asyncio.sleep(max(LOOK_SECONDS, took / LOOK_SHARE))

    def _look(self) -> float:
        """Returns the CPU seconds that it took."""
        began = time.thread_time()
        usage = look(os.getpid())
        (spent, at), now = self._spent, time.monotonic()
        if now - at >= LOOK_SECONDS / 2:
            self._spent = usage["cpu_seconds"], now
            if at:
                usage["busy"] = max(usage["cpu_seconds"] - spent, 0.0) / (now - at)
        with self._lock:
            self._board.take({**usage, "cores": os.cpu_count() or 1})
        return time.thread_time() - began

    # -- answers ---------------------------------------------------------------------------------------------------

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        if not addressed(request.headers.get("Host", ""), self._host):
            return _text(421, "ask for this page by the number of its address, or have it listen on this name")
        if request.method not in ("GET", "HEAD"):
            return _text(405, "GET only")
        match request.path:
            case "/":
                headers = {**_HEADERS, "Content-Security-Policy": page().policy}
                return web.Response(body=page().body, content_type="text/html", charset="utf-8", headers=headers)
            case "/events" if request.headers.get("Sec-Fetch-Site", "same-origin") not in ("same-origin", "none"):
                return _text(403, "events are for the page")
            case "/events" if len(self._viewers) >= MAX_VIEWERS:
                return _text(503, "too many viewers")
            case "/events" if request.method == "GET":
                task = asyncio.current_task()
                assert task is not None
                self._viewers[task] = request.protocol
                try:
                    return await self._tell(request)
                finally:
                    self._viewers.pop(task, None)
            case _:
                return _text(404, "the page is at /")

    async def _tell(self, request: web.BaseRequest) -> web.StreamResponse:
        """One viewer, until it or the round is gone. All that is kept of it is the version it has."""
        response = web.StreamResponse(headers={**_HEADERS, "Content-Type": "text/event-stream; charset=utf-8"})
        seen, quiet, ended = self._version_of(request.headers.get("Last-Event-ID", "")), 0.0, False
        with suppress(OSError, TimeoutError):
            await response.prepare(request)
            await response.write(f"retry: {RETRY_MILLISECONDS}\n\n".encode())
            while not ended:
                ended = self._stop.is_set()  # before the board is read: the last change is told
                seen, event = self._event(seen)
                if event or quiet >= HEARTBEAT_SECONDS:
                    quiet = 0.0
                    async with asyncio.timeout(SLOW_SECONDS):
                        await response.write(event or b":\n\n")
                if ended:
                    await response.write(b"event: end\ndata:\n\n")
                    await response.write_eof()
                    return response
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._stop.wait(), TELL_SECONDS)
                quiet += TELL_SECONDS
        if request.transport is not None:
            request.transport.abort()  # what it did not take is dropped
        return response

    def _version_of(self, event_id: str) -> int:
        """What a viewer has that comes back; nothing, if it saw another round."""
        token, _, version = event_id.partition(".")
        return int(version) if token == self._token and re.fullmatch("[0-9]{1,18}", version) else 0

    def _event(self, seen: int) -> tuple[int, bytes]:
        with self._lock:
            changes = self._board.since(seen, time.monotonic())
            data = msgspec.json.encode(changes) if changes.cells else b""
        return changes.version, data and b"id: %s.%d\nevent: state\ndata: %s\n\n" % (
            self._token.encode(),
            changes.version,
            data,
        )


@contextmanager
def serving(
    place: tuple[str, int] | None, *, title: str, kind: Kind, say: Callable[[str], None]
) -> Iterator[Dashboard]:
    """A dashboard while a command runs.

    Args:
        place: Host and port; if not given the loopback, and another port where the usual one is taken.
        title: Of the round.
        kind: Decides what may be shown.
        say: Is told where it is.

    Raises:
        ConfigurationError: The place can't be listened on.
    """
    host, port = place or (LOOPBACK, PORT)
    dashboard = Dashboard(Board(title=title, kind=kind), host=host)
    try:
        port = dashboard.start(port)
    except OSError as error:
        if place is not None:
            raise ConfigurationError(f"{host}:{port} can't be listened on: {error}", field="--dashboard") from error
        port = dashboard.start(0)
    if not is_loopback(host):
        say(f"note: whoever reaches {authority(host, port)} can watch; nothing there is signed or encrypted")
    say(f"dashboard: http://{authority(host, port)}/")
    try:
        yield dashboard
    finally:
        dashboard.close()


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach it."""
    with suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost"


def addressed(header: str, own: str) -> bool:
    """Whether a Host field names this server as somebody would who means it."""
    host, colon, port = header.rpartition(":")
    if not colon or not port.isdigit():  # without a port; the port itself is another one behind a tunnel
        host = header
    host = host.lower().removeprefix("[").removesuffix("]")
    with suppress(ValueError):
        ipaddress.ip_address(host)
        return True
    return host in ("localhost", own.lower())


def _text(status: int, text: str) -> web.Response:
    return web.Response(status=status, text=text + "\n", headers=_HEADERS)
