"""What a server refuses before the handler sees it; every refusal is signed and bound to its request.

``ask`` checks that. At the end stands what each check keeps out: with that one switched off the same is accepted.
"""

import asyncio
import base64
import contextlib
import gzip
import logging
import math
import os
import random
import re
from types import SimpleNamespace

import http_message_signatures as library
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from network.over_http.wire import ADA, BEN, EVE, NOW, ask, listening, parsed, request, send
from p2p_labeldp.crypto import signatures
from p2p_labeldp.crypto.signatures import REFUSAL_COMPONENTS, sign_request
from p2p_labeldp.network import http
from p2p_labeldp.network.http import CONTENT_TYPE, ROUTE


async def test_every_gate_has_its_word_and_none_lets_the_handler_see_the_request():
    seen = []
    async with listening(lambda sender, body: seen.append(body) or b"ok", max_body_bytes=100) as (_, ben):
        assert await ask(ben) == (200, b"ok")
        assert seen == [b"question"]
        other = f"127.0.0.1:{ben.port + 1}"
        for expected, options in {
            (404, b"path"): {"line": "POST /p2p/v2 HTTP/1.1"},
            (404, b"path "): {"line": f"POST {ROUTE}?x=1 HTTP/1.1"},
            (404, b"path  "): {"line": f"POST http://127.0.0.1:{ben.port}{ROUTE} HTTP/1.1"},
            (405, b"method"): {"line": f"PUT {ROUTE} HTTP/1.1"},
            (405, b"method "): {"line": f"GET {ROUTE} HTTP/1.1"},
            (411, b"length"): {"drop": ["content-length"], "body": b""},
            (413, b"size"): {"body": bytes(101)},
            (415, b"type"): {"content-type": "application/msgpack"},
            (415, b"type "): {"extra": ["content-encoding: identity"]},
            (401, b"authentication_failed"): {"to": EVE},
            (401, b"authentication_failed "): {"host": other},
            (401, b"authentication_failed  "): {"content-digest": "sha-256=:" + "A" * 43 + "=:"},
            (401, b"clock_skew 30"): {"now": NOW - 600},
        }.items():
            assert await ask(ben, **options) == (expected[0], expected[1].rstrip())
        assert seen == [b"question"]


async def test_a_huge_body_is_refused_by_its_declared_length_alone():
    async with listening() as (server, ben):
        data, _ = request(ben, **{"content-length": str(100 << 20)})
        assert parsed(await send(ben, data)).status == 413  # the body never came
        assert server._buffered == 0
        assert await ask(ben) == (200, b"noitseuq")


async def test_an_endless_chunked_body_is_refused_before_its_first_chunk_is_read():
    async with listening() as (_, ben):
        data, _ = request(ben, b"", drop=["content-length"], extra=["transfer-encoding: chunked"])
        reader, writer = await asyncio.open_connection(ben.host, ben.port)
        writer.write(data)
        for _ in range(3):
            writer.write(b"8\r\nquestion\r\n")
        answer = parsed(await reader.read())
        assert (answer.status, answer.body) == (411, b"length")
        writer.close()
        both, _ = request(ben, extra=["transfer-encoding: chunked"])
        assert parsed(await send(ben, both))[::2] == (400, b"malformed")
        assert await ask(ben) == (200, b"noitseuq")


async def test_a_compressed_body_is_refused_unopened():
    async with listening() as (_, ben):
        assert await ask(ben, body=gzip.compress(bytes(1000)), extra=["content-encoding: gzip"]) == (415, b"type")
        assert (await ask(ben, body=gzip.compress(bytes(1000))))[0] == 200  # bytes like any others


@pytest.mark.parametrize(
    "name", ["content-type", "content-digest", "p2p-recipient", "signature-input", "signature", "x"]
)
async def test_a_field_that_stands_twice_is_refused(name):
    async with listening() as (_, ben):
        assert await ask(ben, x="1") == (200, b"noitseuq")
        _, signed = request(ben)
        data, _ = request(ben, x="1", extra=[f"{name.title()}: {signed.get(name, '1')}"])
        assert parsed(await send(ben, data))[::2] == (400, b"malformed")


async def test_a_request_sent_twice_is_processed_once():
    seen = []
    async with listening(lambda sender, body: seen.append(body) or b"ok") as (_, ben):
        assert await ask(ben, nonce=b"n" * 16) == (200, b"ok")
        assert await ask(ben, nonce=b"n" * 16) == (409, b"replayed")
        assert await ask(ben, nonce=b"m" * 16) == (200, b"ok")
        assert await ask(ben, nonce=b"n" * 16, key=EVE) == (200, b"ok")
        assert len(seen) == 3


async def test_more_requests_than_the_cache_holds_are_told_to_come_back_and_the_first_again_is_still_a_replay():
    async with listening(lambda sender, body: b"ok", nonce_capacity=3) as (_, ben):
        for i in range(3):
            assert await ask(ben, nonce=bytes([i]) * 16) == (200, b"ok")
        assert await ask(ben, nonce=b"3" * 16) == (503, b"busy")
        assert await ask(ben, nonce=bytes(16)) == (409, b"replayed")


async def test_a_request_with_another_peers_signature_is_refused():
    async with listening() as (_, ben):
        _, eves = request(ben, key=EVE)
        assert await ask(ben) == (200, b"noitseuq")
        data, _ = request(ben, signature=eves["signature"])
        assert parsed(await send(ben, data))[::2] == (401, b"authentication_failed")


async def test_an_unsigned_request_gets_a_signed_refusal_bound_to_nothing():
    class Keys(library.HTTPSignatureKeyResolver):
        def resolve_public_key(self, key_id):
            assert key_id == BEN.public.hex()
            return Ed25519PublicKey.from_public_bytes(bytes.fromhex(key_id))

    async with listening(wall_clock=library.signatures.datetime.datetime.now().timestamp) as (_, ben):
        data, _ = request(ben, drop=["signature", "signature-input"])
        answer = parsed(await send(ben, data))
        assert (answer.status, answer.body) == (401, b"authentication_failed")
        verifier = library.HTTPMessageVerifier(signature_algorithm=library.algorithms.ED25519, key_resolver=Keys())
        message = SimpleNamespace(status_code=answer.status, headers=answer.fields, request=None)
        verifier.verify(message, expect_tag="p2p-labeldp", require_components=REFUSAL_COMPONENTS, body=answer.body)


async def test_what_cannot_become_a_request_is_not_waited_for():
    async with listening(read_timeout_seconds=3600) as (_, ben):
        for start in (b"\x16\x03\x01", b"get / HTTP/1.1", b"\r\n", b"A" * 17):
            assert parsed(await send(ben, start))[::2] == (400, b"malformed")


async def test_garbage_to_the_port_is_answered_or_dropped_and_never_ends_the_server(caplog):
    chance = random.Random(1)
    async with listening() as (_, ben):
        data, _ = request(ben)
        for _ in range(60):
            garbage = bytearray(data)
            for _ in range(chance.randrange(1, 20)):
                garbage[chance.randrange(len(garbage))] = chance.randrange(256)
            for junk in (bytes(garbage), chance.randbytes(200), b"\x16\x03\x01\x02\x00\x01" + chance.randbytes(100)):
                with contextlib.suppress(ConnectionError):
                    reply = await send(ben, junk, finish=True)
                    assert not reply or 400 <= parsed(reply).status < 500
        for junk in (
            b"POST " + b"/" * 5000 + b" HTTP/1.1\r\n\r\n",
            b"POST / HTTP/1.1\r\nx: " + b"a" * 5000 + b"\r\n\r\n",
            b"POST / HTTP/1.1\r\n" + b"".join(b"x%d: a\r\n" % i for i in range(100)) + b"\r\n",
            b"POST / HTTP/1.1\r\nhost: a\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n" + bytes(5000),
            b"CONNECT a:80 HTTP/1.1\r\nhost: a\r\n\r\n" + bytes(5000),
            data + data,
        ):
            with contextlib.suppress(ConnectionError):
                await send(ben, junk, finish=True)
        assert await ask(ben) == (200, b"noitseuq")
    assert not [record for record in caplog.records if record.levelno > logging.INFO]


async def refused_and_with_the_check_off(monkeypatch, expected, off, make, **options):
    """The status of ``make``'s request with all checks on, and with one off."""
    seen = []
    for switched_off in (False, True):
        if switched_off:
            off(monkeypatch)
        async with listening(lambda sender, body: seen.append(body) or b"ok", **options) as (_, ben):
            statuses = [parsed(await send(ben, data)).status for data in make(ben)]
            assert statuses[-1] == (200 if switched_off else expected)
            assert len(seen) == (len(statuses) if switched_off else len(statuses) - 1)
            seen.clear()


@pytest.mark.parametrize("off", [-600, 600])
async def test_without_the_allowance_a_clock_far_off_is_believed(monkeypatch, off):
    def endless(patch):
        checked = http.server.verify_request
        patch.setattr(
            http.server, "verify_request", lambda *a, **k: checked(*a, **{**k, "allowed_skew_seconds": math.inf})
        )

    await refused_and_with_the_check_off(monkeypatch, 401, endless, lambda ben: [request(ben, now=NOW + off)[0]])


async def test_without_the_memory_of_nonces_a_replay_is_processed_again(monkeypatch):
    def forgetful(patch):
        patch.setattr(http.server.NonceCache, "accept", lambda *_, **__: None)

    await refused_and_with_the_check_off(monkeypatch, 409, forgetful, lambda ben: [request(ben)[0]] * 2)


async def test_without_the_check_of_encodings_a_compressed_body_is_handed_on(monkeypatch):
    def blind(patch):
        read = http.connection.parse_head

        def without(head, first_line):
            line, fields = read(head, first_line)
            return line, {name: value for name, value in fields.items() if name != "content-encoding"}

        patch.setattr(http.connection, "parse_head", without)

    def compressed(ben):
        return [request(ben, gzip.compress(bytes(1000)), extra=["content-encoding: gzip"])[0]]

    await refused_and_with_the_check_off(monkeypatch, 415, blind, compressed)


def covering_no_body(ben):
    """A well signed request that covers all but the digest, and says something else than its signer did."""
    fields, at = (
        sign_request(
            ADA,
            method="POST",
            authority=f"127.0.0.1:{ben.port}",
            path=ROUTE,
            content_type=CONTENT_TYPE,
            body=b"said",
            recipient=BEN.peer_id,
            now=NOW,
            nonce=os.urandom(16),
        ),
        3,
    )
    listed = [name for i, name in enumerate(signatures.REQUEST_COMPONENTS) if i != at]
    params = (
        fields["signature-input"]
        .removeprefix("sig1=")
        .replace(" ".join(signatures.REQUEST_COMPONENTS), " ".join(listed))
    )
    values = ("POST", f"127.0.0.1:{ben.port}", ROUTE, CONTENT_TYPE, BEN.peer_id.hex())
    signed = base64.b64encode(ADA.sign(signatures.signature_base(listed, values, params))).decode()
    changes = {"signature-input": f"sig1={params}", "signature": f"sig1=:{signed}:"}
    return [request(ben, b"forged", **changes)[0]]


async def test_with_components_not_compared_a_request_that_covers_no_body_says_what_its_forger_likes(monkeypatch):
    def trusting(patch):
        base = signatures.signature_base
        lenient = signatures._REQUEST_INPUT.pattern.replace(re.escape(signatures._REQUEST_LIST), r"\([^)]*\)")

        def told(components, values, params):
            listed = params[1 : params.index(")")].split()
            by_name = dict(zip(components, values, strict=True))
            return base(listed, [by_name[name] for name in listed], params)

        patch.setattr(signatures, "_REQUEST_INPUT", re.compile(lenient))
        patch.setattr(signatures, "signature_base", told)

    await refused_and_with_the_check_off(monkeypatch, 401, trusting, covering_no_body)
