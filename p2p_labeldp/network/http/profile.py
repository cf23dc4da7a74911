"""What both ends of a message agree on: route, types, and how long anything may be."""

from __future__ import annotations

import re
from collections.abc import Mapping

ROUTE = "/p2p/v1"
CONTENT_TYPE = "application/vnd.p2p-labeldp"
REFUSAL_TYPE = "text/plain"
TOO_MANY = 429  # Too Many Requests (RFC 6585, section 4)

MAX_BODY_BYTES = 1 << 20
MAX_FIELD_BYTES = 1024  # of a head; the longest of ours has 370
MAX_FIELDS = 32  # we send 9

_LENGTH = re.compile("[0-9]{1,10}")


class Unfit(Exception):
    """A request or an answer that is not what it should be, found before its signature was looked at.

    Args:
        status: The HTTP status it is refused with, or came with.
        word: Why.
    """

    def __init__(self, status: int, word: str) -> None:
        super().__init__(word)
        self.status = status
        self.word = word


def plain_length(fields: Mapping[str, str]) -> int | None:
    """The length of a body that is told beforehand and comes in one piece; None if it is not."""
    declared = fields.get("content-length", "")
    if "transfer-encoding" in fields or not _LENGTH.fullmatch(declared):
        return None
    return int(declared)
