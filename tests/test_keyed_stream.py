"""A cryptographic stream behind NumPy's generator: the laws are NumPy's, the bits are the key's."""

import hashlib
import struct
import threading

import numpy as np
import pytest
from scipy import stats

from p2p_labeldp import keyed_stream

KEY = bytes(range(32))


def test_the_bits_are_shake_256_of_key_and_block():
    words = keyed_stream.generator(KEY).integers(0, 2**64 - 1, size=2000, dtype=np.uint64, endpoint=True)
    stream = b"".join(hashlib.shake_256(KEY + bytes(7) + bytes([block])).digest(8 * 1024) for block in (0, 1))
    assert words.tolist() == list(struct.unpack("<2048Q", stream))[:2000]


def test_one_key_one_stream():
    first, again, other = (keyed_stream.generator(key).standard_normal(50) for key in (KEY, KEY, bytes(32)))
    assert (first == again).all()
    assert (first != other).all()


@pytest.mark.parametrize(
    ("draw", "law"),
    [
        (lambda rng: rng.random(20_000), stats.uniform()),
        (lambda rng: rng.standard_normal(20_000), stats.norm()),
        (lambda rng: rng.chisquare(7.0, 20_000), stats.chi2(7.0)),
        (lambda rng: rng.integers(1, 28, size=20_000, endpoint=True) + rng.random(20_000), stats.uniform(1, 28)),
    ],
)
def test_the_laws_are_numpys(draw, law):
    assert stats.kstest(draw(keyed_stream.generator(KEY)), law.cdf).pvalue > 1e-6


def test_it_outlives_its_bit_generator_and_works_in_threads():
    results = []

    def work(key):
        rng = keyed_stream.generator(bytes([key]) * 32)
        results.append((key, rng.standard_normal(2000).sum()))

    threads = [threading.Thread(target=work, args=(key,)) for key in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({total for _, total in results}) == 4
    for key, total in results:
        assert total == keyed_stream.generator(bytes([key]) * 32).standard_normal(2000).sum()
