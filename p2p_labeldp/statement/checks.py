"""What ``verify`` says of one thing that it looked at."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from p2p_labeldp.errors import AuthenticationFailed


class Status(StrEnum):
    """How a check ended."""

    OK = "ok"
    FAILED = "failed"
    UNCHECKED = "not checked"
    """There is nothing to hold it against; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One check, in one line."""

    name: str
    status: Status
    text: str


def passed(name: str, text: str) -> Check:
    return Check(name=name, status=Status.OK, text=text)


def failed(name: str, text: str) -> Check:
    return Check(name=name, status=Status.FAILED, text=text)


def unchecked(name: str, text: str) -> Check:
    return Check(name=name, status=Status.UNCHECKED, text=text)


def number_of(number: int, noun: str) -> str:
    """``1 cluster``, ``2 clusters``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def cause(error: Exception) -> str:
    """Why something was refused, also where the text for the wire does not tell."""
    return (error.detail if isinstance(error, AuthenticationFailed) else "") or str(error)
