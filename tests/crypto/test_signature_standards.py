"""HTTP signatures: the RFCs' vectors, and the library's signature base byte for byte."""

import base64
import datetime
from types import SimpleNamespace

import http_message_signatures as library
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from http_message_signatures._components import _parse_component_ids

from crypto.questions import BEN, NOW, QUESTION, answer, ask
from p2p_labeldp.crypto import signatures
from p2p_labeldp.crypto.identity import SigningKey, verify
from p2p_labeldp.crypto.signatures import (
    REFUSAL_COMPONENTS,
    REQUEST_COMPONENTS,
    RESPONSE_COMPONENTS,
    content_digest,
    sign_refusal,
    signature_base,
)

# The standards' own vectors


def test_rfc_9421_b_2_6():
    key = SigningKey(base64.urlsafe_b64decode("n4Ni-HpISpVObnQMW0wOhCKROaIKqKtW_2ZYb2p9KcU="))
    assert key.public == base64.urlsafe_b64decode("JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bs=")
    components = ('"date"', '"@method"', '"@path"', '"@authority"', '"content-type"', '"content-length"')
    values = ("Tue, 20 Apr 2021 02:07:55 GMT", "POST", "/foo", "example.com", "application/json", "18")
    params = (
        '("date" "@method" "@path" "@authority" "content-type" "content-length")'
        ';created=1618884473;keyid="test-key-ed25519"'
    )
    base = signature_base(components, values, params)
    assert base.decode() == (
        '"date": Tue, 20 Apr 2021 02:07:55 GMT\n'
        '"@method": POST\n'
        '"@path": /foo\n'
        '"@authority": example.com\n'
        '"content-type": application/json\n'
        '"content-length": 18\n'
        f'"@signature-params": {params}'
    )
    signature = base64.b64decode(
        "wqcAqbmYJ2ji2glfAMaRy4gruYYnx2nEFN2HN6jrnDnQCK1u02Gb04v9EDgwUPiu4A0w6vuQv5lIp5WPpBKRCw=="
    )
    assert key.sign(base) == signature
    verify(key.public, signature, base)


@pytest.mark.parametrize(
    ("body", "digest"),
    [
        (b'{"hello": "world"}\n', "RK/0qy18MlBSVnWgjwz6lZEWjP/lF5HF9bvEF8FabDg="),  # RFC 9530, B.1
        (b'{"hello": "world"}', "X48E9qOokqqrvdts8nOJRJN3OWDUoyWxBf7kbu9DBPE="),  # RFC 9421, B.2
        (b"", "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="),
    ],
)
def test_digests_of_the_rfcs(body, digest):
    assert content_digest(body) == f"sha-256=:{digest}:" == library.ContentDigest.create(body)


# The library as oracle


class Keys(library.HTTPSignatureKeyResolver):
    def resolve_public_key(self, key_id):
        return Ed25519PublicKey.from_public_bytes(bytes.fromhex(key_id))


def library_accepts(message, components):
    """Verifies with the library, which builds the base from the message alone; returns that base."""
    verifier = library.HTTPMessageVerifier(signature_algorithm=library.algorithms.ED25519, key_resolver=Keys())
    verifier.max_clock_skew = datetime.timedelta(days=36500)  # this test reads no clock
    (result,) = verifier.verify(message, max_age=None, expect_tag="p2p-labeldp", require_components=components)
    base, _, _ = verifier._build_signature_base(
        message,
        covered_component_ids=_parse_component_ids(components),
        signature_params=result.parameters,
    )
    return base.encode()


def our_base(monkeypatch, make):
    bases = []
    real = signature_base
    monkeypatch.setattr(signatures, "signature_base", lambda *args: bases.append(real(*args)) or bases[-1])
    return make(), bases[0]


def as_request(headers):
    url = f"http://{QUESTION['authority']}{QUESTION['path']}"
    return SimpleNamespace(method="POST", url=url, headers=dict(headers))


def test_the_request_base_is_the_librarys(monkeypatch):
    headers, base = our_base(monkeypatch, ask)
    assert library_accepts(as_request(headers), REQUEST_COMPONENTS) == base


def test_the_response_base_is_the_librarys(monkeypatch):
    request = ask()
    headers, base = our_base(monkeypatch, lambda: answer(request, status=404))
    message = SimpleNamespace(status_code=404, headers=headers, request=as_request(request))
    assert library_accepts(message, RESPONSE_COMPONENTS) == base


def test_the_refusal_base_is_the_librarys(monkeypatch):
    headers, base = our_base(
        monkeypatch, lambda: sign_refusal(BEN, status=400, content_type="text/plain", body=b"unsigned", now=NOW)
    )
    message = SimpleNamespace(status_code=400, headers=headers, request=None)
    assert library_accepts(message, REFUSAL_COMPONENTS) == base
