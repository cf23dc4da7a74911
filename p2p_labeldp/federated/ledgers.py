"""The three ledgers of a run: of what was added, of who reported how often."""

from __future__ import annotations

import math

from p2p_labeldp.accounting.federated import PeerLedger, Rounds, SideBySide
from p2p_labeldp.accounting.reconstruction import log_sphere_prior
from p2p_labeldp.config import Updates
from p2p_labeldp.federated.result import Central, Local, Reconstruction
from p2p_labeldp.mechanisms.separated import Separated
from p2p_labeldp.network.federated.study import TrainedModel


def central(planned: Rounds, noise: SideBySide, *, chosen: Updates) -> Central:
    """The guarantee of the noise that was added, beside what the target takes."""
    return Central(
        epsilon=noise.stated.epsilon,
        delta=chosen.delta,
        method=noise.stated.method,
        sigma=noise.sigma,
        noise_multiplier=noise.sigma * planned.expected_cohort / planned.projection,
        target_epsilon=chosen.central_epsilon,
        honest_sigma=noise.honest_sigma,
        reduced=noise.reduced,
    )


def of_peers(mechanism: Separated, model: TrainedModel, *, peers: int, chosen: Updates) -> tuple[Local, Reconstruction]:
    """Local and reconstruction ledger of the peer that reported most often."""
    counts = model.participations.values()
    ledger = PeerLedger(epsilon=mechanism.epsilon, participations=max(counts, default=0), budget=chosen.budget)
    log_prior = log_sphere_prior(dimension=mechanism.dimension, alpha=chosen.breach_distance)
    return (
        Local(
            epsilon=ledger.local_epsilon,
            epsilon_report=ledger.epsilon,
            participations=ledger.participations,
            participations_mean=sum(counts) / peers,
            budget=chosen.budget,
        ),
        Reconstruction(
            breach_distance=chosen.breach_distance,
            success=ledger.reconstruction(log_prior).success,
            prior=math.exp(log_prior),
            epsilon_report=ledger.epsilon,
            participations=ledger.participations,
        ),
    )
