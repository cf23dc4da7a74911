"""The population engine of private rounds: arrays, no messages.

Sampling coins are drawn in bulk; whoever takes part computes and privatises as it would alone, with the generator it
would have. So one seed gives the model of the other engines to the last bit, and a round costs what its cohort does.
"""

from __future__ import annotations

import time

import numpy as np
import numpy.typing as npt

from p2p_labeldp import randomness
from p2p_labeldp.accounting.federated import PeerLedger
from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.network.federated.study import PUBLIC_SEED, Trained, TrainedModel, UpdateStudy, compute_of, model_of
from p2p_labeldp.protocol.federation import FederationManifest, Vector
from p2p_labeldp.randomness import Replay

MANY = 2**62


def play(study: UpdateStudy) -> Trained:
    """Plays all rounds.

    Raises:
        ConfigurationError: A study without a seed: its coins are the peers' own, and here are no peers.
    """
    seed = study.seed
    if seed is None:
        raise ConfigurationError("none given; the population engine needs one", field="seed")
    began = time.monotonic()
    manifest = study.terms.manifest(run_key=bytes(32), opened=0.0, nonce=bytes(16))
    model, mechanism, average = model_of(manifest), manifest.mechanism, manifest.average
    parameters = model.initial(PUBLIC_SEED)
    counts = np.zeros(len(study), dtype=np.int64)
    affordable = PeerLedger(epsilon=mechanism.epsilon, budget=study.budget).affordable
    most = MANY if affordable is None else affordable  # a budget below one report's level affords 0
    cohorts = []

    def report(ordinal: int, number: int) -> Vector:
        coins = Replay(seed, ordinal)
        compute = compute_of(manifest, model, *study.rows_of(ordinal))
        try:
            update = compute(parameters)
        except ConfigurationError:  # not finite: what a peer does then is in protocol.rounds
            update = 0.0 * parameters
        return mechanism.privatise(update, coins.update_generator(round_id=b"", number=number))

    for number in range(manifest.rounds):
        words = randomness.bulk_sampling_words(seed, 0, len(study), number)
        inside = np.flatnonzero(sampled(words, manifest) & (counts < most)).tolist()
        noise = Replay(seed, 0).noise_generator(round_id=b"", number=number, reports=b"")
        released = average.release((report(i, number) for i in inside), noise)
        parameters = manifest.step(parameters, released)
        counts[inside] += 1
        cohorts.append(len(inside))
    return Trained(
        model=TrainedModel(
            parameters=tuple(parameters.tolist()),
            cohorts=tuple(cohorts),
            participations={str(i): int(count) for i, count in enumerate(counts) if count},
            complete=True,
        ),
        seconds=time.monotonic() - began,
    )


def sampled(words: npt.NDArray[np.uint64], manifest: FederationManifest) -> npt.NDArray[np.bool_]:
    """Whose sampling words say that they take part, shape (n,): ``FederationManifest.takes_part`` in bulk."""
    threshold = int(manifest.sampling_rate * 2**64)
    return np.ones(len(words), dtype=np.bool_) if threshold == 2**64 else np.asarray(words < np.uint64(threshold))
