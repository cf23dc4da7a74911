"""Whatever bytes reach a server or a client, and in whatever pieces: one clean answer, or none.

The connection stands on a transport in memory. A server that read other bytes as a request, according to how they were
cut, would have two readers disagree about where a body ends.
"""

import asyncio

import pytest
from altering import altered, damaged
from hypothesis import example, given, settings
from hypothesis import strategies as st

from network.over_http.wire import ADA, BEN, Place, answer_of, clock, parsed, request
from p2p_labeldp.crypto.signatures import VerifiedRequest, verify_response
from p2p_labeldp.errors import AuthenticationFailed
from p2p_labeldp.network.http import HttpServer, connection, posting, server
from p2p_labeldp.network.http.connection import Connection
from p2p_labeldp.network.http.head import MAX_HEAD_BYTES
from p2p_labeldp.network.http.posting import Answer, Unreadable, _Reading

PLACE = Place(BEN.peer_id, "127.0.0.1", 7400)
ASKED, SIGNED = request(PLACE, nonce=bytes(16))
ANSWERED = answer_of(ASKED)
LONGEST = 64
REFUSALS = {400, 401, 404, 405, 409, 411, 413, 415}


class Line(asyncio.Transport):
    """A transport in memory."""

    def __init__(self):
        super().__init__()
        self.out, self.closed = b"", False

    def write(self, data):
        assert not self.closed
        self.out += bytes(data)

    def close(self):
        self.closed = True

    abort = close

    def is_closing(self):
        return self.closed

    def can_write_eof(self):
        return True

    def write_eof(self):
        pass

    def get_extra_info(self, name, default=None):
        return default


def pieces(data, cuts):
    ends = sorted({min(cut, len(data)) for cut in cuts} | {len(data)})
    return [data[a:b] for a, b in zip([0, *ends], ends, strict=False) if a < b]  # no transport brings nothing


def served(data, cuts=()):
    """What Ben's server answers to these bytes, and what its handler heard."""

    async def serve():
        heard = []
        ben = HttpServer(BEN, lambda sender, body: heard.append((sender, body)) or b"ok", wall_clock=clock)
        ben._listener = object()  # as if it listened
        line, one = Line(), Connection(ben)
        one.connection_made(line)
        for piece in pieces(data, cuts):
            if not line.closed:
                one.data_received(piece)
        one.connection_lost(None)
        assert ben._buffered == 0
        assert not ben._connections
        return line.out, heard

    return asyncio.run(serve())


def judged(data, cuts=()):
    """Status and word of a server's one answer, and what its handler heard; no status if there was no answer."""
    out, heard = served(data, cuts)
    if not out:
        assert heard == []
        return None, b"", heard
    answer = parsed(out)  # and nothing after it
    assert len(answer.body) == int(answer.fields["content-length"])
    assert answer.status == 200 if heard else answer.status in REFUSALS
    return answer.status, answer.body, heard


def read(data, cuts=()):
    """What a client makes of these bytes: an answer, or why it is none."""

    async def ask():
        done = asyncio.get_running_loop().create_future()
        reading = _Reading(b"", done, LONGEST)
        reading.connection_made(Line())
        for piece in pieces(data, cuts):
            reading.data_received(piece)
        reading.connection_lost(None)
        try:
            return await done
        except Unreadable as exc:
            return exc

    return asyncio.run(ask())


LINES = (
    b"content-length: 8\r\n",
    b"Content-Length: 7\r\n",
    b"content-length: 99999999999\r\n",
    b"transfer-encoding: chunked\r\n",
    b"content-encoding: gzip\r\n",
    b"x: " + b"y" * 2000 + b"\r\n",
    b"\r\n",
    b"no field\r\n",
    b" folded\r\n",
)
CUTS = st.lists(st.integers(0, 900), max_size=6)
ANY = settings(max_examples=300, deadline=None)


@ANY
@given(st.binary(max_size=300) | damaged(ASKED, lines=LINES), CUTS)
@example(ASKED, [ASKED.index(b"\r\n\r\n") + 2])
@example(ASKED + b"more", [len(ASKED)])
@example(b"POST /" + b"a" * MAX_HEAD_BYTES, range(0, MAX_HEAD_BYTES, 999))
def test_any_bytes_get_one_answer_or_none_however_they_are_cut(data, cuts):
    status, word, heard = judged(data, cuts)
    assert (status, word, heard) == judged(data)
    if heard:  # whatever stands behind a request is thrown away
        assert heard == [(ADA.peer_id, b"question")]


def test_the_request_itself_is_served():
    assert judged(ASKED) == (200, b"ok", [(ADA.peer_id, b"question")])


def test_with_the_end_of_a_head_looked_for_in_the_last_piece_alone_the_same_comparison_finds_it(monkeypatch):
    """The control."""

    def last_piece_only(data, *, seen=0):
        at = data.find(b"\r\n\r\n", seen)
        if at < 0:
            return None
        head = bytes(data[:at])
        del data[: at + 4]
        return head

    monkeypatch.setattr(connection, "take_head", last_piece_only)
    test = test_any_bytes_get_one_answer_or_none_however_they_are_cut.hypothesis.inner_test
    with pytest.raises(AssertionError):
        test(ASKED, [ASKED.index(b"\r\n\r\n") + 2])


def test_with_signatures_not_checked_the_same_test_finds_other_bytes_heard(monkeypatch):
    """The control of what is heard."""

    def believed(*_, **__):
        return VerifiedRequest(
            public=ADA.public, peer_id=ADA.peer_id, nonce=bytes(16), created=0, expires=0, signature=SIGNED["signature"]
        )

    monkeypatch.setattr(server, "verify_request", believed)
    test = test_any_bytes_get_one_answer_or_none_however_they_are_cut.hypothesis.inner_test
    test(ASKED, [])
    with pytest.raises(AssertionError):
        test(altered(ASKED), [])


@ANY
@given(st.binary(max_size=300) | damaged(ANSWERED, lines=LINES), CUTS)
def test_any_bytes_are_an_answer_or_unreadable_and_only_bens_answer_verifies(data, cuts):
    answer = read(data, cuts)
    if isinstance(answer, Unreadable):
        return
    assert isinstance(answer, Answer)
    assert len(answer.body) == int(answer.fields["content-length"]) <= LONGEST
    if answer.body != b"answer" or answer.status != 200:
        with pytest.raises(AuthenticationFailed):
            verified(answer)


def verified(answer):
    return verify_response(
        answer.fields,
        status=answer.status,
        body=answer.body,
        sender=BEN.peer_id,
        recipient=ADA.peer_id,
        request_signature=SIGNED["signature"],
    )


def test_bens_answer_is_read_and_verifies():
    assert verified(read(ANSWERED)).peer_id == BEN.peer_id


def test_with_encodings_not_looked_at_a_compressed_answer_is_handed_on(monkeypatch):
    """The control of the client's check."""
    compressed = answer_of(ASKED, **{"content-encoding": "gzip"})
    assert isinstance(read(compressed), Unreadable)
    parse = posting.parse_head

    def blind(head, first_line):
        line, fields = parse(head, first_line)
        return line, {name: value for name, value in fields.items() if name != "content-encoding"}

    monkeypatch.setattr(posting, "parse_head", blind)
    assert verified(read(compressed)).peer_id == BEN.peer_id
