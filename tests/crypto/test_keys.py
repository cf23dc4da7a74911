"""One secret, all keys of a peer."""

import pytest

from p2p_labeldp.crypto import KeyRing, Keys, SealingKey, box_info, envelope, peer_id
from p2p_labeldp.crypto.identity import SigningKey, derive_seed
from p2p_labeldp.errors import AuthenticationFailed, ConfigurationError, MalformedMessage

SECRET = bytes(range(32))
INFO = box_info("label", b"round")


def test_keys_are_a_key_ring_and_derive_from_the_secret():
    keys: KeyRing = Keys(SECRET)
    assert keys.public == SigningKey(derive_seed(SECRET, "ed25519")).public
    assert keys.sealing_public == SealingKey(derive_seed(SECRET, "x25519")).public
    assert keys.peer_id == peer_id(keys.public)
    again, other = Keys(SECRET), Keys(bytes(32))
    assert (keys.public, keys.sealing_public) == (again.public, again.sealing_public)
    assert keys.public != other.public
    assert keys.sealing_public != other.sealing_public


def test_what_one_signs_the_other_verifies():
    ada, ben = Keys(SECRET), Keys(bytes(32))
    signed = ben.verify("record", ada.sign("record", b"payload"))
    assert (signed.peer_id, signed.public, signed.payload) == (ada.peer_id, ada.public, b"payload")
    assert ada.sign("record", b"payload") == envelope.sign(ada.signing_key, "record", b"payload")
    with pytest.raises(AuthenticationFailed):
        ben.verify("roster", ada.sign("record", b"payload"))
    with pytest.raises(MalformedMessage):
        ben.verify("record", ada.sign("record", b"payload"), max_bytes=100)


def test_what_one_seals_only_the_addressee_opens():
    ada, ben, eve = Keys(SECRET), Keys(bytes(32)), Keys(b"\x01" * 32)
    box = ada.seal(ben.sealing_public, b"\x01", info=INFO)
    assert ben.open(box, info=INFO) == b"\x01"
    for keys in (ada, eve):
        with pytest.raises(AuthenticationFailed):
            keys.open(box, info=INFO)


def test_nothing_is_derived_before_it_is_asked_for():
    keys = Keys(SECRET)
    assert set(vars(keys)) == {"_secret"}
    assert keys.sealing_public
    assert "signing_key" not in vars(keys)


def test_a_secret_of_another_length_is_refused():
    with pytest.raises(ConfigurationError, match="secret: 31 bytes given; 32"):
        Keys(bytes(31))
