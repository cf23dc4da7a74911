"""One POST on one connection: what is read is a strict grammar, and everything else is no answer."""

import asyncio
import gc
from contextlib import suppress

import pytest

from p2p_labeldp.network.http.posting import Answer, Unreadable, _Reading, post
from p2p_labeldp.network.http.profile import MAX_FIELD_BYTES, MAX_FIELDS

GOOD = b"HTTP/1.1 200 OK\r\nContent-Type: a/b\r\nContent-Length: 2\r\n\r\nhi"
LONGEST = 10


async def answered(*pieces, close=True):
    """What ``post`` makes of an answer that comes in these pieces; and the request that the server got."""
    got, served = bytearray(), asyncio.Event()

    async def serve(reader, writer):
        got.extend(await reader.readuntil(b"\r\n\r\n"))
        got.extend(await reader.readexactly(4))
        with suppress(ConnectionError):  # whoever has read enough hangs up
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(0)
            if not close:
                await reader.read()
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()
        served.set()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        port = server.sockets[0].getsockname()[1]
        fields = {"host": f"127.0.0.1:{port}", "x-one": "1"}
        return await post("127.0.0.1", port, "/there", fields, b"body", longest=LONGEST), bytes(got)
    finally:
        await served.wait()
        server.close()
        await server.wait_closed()


async def test_the_request_is_what_was_said_and_nothing_else():
    _, got = await answered(GOOD)
    head, _, body = got.partition(b"\r\n\r\n")
    first, host, *others = head.split(b"\r\n")
    assert first == b"POST /there HTTP/1.1"
    assert host.startswith(b"host: 127.0.0.1:")
    assert others == [b"x-one: 1", b"content-length: 4", b"connection: close"]
    assert body == b"body"


@pytest.mark.parametrize("cut", [1, 8, 30, 55, len(GOOD) - 1])
async def test_an_answer_may_come_in_pieces(cut):
    whole = Answer(200, {"content-type": "a/b", "content-length": "2"}, b"hi")
    assert (await answered(GOOD))[0] == whole
    assert (await answered(GOOD[:cut], GOOD[cut:]))[0] == whole


async def test_a_server_that_never_closes_is_not_waited_for():
    answer, _ = await answered(GOOD, close=False)
    assert answer.body == b"hi"


@pytest.mark.parametrize(
    ("answer", "about"),
    [
        (b"", "ended early"),
        (GOOD[:-1], "ended early"),
        (GOOD[:20], "ended early"),
        (GOOD + b"!", "more than the 2 bytes"),
        (GOOD.replace(b"200", b"100"), "not HTTP/1.1"),
        (GOOD.replace(b"200", b"20"), "not HTTP/1.1"),
        (GOOD.replace(b"HTTP/1.1", b"HTTP/1.0"), "not HTTP/1.1"),
        (GOOD.replace(b"HTTP/1.1 200 OK", b"OK"), "not HTTP/1.1"),
        (GOOD.replace(b"a/b", b"a/b\r\nContent-Type: c/d"), "content-type twice"),
        (GOOD.replace(b"a/b", b"a/b\r\n folded"), "malformed field"),
        (GOOD.replace(b"a/b", b"a/\xffb"), "malformed field"),
        (GOOD.replace(b"a/b", b"a/\nb"), "malformed field"),
        (GOOD.replace(b"Type:", b"Type :"), "malformed field"),
        (GOOD.replace(b"a/b", b"a/b\r\nTransfer-Encoding: chunked"), "known length"),
        (GOOD.replace(b"a/b", b"a/b\r\nContent-Encoding: gzip"), "known length"),
        (GOOD.replace(b"Length: 2", b"Length: +2"), "known length"),
        (GOOD.replace(b"Length: 2", b"Length: 2, 2"), "known length"),
        (GOOD.replace(b"Content-Length: 2\r\n", b""), "known length"),
        (GOOD.replace(b"Length: 2", b"Length: 11"), "body of 11 bytes; 10 are accepted"),
        (GOOD.replace(b"a/b", b"a" * MAX_FIELD_BYTES), "too long"),
        (GOOD.replace(b"a/b", b"a\r\n" + b"\r\n".join(b"x%d: 1" % i for i in range(MAX_FIELDS))), "too long"),
        (b"HTTP/1.1 200 OK\r\n" + b"x" * 100_000, "without end"),
    ],
)
async def test_anything_else_is_no_answer(answer, about):
    with pytest.raises(Unreadable, match=about):
        await answered(answer)


async def test_nobody_there_is_an_error_of_the_system():
    with pytest.raises(OSError, match=r"refused|\b111\b"):
        await post("127.0.0.1", 1, "/", {}, b"", longest=1)


@pytest.mark.parametrize("came", [b"", b"no HTTP\r\n\r\n"])
async def test_who_gives_up_while_connecting_leaves_no_complaint(monkeypatch, came):
    """Of an answer that nobody waits for any more: none, or one that is none."""
    heard, posts, over = [], [], asyncio.Event()
    asyncio.get_running_loop().set_exception_handler(lambda _, context: heard.append(context["message"]))
    made = _Reading.connection_made

    def given_up(self, transport):
        made(self, transport)
        if came:
            self.data_received(came)
        posts.pop().cancel()

    async def serve(reader, writer):
        await reader.read()
        writer.close()
        over.set()

    monkeypatch.setattr(_Reading, "connection_made", given_up)
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    posts.append(asyncio.create_task(post("127.0.0.1", port, "/", {}, b"", longest=1)))
    with pytest.raises(asyncio.CancelledError):
        await posts[0]
    await over.wait()
    server.close()
    await server.wait_closed()
    gc.collect()
    assert heard == []
