"""The grammar of heads takes a time that grows with their length and no faster."""

import time

import pytest

from p2p_labeldp.network.http import head
from p2p_labeldp.network.http.head import parse_head

LONG = 1 << 16
SECONDS = 2.0  # of CPU time; a quadratic reader takes ten, a linear one a thousandth


@pytest.mark.parametrize("filling", [b" ", b"\t", b"a", b"a ", b" \t"])
def test_no_field_keeps_its_reader_busy(filling, monkeypatch):
    monkeypatch.setattr(head, "MAX_FIELD_BYTES", 2 * LONG)
    began = time.process_time()
    with pytest.raises(head.Malformed):
        parse_head(b"first\r\nx:" + filling * (LONG // len(filling)) + b"\0", head.re.compile(b"first"))
    assert time.process_time() - began < SECONDS


@pytest.mark.parametrize(
    ("line", "value"),
    [
        (b"x:", ""),
        (b"x: \t ", ""),
        (b"x:a", "a"),
        (b"x: \ta b\tc \t", "a b\tc"),
        (b"x:  a", "a"),
    ],
)
def test_the_white_space_around_a_value_is_no_part_of_it(line, value):
    assert parse_head(b"first\r\n" + line, head.re.compile(b"first"))[1] == {"x": value}
