"""A command hears SIGTERM from its first moment to its last, and once is enough."""

import asyncio
import os
import signal

import pytest

from p2p_labeldp.network.stopping import Stopping


def tell(number=signal.SIGTERM):
    os.kill(os.getpid(), number)


def test_told_before_its_loop_runs_a_command_ends_at_once():
    async def run(stopping):
        await stopping.event().wait()

    with Stopping() as stopping:
        tell()
        assert stopping.asked
        asyncio.run(run(stopping))


def test_told_while_it_waits_a_command_wakes_up():
    async def run(stopping):
        asyncio.get_running_loop().call_soon(tell)
        await stopping.event().wait()

    with Stopping() as stopping:
        asyncio.run(run(stopping))


def test_told_again_and_after_its_loop_is_closed_nothing_breaks():
    async def run(stopping):
        stopping.event()

    with Stopping() as stopping:
        asyncio.run(run(stopping))
        tell()
        tell()
        assert stopping.asked


def test_a_second_interrupt_interrupts():
    with Stopping() as stopping:
        tell(signal.SIGINT)
        assert stopping.asked
        with pytest.raises(KeyboardInterrupt):
            tell(signal.SIGINT)


def test_afterwards_signals_mean_what_they_meant_before():
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    with Stopping():
        assert signal.getsignal(signal.SIGTERM) not in before
    assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == before
