"""Boxes: only the key they were sealed to opens them, and only under the info they were sealed with."""

import subprocess
import sys

import pytest
from cryptography.hazmat.bindings._rust import openssl
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from p2p_labeldp.crypto import sealing
from p2p_labeldp.crypto.sealing import OVERHEAD_BYTES, SealingKey, box_info, check_public, seal
from p2p_labeldp.errors import AuthenticationFailed, ConfigurationError, MalformedMessage

KEY = SealingKey(bytes(range(32)))
INFO = box_info("label", b"round", b"asker")


def test_rfc_9180_a_2_1_opens():
    # The public interface has no aad, which the vector uses; the suite is ours.
    private = X25519PrivateKey.from_private_bytes(
        bytes.fromhex("8057991eef8f1f1af18f4a9491d16a1ce333f695d4db8e38da75975c4478e0fb")
    )
    enc = bytes.fromhex("1afa08d3dec047a643885163f1180476fa7ddb54c6a8029ea33f95796bf2ac4a")
    ciphertext = bytes.fromhex(
        "1c5250d8034ec2b784ba2cfd69dbdb8af406cfe3ff938e131f0def8c8b60b4db21993c62ce81883d2dd1b51a28"
    )
    plaintext = openssl.hpke._decrypt_with_aad(
        sealing._SUITE, enc + ciphertext, private, info=b"Ode on a Grecian Urn", aad=b"Count-0"
    )
    assert plaintext == b"Beauty is truth, truth beauty"


def test_a_sealing_key_has_the_public_key_of_rfc_9180_a_2_1():
    seed = bytes.fromhex("8057991eef8f1f1af18f4a9491d16a1ce333f695d4db8e38da75975c4478e0fb")
    assert SealingKey(seed).public.hex() == "4310ee97d88cc1f088a5576c77ab0cf5c3ac797f3d95139c6c84b5429c59662a"


@given(st.binary(max_size=200))
def test_a_box_opens_and_has_a_length_that_depends_on_the_contents_length_alone(plaintext):
    box = seal(KEY.public, plaintext, info=INFO)
    assert len(box) == len(plaintext) + OVERHEAD_BYTES
    assert KEY.open(box, info=INFO) == plaintext


def test_a_box_opens_for_no_other_key_and_under_no_other_info():
    box = seal(KEY.public, b"\x01", info=INFO)
    assert KEY.open(box, info=INFO) == b"\x01"
    with pytest.raises(AuthenticationFailed):
        SealingKey(bytes(32)).open(box, info=INFO)
    for info in (b"", INFO + b"\x00", box_info("label", b"round", b"other")):
        with pytest.raises(AuthenticationFailed):
            KEY.open(box, info=info)


def test_a_box_with_any_bit_changed_does_not_open():
    # The top bit of the ephemeral key too: X25519 ignores it (RFC 7748, section 5), HPKE's KEM context does not.
    box = seal(KEY.public, b"\x01", info=INFO)
    for i in range(8 * len(box)):
        altered = bytearray(box)
        altered[i // 8] ^= 1 << i % 8
        with pytest.raises(AuthenticationFailed):
            KEY.open(bytes(altered), info=INFO)


@given(st.binary(max_size=120))
def test_any_bytes_for_a_box_are_a_clean_refusal(box):
    with pytest.raises(AuthenticationFailed):
        KEY.open(box, info=INFO)


@given(st.binary(max_size=40).filter(lambda key: len(key) != 32))
def test_any_bytes_for_a_public_key_are_a_clean_refusal(public):
    with pytest.raises(MalformedMessage):
        seal(public, b"\x01", info=INFO)


def test_public_keys_that_would_share_no_secret_are_refused():
    for public in (bytes(32), b"\x01" + bytes(31)):
        with pytest.raises(MalformedMessage):
            seal(public, b"\x01", info=INFO)
        for _ in range(2):
            with pytest.raises(MalformedMessage):
                check_public(public)
    check_public(KEY.public)


FORKING = r"""
import os, sys
from p2p_labeldp.crypto.sealing import seal

public, info = map(bytes.fromhex, sys.argv[1:])


def tell():
    os.write(1, seal(public, b"\x01", info=info).hex().encode() + b"\n")


tell()
tell()
for _ in range(2):
    child = os.fork()
    if child == 0:
        tell()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
"""


def test_equal_contents_give_unequal_boxes_also_in_forked_children():
    """In a process of its own: the one that runs tests may have threads by now, and would fork into a deadlock."""
    command = [sys.executable, "-c", FORKING, KEY.public.hex(), INFO.hex()]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    boxes = [bytes.fromhex(line) for line in said.splitlines()]
    assert [KEY.open(box, info=INFO) for box in boxes] == [b"\x01"] * 4
    assert len({box[:32] for box in boxes}) == 4


@given(st.lists(st.binary(max_size=5), max_size=4), st.lists(st.binary(max_size=5), max_size=4))
def test_no_two_lists_of_parts_have_the_same_info(one, other):
    assert (box_info("label", *one) == box_info("label", *other)) == (one == other)


def test_info_is_pinned():
    assert box_info("ab", b"c").hex() == b"p2p-labeldp box".hex() + "00000002" + b"ab".hex() + "00000001" + b"c".hex()


@pytest.mark.parametrize("size", [0, 31, 33])
def test_seeds_of_another_length_are_refused(size):
    with pytest.raises(ConfigurationError, match=f"{size} bytes given; 32"):
        SealingKey(bytes(size))
