"""A run on the in-memory network: one seed one trace, and what its parties are told."""

import contextlib
import random
import struct

import msgspec
import numpy as np
import pytest
from protocol.little_run import facts_of

from network.federated.little_study import FEATURES, LABELS, TERMS, study
from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.facts import Contributed, Ended, Outcome, Rejected
from p2p_labeldp.federated import population
from p2p_labeldp.network.federated import virtual
from p2p_labeldp.network.federated.study import compute_of, model_of, specs_of, standardised, trained
from p2p_labeldp.network.store import Store
from p2p_labeldp.network.study import Where
from p2p_labeldp.network.virtual import Killed, VirtualNetwork
from p2p_labeldp.protocol.effects import Address
from p2p_labeldp.protocol.kept import ContributedAs


def test_one_seed_is_one_model_and_another_seed_another():
    first, again, other = (virtual.play(study(seed=seed)) for seed in (5, 5, 6))
    assert first.model == again.model
    assert first.facts == again.facts
    assert first.model.parameters != other.model.parameters
    assert first.model.complete


def test_every_peer_answers_every_round_and_ends():
    played = virtual.play(study())
    assert sum(isinstance(fact, Contributed) for fact in played.facts) == len(LABELS) * TERMS.rounds
    assert [fact.outcome for fact in played.facts if isinstance(fact, Ended)] == [Outcome.REPORTED] * len(LABELS)
    assert sum(played.model.cohorts) == sum(played.model.participations.values())
    assert len(played.model.cohorts) == TERMS.rounds


def test_a_run_took_until_its_last_peer_had_the_model():
    played = virtual.play(study())
    assert played.seconds == max(fact.at for fact in played.facts if isinstance(fact, Ended))
    assert played.seconds < TERMS.round_seconds  # after which the last alarm rings, of a round that was long over


def test_latency_changes_the_order_of_things_and_not_the_model():
    slow = virtual.play(study(), latency=(0.5, 1.5))
    assert slow.model == virtual.play(study()).model


def test_a_budget_holds_for_each_peer():
    level = 6.0
    played = virtual.play(study(budget=2 * level))
    free = virtual.play(study())
    assert max(free.model.participations.values()) > 2
    assert max(played.model.participations.values()) == 2


def test_without_a_seed_no_two_runs_are_the_same():
    first, again = (virtual.play(study(seed=None)) for _ in range(2))
    assert first.model.complete
    assert first.model.parameters != again.model.parameters


def test_a_peer_is_told_its_own_example_and_no_other():
    (spec,) = specs_of(study(), learner=Where(bytes(32), "learner", 1), ordinals=[3])
    assert spec.features == tuple(FEATURES[3])
    assert spec.label == LABELS[3]
    told = msgspec.msgpack.encode(spec)
    assert struct.pack(">d", FEATURES[4, 0]) not in told
    assert struct.pack(">d", FEATURES[3, 0]) in told


def test_a_peer_with_its_ledger_on_disk_is_killed_and_restarted_and_changes_nothing(tmp_path):
    whole = virtual.play(study()).model
    for after in range(3):
        network = VirtualNetwork(rng=random.Random(0))
        averager, peers = virtual.cast(study())
        network.add(averager, virtual.LEARNER.address())
        spec, keys = peers[0]
        path, left = tmp_path / f"state-{after}", iter(range(after, -1, -1))

        def start(path=path, spec=spec, keys=keys, network=network, left=left, opened=averager.opened):
            store = Store(path, peer_id=keys.peer_id.hex())
            machine = spec.contributor(opened, keys=keys, earlier=store.contributions())

            def keep(fact):
                store(fact)
                if next(left, None) == 0:  # on disk, and nothing behind it has left
                    store.close()
                    network.at(network.now + 5.0, start)
                    raise Killed

            network.add(machine, Address(keys.peer_id, "peer", 1), store=keep)

        start()
        for other, ring in peers[1:]:
            virtual.join(network, averager.opened, other, ring)
        network.run(until=1000.0)
        assert trained(averager) == whole


def test_features_are_standardised_by_what_is_public_and_outliers_are_shortened():
    rows = standardised([[3.0, 4.0, 5.0], [1e9, 0.0, 0.0]], msgspec.structs.replace(TERMS, shift=(1.0, 2.0, 3.0)))
    assert rows[0] == pytest.approx(np.array([2.0, 2.0, 2.0]) * 3**0.5 / 12**0.5)
    assert np.linalg.norm(rows[1]) == pytest.approx(3**0.5)
    short = standardised([[0.1, 0.2, 0.3]], TERMS)
    assert (short == [[0.1, 0.2, 0.3]]).all()


def test_bad_data_are_found_before_any_round_by_their_own_peer():
    model = TERMS.built()
    with pytest.raises(ConfigurationError, match=r"^features: "):
        compute_of(TERMS, model, [[np.nan, 0.0, 0.0]], [0])
    assert np.isfinite(compute_of(TERMS, model, [[0.5, 0.0, 0.0]], [0])(model.initial(0))).all()


def test_no_scale_of_a_learners_choice_tells_whose_features_are_large():
    """Divided by 5e-309 what is beyond .9 overflows: a peer that stayed away for it would have said so."""
    hostile = study(terms=msgspec.structs.replace(TERMS, scale=(5e-309, 1.0, 1.0)))
    large = ~np.isfinite(standardised(FEATURES, hostile.terms)).all(axis=1)
    assert 0 < large.sum() < len(large)
    played = virtual.play(hostile)
    assert [fact.outcome for fact in played.facts if isinstance(fact, Ended)] == [Outcome.REPORTED] * len(large)
    assert sum(isinstance(fact, Contributed) for fact in played.facts) == len(large) * TERMS.rounds
    complained = {fact.peer for fact in played.facts if isinstance(fact, Rejected) and "update refused" in fact.about}
    assert complained == set(np.flatnonzero(large).tolist())  # in their own logs alone
    assert played.model.participations == virtual.play(study()).model.participations
    assert population.play(hostile).model.parameters == played.model.parameters


def test_a_learner_that_opens_a_run_of_a_higher_level_than_was_agreed_gets_nothing():
    def started(epsilon_direction):
        averager = virtual.cast(study(terms=msgspec.structs.replace(TERMS, epsilon_direction=epsilon_direction)))[0]
        told, keys = virtual.cast(study())[1][0]
        peer = told.contributor(averager.opened, keys=keys)
        peer.start(0.0)
        return peer, facts_of(peer.effects(), Rejected)

    peer, (refused,) = started(1e5)
    assert peer.outcome.outcome is Outcome.REFUSED
    assert "above 6" in refused.about
    for agreed in (TERMS.epsilon_direction, 3.0):
        assert started(agreed)[0].outcome is None


def test_a_peers_budget_holds_for_what_is_on_its_disk_too(tmp_path):
    averager, peers = virtual.cast(study(budget=12.0))
    spec, keys = peers[0]
    with contextlib.closing(Store(tmp_path / "state", peer_id=keys.peer_id.hex())) as store:
        for number in range(2):
            store(earlier(number))
        ledger = spec.contributor(averager.opened, keys=keys, earlier=store.contributions()).ledger
    assert (ledger.budget, ledger.affords("0", 6.0)) == (12.0, False)
    assert spec.contributor(averager.opened, keys=keys).ledger.affords("0", 6.0)


def earlier(number):
    """An update of peer 0 in another run."""
    return ContributedAs(
        peer=0, round=number, run_id=bytes(32), round_id=bytes(32), data_id="0", epsilon=6.0, box=b"box"
    )


def test_a_manifest_of_another_size_than_its_models_is_refused():
    manifest = TERMS.manifest(run_key=bytes(32), opened=0.0)
    assert model_of(manifest).dimension == 4
    with pytest.raises(ConfigurationError, match=r"^dimension: 5 given; logistic_regression has 4"):
        model_of(msgspec.structs.replace(manifest, dimension=5))
