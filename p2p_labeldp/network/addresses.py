"""Loopback addresses for the peers of one run.

Each peer gets an address of its own, 127.B.y.z, with one fixed port: binding port 0 thousands of times is slow and
exhausts ports. The second octet B is the run's; it is claimed by a listening socket held for as long as the run lives,
so two runs at once take different blocks. Where only 127.0.0.1 exists, the peers share it and get a range of ports.
"""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass

from p2p_labeldp.errors import ConfigurationError

PORT = 7741
PEERS_PER_BLOCK = 63_998  # 256 times 250 addresses, less one for the claim and one that would end in .0.2
FIRST_RANGE_PORT, LAST_RANGE_PORT = 20_000, 60_000
PORTS_IN_RANGE = LAST_RANGE_PORT - FIRST_RANGE_PORT - 2  # less the claim and the learner


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Addresses of one run.

    Args:
        claim: The socket that keeps other runs out; close it when the run is over.
        octet: Second octet, or None where all peers share 127.0.0.1.
        first_port: The port, or the first of the range.
    """

    claim: socket.socket
    octet: int | None
    first_port: int

    def address(self, index: int) -> tuple[str, int]:
        """Host and port of the ``index``-th party; the learner is 0, peers follow."""
        if self.octet is None:
            return "127.0.0.1", self.first_port + 1 + index
        high, low = divmod(index + 2, 250)  # .0.1 is the claim
        return f"127.{self.octet}.{high}.{low + 1}", self.first_port


def claim(count: int) -> Block:
    """Claims addresses for ``count`` parties.

    Raises:
        ConfigurationError: More parties than a block has addresses, or every block is taken.
    """
    if count > PEERS_PER_BLOCK:
        raise ConfigurationError(f"{count} given; {PEERS_PER_BLOCK} fit one machine", field="data.peers")
    start = os.getpid() % 253
    for i in range(253):
        octet = 2 + (start + i) % 253
        held = _listen(f"127.{octet}.0.1", PORT)
        if held is not None:
            return Block(claim=held, octet=octet, first_port=PORT)
    for first in range(FIRST_RANGE_PORT, LAST_RANGE_PORT - count, count + 1):
        held = _listen("127.0.0.1", first)
        if held is not None:
            return Block(claim=held, octet=None, first_port=first)
    raise ConfigurationError("every loopback block is taken by another run", field="network")


def _listen(host: str, port: int) -> socket.socket | None:
    held = socket.socket()
    try:
        held.bind((host, port))
        held.listen(1)
    except OSError:
        held.close()
        return None
    return held
