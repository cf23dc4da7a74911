"""Runs of private rounds on a network.

- ``study``      what the engines are given, what each party is told, and what comes of it
- ``virtual``    the machines on the in-memory network
- ``learner``, ``peers``   the machines on real sockets
- ``launcher``   one operating system process a peer
"""
