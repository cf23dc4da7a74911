"""Signed records: verified before anybody decodes them, for one kind only, and cached only when they verified."""

import pytest
from altering import altered
from hypothesis import given
from hypothesis import strategies as st

from p2p_labeldp.crypto import envelope
from p2p_labeldp.crypto.envelope import OVERHEAD_BYTES, Signed
from p2p_labeldp.crypto.identity import SigningKey
from p2p_labeldp.errors import AuthenticationFailed, MalformedMessage

KEY = SigningKey(bytes(range(32)))


@pytest.fixture(autouse=True)
def _nothing_verified_yet():
    envelope._verified.clear()


@given(st.binary(max_size=300))
def test_an_envelope_opens_to_its_payload_and_signer(payload):
    data = envelope.sign(KEY, "record", payload)
    expected = Signed(public=KEY.public, peer_id=KEY.peer_id, payload=payload)
    assert envelope.open(data, "record") == envelope.open(data, "record") == expected
    assert len(data) == len(payload) + OVERHEAD_BYTES


def test_the_layout_is_pinned():
    data = envelope.sign(KEY, "record", b"payload")
    signature = KEY.sign(b"p2p-labeldp envelope" + b"\x06record" + b"payload")
    assert data == b"\x01" + KEY.public + signature + b"payload"
    assert OVERHEAD_BYTES == 97


def test_an_envelope_of_one_kind_is_none_of_another():
    data = envelope.sign(KEY, "record", b"payload")
    envelope.open(data, "record")
    for kind in ("roster", "recor", "recordp"):  # the last: what a kind without its length would let through
        with pytest.raises(AuthenticationFailed):
            envelope.open(data, kind)


def test_an_envelope_with_any_byte_changed_does_not_open():
    data = envelope.sign(KEY, "record", b"payload")
    envelope.open(data, "record")
    for i in range(len(data)):
        with pytest.raises((AuthenticationFailed, MalformedMessage)):
            envelope.open(altered(data, i), "record")


def test_another_key_in_an_envelope_does_not_inherit_the_signature():
    data = envelope.sign(KEY, "record", b"payload")
    other = SigningKey(bytes(32))
    with pytest.raises(AuthenticationFailed):
        envelope.open(data[:1] + other.public + data[33:], "record")


def test_size_is_bounded_before_anything_is_verified(monkeypatch):
    data = envelope.sign(KEY, "record", b"payload")
    assert envelope.open(data, "record", max_bytes=len(data)).payload == b"payload"
    monkeypatch.setattr(envelope, "verify", None)
    for bad, limit in (
        (data, len(data) - 1),
        (data[: OVERHEAD_BYTES - 1], 1000),
        (b"", 1000),
        (b"\x02" + data[1:], 1000),
    ):
        with pytest.raises(MalformedMessage):
            envelope.open(bad, "record", max_bytes=limit)


@given(st.binary(max_size=200), st.booleans())
def test_any_bytes_are_a_clean_refusal(data, versioned):
    with pytest.raises((AuthenticationFailed, MalformedMessage)):
        envelope.open(b"\x01" + data if versioned else data, "record")


def test_verifying_is_done_once_and_only_success_is_remembered(monkeypatch):
    calls = []
    real = envelope.verify
    monkeypatch.setattr(envelope, "verify", lambda *args: (calls.append(args), real(*args)))
    good = envelope.sign(KEY, "record", b"payload")
    bad = altered(good)
    for _ in range(3):
        envelope.open(good, "record")
    assert len(calls) == 1
    for _ in range(3):
        with pytest.raises(AuthenticationFailed):
            envelope.open(bad, "record")
    assert len(calls) == 4
    with pytest.raises(MalformedMessage):  # a remembered envelope is still too long for who says so
        envelope.open(good, "record", max_bytes=50)


def test_memory_of_verifications_is_bounded_and_forgets_the_least_recent(monkeypatch):
    monkeypatch.setattr(envelope, "KEPT_VERIFICATIONS", 3)
    data = [envelope.sign(KEY, "record", bytes([i])) for i in range(4)]
    for one in data[:3]:
        envelope.open(one, "record")
    envelope.open(data[0], "record")
    envelope.open(data[3], "record")
    assert len(envelope._verified) == 3
    calls = []
    monkeypatch.setattr(envelope, "verify", lambda *args: calls.append(args))
    for one in (data[0], data[2], data[3]):
        envelope.open(one, "record")
    assert calls == []
    envelope.open(data[1], "record")
    assert len(calls) == 1
