"""``account federated``: the three ledgers of rounds of private updates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from p2p_labeldp.cli.answers import refusing, state
from p2p_labeldp.errors import ConfigurationError

if TYPE_CHECKING:
    from p2p_labeldp.accounting.federated import Rounds
    from p2p_labeldp.mechanisms.separated import Separated

HELP = """Rounds of private updates: the central, the local and the reconstruction ledger.

Central: what the models tell of one peer, at --delta, by the tighter of RDP and PLD, neighbours being one peer more or
less. --epsilon asks for the noise that keeps it there; --sigma says what noise is added to the average, and with both
the honest sigma stands beside the reduced one. Local: what the learner, who sees the reports, can tell of a peer that
took part as often as anybody will (all peers, with probability 1 - 1e-6), or until --budget is spent. Reconstruction:
how well it can guess the direction of that peer's update to within --alpha, which it had no idea of before.

Reports are shrunk to norm --projection before they are added; by default to the largest norm that the mechanism has, so
that none is. Below it the share that is shrunk is stated, and warned of.

Examples:

\b
    p2p-labeldp account federated --population 100000 --sampling 0.01 --rounds 100 --dimension 500 \\
        --epsilon-direction 50 --epsilon-magnitude 10 --epsilon 1.9 --delta 1e-9
    p2p-labeldp account federated --population 1000 --sampling 0.1 --rounds 200 --dimension 500 \\
        --epsilon-direction 50 --epsilon-magnitude 10 --epsilon 1.76 --delta 1e-9 --sigma 0.01 --json
"""


def command(
    population: Annotated[int, typer.Option(metavar="N", help="Peers.")],
    sampling: Annotated[float, typer.Option(metavar="Q", help="Probability that a peer takes part in a round.")],
    rounds: Annotated[int, typer.Option(metavar="T", help="Rounds.")],
    dimension: Annotated[int, typer.Option(metavar="D", help="Parameters of the model.")],
    epsilon_direction: Annotated[float, typer.Option(metavar="E", help="Level of a report's direction.")],
    epsilon_magnitude: Annotated[float, typer.Option(metavar="E", help="Level of its magnitude.")] = 10.0,
    delta: Annotated[float, typer.Option(metavar="D", help="Of the central guarantee, 1e-12 or more.")] = 1e-9,
    epsilon: Annotated[float | None, typer.Option(metavar="E", help="Central target that the noise is for.")] = None,
    sigma: Annotated[
        float | None, typer.Option(metavar="S", help="Noise on the average. Default: the target's.")
    ] = None,
    max_radius: Annotated[float, typer.Option(metavar="R", help="Updates are clipped to this norm.")] = 1.0,
    magnitude: Annotated[str, typer.Option(metavar="absolute|relative", help="ScalarDP or ScalarRelDP.")] = "absolute",
    projection: Annotated[
        float | None, typer.Option(metavar="RHO", help="Norm reports are shrunk to. Default: the largest there is.")
    ] = None,
    budget: Annotated[float | None, typer.Option(metavar="E", help="Local total a peer allows. Default: any.")] = None,
    alpha: Annotated[float, typer.Option(metavar="A", help="Distance that counts as a breach.")] = 1.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """See ``HELP``."""
    with refusing(
        population="--population", sampling_rate="--sampling", sigma="--sigma", budget="--budget",
        projection="--projection", magnitude="--magnitude", epsilon_direction="--epsilon-direction",
        epsilon_magnitude="--epsilon-magnitude",
    ):  # fmt: skip
        if epsilon is None and sigma is None:
            raise ConfigurationError("missing; it or --sigma is needed", field="epsilon")
        from p2p_labeldp.accounting.federated import Rounds, safe_projection, shrunk_share
        from p2p_labeldp.mechanisms.separated import Separated

        for name, level in (("epsilon_direction", epsilon_direction), ("epsilon_magnitude", epsilon_magnitude)):
            if not 1e-6 <= level <= 1e5:
                raise ConfigurationError(f"{level} given; 1e-06 to 100000 is possible", field=name)
        mechanism = Separated.calibrated(
            dimension=dimension,
            epsilon_direction=epsilon_direction,
            epsilon_magnitude=epsilon_magnitude,
            max_radius=max_radius,
            magnitude=magnitude,  # type: ignore[arg-type]  # any text: `calibrated` refuses what is none
        )
        safe = safe_projection(mechanism)
        planned = Rounds(
            population=population,
            sampling_rate=sampling,
            rounds=rounds,
            projection=safe if projection is None else projection,
        )
        shrunk = shrunk_share(mechanism, planned.projection)
        record = {
            "population": population,
            "sampling_rate": sampling,
            "rounds": rounds,
            "expected_cohort": planned.expected_cohort,
            "projection": planned.projection,
            "projection_safe": safe,
            "shrunk_share": shrunk,
            "central": _central(planned, epsilon, delta, sigma),
            **_peer(planned, mechanism, budget, alpha),
        }
    if shrunk > 0:
        typer.echo(
            f"warning: up to {shrunk:.3g} of the reports are shrunk, and the average is biased; a projection of"
            f" {safe:.6g} shrinks none",
            err=True,
        )
    state(record, as_json)


def _central(planned: Rounds, epsilon: float | None, delta: float, sigma: float | None) -> dict[str, Any]:
    from p2p_labeldp.accounting.federated import guarantee_of

    honest = None if epsilon is None else planned.sigma_for(epsilon=epsilon, delta=delta)
    added = honest if sigma is None else sigma
    assert added is not None  # one of the two was given
    found = planned.epsilons(sigma=added, delta=delta)
    stated = guarantee_of(found, delta=delta)
    return {
        "epsilon": stated.epsilon,
        "delta": delta,
        "method": stated.method,
        "sigma": added,
        "noise_multiplier": planned.noise_multiplier(added),
        "epsilon_rdp": found.get("rdp"),
        "epsilon_pld": found.get("pld"),
        "target_epsilon": epsilon,
        "honest_sigma": honest,
        "reduced": None if honest is None else added < honest,
    }


def _peer(planned: Rounds, mechanism: Separated, budget: float | None, alpha: float) -> dict[str, Any]:
    from p2p_labeldp.accounting.federated import PeerLedger, most_participations
    from p2p_labeldp.accounting.reconstruction import log_sphere_prior

    most = most_participations(
        sampling_rate=planned.sampling_rate, rounds=planned.rounds, population=planned.population
    )
    fresh = PeerLedger(epsilon=mechanism.epsilon, budget=budget)
    if fresh.affordable is not None:
        most = min(most, fresh.affordable)
    ledger = PeerLedger(epsilon=mechanism.epsilon, participations=most, budget=budget)
    log_prior = log_sphere_prior(dimension=mechanism.dimension, alpha=alpha)
    return {
        "local": {
            "epsilon": ledger.local_epsilon,
            "epsilon_report": mechanism.epsilon,
            "epsilon_report_exact": mechanism.epsilon_exact,
            "participations": most,
            "participations_expected": planned.sampling_rate * planned.rounds,
            "budget": budget,
        },
        "reconstruction": {"alpha": alpha, **ledger.reconstruction(log_prior).summary()},
    }
