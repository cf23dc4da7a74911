"""What is said of a kept round, for short, and what it is kept in."""

from p2p_labeldp.crypto.keys import Keys
from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.statement import Status, verify

FILES = ("config.json", "evidence.json", "facts.jsonl", "guarantee.json", "noisy.csv", "result.json")
OTHER = Keys(b"somebody else".ljust(32))


def statuses(verdict):
    return {check.name: check.status for check in verdict.checks}


def why_not(directory, **asked):
    """The names of the checks that fail."""
    return {check.name for check in verify(directory, **asked).checks if check.status is Status.FAILED}


def refused(directory):
    """Whether a directory does not hold, or is not even read."""
    try:
        return not verify(directory).holds
    except ConfigurationError:
        return True
