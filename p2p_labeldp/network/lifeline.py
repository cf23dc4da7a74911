"""Processes that die with their parent, whatever kills it."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import sys

from p2p_labeldp.errors import ConfigurationError

_PR_SET_PDEATHSIG = 1


def tie(parent: int) -> None:
    """Has the kernel kill this process when ``parent`` dies; ends at once if it is dead already.

    A fork clears the setting, so each child calls this itself; the check closes the moment between fork and call.

    Raises:
        ConfigurationError: Not on Linux, which alone offers this.
    """
    if sys.platform != "linux":
        raise ConfigurationError("processes that die with their parent need Linux; use --engine virtual")
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG) failed")
    if os.getppid() != parent:
        os._exit(1)


def raise_descriptor_limit() -> int:
    """Lifts the soft limit on open files to the hard one; returns it."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard
