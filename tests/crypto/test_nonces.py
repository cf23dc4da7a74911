"""A nonce is accepted once while its request could be valid, however full the cache."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2p_labeldp.crypto.nonces import NonceCache, NonceCacheFull
from p2p_labeldp.errors import ConfigurationError, ReplayedMessage

ADA, BEN = b"a" * 32, b"b" * 32
NOW = 1_700_000_000.0
KEPT = 60 + 2 * 30


def nonce(i: int) -> bytes:
    return i.to_bytes(16, "big")


def test_a_repeat_is_refused_and_the_same_nonce_of_another_sender_is_not():
    cache = NonceCache()
    cache.accept(ADA, nonce(1), now=NOW)
    cache.accept(ADA, nonce(2), now=NOW)
    cache.accept(BEN, nonce(1), now=NOW)
    with pytest.raises(ReplayedMessage):
        cache.accept(ADA, nonce(1), now=NOW + KEPT)


def test_a_nonce_is_forgotten_only_when_no_request_could_carry_it():
    cache = NonceCache()
    cache.accept(ADA, nonce(1), now=NOW)
    with pytest.raises(ReplayedMessage):
        cache.accept(ADA, nonce(1), now=NOW + KEPT)
    cache.accept(ADA, nonce(2), now=NOW + KEPT + 1)
    assert len(cache) == 1


def test_a_full_cache_refuses_what_is_new_and_still_knows_what_is_old():
    cache = NonceCache(3)
    for i in range(3):
        cache.accept(ADA, nonce(i), now=NOW + i)
    with pytest.raises(NonceCacheFull):
        cache.accept(ADA, nonce(3), now=NOW + 3)
    for i in range(3):
        with pytest.raises(ReplayedMessage):
            cache.accept(ADA, nonce(i), now=NOW + 3)
    cache.accept(ADA, nonce(3), now=NOW + KEPT + 0.5)  # the first made room
    with pytest.raises(NonceCacheFull):
        cache.accept(ADA, nonce(4), now=NOW + KEPT + 0.5)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 100)), max_size=40), st.integers(1, 4))
def test_whatever_comes_when_nothing_is_accepted_twice_within_its_validity(arrivals, capacity):
    cache, accepted, now = NonceCache(capacity), {}, NOW
    for i, step in arrivals:
        now += step
        try:
            cache.accept(ADA, nonce(i), now=now)
        except (ReplayedMessage, NonceCacheFull):
            continue
        assert i not in accepted or now > accepted[i] + KEPT
        accepted[i] = now
        assert len(cache) <= capacity


def test_a_cache_without_room_is_refused():
    with pytest.raises(ConfigurationError, match="nonce capacity: 0 given"):
        NonceCache(0)
