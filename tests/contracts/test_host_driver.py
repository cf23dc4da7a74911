"""``network.host`` keeps the contract of a driver, over real sockets."""

import asyncio
import contextlib
import logging
import socket

import pytest
from network.over_http.wire import until as until_true

from contracts.driver_contract import DriverContract, StoreFailed
from p2p_labeldp.crypto.keys import Keys
from p2p_labeldp.network import loops
from p2p_labeldp.network.host import Host
from p2p_labeldp.network.http import HttpClient
from p2p_labeldp.protocol.effects import Address


class HostDriver:
    """One asyncio host a machine, all in one loop, on loopback."""

    unit = 0.25

    def __init__(self, parties):
        self._parties = parties

    def play(self, machines, *, until, absent=(), silent=(), broken_store=False):
        journal = []
        loops.run(self._play(journal, machines, until, absent, silent, broken_store), parties=self._parties)
        return journal

    async def _play(self, journal, machines, until, absent, silent, broken_store):
        keys = {name: Keys(name.encode().ljust(32)) for name in (*machines, *absent, *silent)}
        places = dict.fromkeys(absent, ("127.0.0.1", 1))  # nobody listens on port 1
        servers = []
        for name in silent:
            servers.append(socket.create_server(("127.0.0.1", 0)))  # the kernel takes what comes; nobody reads it
            places[name] = servers[-1].getsockname()
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _loop, context: errors.append(context.get("exception")))
        errors = []
        async with HttpClient() as client:
            hosts = {}
            for name in machines:
                stored = []

                def store(fact, name=name, stored=stored):
                    if broken_store:
                        raise StoreFailed
                    stored.append(fact)
                    journal.append(("persisted", name, fact))

                def sink(fact, name=name, stored=stored):
                    if not any(fact is one for one in stored):
                        journal.append(("observed", name, fact))

                hosts[name] = Host(key=keys[name].signing_key, client=client, sink=sink, store=store)
                places[name] = ("127.0.0.1", await hosts[name].listen("127.0.0.1", 0))
            addresses = {name: Address(keys[name].peer_id, *place) for name, place in places.items()}
            for name, make in machines.items():
                machine = make(journal)
                machine.addresses = addresses
                with contextlib.suppress(StoreFailed):
                    hosts[name].start(machine, elapsed=0.0)
            await asyncio.sleep(until)
            # A busy machine is late: all that was to happen by then happens.
            await until_true(lambda: not any(host._tasks or _rings_by(host, until) for host in hosts.values()))
            for host in hosts.values():
                await host.close()
        for server in servers:
            server.close()
        assert all(isinstance(error, StoreFailed) for error in errors), errors


def _rings_by(host, moment):
    return host._alarm is not None and host._due <= moment


class TestHost(DriverContract):
    @pytest.fixture(params=[1, 2], ids=["loop of one peer", "loop of many"])
    def driver(self, caplog, request):
        caplog.set_level(logging.CRITICAL)  # a store that fails is logged with its traceback, as it should be
        return HostDriver(request.param)
