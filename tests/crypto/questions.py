"""A question that Ada signs for Ben, and his answer."""

from p2p_labeldp.crypto.identity import SigningKey
from p2p_labeldp.crypto.signatures import sign_request, sign_response, verify_request, verify_response

ADA, BEN, EVE = (SigningKey(bytes([i]) * 32) for i in (1, 2, 3))
NOW = 1_700_000_000
TYPE = "application/vnd.p2p-labeldp"
QUESTION = {"method": "POST", "authority": "127.1.2.3:9000", "path": "/p2p/v1", "body": b"question"}


def ask(key=ADA, recipient=BEN, now=NOW, nonce=bytes(16), content_type=TYPE, **changes):
    message = QUESTION | changes
    return sign_request(key, content_type=content_type, recipient=recipient.peer_id, now=now, nonce=nonce, **message)


def check(headers, recipient=BEN, now=NOW, allowed=30, **changes):
    message = QUESTION | changes
    return verify_request(headers, recipient=recipient.peer_id, now=now, allowed_skew_seconds=allowed, **message)


def answer(request, key=BEN, recipient=ADA, status=200, body=b"answer", content_type=TYPE):
    return sign_response(
        key,
        status=status,
        content_type=content_type,
        body=body,
        recipient=recipient.peer_id,
        request_signature=request["signature"],
        now=NOW,
    )


def check_answer(headers, request, sender=BEN, recipient=ADA, status=200, body=b"answer"):
    return verify_response(
        headers,
        status=status,
        body=body,
        sender=sender.peer_id,
        recipient=recipient.peer_id,
        request_signature=request["signature"],
    )
