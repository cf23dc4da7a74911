"""HTTP Message Signatures (RFC 9421, ed25519) over a Content-Digest (RFC 9530, sha-256), in one fixed profile.

A request is signed over exactly

    "@method" "@authority" "@path" "content-digest" "content-type" "p2p-recipient"

with the parameters created, expires, nonce, keyid, alg, tag, in this order; its answer, errors included, over exactly

    "@status" "content-digest" "content-type" "p2p-recipient" "signature";req;key="sig1"

with created, keyid, alg, tag. ``p2p-recipient`` is the hex id of the peer a message is for; ``keyid`` is the hex of the
signer's raw public key, from which its id derives. The last component is the request's own signature, fresh nonce
included: an answer can't be moved to another question, nor be an old one.

A verifier reads this grammar and no other: another list, order, parameter, algorithm or spelling is refused, so nothing
is left to interpret. The general libraries cost ten times as much and leave the list of components to the caller; the
signature base is the same, byte for byte.

A request without a readable signature gets an answer bound to nothing (``sign_refusal``), which no peer takes for an
answer to its question.

The clock is an argument, in Unix seconds. Header names are lower case; whoever calls sees to it that none stands twice.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from p2p_labeldp.crypto.identity import ID_BYTES, SigningKey, peer_id, verify
from p2p_labeldp.errors import AuthenticationFailed

LABEL = "sig1"
TAG = "p2p-labeldp"
NONCE_BYTES = 16
VALIDITY_SECONDS = 60  # longer than any answer is waited for
ALLOWED_SKEW_SECONDS = 30.0  # NTP keeps a clock within one; a laptop without it drifts by seconds a week

# The fields a message carries for its signature, content-type included.
FIELDS = ("content-digest", "content-type", "p2p-recipient", "signature-input", "signature")

REQUEST_COMPONENTS = ('"@method"', '"@authority"', '"@path"', '"content-digest"', '"content-type"', '"p2p-recipient"')
RESPONSE_COMPONENTS = (
    '"@status"',
    '"content-digest"',
    '"content-type"',
    '"p2p-recipient"',
    '"signature";req;key="sig1"',
)
REFUSAL_COMPONENTS = ('"@status"', '"content-digest"', '"content-type"')

_REQUEST_LIST, _RESPONSE_LIST, _REFUSAL_LIST = (
    f"({' '.join(components)})" for components in (REQUEST_COMPONENTS, RESPONSE_COMPONENTS, REFUSAL_COMPONENTS)
)
_TIME = "([1-9][0-9]{0,14})"  # RFC 8941 allows 15 digits
_KEY_ALG_TAG = f';keyid="([0-9a-f]{{64}})";alg="ed25519";tag="{TAG}"'
_REQUEST_INPUT = re.compile(
    f'{LABEL}=({re.escape(_REQUEST_LIST)};created={_TIME};expires={_TIME};nonce="([0-9a-f]{{32}})"{_KEY_ALG_TAG})'
)
_RESPONSE_INPUT = re.compile(f"{LABEL}=({re.escape(_RESPONSE_LIST)};created={_TIME}{_KEY_ALG_TAG})")
# 64 bytes in base64; the last digit has four bits to spare, which are zero.
_SIGNATURE = re.compile(f"{LABEL}=:([A-Za-z0-9+/]{{85}}[AQgw]==):")
_VALUE_AT = len(LABEL) + 1


class ClockSkew(AuthenticationFailed):
    """A message signed right, but at a time too far from ours: one of the two clocks is wrong, or the message is old.

    Unlike other failures it may be told to the sender, who can then set its clock.

    Args:
        theirs: When the message was made by its sender's clock, Unix seconds.
        ours: Our clock, Unix seconds.
        allowed_seconds: The difference allowed.
    """

    def __init__(self, *, theirs: float, ours: float, allowed_seconds: float) -> None:
        super().__init__(
            f"clock skew: message made at {theirs:.0f} by its sender's clock, ours says {ours:.0f}; "
            f"{allowed_seconds:g} s are allowed"
        )
        self.args = (self.detail,)
        self.theirs = theirs
        self.ours = ours
        self.allowed_seconds = allowed_seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifiedRequest:
    """Who sent a request, and what its answer is bound to.

    Args:
        public: The sender's key, 32 bytes.
        peer_id: The sender's id, derived from the key.
        nonce: 16 bytes, unique among the sender's requests; checking that is the caller's part.
        created: By the sender's clock, Unix seconds.
        expires: By the sender's clock, Unix seconds.
        signature: The ``Signature`` field, which the answer covers.
    """

    public: bytes
    peer_id: bytes
    nonce: bytes
    created: int
    expires: int
    signature: str


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifiedResponse:
    """Who answered, and when by its clock (Unix seconds)."""

    public: bytes
    peer_id: bytes
    created: int


def content_digest(body: bytes) -> str:
    """The ``Content-Digest`` field of ``body`` (RFC 9530)."""
    return f"sha-256=:{base64.b64encode(hashlib.sha256(body).digest()).decode()}:"


def signature_base(components: Sequence[str], values: Sequence[str], params: str) -> bytes:
    """The bytes that are signed (RFC 9421, section 2.5).

    Args:
        components: Serialized component identifiers.
        values: Their values, in the same order.
        params: Serialized ``@signature-params``.

    Raises:
        AuthenticationFailed: A value is not printable ASCII; a line break in one could pass for another component.
    """
    text = "".join(values)
    if not (text.isascii() and text.isprintable()):
        raise AuthenticationFailed("a covered value is not printable ASCII")
    lines = [f"{component}: {value}" for component, value in zip(components, values, strict=True)]
    lines.append(f'"@signature-params": {params}')
    return "\n".join(lines).encode()


def sign_request(
    key: SigningKey,
    *,
    method: str,
    authority: str,
    path: str,
    content_type: str,
    body: bytes,
    recipient: bytes,
    now: float,
    nonce: bytes,
) -> dict[str, str]:
    """The fields ``FIELDS`` of a signed request.

    Args:
        key: The sender's.
        method: Upper case.
        authority: Lower case host, and port unless it is the scheme's default; equal to the ``Host`` field.
        path: Without query: a query would not be covered.
        content_type: Of the body.
        body: As it travels.
        recipient: Id of the peer asked.
        now: Our clock, Unix seconds.
        nonce: 16 random bytes.
    """
    assert len(nonce) == NONCE_BYTES
    created = int(now)
    fields = _fields(content_type, body, recipient)
    values = (method, authority, path, fields["content-digest"], content_type, fields["p2p-recipient"])
    params = (
        f"{_REQUEST_LIST};created={created};expires={created + VALIDITY_SECONDS}"
        f';nonce="{nonce.hex()}";keyid="{key.public.hex()}";alg="ed25519";tag="{TAG}"'
    )
    return _sign(key, fields, REQUEST_COMPONENTS, values, params)


def sign_response(
    key: SigningKey,
    *,
    status: int,
    content_type: str,
    body: bytes,
    recipient: bytes,
    request_signature: str,
    now: float,
) -> dict[str, str]:
    """The fields ``FIELDS`` of a signed answer to the request whose ``Signature`` field is ``request_signature``."""
    fields = _fields(content_type, body, recipient)
    values = (
        str(status),
        fields["content-digest"],
        content_type,
        fields["p2p-recipient"],
        request_signature[_VALUE_AT:],
    )
    params = f'{_RESPONSE_LIST};created={int(now)};keyid="{key.public.hex()}";alg="ed25519";tag="{TAG}"'
    return _sign(key, fields, RESPONSE_COMPONENTS, values, params)


def sign_refusal(key: SigningKey, *, status: int, content_type: str, body: bytes, now: float) -> dict[str, str]:
    """The fields of a signed answer to a request that has no readable signature, hence no known sender."""
    fields = {"content-digest": content_digest(body), "content-type": content_type}
    params = f'{_REFUSAL_LIST};created={int(now)};keyid="{key.public.hex()}";alg="ed25519";tag="{TAG}"'
    return _sign(key, fields, REFUSAL_COMPONENTS, (str(status), *fields.values()), params)


def verify_request(
    headers: Mapping[str, str],
    *,
    method: str,
    authority: str,
    path: str,
    body: bytes,
    recipient: bytes,
    now: float,
    allowed_skew_seconds: float = ALLOWED_SKEW_SECONDS,
) -> VerifiedRequest:
    """Who sent this request to us.

    Args:
        headers: By lower case name.
        method: As received, and so on for ``authority`` (the ``Host`` field), ``path`` and ``body``.
        authority: See above.
        path: See above.
        body: See above.
        recipient: Our id.
        now: Our clock, Unix seconds.
        allowed_skew_seconds: How far the sender's clock may be from ours.

    Raises:
        ClockSkew: Signed right, but not at a time we accept.
        AuthenticationFailed: Anything else that is not exactly the profile, or does not verify.
    """
    claim, public, signature = _claim(headers)
    params, created, expires, nonce = claim[1], int(claim[2]), int(claim[3]), bytes.fromhex(claim[4])
    if not 0 < expires - created <= VALIDITY_SECONDS:
        raise AuthenticationFailed(f"valid for {expires - created} s; 1 to {VALIDITY_SECONDS} are accepted")
    digest, content_type, to = _common(headers, body, recipient)
    base = signature_base(REQUEST_COMPONENTS, (method, authority, path, digest, content_type, to), params)
    verify(public, signature, base)
    if created > now + allowed_skew_seconds or expires < now - allowed_skew_seconds:
        raise ClockSkew(theirs=created, ours=now, allowed_seconds=allowed_skew_seconds)
    return VerifiedRequest(
        public=public,
        peer_id=peer_id(public),
        nonce=nonce,
        created=created,
        expires=expires,
        signature=headers["signature"],
    )


def verify_response(
    headers: Mapping[str, str],
    *,
    status: int,
    body: bytes,
    sender: bytes,
    recipient: bytes,
    request_signature: str,
) -> VerifiedResponse:
    """Returns if this is ``sender``'s answer to our request whose ``Signature`` field is ``request_signature``.

    No clock is asked: the answer covers our fresh nonce, so it is no older than the question.

    Raises:
        AuthenticationFailed: It is not exactly of the profile, not by ``sender``, not for us, not to this request, or
            does not verify.
    """
    claim = _RESPONSE_INPUT.fullmatch(headers.get("signature-input", ""))
    if claim is None:
        raise AuthenticationFailed(f"signature-input not of the profile: {headers.get('signature-input', '')[:400]!r}")
    public, signature = bytes.fromhex(claim[3]), _signature(headers)
    signer = peer_id(public)
    if signer != sender:
        raise AuthenticationFailed(f"answered by {signer.hex()}, asked was {sender.hex()}")
    digest, content_type, to = _common(headers, body, recipient)
    values = (str(status), digest, content_type, to, request_signature[_VALUE_AT:])
    verify(public, signature, signature_base(RESPONSE_COMPONENTS, values, claim[1]))
    return VerifiedResponse(public=public, peer_id=signer, created=int(claim[2]))


def claimed_sender(headers: Mapping[str, str]) -> bytes:
    """The id a request claims to come from, verified or not: to whom a refusal is addressed.

    Raises:
        AuthenticationFailed: The request has no signature of the profile's form.
    """
    return peer_id(_claim(headers)[1])


def _fields(content_type: str, body: bytes, recipient: bytes) -> dict[str, str]:
    assert len(recipient) == ID_BYTES
    return {"content-digest": content_digest(body), "content-type": content_type, "p2p-recipient": recipient.hex()}


def _sign(
    key: SigningKey, fields: dict[str, str], components: Sequence[str], values: Sequence[str], params: str
) -> dict[str, str]:
    signature = key.sign(signature_base(components, values, params))
    fields["signature-input"] = f"{LABEL}={params}"
    fields["signature"] = f"{LABEL}=:{base64.b64encode(signature).decode()}:"
    return fields


def _claim(headers: Mapping[str, str]) -> tuple[re.Match[str], bytes, bytes]:
    """Match of the request's ``Signature-Input``, public key and signature."""
    claim = _REQUEST_INPUT.fullmatch(headers.get("signature-input", ""))
    if claim is None:
        raise AuthenticationFailed(f"signature-input not of the profile: {headers.get('signature-input', '')[:400]!r}")
    return claim, bytes.fromhex(claim[5]), _signature(headers)


def _signature(headers: Mapping[str, str]) -> bytes:
    match = _SIGNATURE.fullmatch(headers.get("signature", ""))
    if match is None:
        raise AuthenticationFailed(f"signature not of the profile: {headers.get('signature', '')[:120]!r}")
    return base64.b64decode(match[1])


def _common(headers: Mapping[str, str], body: bytes, recipient: bytes) -> tuple[str, str, str]:
    """Values of the fields both directions cover, digest and recipient checked."""
    to, digest = headers.get("p2p-recipient", ""), headers.get("content-digest", "")
    if to != recipient.hex():
        raise AuthenticationFailed(f"message for {to[:64]!r}, we are {recipient.hex()}")
    if digest != content_digest(body):
        raise AuthenticationFailed(f"content-digest {digest[:80]!r} is not the body's")
    if "content-type" not in headers:
        raise AuthenticationFailed("no content-type")
    return digest, headers["content-type"], to
