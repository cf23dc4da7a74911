"""A study's policy reaches each of its peers, also those that are told of it through a pipe."""

import dataclasses

import msgspec

from p2p_labeldp.network.party import of_study
from p2p_labeldp.network.study import PeerSpec, Where, peer_specs
from p2p_labeldp.network.virtual import transparent_keys
from p2p_labeldp.protocol.policy import Policy


def test_a_policy_survives_the_pipe_and_stands_in_every_party(study_of):
    policy = Policy(
        epsilon=1.0, local_epsilon=3.0, colluders=2, colluder_epsilon=2.0, classes=("a",), learner=bytes(32)
    )
    study = dataclasses.replace(study_of(sizes=(5,)), policy=policy)
    places = [("127.0.0.1", 1 + i) for i in range(5)]
    specs = peer_specs(study, ids=[bytes([i]) * 32 for i in range(5)], places=places, learner=Where(bytes(32), "l", 1))
    arrived = msgspec.msgpack.decode(msgspec.msgpack.encode(specs), type=list[PeerSpec])
    assert arrived == specs
    assert {of_study(spec, transparent_keys(b"x")).policy for spec in arrived} == {policy}
