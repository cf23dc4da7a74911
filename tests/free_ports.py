"""Ports for the processes of a test."""

import itertools
import os
import socket

FIRST, EACH = 10_000, 1_000
"""A system gives ports from 32768 on, or higher, to clients and to whoever listens on any: one of those, free now, may
have gone to somebody else's client by the time that the test's process listens. Here each worker has its own."""
_WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % 20
_ports = itertools.cycle(range(FIRST + _WORKER * EACH, FIRST + (_WORKER + 1) * EACH))
for _ in range(os.getpid() % EACH):  # another run at the same time starts elsewhere
    next(_ports)


def free_ports(count):
    """So many that nobody listens on, and that nobody is given but who asks here."""
    found = []
    while len(found) < count:
        port = next(_ports)
        try:
            socket.create_server(("127.0.0.1", port)).close()
        except OSError:
            continue
        found.append(port)
    return found
