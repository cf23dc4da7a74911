"""Ports for the processes of a test."""

import socket


def free_ports(count):
    """So many that nobody listens on; they are free again when this returns, so another may be quicker."""
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in held]
    for one in held:
        one.close()
    return ports
