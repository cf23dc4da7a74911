"""Facts of one process, through the pipe that it shares with others: in order, in whole lines, and few at a time."""

import os
import select

import pytest

from p2p_labeldp import facts
from p2p_labeldp.facts import Answered, Exchanged, Rejected, Tallied
from p2p_labeldp.network import fact_pipe
from p2p_labeldp.network.fact_pipe import FactPipe, told


def exchanged(number):
    return Exchanged(peer=number, to="ab" * 8, about="Digest", sent=1, received=2)


@pytest.fixture
def writes(monkeypatch):
    """A pipe, and what each write to it was."""
    found = []
    monkeypatch.setattr(fact_pipe.os, "write", lambda fd, data: found.append((fd, data)))
    return FactPipe(7), found


def lines(*told):
    return b"".join(facts.encode(fact) + b"\n" for fact in told)


async def test_what_a_peer_did_is_written_before_it_goes_on(writes):
    pipe, found = writes
    pipe(Answered(peer=1, asker=2))
    assert found == [(7, lines(Answered(peer=1, asker=2)))]


async def test_requests_wait_for_the_next_other_fact_and_keep_their_place(writes):
    pipe, found = writes
    pipe(exchanged(1))
    pipe(exchanged(2))
    assert not found
    pipe(Answered(peer=1, asker=2))
    assert found == [(7, lines(exchanged(1), exchanged(2), Answered(peer=1, asker=2)))]


async def test_no_write_is_longer_than_those_that_never_mix(writes):
    pipe, found = writes
    told = [exchanged(i) for i in range(200)]
    for fact in told:
        pipe(fact)
    pipe(Rejected(peer=1, about="x" * facts.MAX_ABOUT))
    assert all(len(data) <= select.PIPE_BUF for _, data in found)
    assert 2 < len(found) < 20
    assert b"".join(data for _, data in found) == lines(*told, Rejected(peer=1, about="x" * facts.MAX_ABOUT))


async def test_requests_don_t_wait_for_ever(monkeypatch):
    monkeypatch.setattr(fact_pipe, "WAIT_SECONDS", 0.0)
    read_fd, write_fd = os.pipe()
    pipe = FactPipe(write_fd)
    pipe(exchanged(1))
    ready = []
    while not ready:
        await fact_pipe.asyncio.sleep(0)
        ready, _, _ = select.select([read_fd], [], [], 0)
    assert os.read(read_fd, select.PIPE_BUF) == lines(exchanged(1))
    os.close(read_fd)
    os.close(write_fd)


async def test_what_waits_at_the_end_is_written_once(writes):
    pipe, found = writes
    pipe(exchanged(1))
    pipe.flush()
    pipe.flush()
    assert found == [(7, lines(exchanged(1)))]


def tallied(members, peer=1):
    """Of a roster of so many, a bit of each."""
    bits = bytes(i % 256 for i in range(members // 8))
    return Tallied(peer=peer, ready=bits, holding=bits[::-1])


@pytest.mark.parametrize("members", [12_000, 13_000, 30_000, 100_000])
async def test_a_fact_of_any_length_arrives_after_what_waited_and_before_what_comes(writes, members):
    pipe, found = writes
    facts_told = [exchanged(1), tallied(members), Answered(peer=1, asker=2)]
    for fact in facts_told:
        pipe(fact)
    written = [data for _, data in found]
    assert all(len(data) <= select.PIPE_BUF for data in written)
    assert any(data[:1].isdigit() for data in written) == (members > 12_000)  # 12,000 just fit into one
    assert list(told(b"".join(written).splitlines(keepends=True))) == facts_told


async def test_pieces_of_several_writers_are_put_together_whatever_stands_between(writes, monkeypatch):
    pipe, found = writes
    of_writers = []
    for process in (7, 70, 700):
        found.clear()
        monkeypatch.setattr(fact_pipe.os, "getpid", lambda process=process: process)
        pipe(tallied(30_000, peer=process))
        of_writers.append([data for _, data in found])
    mixed = [piece for pieces in zip(*of_writers, strict=True) for piece in pieces]
    mixed.insert(4, lines(Answered(peer=1, asker=2)))
    assert list(told(mixed)) == [
        Answered(peer=1, asker=2),
        *(tallied(30_000, peer=process) for process in (7, 70, 700)),
    ]


async def test_who_is_killed_halfway_leaves_nothing_to_the_next_with_its_process_id(writes):
    pipe, found = writes
    pipe(tallied(30_000))
    pieces = [data for _, data in found]
    assert len(pieces) == 3
    assert list(told([*pieces[:2], *pieces])) == [tallied(30_000)]
    assert list(told(pieces[:2])) == []
