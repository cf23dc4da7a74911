"""One table of streams; every value has one purpose."""

import numpy as np
import pytest

from p2p_labeldp import randomness
from p2p_labeldp.errors import ConfigurationError, LocalProtocolError


def test_a_peer_draws_alone_what_the_population_draws_in_bulk():
    bulk = randomness.bulk_label_words(7, 100, 50)
    for i in range(50):
        alone = randomness.replay(7, 100 + i)
        assert alone.flip_word(label_id="x", flip_probability=0.1) == bulk[i, 0]
        assert alone.mate_word(label_id="x", round_id=b"", roster=b"") == bulk[i, 1]


def test_the_fast_bulk_draw_returns_the_raw_words_of_philox():
    key = np.array([3, randomness.Stream.LABELS], dtype=np.uint64)
    raw = np.random.Philox(key=key, counter=5).random_raw(4 * 9).reshape(9, 4)
    assert (randomness.bulk_label_words(3, 5, 9) == raw).all()


def test_a_fifth_word_raises():
    with pytest.raises(LocalProtocolError):
        randomness.word(0, randomness.Stream.LABELS, 0, 4)


def test_seeds_outside_64_bits_are_refused():
    for seed in (-1, 2**64):
        with pytest.raises(ConfigurationError, match="seed"):
            randomness.replay(seed, 0)


def test_streams_seeds_and_rounds_differ():
    base = randomness.bulk_label_words(1, 0, 10)
    assert (base != randomness.bulk_label_words(2, 0, 10)).any()
    assert (base != randomness.bulk_label_words(1, 0, 10, round_number=1)).any()
    assert randomness.replay(1, 0).identity() != randomness.replay(1, 1).identity()


def test_a_deployed_peer_repeats_its_coins_and_binds_each_to_its_purpose():
    secret = randomness.secure()
    twin = randomness.Secret(secret._secret)
    flip = secret.flip_word(label_id="a", flip_probability=0.1)
    assert flip == twin.flip_word(label_id="a", flip_probability=0.1)
    assert flip != secret.flip_word(label_id="b", flip_probability=0.1)
    assert flip != secret.flip_word(label_id="a", flip_probability=0.2)
    mate = secret.mate_word(label_id="a", round_id=b"r", roster=b"s")
    assert mate == twin.mate_word(label_id="a", round_id=b"r", roster=b"s")
    assert mate != secret.mate_word(label_id="a", round_id=b"rs", roster=b"")
    assert secret.identity() != randomness.secure().identity()


def test_a_curators_coins_follow_from_the_seed_alone():
    a, b, c = (randomness.curator(seed).randbytes(16) for seed in (1, 1, 2))
    assert a == b
    assert a != c
    with pytest.raises(ConfigurationError, match="seed: "):
        randomness.curator(-1)


def test_a_peer_tosses_alone_the_sampling_coins_of_the_population():
    bulk = randomness.bulk_sampling_words(7, 100, 50, number=3)
    for i in range(50):
        assert randomness.replay(7, 100 + i).sampling_word(round_id=b"", number=3) == bulk[i]


def test_draws_of_peers_rounds_and_seeds_differ_and_repeat():
    def draw(seed, ordinal, number):
        coins = randomness.replay(seed, ordinal)
        return coins.update_generator(round_id=b"", number=number).random(), coins.noise_generator(
            round_id=b"", number=number, reports=b""
        ).random()

    base = draw(1, 2, 3)
    assert draw(1, 2, 3) == base
    assert base[0] not in {draw(9, 2, 3)[0], draw(1, 9, 3)[0], draw(1, 2, 9)[0], base[1]}
    assert base[1] not in {draw(9, 2, 3)[1], draw(1, 2, 9)[1]}


def test_a_secrets_draws_serve_one_purpose_and_one_round_each():
    secret = randomness.Secret(bytes(32))
    draws = [
        secret.update_generator(round_id=b"1", number=0).random(),
        secret.update_generator(round_id=b"2", number=0).random(),
        secret.noise_generator(round_id=b"1", number=0, reports=b"").random(),
        secret.noise_generator(round_id=b"1", number=0, reports=b"x").random(),
        secret.sampling_word(round_id=b"1", number=0) / 2**64,
        secret.sampling_word(round_id=b"2", number=0) / 2**64,
    ]
    assert len(set(draws)) == len(draws)
    assert (
        secret.update_generator(round_id=b"1", number=5).random() == draws[0]
    )  # the id names the round, number included
