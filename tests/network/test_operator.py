"""What an operator is told: health, readiness, numbers; on an address of its own, and nothing about any one peer."""

import asyncio
import re

import aiohttp
import pytest
from protocol.little_round import collector, keys, peer, record

from p2p_labeldp.crypto.keys import Keys
from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.facts import Accepted, Answered, Asked, Ended, Joined, Outcome, Reason, Rejected
from p2p_labeldp.network.host import Host
from p2p_labeldp.network.http import HttpClient
from p2p_labeldp.network.metrics import Metrics
from p2p_labeldp.network.operator import operating
from p2p_labeldp.network.transport import Traffic

PLACE = ("127.0.0.1", 0)


class Watched:
    """An operator's view of one machine."""

    def __init__(self, operator, session, port):
        self.operator, self._session, self._url = operator, session, f"http://127.0.0.1:{port}"

    async def get(self, path, method="GET"):
        async with self._session.request(method, self._url + path) as response:
            return response.status, (await response.text()).strip()


async def watching(test, store=lambda _: None):
    """Runs ``test`` with a host that has no machine yet and its operator."""
    async with operating(PLACE, lambda _: None) as (operator, sink), HttpClient() as client:
        host = Host(key=Keys(b"1" * 32).signing_key, client=client, sink=sink, store=store)
        await host.listen("127.0.0.1", 0)
        port = operator._listener.sockets[0].getsockname()[1]
        async with aiohttp.ClientSession() as session:
            try:
                await test(host, Watched(operator, session, port))
            finally:
                await host.close()


async def test_a_peer_is_ready_when_it_has_a_round_and_knows_a_mate_and_healthy_all_along():
    async def test(host, operator):
        assert await operator.get("/readyz") == (503, "it does not listen yet")
        operator.operator.watch(host)
        assert await operator.get("/readyz") == (503, "no round is open")
        machine = peer()
        host.start(machine, elapsed=0.0)
        assert await operator.get("/readyz") == (503, "no mate is known")  # the directory holds its own record alone
        assert await operator.get("/healthz") == (200, "ok")
        machine.directory.absorb((record(2),), 1.0)
        assert await operator.get("/readyz") == (200, "ok")
        host.stop()
        assert await operator.get("/readyz") == (503, "the round is over")
        assert await operator.get("/healthz") == (200, "ok")

    await watching(test)


async def test_a_learner_is_ready_when_its_round_is_open():
    async def test(host, operator):
        operator.operator.watch(host)
        assert (await operator.get("/readyz"))[0] == 503
        host.start(collector(), elapsed=0.0)
        assert await operator.get("/readyz") == (200, "ok")

    await watching(test)


async def test_a_peer_whose_disk_takes_nothing_is_neither_healthy_nor_ready():
    def full(_fact):
        raise OSError(28, "No space left on device")

    async def test(host, operator):
        operator.operator.watch(host)
        with pytest.raises(OSError, match="No space"):
            host.start(peer(), elapsed=0.0)
        assert (await operator.get("/healthz"))[0] == 503
        status, why = await operator.get("/readyz")
        assert (status, "No space left" in why) == (503, True)

    await watching(test, store=full)


async def test_what_is_not_there_is_not_found_and_nothing_can_be_changed():
    async def test(host, operator):
        operator.operator.watch(host)
        assert (await operator.get("/"))[0] == 404
        assert (await operator.get("/p2p/v1"))[0] == 404
        assert (await operator.get("/healthz", method="POST"))[0] == 405

    await watching(test)


async def test_numbers_are_told_in_prometheus_format_without_naming_anybody():
    async def test(host, operator):
        operator.operator.watch(host)
        host.start(peer(), elapsed=0.0)
        status, page = await operator.get("/metrics")
        assert status == 200
        assert 'p2p_labeldp_steps_total{step="joined"} 1.0' in page
        assert "p2p_labeldp_directory_records 1.0" in page
        assert keys(1).peer_id.hex() not in page

    await watching(test)


def page_after(*facts):
    metrics = Metrics()
    for fact in facts:
        metrics(fact)
    text = metrics.page(records=3, sent=Traffic(messages_sent=5, bytes_sent=70)).decode()
    return "\n".join(line for line in text.splitlines() if not re.search(r"_created\b", line))


def test_no_label_and_no_number_of_asks_can_be_read_off_the_page():
    asked = [Answered(peer=1, asker=i) for i in range(5)]
    assert page_after(*asked) == page_after()
    assert page_after(Accepted(peer=1, cluster=0, label=0)) == page_after(Accepted(peer=2, cluster=1, label=1))
    assert page_after(Asked(peer=1, mate=2)) == page_after(Asked(peer=1, mate=1))
    assert page_after(Joined(peer=1, cluster=0)) != page_after()  # the control: what happens is counted


def test_outcomes_and_refusals_are_counted():
    page = page_after(
        Rejected(peer=1, about="x"),
        Ended(peer=1, outcome=Outcome.ABSTAINED, reason=Reason.NOT_READY),
        Accepted(peer=1, cluster=0, label=1),
    )
    assert 'p2p_labeldp_rounds_ended_total{outcome="abstained",reason="not_ready"} 1.0' in page
    assert "p2p_labeldp_messages_rejected_total 1.0" in page
    assert "p2p_labeldp_reports_accepted_total 1.0" in page
    assert "p2p_labeldp_requests_sent 5.0" in page


async def test_an_address_in_use_is_a_configuration_error():
    server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        with pytest.raises(ConfigurationError, match="--operator"):
            async with operating(("127.0.0.1", port), lambda _: None):
                pytest.fail("it listens")
    finally:
        server.close()
        await server.wait_closed()


async def test_without_a_place_there_is_no_operator():
    heard = []
    async with operating(None, heard.append) as (operator, sink):
        assert operator is None
        sink("told")
    assert heard == ["told"]
