"""Hosts of one wire: network namespaces with an address each, joined by a bridge, or by a wire that delays and loses.

Latency and loss are ``tc netem``'s where the kernel has it, else ``lossy_wire``'s.
"""

import contextlib
import ctypes
import fcntl
import os
import shutil
import socket
import struct
import subprocess
import sys
from pathlib import Path

SUBNET = "10.213.77"
_SIOCETHTOOL, _STXCSUM, _STSO, _SGSO = 0x8946, 0x17, 0x1F, 0x24


def ip(*arguments):
    """An ``ip`` command."""
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


def why_not():
    """Why there can be no namespaces here; None if there can."""
    if shutil.which("ip") is None:
        return "needs the ip command (iproute2)"
    if os.geteuid() != 0:
        return "needs root, to make network namespaces"
    name = f"p2p-try-{os.getpid()}"
    if subprocess.run(["ip", "netns", "add", name], capture_output=True, check=False).returncode:
        return "no network namespace can be made here"
    subprocess.run(["ip", "netns", "delete", name], capture_output=True, check=False)
    return None


class Hosts:
    """So many hosts; a context manager.

    Args:
        count: How many.
        delay: Seconds that a frame takes one way; with 0 and no loss they are on a plain bridge.
        loss: Share of frames that get lost.
        seed: Of the frames that get lost.
    """

    def __init__(self, count, *, delay=0.0, loss=0.0, seed=0):
        self.count, self._delay, self._loss, self._seed = count, delay, loss, seed
        self._tag = f"p2p-{os.getpid()}-{id(self) % 10_000}"
        self._wire = None
        self._netem = False

    def name(self, index):
        """Of a host's namespace."""
        return f"{self._tag}-{index}"

    @staticmethod
    def address(index):
        """Of a host."""
        return f"{SUBNET}.{index + 1}"

    def command(self, index, *arguments):
        """Arguments that run Python on a host."""
        return ["ip", "netns", "exec", self.name(index), sys.executable, *arguments]

    def __enter__(self):
        with contextlib.ExitStack() as undo:
            undo.callback(self._remove)
            middle = self.name("wire")
            ip("netns", "add", middle)
            for i in range(self.count):
                ip("netns", "add", self.name(i))
                ip(
                    "-n",
                    self.name(i),
                    "link",
                    "add",
                    "eth0",
                    "type",
                    "veth",
                    "peer",
                    "name",
                    f"port{i}",
                    "netns",
                    middle,
                )
                ip("-n", self.name(i), "address", "add", f"{self.address(i)}/24", "dev", "eth0")
                for device in ("lo", "eth0"):
                    ip("-n", self.name(i), "link", "set", device, "up")
                ip("-n", middle, "link", "set", f"port{i}", "up")
            self._join(middle)
            undo.pop_all()
        return self

    def _join(self, middle):
        if self._delay or self._loss:
            self._netem = all(self._with_netem(i) for i in range(self.count))
            if not self._netem:
                self._start_wire(middle)
                return
        ip("-n", middle, "link", "add", "bridge0", "type", "bridge")
        ip("-n", middle, "link", "set", "bridge0", "up")
        for i in range(self.count):
            ip("-n", middle, "link", "set", f"port{i}", "master", "bridge0")

    def _with_netem(self, index):
        if shutil.which("tc") is None:
            return False
        spoiled = ["netem", "delay", f"{1000 * self._delay:g}ms", "loss", f"{100 * self._loss:g}%"]
        added = ["tc", "-n", self.name(index), "qdisc", "add", "dev", "eth0", "root", *spoiled]
        return subprocess.run(added, capture_output=True, check=False).returncode == 0

    def _start_wire(self, middle):
        for i in range(self.count):  # else a host leaves checksums and segments to a network card that is not there
            subprocess.run(self.command(i, __file__, "eth0"), check=True)
        wire = Path(__file__).with_name("lossy_wire.py")
        ports = [f"port{i}" for i in range(self.count)]
        settings = [str(self._delay), str(self._loss), str(self._seed)]
        self._wire = subprocess.Popen(
            ["ip", "netns", "exec", middle, sys.executable, str(wire), *settings, *ports],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._wire.stdout.readline() == "ready\n"

    def lost(self):
        """Frames that got lost so far; ends the wire."""
        if self._netem:
            shown = [
                subprocess.check_output(["tc", "-n", self.name(i), "-s", "qdisc"], text=True) for i in range(self.count)
            ]
            return sum(int(text.partition("dropped ")[2].partition(",")[0]) for text in shown)
        if self._wire is None:
            return 0
        return int(self._wire.communicate("end\n", timeout=10)[0].split()[1])

    def __exit__(self, *_error):
        self._remove()

    def _remove(self):
        if self._wire is not None:
            self._wire.kill()
            self._wire.communicate()
        for name in (*map(self.name, range(self.count)), self.name("wire")):
            subprocess.run(["ip", "netns", "delete", name], capture_output=True, check=False)


def _without_offload(device):
    with socket.socket() as any_socket:
        for feature in (_STXCSUM, _STSO, _SGSO):
            buffer = ctypes.create_string_buffer(struct.pack("II", feature, 0))
            request = struct.pack("16sP", device.encode(), ctypes.addressof(buffer))
            fcntl.ioctl(any_socket, _SIOCETHTOOL, request.ljust(40, b"\0"))


if __name__ == "__main__":
    _without_offload(sys.argv[1])
