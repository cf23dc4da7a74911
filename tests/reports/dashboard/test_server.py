"""The page goes to whoever asks under a name of this machine; viewers come late, lag, leave and come back."""

import asyncio
import socket
from concurrent.futures import Future
from contextlib import asynccontextmanager, suppress

import aiohttp
import msgspec
import pytest
from free_ports import free_ports

from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.facts import Joined, Listening, Opened
from p2p_labeldp.network.pace import phases
from p2p_labeldp.reports.dashboard import server
from p2p_labeldp.reports.dashboard.board import Board, Kind
from p2p_labeldp.reports.dashboard.server import Dashboard, addressed, is_loopback, serving
from p2p_labeldp.results import Accuracy, Result, ViewResult

EVENT_BYTES = 500_000
RESULT = Result(
    peers=3,
    outcomes={"reported": 3},
    clusters=[],
    views=[ViewResult(view="learner", epsilon=0.99951, delta=0.0011111, method="exact")],
    accuracy=Accuracy(private=0.5, non_private=None, majority=None),
    seconds={"total": 2.0},
    messages=1,
    bytes=1,
    config_hash="",
    seed=None,
    versions={},
)


@pytest.fixture(autouse=True)
def _in_no_hurry(monkeypatch):
    """A busy machine is late: nothing is told because of the time that passed, and the end is waited for."""
    monkeypatch.setattr(server, "LOOK_SECONDS", 3600.0)
    monkeypatch.setattr(server, "FAREWELL_SECONDS", 60.0)


@asynccontextmanager
async def watched(kind=Kind.STUDY):
    """A dashboard of three peers, a session and its address."""
    dashboard = Dashboard(Board(title="tiny", kind=kind), host="127.0.0.1")
    port = dashboard.start(0)
    dashboard.playing(peers=3, clusters=1, engine="processes", pace=phases(peers=3, engine="processes"))
    try:
        async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as session:
            yield dashboard, session
    finally:
        await asyncio.to_thread(dashboard.close)


class Viewer:
    """Reads events."""

    def __init__(self, response):
        self._response = response
        self.cells, self.last_id, self.sent = {}, "", []

    async def event(self):
        """Name and data of the next one; None at the end of the stream."""
        fields = {}
        while line := (await self._response.content.readline()).decode():
            if line == "\n" and "event" in fields:
                break
            name, _, value = line.rstrip("\n").partition(": ")
            fields[name] = value
        if not line:
            return None
        if fields["event"] == "state":
            changes = msgspec.json.decode(fields["data"])
            self.cells |= changes["cells"]
            self.last_id = fields["id"]
            self.sent.append(changes)
        return fields["event"]

    async def until(self, condition):
        while not condition(self.cells):
            assert await self.event() == "state"
        return self


@asynccontextmanager
async def viewing(session, **headers):
    async with session.get("/events", headers=headers) as response:
        assert response.status == 200
        yield Viewer(response)


def joined(count):
    return lambda cells: cells.get("steps", {}).get("joined") == count


async def test_the_page_is_served_with_its_policy_and_nothing_else_is():
    async with watched() as (_, session):
        async with session.get("/") as page:
            assert page.status == 200
            assert page.headers["Content-Security-Policy"].startswith("default-src 'none'; script-src 'sha256-")
            assert (page.content_type, page.headers["Cache-Control"]) == ("text/html", "no-store")
            assert "Access-Control-Allow-Origin" not in page.headers
            assert b"<h1" in await page.read()
        for method, path, status in (("POST", "/", 405), ("GET", "/facts.jsonl", 404), ("HEAD", "/", 200)):
            async with session.request(method, path) as other:
                assert other.status == status


async def test_another_site_gets_neither_page_nor_events_under_a_name_of_its_own():
    async with watched() as (_, session):
        for path in ("/", "/events"):
            async with session.get(path, headers={"Host": "evil.example:7880"}) as refused:
                assert refused.status == 421
        async with session.get("/", headers={"Host": "localhost:9000"}) as tunnel:  # the control
            assert tunnel.status == 200
        async with session.get("/events", headers={"Sec-Fetch-Site": "cross-site"}) as refused:
            assert refused.status == 403
        async with viewing(session, **{"Sec-Fetch-Site": "same-origin"}) as viewer:
            assert await viewer.event() == "state"


@pytest.mark.parametrize(
    ("header", "own", "answered"),
    [
        ("127.0.0.1:7880", "127.0.0.1", True),
        ("127.0.0.1", "127.0.0.1", True),
        ("[::1]:7880", "::1", True),
        ("LOCALHOST:1", "127.0.0.1", True),
        ("10.1.2.3:80", "0.0.0.0", True),
        ("host.lan:80", "host.lan", True),
        ("host.lan:80", "0.0.0.0", False),
        ("localhost.evil.example:80", "127.0.0.1", False),
        ("127.0.0.1.evil.example", "127.0.0.1", False),
        ("", "127.0.0.1", False),
    ],
)
def test_names_are_answered_that_nobody_else_can_let_point_here(header, own, answered):
    assert addressed(header, own) is answered


async def test_several_viewers_see_what_happens_and_a_late_one_sees_it_all_at_once():
    async with watched() as (dashboard, session), viewing(session) as first, viewing(session) as second:
        await first.event()
        dashboard.happened(Opened(peer="learner", id="aa", deadlines=(1000.0, 2000.0, 3000.0, 4000.0)))
        for peer in range(3):
            dashboard.happened(Joined(peer=peer, at=1.0, cluster=0))
        await first.until(joined(3))
        await second.until(joined(3))
        async with viewing(session) as late:
            assert await late.event() == "state"
            assert late.cells == first.cells == second.cells
            assert late.cells["phase"]["name"] == "join"


async def test_a_viewer_that_comes_back_is_sent_what_it_missed_and_after_another_round_everything():
    async with watched() as (dashboard, session):
        async with viewing(session) as viewer:
            await viewer.event()
        dashboard.happened(Joined(peer=0, at=1.0, cluster=0))
        async with viewing(session, **{"Last-Event-ID": viewer.last_id}) as again:
            await again.event()
            assert not again.sent[0]["fresh"]
            assert "round" not in again.cells
            assert joined(1)(again.cells)
        for stranger in ("0123.4", "", f"{viewer.last_id}x", viewer.last_id.replace(".", ".-")):
            async with viewing(session, **{"Last-Event-ID": stranger}) as other:
                await other.event()
                assert other.sent[0]["fresh"]
                assert "round" in other.cells


async def test_the_end_is_told_last_with_the_guarantee_rounded_up():
    async with watched() as (dashboard, session), viewing(session) as viewer:
        await viewer.event()
        dashboard.learning()
        dashboard.finished(RESULT)
        await asyncio.to_thread(dashboard.close)
        while (name := await viewer.event()) == "state":
            pass
        assert name == "end"
        assert await viewer.event() is None
        assert viewer.cells["phase"]["name"] == "over"
        assert viewer.cells["result"]["guarantee"] == [["learner alone", "1.000", "1.12e-3"]]
        assert "protects labels, not features" in viewer.cells["result"]["remarks"]


async def test_a_command_that_ends_without_a_result_tells_its_viewers():
    async with watched() as (dashboard, session), viewing(session) as viewer:
        await viewer.event()
        await asyncio.to_thread(dashboard.close)
        while await viewer.event() == "state":
            pass
        assert viewer.cells["phase"]["name"] == "broken off"


async def test_viewers_are_bounded_in_number(monkeypatch):
    monkeypatch.setattr(server, "MAX_VIEWERS", 1)
    async with watched() as (_, session), viewing(session) as viewer:
        await viewer.event()
        async with session.get("/events") as refused:
            assert refused.status == 503


@pytest.mark.parametrize("room", [True, False])
async def test_connections_that_say_nothing_hold_no_more_than_a_few_descriptors_and_keep_nobody_out(room, monkeypatch):
    monkeypatch.setattr(server, "MAX_CONNECTIONS", 4 if room else 10**6)
    async with watched() as (_, session), viewing(session) as viewer:
        await viewer.event()
        held = [await asyncio.open_connection("127.0.0.1", session._base_url.port) for _ in range(8)]
        async with session.get("/") as page:
            assert page.status == 200
        for reader, _ in held[:4] if room else []:
            with suppress(ConnectionError):
                assert await reader.read() == b""
        assert any(reader.at_eof() or reader.exception() for reader, _ in held) is room
        assert not viewer._response.content.at_eof()
        for _, writer in held:
            writer.close()


async def test_a_version_of_thousands_of_digits_is_none():
    async with watched() as (_, session), viewing(session) as viewer:
        await viewer.event()
        token = viewer.last_id.partition(".")[0]
        async with viewing(session, **{"Last-Event-ID": f"{token}.{'1' * 5000}"}) as other:
            await other.event()
            assert other.sent[0]["fresh"]


def connected(port):
    """A viewer that reads nothing, with as small a buffer as the system gives."""
    slow = socket.socket()
    slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
    slow.connect(("127.0.0.1", port))
    slow.sendall(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
    return slow


async def enter(dashboard, session):
    """A viewer that reads nothing: its socket, its task, and what is written to it."""
    before, opened = set(dashboard._viewers), Future()
    tell = dashboard._tell

    async def telling(request):
        opened.set_result(request.transport)
        return await tell(request)

    dashboard._tell = telling
    slow = connected(session._base_url.port)
    transport = await asyncio.wrap_future(opened)
    dashboard._tell = tell
    (task,) = set(dashboard._viewers) - before
    return slow, task, transport


def change(dashboard, number):
    """A change so large that few fill what the system buffers."""
    with dashboard._lock:
        dashboard._board._set("large", f"{number} " + EVENT_BYTES * "x")


def changed(number):
    return lambda cells: cells.get("large", "").startswith(f"{number} ")


async def test_a_viewer_that_takes_nothing_holds_nobody_up_and_costs_one_event(monkeypatch):
    monkeypatch.setattr(server, "TELL_SECONDS", 0.001)
    async with watched() as (dashboard, session), viewing(session) as quick:
        await quick.event()
        slow, task, transport = await enter(dashboard, session)
        with slow:
            for number in range(40):
                change(dashboard, number)
                await quick.until(changed(number))
            assert len(quick.sent) >= 40
            assert 0 < transport.get_write_buffer_size() < 2 * EVENT_BYTES
            assert not task.done()


class OfOne:
    """Seconds that one viewer has, added to the time when they begin. The others have all that a busy machine takes."""

    task = None

    def __radd__(self, now):
        return now + (0.05 if asyncio.current_task() is self.task else 3600.0)


async def test_a_viewer_that_takes_nothing_for_long_is_hung_up_on(monkeypatch):
    patience = OfOne()
    monkeypatch.setattr(server, "TELL_SECONDS", 0.001)
    monkeypatch.setattr(server, "SLOW_SECONDS", patience)
    async with watched() as (dashboard, session), viewing(session) as quick:
        await quick.event()
        slow, task, transport = await enter(dashboard, session)
        patience.task = task
        with slow:
            number = 0
            while not task.done():  # its buffers have to be full first
                number += 1
                change(dashboard, number)
                await quick.until(changed(number))
            assert transport.is_closing()
            assert len(dashboard._viewers) == 1


def test_a_command_does_not_wait_for_viewers():
    with serving(("127.0.0.1", *free_ports(1)), title="tiny", kind=Kind.STUDY, say=lambda _: None) as dashboard:
        dashboard.happened(Listening(peer=0))
    assert dashboard._thread is None


def test_a_taken_port_is_an_error_where_it_was_asked_for_and_another_one_is_taken_where_not(monkeypatch):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with (
            pytest.raises(ConfigurationError, match=f"--dashboard: 127.0.0.1:{port} can't be listened on"),
            serving(("127.0.0.1", port), title="tiny", kind=Kind.STUDY, say=print),
        ):
            pytest.fail("it listens")
        monkeypatch.setattr(server, "PORT", port)
        said = []
        with serving(None, title="tiny", kind=Kind.STUDY, say=said.append):
            pass
    assert len(said) == 1
    assert said[0].startswith("dashboard: http://127.0.0.1:")
    assert f":{port}/" not in said[0]


def test_it_is_said_where_others_can_watch():
    said = []
    with serving(("0.0.0.0", *free_ports(1)), title="tiny", kind=Kind.STUDY, say=said.append):
        pass
    assert said[0].startswith("note: whoever reaches 0.0.0.0:")
    assert [is_loopback(host) for host in ("127.0.0.1", "::1", "localhost", "0.0.0.0", "10.0.0.1", "name")] == [
        True, True, True, False, False, False,
    ]  # fmt: skip
