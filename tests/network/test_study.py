"""A study's policy reaches each of its peers, also those that are told of it through a pipe."""

import dataclasses

import msgspec

from p2p_labeldp.network.party import of_study
from p2p_labeldp.network.study import PeerSpec, Where, draw_secrets, peer_specs
from p2p_labeldp.network.virtual import transparent_keys
from p2p_labeldp.protocol.policy import Policy


def test_a_policy_survives_the_pipe_and_stands_in_every_party(study_of):
    policy = Policy(
        epsilon=1.0, local_epsilon=3.0, colluders=2, colluder_epsilon=2.0, classes=("a",), learner=bytes(32)
    )
    study = dataclasses.replace(study_of(sizes=(5,)), policy=policy)
    places = [("127.0.0.1", 1 + i) for i in range(5)]
    ids = [bytes([i]) * 32 for i in range(5)]
    specs = peer_specs(study, secrets=[None] * 5, ids=ids, places=places, learner=Where(bytes(32), "l", 1))
    arrived = msgspec.msgpack.decode(msgspec.msgpack.encode(specs), type=list[PeerSpec])
    assert arrived == specs
    assert {of_study(spec, transparent_keys(b"x")).policy for spec in arrived} == {policy}


def test_without_a_seed_every_peer_has_a_fresh_secret_and_nothing_else_to_derive_coins_from(study_of):
    study = study_of(sizes=(5,))
    unseeded = dataclasses.replace(study, seed=None)
    assert draw_secrets(study) == [None] * 5
    first, second = draw_secrets(unseeded), draw_secrets(unseeded)
    assert len({*first, *second}) == 10
    assert {len(secret) for secret in first} == {32}
    places, ids = [(f"host-{i}", 1) for i in range(5)], [bytes([i]) * 32 for i in range(5)]
    specs = peer_specs(unseeded, secrets=first, ids=ids, places=places, learner=Where(bytes(32), "l", 1))
    words = {spec.coins().flip_word(label_id="a", flip_probability=0.1) for spec in specs}
    assert len(words) == 5
    assert all(spec.seed is None for spec in specs)
    back = msgspec.msgpack.decode(msgspec.msgpack.encode(specs[0]), type=PeerSpec)
    assert back.coins().identity() == specs[0].coins().identity()
