"""Two runs on one machine never share an address, and nor do two peers of one run."""

import contextlib
import ipaddress
import socket

import pytest
from free_ports import free_ports

from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.network import addresses
from p2p_labeldp.network.addresses import PEERS_PER_BLOCK, claim


@pytest.fixture
def claimed(monkeypatch):
    """``claim``, given back at the end; by a port that rounds of other tests don't claim addresses by."""
    monkeypatch.setattr(addresses, "PORT", free_ports(1)[0])
    with contextlib.ExitStack() as held:

        def take(count):
            block = claim(count)
            held.callback(block.claim.close)
            return block

        yield take


def places(block, count):
    return [block.address(i) for i in range(count)]


def test_two_claims_take_different_blocks(claimed):
    first, second = claimed(300), claimed(300)
    assert not set(places(first, 300)) & set(places(second, 300))
    assert first.octet != second.octet


def test_a_block_that_is_given_back_may_be_taken_again(claimed):
    first = claimed(3)
    held = first.address(0)
    first.claim.close()
    assert claimed(3).address(0) == held


def test_peers_addresses_are_distinct_loopback_addresses_with_one_port(claimed):
    block = claimed(5000)
    found = places(block, 5000)
    assert len(set(found)) == 5000
    assert all(ipaddress.ip_address(host).is_loopback for host, _ in found)
    assert {port for _, port in found} == {addresses.PORT}
    assert block.claim.getsockname()[0] not in {host for host, _ in found}


def test_an_address_can_be_bound_beside_the_claim(claimed):
    block = claimed(300)
    for index in (0, 1, 247, 248, 249, 299):
        with socket.socket() as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as servers do: connections may linger
            listener.bind(block.address(index))


def test_the_last_peer_of_a_full_block_has_a_valid_address(claimed):
    host, _ = claimed(PEERS_PER_BLOCK).address(PEERS_PER_BLOCK - 1)
    ipaddress.ip_address(host)


def test_too_many_parties_are_refused(claimed):
    claimed(PEERS_PER_BLOCK)
    with pytest.raises(ConfigurationError, match=r"^data\.peers: "):
        claim(PEERS_PER_BLOCK + 1)


def test_where_only_one_address_exists_peers_share_it_on_ports_of_their_own(claimed, monkeypatch):
    listen = addresses._listen
    monkeypatch.setattr(addresses, "_listen", lambda host, port: listen(host, port) if host == "127.0.0.1" else None)
    first, second = claimed(50), claimed(50)
    found = places(first, 50) + places(second, 50)
    assert {host for host, _ in found} == {"127.0.0.1"}
    assert len(set(found)) == 100
    claims = {block.claim.getsockname() for block in (first, second)}
    assert not claims & set(found)


def test_when_every_block_is_taken_it_says_so(monkeypatch):
    monkeypatch.setattr(addresses, "_listen", lambda host, port: None)
    with pytest.raises(ConfigurationError, match=r"^network: "):
        claim(3)
