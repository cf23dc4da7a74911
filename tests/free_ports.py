"""Ports for the processes of a test."""

import socket

_RESERVED = []


def free_ports(count):
    """So many that nobody listens on, and that nobody is given by chance for as long as this process lives.

    Each is kept bound, and not listened on: the kernel then chooses it for nobody, neither for who asks for any port
    nor for who connects, and a server that asks for it and sets SO_REUSEADDR, as ours do, gets it.
    """
    held = [socket.socket() for _ in range(count)]
    for one in held:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        one.bind(("127.0.0.1", 0))
    _RESERVED.extend(held)
    return [one.getsockname()[1] for one in held]
