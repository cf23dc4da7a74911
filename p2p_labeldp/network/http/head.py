"""The head of a request or an answer, as both ends read it: HTTP/1.1 (RFC 9112) in one strict grammar.

A first line and fields, each ended by CRLF, printable ASCII throughout. Any other spelling is refused, and so is a
field that stands twice, since each reader would take another. Numbers and lengths are bounded before they are used.
"""

from __future__ import annotations

import re

from p2p_labeldp.network.http.profile import MAX_FIELD_BYTES, MAX_FIELDS

MAX_HEAD_BYTES = (MAX_FIELDS + 1) * (MAX_FIELD_BYTES + 2)

_END = b"\r\n\r\n"
_FIELD = re.compile(rb"([0-9A-Za-z!#$%&'*+.^_`|~-]+):[ \t]*+([!-~](?:[ -~\t]*[!-~])?)?[ \t]*")


class Malformed(Exception):
    """No head; the text says why."""


def take_head(data: bytearray, *, seen: int = 0) -> bytes | None:
    """Removes a whole head from the start of what was read, and returns it; None if it has not all come.

    Args:
        data: What was read.
        seen: How much of it was looked at before, in vain.

    Raises:
        Malformed: There is more than any head has, and no end.
    """
    end = data.find(_END, max(0, seen - len(_END)), MAX_HEAD_BYTES)
    if end < 0:
        if len(data) >= MAX_HEAD_BYTES:
            raise Malformed("a head without end")
        return None
    head = bytes(data[:end])
    del data[: end + len(_END)]
    return head


def parse_head(head: bytes, first_line: re.Pattern[bytes]) -> tuple[re.Match[bytes], dict[str, str]]:
    """The first line as it was matched, and the fields by lower case name.

    Raises:
        Malformed: Not of this grammar, or too long.
    """
    first, *lines = head.split(b"\r\n")
    matched = first_line.fullmatch(first)
    if matched is None or len(lines) > MAX_FIELDS or any(len(line) > MAX_FIELD_BYTES for line in (first, *lines)):
        raise Malformed("a head that is not HTTP/1.1, or too long")
    fields: dict[str, str] = {}
    for line in lines:
        field = _FIELD.fullmatch(line)
        if field is None:
            raise Malformed("a malformed field")
        name = field[1].decode("ascii").lower()
        if name in fields:
            raise Malformed(f"the field {name} twice: each reader would take another")
        fields[name] = (field[2] or b"").decode("ascii")
    return matched, fields
