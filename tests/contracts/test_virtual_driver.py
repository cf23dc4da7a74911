"""``network.virtual`` keeps the contract of a driver."""

import contextlib
import random

import pytest

from contracts.driver_contract import DriverContract, StoreFailed
from p2p_labeldp.network.virtual import VirtualNetwork
from p2p_labeldp.protocol.effects import Address, Persist


class Silent:
    """Takes messages and says nothing."""

    def __getattr__(self, _):
        return lambda *_: None

    def effects(self):
        return []


class VirtualDriver:
    """The virtual network, with its list of facts for a store."""

    unit = 1.0

    def play(self, machines, *, until, absent=(), silent=(), broken_store=False):
        network, journal = VirtualNetwork(rng=random.Random(1)), []
        names = [*machines, *absent, *silent]
        addresses = {name: Address(name.encode() * 8, name, 1) for name in names}
        persisted, owner = [], {}

        class Facts(list):
            def append(self, fact):
                durable = any(fact is one for one in persisted)
                if durable and broken_store:
                    raise StoreFailed
                journal.append(("persisted" if durable else "observed", owner[id(fact)], fact))

        network.facts = Facts()
        for name in silent:
            network.add(Silent(), addresses[name])
        for name, make in machines.items():
            machine = make(journal)
            machine.addresses = addresses
            machine.effects = self._tapped(machine, name, persisted, owner)
            network.add(machine, addresses[name])
        with contextlib.suppress(StoreFailed):  # the simulation stops there, as a process would
            network.run(until)
        return journal

    @staticmethod
    def _tapped(machine, name, persisted, owner):
        drain = machine.effects

        def effects():
            drained = drain()
            for effect in drained:
                if hasattr(effect, "fact"):
                    owner[id(effect.fact)] = name
                    if isinstance(effect, Persist):
                        persisted.append(effect.fact)
            return drained

        return effects


class TestVirtualNetwork(DriverContract):
    @pytest.fixture
    def driver(self):
        return VirtualDriver()
