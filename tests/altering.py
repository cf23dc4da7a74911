"""Bytes that aren't what they were."""


def altered(data: bytes, at: int = -1) -> bytes:
    """``data`` with one bit flipped in the byte at ``at``; a byte written over could be the byte that was there."""
    at %= len(data)
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
