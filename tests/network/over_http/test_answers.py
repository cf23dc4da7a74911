"""What a client believes; and, with one check switched off, what it then would."""

import asyncio
import contextlib
import re
from urllib.parse import urlsplit

import pytest

from network.over_http.wire import ADA, BEN, EVE, NOW, Place, answer_of, client, faking, listening, written
from p2p_labeldp.crypto.signatures import ClockSkew
from p2p_labeldp.errors import PeerUnreachable, RosterMismatch
from p2p_labeldp.network import http
from p2p_labeldp.network.http import CONTENT_TYPE, ROUTE, HttpClient, Refused


async def test_only_the_peer_asked_can_answer():
    async with listening() as (_, ben), client() as c:
        assert await c.post(ADA, ben, b"ab", timeout=60) == b"ba"
        with pytest.raises(PeerUnreachable, match="verifies"):
            await c.post(ADA, ben._replace(peer_id=EVE.peer_id), b"ab", timeout=60)
    async with faking(lambda data: answer_of(data, key=EVE)) as fake, client() as c:
        assert await c.post(ADA, fake._replace(peer_id=EVE.peer_id), b"ab", timeout=60) == b"answer"
        with pytest.raises(PeerUnreachable, match="verifies"):
            await c.post(ADA, fake, b"ab", timeout=60)


async def test_an_answer_moved_to_another_question_counts_as_none():
    answers = []

    def first_answer_always(data):
        answers.append(answer_of(data))
        return answers[0]

    async with faking(first_answer_always) as fake, client() as c:
        assert await c.post(ADA, fake, b"ab", timeout=60) == b"answer"
        with pytest.raises(PeerUnreachable, match="verifies"):
            await c.post(ADA, fake, b"ab", timeout=60)  # the same words, asked again
    async with faking(answer_of) as fake, client() as c:
        for _ in range(2):
            assert await c.post(ADA, fake, b"ab", timeout=60) == b"answer"


@pytest.mark.parametrize(
    "respond",
    [
        lambda data: written(400, {"content-length": "7", "content-type": "text/plain"}, b"refused"),
        lambda data: written(200, {"content-length": "6", "content-type": CONTENT_TYPE}, b"answer"),
        lambda data: answer_of(data, body=b"answer")[:-1] + b"s",
        lambda data: answer_of(data, status=403).replace(b" 403 ", b" 401 "),
        lambda data: answer_of(data, status=500, body=b"failed", content_type="text/plain"),
        lambda data: answer_of(data, status=503, body=b"busy", content_type="text/plain"),
        lambda data: answer_of(data, status=204),
        lambda data: answer_of(data, content_type="text/plain"),
        lambda data: answer_of(data, status=302, location="/"),
        lambda data: answer_of(data, **{"content-encoding": "gzip"}),
        lambda data: answer_of(data, **{"content-length": str(2 << 20)}),
        lambda data: answer_of(data, **{"transfer-encoding": "chunked"}),
        lambda data: answer_of(data).replace(b"content-type", b"content-type: x\r\ncontent-type"),
        lambda data: answer_of(data).replace(b"\r\n\r\n", b"\r\nx: " + b"a" * 5000 + b"\r\n\r\n"),
        lambda data: b"",
        lambda data: b"\x00" * 100,
        lambda data: b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nshort",
    ],
)
async def test_whatever_is_no_signed_answer_counts_as_unreachable(respond):
    async with faking(respond) as fake, client() as c:
        with pytest.raises(PeerUnreachable):
            await c.post(ADA, fake, b"ab", timeout=60)
    async with faking(answer_of) as fake, client() as c:
        assert await c.post(ADA, fake, b"ab", timeout=60) == b"answer"


async def test_an_answer_longer_than_accepted_counts_as_none():
    async with faking(answer_of) as fake:
        async with client(max_body_bytes=6) as c:
            assert await c.post(ADA, fake, b"ab", timeout=60) == b"answer"
        async with client(max_body_bytes=5) as c:
            with pytest.raises(PeerUnreachable, match="body of 6 bytes; 5 are accepted"):
                await c.post(ADA, fake, b"ab", timeout=60)


async def test_an_endless_answer_is_cut_off():
    async def endless(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
        with contextlib.suppress(ConnectionError):
            while True:
                writer.write(b"1000\r\n" + bytes(0x1000) + b"\r\n")
                await writer.drain()
        writer.close()

    server = await asyncio.start_server(endless, "127.0.0.1", 0)
    place = Place(BEN.peer_id, "127.0.0.1", server.sockets[0].getsockname()[1])
    async with client() as c:
        with pytest.raises(PeerUnreachable, match="known length"):
            await c.post(ADA, place, b"ab", timeout=60)
    server.close()
    await server.wait_closed()


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_not_followed(status):
    async with listening() as (server, ben), client() as c:
        location = {"location": f"http://127.0.0.1:{ben.port}{ROUTE}", "content-length": "0"}
        async with faking(lambda data: written(status, location)) as fake:
            with pytest.raises(PeerUnreachable):
                await c.post(ADA, fake, b"ab", timeout=60)
        assert server.traffic.messages_sent == 0
        assert await c.post(ADA, ben, b"ab", timeout=60) == b"ba"


async def test_a_signed_refusal_is_told_with_its_word():
    def handler(sender, body):
        raise RosterMismatch("x")

    async with listening(handler) as (_, ben), client() as c:
        with pytest.raises(Refused, match="roster_mismatch") as caught:
            await c.post(ADA, ben, b"ab", timeout=60)
        assert (caught.value.word, caught.value.status) == ("roster_mismatch", 409)


@pytest.mark.parametrize("body", [b"", b"\xff\n", b"two words", b"x" * 1000])
async def test_a_signed_refusal_in_other_words_is_a_refusal_all_the_same(body):
    async with (
        faking(lambda data: answer_of(data, status=400, body=body, content_type="text/plain")) as fake,
        client() as c,
    ):
        with pytest.raises(Refused, match="refused: unknown"):
            await c.post(ADA, fake, b"ab", timeout=60)


@pytest.mark.parametrize("off", [-6, -1, 1, 6])
async def test_a_clock_a_little_off_works(off):
    async with listening() as (_, ben), HttpClient(wall_clock=lambda: NOW + off) as c:
        assert await c.post(ADA, ben, b"ab", timeout=60) == b"ba"


@pytest.mark.parametrize("off", [-600, 600])
async def test_a_clock_far_off_is_told_with_both_times_and_the_allowance(off):
    async with listening() as (_, ben), HttpClient(wall_clock=lambda: NOW + off) as c:
        with pytest.raises(ClockSkew) as caught:
            await c.post(ADA, ben, b"ab", timeout=60)
        assert (caught.value.theirs, caught.value.ours, caught.value.allowed_seconds) == (NOW, NOW + off, 30)
        for part in (str(NOW), str(NOW + off), "30 s"):
            assert part in str(caught.value)


async def test_with_redirects_followed_a_question_goes_where_nobody_sent_it(monkeypatch):
    """The control of ``test_a_redirect_is_not_followed``."""
    post = http.posting.post

    async def following(host, port, path, fields, body, **options):
        answer = await post(host, port, path, fields, body, **options)
        if answer.status == 307:
            there = urlsplit(answer.fields["location"])
            answer = await post(there.hostname, there.port, there.path, fields, body, **options)
        return answer

    monkeypatch.setattr(http.posting, "post", following)
    async with listening() as (server, ben), client() as c:
        location = {"location": f"http://127.0.0.1:{ben.port}{ROUTE}", "content-length": "0"}
        async with faking(lambda data: written(307, location)) as fake:
            assert await c.post(ADA, fake, b"ab", timeout=60) == b"ba"
        assert server.traffic.messages_sent == 1


async def test_with_answers_not_bound_to_their_question_one_can_be_moved(monkeypatch):
    """The control of ``test_an_answer_moved_to_another_question_counts_as_none``."""
    answers, questions = [], []

    def first_answer_always(data):
        answers.append(answer_of(data))
        questions.append(re.search(rb"\r\nsignature: ([^\r]+)", data)[1].decode())
        return answers[0]

    bound = http.client.verify_response
    monkeypatch.setattr(
        http.client, "verify_response", lambda *a, **k: bound(*a, **{**k, "request_signature": questions[0]})
    )
    async with faking(first_answer_always) as fake, client() as c:
        for _ in range(2):
            assert await c.post(ADA, fake, b"ab", timeout=60) == b"answer"
        assert len(set(questions)) == 2
