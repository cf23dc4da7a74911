"""Identities: Ed25519 keys, ids that derive from them, seeds that serve one purpose."""

import hashlib

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand
from hypothesis import given
from hypothesis import strategies as st

from p2p_labeldp.crypto import identity
from p2p_labeldp.crypto.identity import SigningKey, derive_seed, peer_id, verify
from p2p_labeldp.errors import AuthenticationFailed, ConfigurationError

KEY = SigningKey(bytes(range(32)))


def test_rfc_8032_test_2_gives_its_key_and_signature():
    key = SigningKey(bytes.fromhex("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb"))
    assert key.public.hex() == "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c"
    assert key.sign(b"\x72").hex() == (
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
        "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"
    )


def test_the_id_is_the_sha_256_of_the_public_key():
    assert KEY.peer_id == peer_id(KEY.public) == hashlib.sha256(KEY.public).digest()


def test_a_signature_verifies_and_nothing_else_does():
    signature = KEY.sign(b"message")
    verify(KEY.public, signature, b"message")
    other = SigningKey(bytes(32))
    for public, sig, message in (
        (KEY.public, signature, b"massage"),
        (other.public, signature, b"message"),
        (KEY.public, other.sign(b"message"), b"message"),
        (KEY.public, signature[:-1], b"message"),
        (KEY.public[:-1], signature, b"message"),
    ):
        with pytest.raises(AuthenticationFailed) as caught:
            verify(public, sig, message)
        assert str(caught.value) == "authentication failed"
        assert caught.value.detail


@given(st.binary(max_size=40), st.binary(max_size=70))
def test_any_bytes_for_key_and_signature_are_a_clean_refusal(public, signature):
    with pytest.raises(AuthenticationFailed):
        verify(public, signature, b"message")


@given(st.binary(min_size=32, max_size=32), st.binary(max_size=200))
def test_keys_and_signatures_are_those_of_another_library(seed, message):
    ours, theirs = SigningKey(seed), Ed25519PrivateKey.from_private_bytes(seed)
    assert ours.public == theirs.public_key().public_bytes_raw()
    assert ours.sign(message) == theirs.sign(message)
    verify(ours.public, theirs.sign(message), message)


def test_a_key_under_which_one_signature_fits_many_messages_is_refused():
    """The neutral element as public key and as R, with S = 0: S B = R + h A holds whatever the message is."""
    neutral = b"\1" + bytes(31)
    for message in (b"one", b"another"):
        with pytest.raises(AuthenticationFailed):
            verify(neutral, neutral + bytes(32), message)
        accepts_everything = Ed25519PublicKey.from_public_bytes(neutral)  # the control: a library that does not look
        accepts_everything.verify(neutral + bytes(32), message)
    with pytest.raises(InvalidSignature):
        accepts_everything.verify(neutral + b"\1" + bytes(31), message)


def test_seeds_are_hkdf_expand_of_the_secret_and_differ_by_purpose():
    secret = bytes(range(32))
    for purpose in ("ed25519", "x25519"):
        expand = HKDFExpand(algorithm=hashes.SHA256(), length=32, info=b"p2p-labeldp key " + purpose.encode())
        assert derive_seed(secret, purpose) == expand.derive(secret)
    assert derive_seed(secret, "ed25519") != derive_seed(secret, "x25519") != derive_seed(bytes(32), "x25519")


@pytest.mark.parametrize("size", [0, 31, 33])
def test_seeds_and_secrets_of_another_length_are_refused(size):
    with pytest.raises(ConfigurationError, match=f"{size} bytes given; 32"):
        SigningKey(bytes(size))
    with pytest.raises(ConfigurationError, match=f"{size} bytes given; 32"):
        derive_seed(bytes(size), "x")


def test_the_private_key_does_not_show_in_a_representation():
    assert bytes(range(32)).hex() not in repr(KEY) + repr(KEY._private)
    assert identity.SEED_BYTES == 32
