"""How a place is written: one form, which reads back as itself."""

from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.network.transport import authority, format_address, parse_address


class Place(NamedTuple):
    peer_id: bytes
    host: str
    port: int


HOSTS = [
    "127.0.0.1",
    "127.250.3.9",
    "::1",
    "2001:db8::1",
    "localhost",
    "peer-7.peers.svc.cluster.local",
    "a",
    "7up",
    "run_peer_1",
]


@pytest.mark.parametrize("host", HOSTS)
@given(st.binary(min_size=32, max_size=32), st.integers(1, 65535))
def test_an_address_reads_back_as_itself(host, peer_id, port):
    place = Place(peer_id, host, port)
    assert Place(*parse_address(format_address(place))) == place


def test_an_address_has_its_id_in_hex_and_ipv6_in_brackets():
    assert format_address(Place(bytes(32), "::1", 9)) == "00" * 32 + "@[::1]:9"


@pytest.mark.parametrize(
    ("host", "port", "expected"),
    [
        ("127.0.0.1", 9000, "127.0.0.1:9000"),
        ("::1", 9000, "[::1]:9000"),
        ("peer", 80, "peer"),
        ("::1", 80, "[::1]"),
        ("peer", 443, "peer:443"),
    ],
)
def test_authorities_are_those_of_rfc_9421(host, port, expected):
    assert authority(host, port) == expected


NO_NAMES = ["", "a b", "a/b", "u@h", "a:b", "A", "é", "a..b", ".a", "a.", "-a", "a-", "a\n", "a\r\nx: y", "a?", "a#"]
NO_NAMES += ["a" * 64, ".".join(["a" * 63] * 4)]
NO_ADDRESSES = ["127.1", "1.2.3.4.5", "256.1.1.1", "01.2.3.4", "0::1", "::1%lo", "[::1]", "2130706433"]


@pytest.mark.parametrize("host", NO_NAMES + NO_ADDRESSES)
def test_hosts_that_are_none_are_refused(host):
    with pytest.raises(ConfigurationError, match="address: host"):
        authority(host, 9000)


@pytest.mark.parametrize("port", [0, -1, 65536, True])
def test_ports_that_are_none_are_refused(port):
    with pytest.raises(ConfigurationError, match=r"address: port .*1 to 65535"):
        authority("peer", port)


@given(st.one_of(st.text(max_size=120), st.from_regex(r"[0-9a-f]{64}@.{0,20}:[0-9]{0,6}", fullmatch=True)))
def test_any_text_is_an_address_or_a_clean_refusal(text):
    try:
        place = Place(*parse_address(text))
    except ConfigurationError:
        return
    assert parse_address(format_address(place)) == place
