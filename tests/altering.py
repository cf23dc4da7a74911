"""Bytes that aren't what they were."""

from hypothesis import strategies as st


def altered(data: bytes, at: int = -1) -> bytes:
    """``data`` with one bit flipped in the byte at ``at``; a byte written over could be the byte that was there."""
    at %= len(data)
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


@st.composite
def damaged(draw, data: bytes, *, lines: tuple[bytes, ...] = ()) -> bytes:
    """The bytes with up to three things wrong; now and then unhurt.

    Args:
        data: The bytes.
        lines: What may be put behind the first line.
    """
    hurt = bytearray(data)
    wrongs = ["flip", "truncate", "extend", "insert", "repeat", *(["line"] if lines else [])]
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, max(len(hurt) - 1, 0)))
        match draw(st.sampled_from(wrongs)):
            case "flip" if hurt:
                hurt[at] ^= 1 << draw(st.integers(0, 7))
            case "truncate":
                del hurt[at:]
            case "extend":
                hurt += draw(st.binary(min_size=1, max_size=40))
            case "insert":
                hurt[at:at] = draw(st.binary(min_size=1, max_size=5))
            case "repeat":
                hurt[at:at] = hurt[at : at + draw(st.sampled_from([20, 200]))]
            case "line":
                start = hurt.find(b"\r\n") + 2
                hurt[start:start] = draw(st.sampled_from(lines))
    return bytes(hurt)
