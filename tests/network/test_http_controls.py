"""What each check of the HTTP layer keeps out: with the one check switched off the same bytes are accepted.

That they are refused with it on is said here once more, on the same bytes, and in ``test_http``.
"""

import base64
import gzip
import math
import os
import re

import pytest
from network.test_http import ADA, BEN, NOW, answer_of, client, faking, listening, parsed, request, send, written

from p2p_labeldp.crypto import signatures
from p2p_labeldp.crypto.signatures import sign_request
from p2p_labeldp.network import http
from p2p_labeldp.network.http import CONTENT_TYPE, ROUTE


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
        read = http.server.single_fields
        patch.setattr(
            http.server,
            "single_fields",
            lambda items: {name: value for name, value in read(items).items() if name != "content-encoding"},
        )

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


async def test_with_redirects_followed_a_question_goes_where_nobody_sent_it(monkeypatch):
    """The control of ``test_a_redirect_is_not_followed``."""
    post = http.client.aiohttp.ClientSession.post
    monkeypatch.setattr(
        http.client.aiohttp.ClientSession, "post", lambda *a, **k: post(*a, **{**k, "allow_redirects": True})
    )
    async with listening() as (server, ben), client() as c:
        location = {"location": f"http://127.0.0.1:{ben.port}{ROUTE}", "content-length": "0"}
        async with faking(lambda data: written(307, location)) as fake:
            assert await c.post(ADA, fake, b"ab", timeout=5) == b"ba"
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
            assert await c.post(ADA, fake, b"ab", timeout=5) == b"answer"
        assert len(set(questions)) == 2
